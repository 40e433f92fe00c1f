// Compiled code on the device: a module made from a cubin, and the kernels in it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "backends/cuda/host/context.h"

namespace tilewright::cuda {

// What a kernel occupies, as the driver sees the loaded code.
struct FunctionAttributes {
  int registers = 0;            // a thread
  int local_bytes = 0;          // a thread: stack and spills; anything above 0 costs memory traffic
  int static_shared_bytes = 0;  // a block
  int max_threads = 0;          // a block, as limited by registers and launch bounds
  friend bool operator==(const FunctionAttributes&, const FunctionAttributes&) = default;
};

// A kernel of a loaded Module; a cheap handle that is valid as long as its module.
class Function {
 public:
  Function(const Driver& driver, api::CUfunction function) : driver_(&driver), function_(function) {}

  api::CUfunction get() const { return function_; }
  const Driver& driver() const { return *driver_; }
  Result<FunctionAttributes> attributes() const;
  // Opts in to more than 48 KiB of dynamic shared memory a block.
  Status allow_shared_bytes(int bytes) const;
  // Opts in to clusters of more than 8 blocks (16 on H200).
  Status allow_large_clusters() const;
  // Resident blocks an SM at `threads` a block and that much dynamic shared memory.
  Result<int> blocks_per_multiprocessor(int threads, std::size_t dynamic_shared_bytes) const;

 private:
  const Driver* driver_;
  api::CUfunction function_;
};

class Module {
 public:
  static Result<Module> load(const Context& context, std::span<const char> cubin);

  // Kernels are extern "C": `name` is the name in the source.
  Result<Function> function(const std::string& name) const;

 private:
  Owned<api::CUmodule, &Driver::module_unload> module_;
};

}  // namespace tilewright::cuda
