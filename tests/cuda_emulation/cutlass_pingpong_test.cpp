// Warpgroups with programs of their own: whichever has how many of them, each multiplies its own blocks.
#include "cuda_emulation/dot_check.h"

namespace tilewright::emulation {
namespace {

using tile::samples::as_tf32;
using tile::samples::MatmulKernel;
using tile::samples::of_bytes;

// The emulated device has three multiprocessors: 1 to 4 programs leave some warpgroups without any, 16 give
// some an even and some an odd number. Depths are shorter than the pipeline, as long, and longer.
TEST_F(EmulatedDot, EveryWarpgroupHasProgramsOfItsOwn) {
  for (Index tiles : {1, 2, 3, 4, 16})
    for (Index k : {64, 192, 320})
      check({.m = 64 * tiles, .n = 64, .k = k, .block_m = 64, .block_n = 64}, cutlass_pingpong(3));
  check({.m = 256, .n = 512, .k = 128, .block_m = 64, .block_n = 256}, cutlass_pingpong(4));
  check({.m = 256, .n = 768, .k = 192, .block_m = 128, .block_n = 192}, cutlass_pingpong(2));
  check({.dtype = DType::f16, .out = DType::f32, .m = 384, .n = 128, .k = 128}, cutlass_pingpong(3));
}

TEST_F(EmulatedDot, ProgramsOfTheirOwnHaveRaggedEdgesBatchesAndOperandsEitherWayRound) {
  for (bool a : {false, true})
    for (bool b : {false, true})
      check({.m = 256, .n = 256, .k = 128, .a_by_columns = a, .b_by_columns = b}, cutlass_pingpong(3));
  check({.batch = 3, .m = 200, .n = 136, .k = 72}, cutlass_pingpong(3));
  check({.m = 1, .n = 264, .k = 8, .block_m = 64}, cutlass_pingpong(2));
  check({.m = 129, .n = 8, .k = 40, .block_n = 64, .gap = 8}, cutlass_pingpong(2));
}

TEST_F(EmulatedDot, ProgramsOfTheirOwnAreOfAnyType) {
  for (DType dtype : {DType::f8e4m3, DType::f8e5m2})
    check(of_bytes(dtype, {.m = 256, .n = 384, .k = 384, .block_m = 64, .block_n = 192}),
          cutlass_pingpong(2));
  check(of_bytes(DType::i8, {.out = DType::i32, .m = 200, .n = 384, .k = 272, .block_n = 192}),
        cutlass_pingpong(2));
  check(as_tf32({.m = 300, .n = 136, .k = 76, .b_by_columns = true, .bias_gelu = true}), cutlass_pingpong(3));
}

TEST_F(EmulatedDot, WhatFollowsTheLoopOfOneRunsBesideTheOther) {
  check({.m = 512, .n = 128, .k = 64, .bias_gelu = true}, cutlass_pingpong(3));
  check({.out = DType::f32, .m = 256, .n = 256, .k = 128, .row_sums = true}, cutlass_pingpong(2));
  check({.out = DType::f32, .m = 300, .n = 256, .k = 128, .maxima = true}, cutlass_pingpong(2));
  const std::string text = text_of({.m = 512, .bias_gelu = true}, cutlass_pingpong(3));
  EXPECT_LT(text.find("pingpong_wait(group);"), text.find("pingpong_signal<2>(group);\n      wgmma_wait<0>"));
  EXPECT_NE(text.find("pingpong_signal<2>(group);\n      wgmma_wait<0>"), std::string::npos) << text;
  EXPECT_EQ(text.find("keep_step"), std::string::npos) << text;
}

// None, fewer than a block, and a part of the last one.
TEST_F(EmulatedDot, ArgumentsDecideHowManyBlocksOthersHave) {
  for (std::int64_t depth : {0, 1, 130, 192})
    check({.m = 320, .n = 128, .k = 192, .block_m = 64, .any_depth = true}, cutlass_pingpong(3), {depth});
}

TEST_F(EmulatedDot, SaysWhyWarpgroupsHaveNoProgramsOfTheirOwn) {
  EXPECT_NE(refusal({.n = 256, .block_n = 256}, cutlass_pingpong(2)).find("at most 128 by 192"),
            std::string::npos);
  tile::Schedule alone = cutlass_pingpong(2);
  alone.threads = 128;
  EXPECT_NE(refusal({}, alone).find("several warpgroups"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::emulation
