// A backend that runs nothing: its memory may be asked for and given back, and nobody looks into it. Whoever
// derives from it says how kernels are chosen, printed and compiled, and sees all that a program needs.
#pragma once

#include "backends/backend.h"

namespace tilewright::test {

class IdleBackend : public backends::Backend {
 public:
  Result<std::unique_ptr<backends::Program>> load(const tile::Kernel&, const backends::Source&,
                                                  const backends::Binary&) override;
  // Pages that are never touched cost nothing, however large the tensors are.
  Result<void*> allocate(std::size_t bytes) override;
  void release(void* address, std::size_t bytes) override;
  Status copy(void*, const void*, std::size_t, backends::CopyKind) override { return Unit{}; }
  Status fill(void*, backends::FillPattern, std::size_t) override { return Unit{}; }
  Status synchronize() override { return Unit{}; }
  Status timer_start() override { return Unit{}; }
  Result<double> timer_stop_us() override { return 0.0; }
  Result<std::unique_ptr<backends::Replay>> record(const std::vector<backends::RecordedLaunch>&) override {
    return std::unique_ptr<backends::Replay>();
  }
};

}  // namespace tilewright::test
