// What tests of one dot share: the emulated device and a schedule for it.
#pragma once

#include "cuda_emulation/kernel_expect.h"

#include "support/matmul_kernels.h"

namespace tilewright::emulation {

class EmulatedDot : public ::testing::Test {
 protected:
  EmulatedDot() : backend_(open_emulated_cuda("sm_90a").value()) {}
  void check(const tile::samples::MatmulKernel& m, const tile::Schedule& schedule,
             const std::vector<std::int64_t>& scalars = {}) {
    SCOPED_TRACE(to_string(m));
    test::ParityOptions options = as_printed();
    options.scalars = scalars;
    expect_right(*backend_, tile::samples::matmul(m), schedule, options);
  }
  std::string text_of(const tile::samples::MatmulKernel& m, const tile::Schedule& schedule) {
    return backend_->print(tile::samples::matmul(m), schedule).value().text;
  }
  std::string refusal(const tile::samples::MatmulKernel& m, const tile::Schedule& schedule) {
    const auto source = backend_->print(tile::samples::matmul(m), schedule);
    return source ? "" : source.error().message;
  }
  std::unique_ptr<backends::Backend> backend_;
};

inline tile::Schedule wgmma(int threads, int stages, int cluster = 1) {
  return {.threads = threads,
          .threads_per_row = 4,
          .vector_bytes = 16,
          .cluster = cluster,
          .stages = stages,
          .dot = tile::DotUnit::wgmma,
          .group_m = 4};
}

}  // namespace tilewright::emulation
