// Tiles that a product's epilogue loads: brought to the cache while the product is computed.
#include "cuda_emulation/dot_check.h"

#include <gmock/gmock.h>

namespace tilewright::emulation {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tile::samples::MatmulKernel;

TEST_F(EmulatedDot, TilesComeToTheCacheWhileTheyAreMultiplied) {
  // 128 columns of f32 are four panels of 128 bytes, of bf16 two; of 18 blocks 16 are left.
  const MatmulKernel wide{.m = 128, .n = 128, .k = 1152, .beside = 2};
  EXPECT_THAT(text_of(wide, wgmma(256, 2)), HasSubstr("if (k == 128) {"));
  EXPECT_THAT(text_of(wide, wgmma(256, 2)),
              HasSubstr("tma_prefetch_panels<4, 32>(last_1_map, index, index_2, program_2);"));
  MatmulKernel narrow = wide;
  narrow.beside_type = DType::bf16;
  EXPECT_THAT(text_of(narrow, wgmma(256, 2)), HasSubstr("tma_prefetch_panels<2, 64>(last_1_map"));
  check(wide, wgmma(256, 2));
  check(narrow, wgmma(256, 2));
}

TEST_F(EmulatedDot, RaggedTilesAndThoseOfOneWarpgroupComeEarlyToo) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    check({.m = 200, .n = 136, .k = 72, .beside = 1, .beside_type = dtype}, wgmma(256, 2));
    check({.batch = 2, .m = 320, .n = 264, .k = 136, .block_n = 192, .beside = 3, .beside_type = dtype},
          cutlass_pingpong(3));
    check({.m = 192, .n = 200, .k = 64, .block_m = 64, .block_n = 64, .beside = 1, .beside_type = dtype},
          wgmma(128, 2));
  }
}

// How often the loop runs is not known before: they are asked for at once.
TEST_F(EmulatedDot, TilesOfUnknownDepthComeBeforeTheLoop) {
  const MatmulKernel m{.m = 256, .n = 128, .k = 192, .beside = 1, .any_depth = true};
  EXPECT_THAT(text_of(m, wgmma(256, 2)), HasSubstr("tma_prefetch_panels<4, 32>"));
  check(m, wgmma(256, 2), {130});
}

// Rows that begin off 16 bytes and elements of 8 bytes have no tensor map: the threads load them as ever.
TEST_F(EmulatedDot, WhatTheCopyEngineCannotReadIsLoadedAsItIs) {
  const MatmulKernel apart{.m = 128, .n = 130, .k = 64, .b_by_columns = true, .beside = 1},
      wide{.m = 128, .n = 128, .k = 64, .beside = 1, .beside_type = DType::f64};
  for (const MatmulKernel& m : {apart, wide}) {
    EXPECT_THAT(text_of(m, wgmma(256, 2)), Not(HasSubstr("tma_prefetch")));
    check(m, wgmma(256, 2));
  }
}

}  // namespace
}  // namespace tilewright::emulation
