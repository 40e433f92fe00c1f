// Tiles that a product's epilogue loads: by the threads, or by the copy engine to the stages of results.
#include "cuda_emulation/dot_check.h"

#include "cuda_emulation/kernel_expect.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "passes/pipeline.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace tilewright::emulation {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tile::samples::MatmulKernel;

// Tiles are loaded by the threads if results have no stages, and no tensor map is made of them.
TEST_F(EmulatedDot, TilesAreLoadedByTheThreads) {
  const MatmulKernel wide{.m = 128, .n = 128, .k = 1152, .beside = 2};
  EXPECT_THAT(text_of(wide, wgmma(256, 2)), Not(HasSubstr("last_1_map")));
  MatmulKernel narrow = wide;
  narrow.beside_type = DType::bf16;
  check(wide, wgmma(256, 2));
  check(narrow, wgmma(256, 2));
}

TEST_F(EmulatedDot, RaggedTilesAndThoseOfOneWarpgroupAreLoadedToo) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    check({.m = 200, .n = 136, .k = 72, .beside = 1, .beside_type = dtype}, wgmma(256, 2));
    check({.batch = 2,
           .m = 320,
           .n = 264,
           .k = 136,
           .block_n = dtype == DType::f32 ? 128 : 192,
           .beside = 3,
           .beside_type = dtype},
          cutlass_pingpong(3));
    check({.m = 192, .n = 200, .k = 64, .block_m = 64, .block_n = 64, .beside = 1, .beside_type = dtype},
          wgmma(128, 2));
  }
}

TEST_F(EmulatedDot, TilesAreLoadedBehindALoopOfUnknownDepth) {
  const MatmulKernel m{.m = 256, .n = 128, .k = 192, .beside = 1, .any_depth = true};
  check(m, wgmma(256, 2), {130});
}

// Tiles of results' size come by the results' stages, if each result has two; threads load the others.
TEST_F(EmulatedDot, TilesComeByTheStagesOfResults) {
  const MatmulKernel one{.m = 256, .n = 256, .k = 128, .residuals = 1, .beside_type = DType::bf16};
  EXPECT_THAT(text_of(one, wgmma(256, 2, 3)), HasSubstr("fetch<0>(store_stages, 1, "));
  EXPECT_THAT(text_of(one, wgmma(256, 2, 2)), HasSubstr("fetch<0>(store_stages, 1, "));
  EXPECT_THAT(text_of(one, wgmma(256, 2)), Not(HasSubstr("fetch<")));
  MatmulKernel wider = one;
  wider.beside_type = DType::f32;
  EXPECT_THAT(text_of(wider, wgmma(256, 2, 3)), Not(HasSubstr("fetch<")));
  check(wider, wgmma(256, 2, 3));
  for (const int places : {2, 3, 4, 5})
    for (const Index columns : {64, 128, 192}) {
      MatmulKernel m{.m = 256, .n = 384, .k = 96, .block_n = columns, .residuals = 2};
      m.beside_type = DType::bf16;
      check(m, wgmma(256, 2, places));
      m.block_m = 256;
      check(m, wgmma(256, 2, places));
      m.block_m = 64;
      check(m, cutlass_pingpong(3, places));
      m.block_m = 128;
      check(m, cutlass_pingpong(2, places));
    }
}

// One result, and room for more tiles than that: each has stages of its own.
TEST_F(EmulatedDot, SeveralTilesComeByStagesOfTheirOwn) {
  for (const int residuals : {2, 3}) {
    MatmulKernel m{.m = 256, .n = 384, .k = 96, .block_n = 64, .residuals = residuals};
    m.beside_type = DType::bf16;
    const std::string text = text_of(m, wgmma(256, 2, 2 * residuals));
    EXPECT_THAT(text, HasSubstr(fmt::format("TmaTileStages<{0}, {1}, {1}>", 2 * residuals, residuals)));
    EXPECT_THAT(text, HasSubstr(fmt::format("store_stages.skip({});", residuals - 1)));
    for (const int places : {2 * residuals, 2 * residuals + 1, 3 * residuals}) {
      check(m, wgmma(256, 2, places));
      check(m, cutlass_pingpong(2, places));
    }
    check({.batch = 2,
           .m = 200,
           .n = 136,
           .k = 72,
           .block_n = 128,
           .residuals = residuals,
           .beside_type = DType::bf16},
          wgmma(256, 2, 2 * residuals));
  }
}

