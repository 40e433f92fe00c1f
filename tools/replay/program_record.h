// What a program became on one machine: of each kernel everything that decides how it runs.
#pragma once

#include <string>
#include <vector>

namespace tilewright::replay {

struct KernelRecord {
  std::string name;
  std::string tile;    // IR
  std::string source;  // as printed under the schedule that is taken
  std::string schedule;
  std::string launch;  // threads, shared memory: what the source does not say
  double predicted_us = 0;
  std::string candidates;  // every legal schedule with its predicted time, a line each
  std::string failure;     // no schedule, or no source: why
};

struct ProgramRecord {
  std::string name;
  std::string machine;
  std::string graph;                       // as the compiler is given it; empty where tensors are called
  std::string plan;                        // buffers and steps; empty where tensors are called
  std::string failure;                     // it was not compiled: why
  std::vector<KernelRecord> kernels = {};  // in the order they are printed
};

}  // namespace tilewright::replay
