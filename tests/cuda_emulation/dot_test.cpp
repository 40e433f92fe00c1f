// Dots on tensor cores mean what the kernel means: operands stored either way round, ragged edges, batches,
// clusters, and what follows the loop.
#include "cuda_emulation/dot_check.h"

namespace tilewright::emulation {
namespace {

using tile::samples::as_tf32;
using tile::samples::MatmulKernel;
using tile::samples::of_bytes;

TEST_F(EmulatedDot, WarpgroupsMultiplyBlocksThatTheCopyEngineBrings) {
  check({.m = 128, .n = 128, .k = 192}, wgmma(256, 2));
  check({.m = 256, .n = 256, .k = 64, .block_n = 256}, wgmma(256, 2));
  check({.m = 128, .n = 64, .k = 128, .block_m = 64, .block_n = 64}, wgmma(128, 3));
  check({.dtype = DType::f16, .out = DType::f32, .m = 256, .n = 64, .k = 128, .block_m = 256, .block_n = 64},
        wgmma(256, 3));
}

// The emulation's tensor cores keep all bits of a sum, the device's about 14 for 8-bit operands: that no sum
// of more than 128 products stays in them is read from the text.
TEST_F(EmulatedDot, EightBitFloatsLeaveTheTensorCoresEvery128OfK) {
  const auto text = [&](DType dtype, Index block_k) {
    return text_of({.dtype = dtype, .m = 128, .n = 128, .k = 512, .block_k = block_k, .b_by_columns = true},
                   wgmma(256, 2));
  };
  for (DType dtype : {DType::f8e4m3, DType::f8e5m2}) {
    const std::string of8 = text(dtype, 128);
    EXPECT_NE(of8.find("wgmma_two_level<A, B, 2>"), std::string::npos) << of8;
    EXPECT_EQ(of8.find("wgmma_block<"), std::string::npos) << of8;
    EXPECT_NE(of8.find("128, 128, Major::k>"), std::string::npos) << "blocks are not 128 of k: " << of8;
  }
  EXPECT_EQ(text(DType::bf16, 64).find("wgmma_two_level<"), std::string::npos);
}

// Two accumulators a thread: at most 192 columns.
TEST_F(EmulatedDot, EightBitFloatsAreAddedBlockByBlock) {
  for (DType dtype : {DType::f8e4m3, DType::f8e5m2})
    for (DType out : {DType::f32, DType::bf16}) check(of_bytes(dtype, {.out = out, .k = 256}), wgmma(256, 2));
  const DType dtype = DType::f8e4m3;
  check(of_bytes(dtype, {.m = 64, .n = 192, .k = 384, .block_m = 64, .block_n = 192}), wgmma(128, 3));
  check(of_bytes(dtype, {.batch = 2, .m = 200, .n = 136, .k = 144}), wgmma(256, 2));
  check(of_bytes(dtype, {.m = 512, .n = 256, .k = 128, .bias_gelu = true}), wgmma(256, 2));
  EXPECT_FALSE(refusal({.dtype = dtype, .block_k = 128}, wgmma(256, 2)).empty());  // b by rows
  EXPECT_NE(refusal(of_bytes(dtype, {.n = 256, .block_n = 256}), wgmma(256, 2)).find("at most 192 columns"),
            std::string::npos);
}

// Sums of 32 bits need no promotion, so that a thread has one accumulator.
TEST_F(EmulatedDot, EightBitIntegersAreSummedExactly) {
  const DType dtype = DType::i8;
  for (DType out : {DType::i32, DType::f32})
    check(of_bytes(dtype, {.out = out, .n = 256, .k = 384, .block_n = 256}), wgmma(256, 2));
  check(of_bytes(dtype, {.out = DType::i32, .batch = 2, .m = 200, .n = 136, .k = 144}), wgmma(256, 2));
  EXPECT_FALSE(
      refusal({.dtype = dtype, .out = DType::i32, .block_k = 128}, wgmma(256, 2)).empty());  // b by rows
}

// A thread has two columns of each eight: stored by themselves they fill 2 of 32 bytes.
TEST_F(EmulatedDot, ResultsOfEightBitsAreStoredAsEightColumns) {
  for (DType out : {DType::f8e4m3, DType::f8e5m2, DType::i8, DType::u8, DType::boolean}) {
    const MatmulKernel whole{.out = out, .m = 256, .n = 256, .k = 64, .block_n = 64};
    const std::string text = text_of(whole, wgmma(256, 2));
    EXPECT_NE(text.find("across_quad"), std::string::npos) << text;
    check(whole, wgmma(256, 2));
    check({.out = out, .batch = 2, .m = 200, .n = 136, .k = 72}, wgmma(256, 2));
    check(of_bytes(DType::i8, {.out = out, .m = 200, .n = 256, .k = 144}), wgmma(256, 2));
  }
  // Rows of which eight columns do not begin at a multiple of 8 bytes.
  check({.out = DType::f8e4m3, .m = 70, .n = 132, .k = 64, .b_by_columns = true}, wgmma(256, 2));
}

TEST_F(EmulatedDot, OperandsLieEitherWayRound) {
  for (bool a : {false, true})
    for (bool b : {false, true})
      check({.m = 128, .n = 128, .k = 128, .a_by_columns = a, .b_by_columns = b}, wgmma(256, 2));
}

TEST_F(EmulatedDot, RaggedEdgesAndBatches) {
  check({.batch = 2, .m = 200, .n = 136, .k = 72}, wgmma(256, 2));
  check({.m = 130, .n = 264, .k = 40, .a_by_columns = false, .b_by_columns = true, .gap = 8}, wgmma(128, 2));
}

TEST_F(EmulatedDot, WhatFollowsTheLoopIsPrintedAsAnywhere) {
  check({.m = 256, .n = 128, .k = 64, .bias_gelu = true}, wgmma(256, 2));
  check({.out = DType::f32, .m = 128, .n = 256, .k = 64, .row_sums = true}, wgmma(128, 2));
}

// Columns are spread over the warps, which exchange what they have while another warpgroup fetches.
TEST_F(EmulatedDot, ColumnsOfTheResultAreReduced) {
  for (Index columns : {32, 96, 256})
    check({.m = 256, .n = 2 * columns, .k = 128, .block_n = columns, .b_by_columns = true, .maxima = true},
          wgmma(256, 2));
  check({.out = DType::f32, .m = 200, .n = 136, .k = 72, .bias_gelu = true, .maxima = true}, wgmma(128, 2));
  check({.dtype = DType::i8,
         .out = DType::i32,
         .m = 128,
         .n = 256,
         .k = 128,
         .block_k = 128,
         .b_by_columns = true,
         .maxima = true},
        wgmma(256, 2));
}

tile::Schedule mma(int threads, int stages) {
  return {.threads = threads, .kind = tile::MmaDot{.stages = stages}};
}

TEST_F(EmulatedDot, ThreadsFeedTensorCoresThemselves) {
  check({.m = 128, .n = 128, .k = 192}, mma(256, 3));
  check({.m = 256, .n = 64, .k = 64, .block_m = 64, .block_n = 64, .bias_gelu = true}, mma(128, 2));
  check({.dtype = DType::f16, .out = DType::f32, .m = 128, .n = 128, .k = 128}, mma(128, 4));
  check({.out = DType::f32, .m = 128, .n = 256, .k = 64, .row_sums = true}, mma(256, 2));
  check({.m = 131, .n = 200, .k = 64, .block_n = 64, .maxima = true}, mma(256, 2));
  check({.m = 128, .n = 96, .k = 64, .block_m = 64, .block_n = 48, .b_by_columns = true, .maxima = true},
        mma(128, 2));
  for (bool a : {false, true})
    for (bool b : {false, true})
      check({.m = 128, .n = 128, .k = 128, .a_by_columns = a, .b_by_columns = b}, mma(256, 2));
}

TEST_F(EmulatedDot, ThreadsTakeWhatTheCopyEngineCannot) {
  check({.batch = 2, .m = 131, .n = 77, .k = 75}, mma(256, 3));
  check({.m = 128, .n = 128, .k = 128, .b_by_columns = true, .gap = 3}, mma(256, 2));
  check({.m = 130, .n = 136, .k = 72, .a_by_columns = true, .gap = 8, .align_bytes = 2}, mma(128, 2));
}

TEST_F(EmulatedDot, SaysWhyAScheduleIsRefused) {
  EXPECT_NE(refusal({.m = 130, .n = 131, .k = 64}, wgmma(256, 2)).find("multiple of 16 bytes"),
            std::string::npos);
  EXPECT_NE(refusal({.m = 70, .n = 50, .k = 40, .block_m = 32, .block_n = 32, .block_k = 16}, mma(128, 4))
                .find("whole rows of 128 bytes"),
            std::string::npos);
  check({.m = 128, .n = 128, .k = 128, .block_m = 32, .block_n = 64}, mma(128, 2));
}

TEST_F(EmulatedDot, SinglesAreMultipliedAsTf32WhereTheyMayBe) {
  check(as_tf32({.m = 256, .n = 256, .k = 96, .block_n = 256, .b_by_columns = true}), wgmma(256, 2));
  check(as_tf32({.batch = 2, .m = 200, .n = 136, .k = 76, .b_by_columns = true, .bias_gelu = true}),
        wgmma(256, 3));
  check(as_tf32({.m = 130, .n = 264, .k = 40, .block_m = 64, .b_by_columns = true, .gap = 4}), wgmma(128, 2));
  for (bool a : {false, true})
    for (bool b : {false, true})
      check(as_tf32({.m = 128, .n = 192, .k = 64, .block_n = 64, .a_by_columns = a, .b_by_columns = b}),
            mma(256, 2));
  check(as_tf32({.batch = 2, .m = 131, .n = 77, .k = 75}), mma(256, 3));
  EXPECT_FALSE(refusal(as_tf32({}), wgmma(256, 2)).empty());  // b by rows
}

tile::Schedule fma_blocks(int threads, int stages, int threads_per_row = 8) {
  return {
      .threads = threads,
      .kind = tile::FmaBlocks{.threads_per_row = threads_per_row, .stages = stages, .programs_per_sm = 2}};
}

MatmulKernel of_singles(MatmulKernel m) {
  m.dtype = m.out = DType::f32;
  m.block_k = 32;
  return m;
}

TEST_F(EmulatedDot, SinglesAreMultipliedFromBlocksCopiedAhead) {
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      check(of_singles({.m = 128, .n = 128, .k = 96, .block_n = 64, .a_by_columns = a, .b_by_columns = b}),
            fma_blocks(128, 2));
      check(of_singles({.m = 128, .n = 128, .k = 96, .a_by_columns = a, .b_by_columns = b}),
            fma_blocks(256, 2, 16));
    }
  check(of_singles({.m = 128, .n = 128, .k = 64, .block_m = 64, .block_n = 64, .bias_gelu = true}),
        fma_blocks(64, 3));
  check(of_singles({.batch = 2, .m = 131, .n = 77, .k = 75, .block_n = 64, .b_by_columns = true}),
        fma_blocks(128, 2));
  check(of_singles(
            {.m = 130, .n = 136, .k = 72, .block_n = 64, .a_by_columns = true, .gap = 2, .align_bytes = 8}),
        fma_blocks(128, 2));
  check(of_singles({.m = 128, .n = 256, .k = 64, .block_n = 64, .row_sums = true}), fma_blocks(128, 2));
  // Threads that have 1, 2 and 4 rows, and columns that are not aligned as vectors.
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      MatmulKernel m = of_singles(
          {.m = 75, .n = 267, .k = 41, .block_m = 64, .block_n = 256, .a_by_columns = a, .b_by_columns = b});
      m.block_k = 16;
      check(m, fma_blocks(128, 3, 16));
      m.block_n = 64;
      check(m, fma_blocks(128, 4));
      m.block_m = m.block_n = 32;
      check(m, fma_blocks(64, 2));
      check(m, fma_blocks(128, 2));
      check(m, fma_blocks(256, 2));
      m.block_k = 8;
      check(m, fma_blocks(64, 3));
    }
  MatmulKernel narrow_result = of_singles({.m = 128, .n = 128, .k = 64, .block_n = 64});
  narrow_result.out = DType::bf16;
  check(narrow_result, fma_blocks(128, 2));
  EXPECT_NE(refusal({.block_n = 64}, fma_blocks(128, 2)).find("multiplies f32"), std::string::npos);
}

TEST_F(EmulatedDot, SaysWhyTensorCoresDoNotTakeIt) {
  EXPECT_NE(refusal({.dtype = DType::f32, .out = DType::f32}, wgmma(256, 2)).find("bf16 or f16"),
            std::string::npos);
}

}  // namespace
}  // namespace tilewright::emulation
