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
      check(m,
            {.threads = 256, .kind = tile::WgmmaPingpong{.stages = 3, .group_m = 4, .store_stages = places}});
      if (places > 0)
        check(m, {.threads = 256, .kind = tile::WgmmaDot{.stages = 3, .group_m = 4, .store_stages = places}});
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

// The bytes of all views after a run: small numbers before it in each element, the same for each schedule.
std::vector<std::vector<char>> run_of_large(backends::Backend& backend, const tile::Kernel& kernel,
                                            const tile::Schedule& schedule, int launches) {
  constexpr std::size_t kAlignment = 256, kPrime = 61;
  std::vector<std::vector<char>> memory;
  std::vector<test::HostView> views;
  for (const tile::ViewParam& v : kernel.views) {
    std::size_t n = 1;
    for (const tile::Dim& d : v.extents) n *= static_cast<std::size_t>(d.value);
    const std::size_t bytes = n * size_bytes(v.dtype);
    std::vector<char>& m = memory.emplace_back(bytes + kAlignment);
    char* at = m.data() + kAlignment - reinterpret_cast<std::uintptr_t>(m.data()) % kAlignment;
    for (std::size_t i = 0; i < n; ++i)
      store_f64(at + i * size_bytes(v.dtype), v.dtype, static_cast<double>(i * i % kPrime) / kPrime - 0.5);
    views.push_back({at, static_cast<Index>(bytes), 0});
  }
  std::string source;
  const Status ran = test::on_backend(backend, schedule, source, launches)(kernel, views, {});
  EXPECT_TRUE(ran.ok()) << ran.error().message;
  for (std::size_t i = 0; i < views.size(); ++i)
    memory[i] = std::vector<char>(views[i].data, views[i].data + views[i].bytes);
  return memory;
}

// More tiles than multiprocessors: stages are used again, by loads behind stores and the other way round. The
// results are the bits of what loads and stores by its threads.
TEST(Dots, TilesComeAndResultsLeaveByTheCopyEngine) {
  auto backend = CudaBackend::open({});
  ASSERT_TRUE(backend.ok()) << backend.error().message;
  int by_turns = 0;
  const auto check = [&](const MatmulKernel& m, std::initializer_list<int> stages) {
    const tile::Kernel kernel = tile::samples::matmul(m);
    const auto pingpong = [](int n) {
      return tile::Schedule{.threads = 256,
                            .kind = tile::WgmmaPingpong{.stages = 3, .group_m = 4, .store_stages = n}};
    };
    const auto together = [](int n) {
      return tile::Schedule{.threads = 256,
                            .kind = tile::WgmmaDot{.stages = 3, .group_m = 4, .store_stages = n}};
    };
    const int launches = m.accumulates ? 1 : 4;  // each adds to what is there
    const auto run = [&](const tile::Schedule& s) { return run_of_large(**backend, kernel, s, launches); };
    const auto want = run(together(0));
    for (const int n : stages) {
      EXPECT_TRUE(want == run(together(n))) << to_string(m) << " stages " << n;
      // Large tiles beside which several others are loaded have no registers in a warpgroup of their own.
      if (!(*backend)->print(kernel, pingpong(n))) continue;
      EXPECT_TRUE(want == run(pingpong(n))) << to_string(m) << " stages " << n;
      ++by_turns;
    }
  };
  for (const Index columns : {64, 128, 192})
    for (const Index depth : {64, 320}) {
      MatmulKernel m{.m = 2056, .n = 4104, .k = depth, .block_n = columns, .beside_type = DType::bf16};
      m.residuals = 1;
      check(m, {2, 3, 4});
      m.residuals = 2, m.beside = 1;
      check(m, columns < 192 ? std::initializer_list<int>{4, 6} : std::initializer_list<int>{4});
    }
  check({.out = DType::f32, .batch = 3, .m = 1000, .n = 1032, .k = 72, .residuals = 1}, {2, 3, 4});
  check({.out = DType::f32, .m = 2056, .n = 4104, .k = 320, .block_n = 64, .beside = 2}, {6, 9});
  check({.m = 2056, .n = 4104, .k = 320, .block_n = 64, .residuals = 3, .beside_type = DType::bf16},
        {6, 7, 9});
  for (const DType out : {DType::f32, DType::bf16})
    check({.out = out, .m = 2056, .n = 4104, .k = 320, .accumulates = true}, {2, 3, 4});
  EXPECT_GE(by_turns, 20);
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
