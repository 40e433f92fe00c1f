// Runs a graph on a device, from float64 values in to float64 values out.
#pragma once

#include "ir/op.h"
#include "passes/pipeline.h"
#include "runtime/executable.h"

#include <span>
#include <string>
#include <vector>

namespace tilewright::test {

struct GraphRunner {
  explicit GraphRunner(const std::string& device, const std::string& isa = "");  // open_device.h
  using Tensors = std::vector<ir::HostTensor>;
  // Loads and runs; throws Error.
  Tensors run(const passes::Compiled& compiled, std::span<const ir::HostTensor> inputs);
  // The same for several sets of inputs, loaded once.
  std::vector<Tensors> run_each(const passes::Compiled& compiled, std::span<const Tensors> sets);
  std::shared_ptr<runtime::Device> device;
  runtime::BinaryCache cache{""};
};

// The compiled graph with a cast to its own type at each value that one kernel leaves to another: the oracle
// then rounds where the kernels store.
ir::Graph with_stored_roundings(const passes::Compiled& compiled);

}  // namespace tilewright::test
