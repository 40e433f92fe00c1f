// Dots on the device's tensor cores against the reference interpreter: as tests/cuda_emulation/dot_test.cpp.
#include "backends/cuda/cuda_backend.h"
#include "support/backend_parity.h"
#include "support/freivalds.h"
#include "support/kernel_check.h"
#include "support/matmul_kernels.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using tile::samples::as_tf32;
using tile::samples::MatmulKernel;
using tile::samples::of_bytes;

TEST(Dots, OnTensorCoresMatchTheReference) {
  auto backend = CudaBackend::open({});
  ASSERT_TRUE(backend.ok()) << backend.error().message;
  const MatmulKernel kernels[] = {
      {.m = 128, .n = 128, .k = 192},
      {.m = 256, .n = 512, .k = 256, .block_n = 256},
      {.m = 512, .n = 256, .k = 128, .b_by_columns = true},
      {.m = 512, .n = 256, .k = 128, .a_by_columns = true},
      {.m = 128, .n = 128, .k = 128, .a_by_columns = true, .b_by_columns = true},
      {.dtype = DType::f16, .out = DType::f32, .m = 256, .n = 64, .k = 128, .block_m = 256, .block_n = 64},
      {.batch = 2, .m = 200, .n = 136, .k = 72},
      {.m = 130, .n = 264, .k = 40, .b_by_columns = true, .gap = 8},
      {.m = 256, .n = 128, .k = 64, .bias_gelu = true},
      of_bytes(DType::f8e4m3, {.m = 200, .n = 264, .k = 400}),
      of_bytes(DType::f8e4m3, {.out = DType::f32, .m = 256, .n = 384, .k = 256, .block_n = 192}),
      of_bytes(DType::f8e5m2, {.m = 512, .n = 256, .k = 256, .bias_gelu = true}),
      {.out = DType::f32, .m = 128, .n = 256, .k = 64, .row_sums = true},
      {.m = 384, .n = 512, .k = 256, .block_n = 256, .row_sums = true, .maxima = true},
      {.out = DType::f32, .m = 200, .n = 392, .k = 72, .block_n = 192, .bias_gelu = true, .maxima = true},
      {.out = DType::f32, .m = 384, .n = 392, .k = 128, .block_n = 192, .beside = 3},
      as_tf32({.m = 200, .n = 136, .k = 76}),
      as_tf32({.m = 256, .n = 264, .k = 128, .a_by_columns = true, .b_by_columns = true}),
      as_tf32({.m = 200, .n = 264, .k = 140, .block_n = 256, .b_by_columns = true, .bias_gelu = true})};
  // Tensor cores keep sums of 8-bit products with 2^-13 of their largest term.
  constexpr double kScaleOf8 = 128;
  int checked = 0;
  const auto check = [&](const MatmulKernel& m, const tile::Schedule& s) {
    const auto r = test::check_kernel(
        **backend, tile::samples::matmul(m), s,
        {.odd_share = 0,
         .model = {.scale = size_bytes(m.dtype) == 1 ? kScaleOf8 : 32, .flush_subnormals = true}});
    EXPECT_TRUE(r.problem.empty()) << to_string(m) << ": " << r.problem;
    checked += r.refused.empty() ? 1 : 0;
  };
  for (const MatmulKernel& m : kernels)
    for (int threads : {128, 256}) {
      check(m, {.threads = threads, .kind = tile::WgmmaDot{.stages = 3, .group_m = 4}});
      check(m, {.threads = threads, .kind = tile::MmaDot{.stages = 3, .group_m = 4}});
    }
  // Warpgroups with tiles of their own, results that the copy engine stores, and both.
  const int before = checked;
  for (const MatmulKernel& m : kernels)
    for (const int places : {0, 2, 3}) {
      check(m, {.threads = 256,
                .kind = tile::WgmmaPingpong{.stages = 3, .group_m = 4, .tma_store_stages = places}});
      if (places > 0)
        check(m, {.threads = 256,
                  .kind = tile::WgmmaDot{.stages = 3, .group_m = 4, .tma_store_stages = places}});
    }
  EXPECT_GE(checked - before, 30);
  check({.batch = 2, .m = 131, .n = 77, .k = 75}, {.threads = 256, .kind = tile::MmaDot{.stages = 3}});
  for (bool a : {false, true})
    for (bool b : {false, true})
      check(
          {.dtype = DType::f32,
           .out = DType::f32,
           .m = 200,
           .n = 136,
           .k = 140,
           .block_n = 64,
           .block_k = 32,
           .a_by_columns = a,
           .b_by_columns = b},
          {.threads = 128, .kind = tile::FmaBlocks{.threads_per_row = 8, .stages = 2, .programs_per_sm = 3}});
  EXPECT_GE(checked, 50);
}

// Under every schedule that the backend proposes: several waves of programs, groups with an edge, parts.
TEST(Dots, LargeProductsPassFreivaldsCheck) {
  auto backend = CudaBackend::open({});
  ASSERT_TRUE(backend.ok()) << backend.error().message;
  for (const MatmulKernel& m : {
           MatmulKernel{.out = DType::f32, .m = 4096, .n = 4096, .k = 512},
           MatmulKernel{
               .out = DType::f32, .m = 4000, .n = 5000, .k = 520, .block_n = 256, .b_by_columns = true},
           MatmulKernel{.m = 8192, .n = 3072, .k = 768, .block_n = 192},
           MatmulKernel{.dtype = DType::f16, .out = DType::f16, .m = 3333, .n = 2056, .k = 776},
           MatmulKernel{.dtype = DType::f32,
                        .out = DType::f32,
                        .m = 2048,
                        .n = 2050,
                        .k = 300,
                        .block_n = 64,
                        .block_k = 32},
       }) {
    int checked = 0;
    for (const backends::Candidate& c : (*backend)->candidates(tile::samples::matmul(m))) {
      if (!c.refusal.empty()) continue;
      std::string source;
      const std::string problem =
          test::check_large_product(m, test::on_backend(**backend, c.schedule, source));
      EXPECT_EQ(problem, "") << to_string(m) << " [" << to_string(c.schedule) << "]";
      ++checked;
    }
    EXPECT_GE(checked, 2) << to_string(m);
  }
}

}  // namespace
}  // namespace tilewright::cuda
