// A backend that prints for a machine that is not there, writes down what it prints, and runs nothing.
#pragma once

#include "replay/machine.h"
#include "replay/program_record.h"
#include "support/idle_backend.h"

#include <memory>

namespace tilewright::replay {

// What is printed for, and where kernels are written down at present; null: nowhere.
struct Recording {
  const Machine& machine;
  ProgramRecord* program = nullptr;
};

class RecordingBackend final : public test::IdleBackend {
 public:
  explicit RecordingBackend(const Recording& recording) : to_(recording) {}

  const tile::Target& target() const override { return to_.machine.target; }
  std::string binary_key() const override { return "printed for " + to_.machine.name; }

  std::vector<backends::Candidate> candidates(const tile::Kernel& kernel) const override;
  Result<backends::Source> print(const tile::Kernel& kernel, const tile::Schedule& schedule) const override;
  Result<backends::Binary> compile(const tile::Kernel&, const backends::Source&) const override {
    return backends::Binary{};
  }

 private:
  const Recording& to_;
  mutable std::vector<backends::Candidate> listed_;  // of the kernel asked for last, which is printed next
};

// What the contexts that this thread makes from now on record into, whatever their device's name. It must
// outlive them.
void record_contexts(const Recording& recording);

}  // namespace tilewright::replay

extern "C" tilewright::Result<std::unique_ptr<tilewright::backends::Backend>> tw_open_recording_backend();
