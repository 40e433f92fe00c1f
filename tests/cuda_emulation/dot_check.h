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

inline tile::Schedule wgmma(int threads, int stages, int store_stages = 0) {
  return {.threads = threads,
          .kind = tile::WgmmaDot{.stages = stages, .group_m = 4, .store_stages = store_stages}};
}

inline tile::Schedule cutlass_pingpong(int stages, int store_stages = 0) {
  return {.threads = 256,
          .kind = tile::WgmmaPingpong{.stages = stages, .group_m = 4, .store_stages = store_stages}};
}

}  // namespace tilewright::emulation
