// A machine that programs are compiled for without being there: its target, and what lists schedules and
// prints for it. The same on every host, so that records of different hosts can be compared.
#pragma once

#include "backends/backend.h"

#include <functional>
#include <string>
#include <vector>

namespace tilewright::replay {

struct Machine {
  std::string name;  // "cpu", "sm_80", "sm_90a"
  tile::Target target;
  std::function<std::vector<backends::Candidate>(const tile::Kernel& kernel)> candidates;
  std::function<Result<backends::Source>(const tile::Kernel& kernel, const tile::Schedule& schedule)> print;

  bool is_gpu() const { return target.kind == tile::TargetKind::cuda; }
};

std::vector<std::string> machine_names();
// Throws Error for a name that is none of these.
Machine make_machine(const std::string& name);

}  // namespace tilewright::replay
