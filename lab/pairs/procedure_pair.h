// Instances of work that is no compiled program: loading, moving, waiting. A contender has threads, files and
// state of its own between its calls; the harness verifies and times it as any other.
#pragma once

#include <tilewright/tensor/tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/workload.h"
#include "peers/peers.h"

namespace tilewright::lab {

// One way to do the work.
struct Procedure {
  std::string name;
  // Does an iteration and leaves its results in `results`, one for each output; returns when all is done.
  // Throws Error where it cannot.
  std::function<void(std::int64_t iteration, const std::vector<Tensor>& results)> run;
  std::function<double()> waited_us = {};  // as Contender::waited_us
  std::string note = {};                   // as Contender::note
};

// An output that is made here, of what any contender left in the others: how often each thing was delivered.
struct DerivedOutput {
  OutputSpec spec;
  // Elements of the spec's type, from those of all other outputs, each in float64.
  std::function<std::vector<double>(const std::vector<std::vector<double>>& outputs)> make;
};

struct ProcedureWorkload {
  std::string target, shape, dtype;  // names for the record
  std::int64_t steps = 1;            // as PairInstance::steps
  perf::Cost cost;                   // of a step: arithmetic and compulsory traffic
  std::string unit = {};             // as PairInstance::unit
  std::vector<OutputSpec> outputs;   // of an iteration
  std::vector<DerivedOutput> derived = {};
  // New random data; a procedure that keeps any must see that it is no longer so.
  std::function<Status(std::uint64_t seed)> refresh;
  std::function<Result<std::uint64_t>()> digest;      // a hash of the data
  std::function<std::vector<Reference>()> reference;  // one for each output, then one for each derived
  std::vector<Procedure> procedures;                  // the first is the baseline
  // The same for other processes; outputs and listeners are filled in here. None: no peer has it.
  std::optional<PeerWorkload> peers = {};
};

// A Failure where the device or the host cannot hold it.
Result<PairInstance> make_instance(ProcedureWorkload workload, LabDevice& device);

}  // namespace tilewright::lab