// What is updated in place comes by the stage that it leaves by, or is loaded by the thread that stores it.
TEST_F(EmulatedDot, TilesThatAreUpdatedInPlaceComeByTheStagesOfResults) {
  for (const DType out : {DType::f32, DType::bf16}) {
    MatmulKernel m{.out = out, .m = 200, .n = 264, .k = 96, .block_n = 64, .accumulates = true};
    EXPECT_THAT(text_of(m, wgmma(256, 2, 3)), HasSubstr("fetch<0>(store_stages, 0, c_map"));
    EXPECT_THAT(text_of(m, wgmma(256, 2)), Not(HasSubstr("fetch<")));
    for (const int places : {0, 2, 3, 4}) {
      check(m, wgmma(256, 2, places));
      check(m, cutlass_pingpong(3, places));
    }
    m.beside = 1, m.beside_type = out;
    for (const int places : {4, 6}) {
      check(m, wgmma(256, 2, places));
      check(m, cutlass_pingpong(2, places));
    }
  }
}

TEST_F(EmulatedDot, RaggedTilesComeByTheStagesOfResults) {
  for (const Index m : {1, 65, 200})
    for (const Index n : {8, 136, 264}) {
      check({.m = m, .n = n, .k = 72, .residuals = 1, .beside_type = DType::bf16}, wgmma(256, 2, 3));
      check({.batch = 3, .m = m, .n = n, .k = 72, .block_n = 64, .residuals = 3, .beside_type = DType::bf16},
            cutlass_pingpong(3, 4));
      check({.out = DType::f32, .m = m, .n = n, .k = 40, .block_m = 64, .block_n = 64, .residuals = 1},
            wgmma(128, 2, 3));
    }
}

// Rows that begin off 16 bytes and elements of 8 bytes have no tensor map: the threads load them as ever.
TEST_F(EmulatedDot, WhatTheCopyEngineCannotReadIsLoadedAsItIs) {
  const MatmulKernel apart{.m = 128, .n = 130, .k = 64, .b_by_columns = true, .beside = 1},
      wide{.m = 128, .n = 128, .k = 64, .beside = 1, .beside_type = DType::f64};
  for (const MatmulKernel& m : {apart, wide}) check(m, wgmma(256, 2));
}

// A tile that the copy engine brought is read once more behind the pieces, for what a whole row decides.
TEST(TileLoads, OfTheCopyEngineAreKeptForLaterLoops) {
  const auto graph = ir::parse(
      R"(graph @main(%x: f16[351,128], %a: f16[351,256], %w: f16[256,128]) -> (f16[351,128], f32[351], f32[351]) {
  %3 = matmul %a, %w : f16[351,128]
  %4 = cast %3 {dtype=f32} : f32[351,128]
  %5 = cast %x {dtype=f32} : f32[351,128]
  %6 = mul %4, %5 : f32[351,128]
  %7 = sum %6 {axes=[1]} : f32[351]
  %8 = reshape %7 {shape=[351,1]} : f32[351,1]
  %9 = expand %8 {shape=[351,128]} : f32[351,128]
  %10 = mul %5, %9 : f32[351,128]
  %11 = add %4, %10 : f32[351,128]
  %12 = sum %11 {axes=[1]} : f32[351]
  return %3, %7, %12
}
)",
      ops::all_ops());
  ASSERT_TRUE(graph);
  const auto backend = open_emulated_cuda("sm_90a").value();
  tile::Target target = backend->target();
  target.units = 2;
  target.launch_s = 0;
  target.predicted_us = nullptr;
  const passes::Compiled compiled = passes::run_pipeline(*graph, target);
  int kept = 0;
  for (const tile::Kernel& kernel : compiled.plan.kernels)
    for (const backends::Candidate& c : backend->candidates(kernel)) {
      if (!c.refusal.empty()) continue;
      SCOPED_TRACE(to_string(c.schedule));
      const std::string text = backend->print(kernel, c.schedule).value().text;
      const bool is_fetched = text.find("get(store_stages") != std::string::npos;
      if (!is_fetched || kept > 2) continue;
      ++kept;
      expect_right(*backend, kernel, c.schedule);
    }
  EXPECT_GT(kept, 0);
}

}  // namespace
}  // namespace tilewright::emulation
