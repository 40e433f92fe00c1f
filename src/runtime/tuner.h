// Tuner: measures, on the data of a call, the schedules that the backend's model ranks first, and keeps the
// fastest for each kernel. Winners are stored beside the binaries, by device and kernel (its sizes included).
#pragma once

#include "runtime/executable.h"

#include <string>
#include <vector>

namespace tilewright::runtime {

struct Trial {
  tile::Schedule schedule;
  double predicted_us = 0;
  double measured_us = 0;  // median of the rounds; 0 where it failed
  std::string failure;
};

struct KernelTuning {
  std::vector<Trial> trials;  // fastest first; empty when the winner was stored or there is no choice
  bool stored = false;
  double ms = 0;  // spent on this kernel, compiling included
};

struct TuneOptions {
  int candidates = 16;    // measured at most
  double round_us = 400;  // device time a candidate gets in each round …
  int rounds = 5;         // … of the final, which those within `keep` of the best reach
  double keep = 1.25;
};

// One entry per kernel of the plan. Writes the outputs (with the values of a run, or of part of one): the
// caller runs the executable afterwards.
Result<std::vector<KernelTuning>> tune(Executable& executable, KernelStore& store, BinaryCache* cache,
                                       std::span<const std::shared_ptr<Buffer>> inputs,
                                       std::span<const std::shared_ptr<Buffer>> outputs,
                                       const TuneOptions& options = {});

}  // namespace tilewright::runtime
