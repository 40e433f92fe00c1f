// Tuner: measures, on the data of a call, the schedules that the backend's model ranks first, for a kernel
// and its variants with other tiles, and what vendors' libraries have in the kernel's place, and keeps the
// fastest. Winners are stored beside the binaries, by device and kernel, whose sizes count by the next power
// of two: shapes of one bucket share what one of them measured, each with its tiles nearest to the winner's.
#pragma once

#include "runtime/executable.h"

#include <string>
#include <vector>

namespace tilewright::runtime {

std::string tiles_of(const tile::Kernel& kernel);  // "BM=128 BN=256 BK=64": its constants

struct Trial {
  std::string tiles;  // tiles_of() the kernel; empty for a library's call
  tile::Schedule schedule;
  double predicted_us = 0;  // 0 for a library's call
  double measured_us = 0;   // median of the rounds; 0 where it failed
  std::string failure;
};

struct KernelTuning {
  std::vector<Trial> trials;  // fastest first; empty when the winner was stored or there is no choice
  bool stored = false;
  // A line where a library's call was measured: who won, and by how much. Of a stored winner, what its
  // measurement found.
  std::string library;
  double ms = 0;  // spent on this kernel, compiling included
};

struct TuneOptions {
  int candidates = 16;  // kernels of ours that are measured at most
  tile::Libraries libraries = tile::Libraries::compared;
  double round_us = 400;  // device time a candidate gets in each round …
  int rounds = 5;         // rounds of the final, which those within `keep` of the best reach
  double keep = 1.25;
};

// Kernels that may take the place of each of the plan's: the same views and results, other tiles.
using Variants = std::vector<std::vector<tile::Kernel>>;

// One entry per kernel of the plan. Writes the outputs (with the values of a run, or of part of one): the
// caller runs the executable afterwards.
Result<std::vector<KernelTuning>> tune(Executable& executable, KernelStore& store, BinaryCache* cache,
                                       const Variants& variants,
                                       std::span<const std::shared_ptr<Buffer>> inputs,
                                       std::span<const std::shared_ptr<Buffer>> outputs,
                                       const TuneOptions& options = {});

}  // namespace tilewright::runtime
