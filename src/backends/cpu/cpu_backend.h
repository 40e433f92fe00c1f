// CpuBackend: tile kernels on the machine's cores, through printed C++, Clang in the process and a thread
// pool.
#pragma once

#include "backends/backend.h"
#include "backends/cpu/host/isa.h"
#include "backends/cpu/host/memory_cache.h"
#include "backends/cpu/jit/jit.h"
#include "backends/cpu/jit/kernel_compiler.h"

#include <tilewright/base/thread_pool.h>

#include <chrono>
#include <functional>
#include <memory>

namespace tilewright::cpu {

class CpuBackend : public backends::Backend {
 public:
  static Result<std::unique_ptr<backends::Backend>> open(const backends::BackendOptions& options);

  const tile::Target& target() const override { return target_; }
  std::string binary_key() const override;
  std::vector<backends::DeviceFact> facts() const override;
  std::vector<backends::Candidate> candidates(const tile::Kernel& kernel) const override;
  Result<backends::Source> print(const tile::Kernel& kernel, const tile::Schedule& schedule) const override;
  Result<backends::Binary> compile(const tile::Kernel& kernel, const backends::Source& source) const override;
  Result<std::unique_ptr<backends::Program>> load(const tile::Kernel& kernel, const backends::Source& source,
                                                  const backends::Binary& binary) override;

  Result<void*> allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  void release(void* address, std::size_t bytes) override { memory_.release(address, bytes); }
  Status copy(void* to, const void* from, std::size_t bytes, backends::CopyKind kind) override;
  Status fill(void* to, backends::FillPattern pattern, std::size_t bytes) override;
  Status synchronize() override { return Unit{}; }  // launches return when their work is done
  Status timer_start() override;
  Result<double> timer_stop_us() override;
  Result<std::unique_ptr<backends::Replay>> record(
      const std::vector<backends::RecordedLaunch>& launches) override;

 private:
  CpuBackend(Isa isa, int threads, std::unique_ptr<Jit> jit);
  void in_parts(std::size_t bytes, const std::function<void(std::size_t begin, std::size_t end)>& work);

  Isa isa_;
  CpuTarget cpu_;
  KernelCompiler& compiler_;  // of the process
  std::shared_ptr<ThreadPool> pool_;
  tile::Target target_;
  std::unique_ptr<Jit> jit_;
  MemoryCache memory_;
  std::chrono::steady_clock::time_point timer_start_{};
};

}  // namespace tilewright::cpu
