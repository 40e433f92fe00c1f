// Runs a graph on a device, from float64 values in to float64 values out.
#pragma once

#include "ir/op.h"
#include "passes/pipeline.h"
#include "runtime/executable.h"
#include "runtime/kernel_store.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilewright::test {

// The elements in their type's bytes, as they lie in a buffer.
std::vector<char> pack(const ir::HostTensor& t);

// Runners of a process share their compiled kernels (kernel_folder.h); what is interpreted is not kept.
struct GraphRunner {
  explicit GraphRunner(const std::string& device, const std::string& isa = "");  // open_device.h
  using Tensors = std::vector<ir::HostTensor>;
  // Loads and runs; throws Error. Outputs that the plan writes over inputs lie there.
  Tensors run(const passes::Compiled& compiled, std::span<const ir::HostTensor> inputs);
  // The same for several sets of inputs.
  std::vector<Tensors> run_each(const passes::Compiled& compiled, std::span<const Tensors> sets);
  std::shared_ptr<runtime::Device> device;
  runtime::BinaryCache kernels;
  runtime::KernelStore store{device, &kernels};
};

// The compiled graph with a cast to its own type at each value that one kernel leaves to another: the oracle
// then rounds where the kernels store.
ir::Graph with_stored_roundings(const passes::Compiled& compiled);

// What is compared with results of a compiled graph: the graph as written, unless narrow floats are rounded
// between its kernels.
ir::Graph oracle_of(const ir::Graph& graph, const passes::Compiled& compiled);

// How the results differ from the oracle's beyond what rounding explains; empty where they do not. Where a
// rounding decides (tanh that reaches 1, then truncated), few roundings at random may miss what it does: 5
// are tried first, then ten times as many, up to `runs`.
struct RoundingOptions {
  std::uint64_t seed = 1;
  int runs = 50;
};
std::string difference_from(const ir::Graph& oracle, std::span<const ir::HostTensor> inputs,
                            std::span<const ir::HostTensor> got, RoundingOptions options);

}  // namespace tilewright::test
