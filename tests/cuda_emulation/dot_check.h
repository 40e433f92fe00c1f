// What tests of one dot share: the emulated device and a schedule for it.
#pragma once

#include "cuda_emulation/emulated_cuda.h"

#include "support/kernel_check.h"
#include "support/matmul_kernels.h"

#include <gtest/gtest.h>

namespace tilewright::emulation {

class EmulatedDot : public ::testing::Test {
 protected:
  EmulatedDot() : backend_(open_emulated_cuda("sm_90a").value()) {}
  void check(const tile::samples::MatmulKernel& m, const tile::Schedule& schedule,
             const std::vector<std::int64_t>& scalars = {}) {
    const auto r = testing::check_kernel(
        *backend_, tile::samples::matmul(m), schedule,
        {.scalars = scalars, .odd_share = 0, .model = {.scale = 2, .flush_subnormals = true}});
    EXPECT_TRUE(r.problem.empty()) << to_string(m) << ": " << r.problem;
    EXPECT_TRUE(r.refused.empty()) << to_string(m) << ": " << r.refused;
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
          .raster = 4};
}

}  // namespace tilewright::emulation
