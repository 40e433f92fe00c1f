// A loaded kernel and how its programs are shared out among the pool's threads.
#pragma once

#include "backends/backend.h"
#include "backends/cpu/jit/jit.h"

#include <tilewright/base/thread_pool.h>

#include <atomic>
#include <memory>
#include <vector>

namespace tilewright::cpu {

// The function that printed text defines.
using KernelFunction = void (*)(void* const* views, const std::int64_t* scalars, Index begin, Index end,
                                char* scratch);

class CpuProgram : public backends::Program {
 public:
  struct Parts {
    LoadedObject object;
    KernelFunction function = nullptr;
    std::shared_ptr<ThreadPool> pool;
    Index scratch_bytes = 0;      // per thread
    double program_us = 1;        // predicted time of one program on one core
    Index programs_at_least = 1;  // a thread's share is not smaller than this
  };
  explicit CpuProgram(Parts parts);

  Status launch(const backends::LaunchArgs& args) override;
  std::string describe() const override;

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<char, Free>;
  void run_here(const backends::LaunchArgs& args, Index programs);
  char* scratch(int worker);

  Parts parts_;
  std::vector<Memory> scratch_;  // one for each worker, allocated by the worker that uses it first
  std::atomic_flag own_scratch_busy_ = ATOMIC_FLAG_INIT;
};

}  // namespace tilewright::cpu
