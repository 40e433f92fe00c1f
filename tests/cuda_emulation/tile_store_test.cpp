// Results that leave by way of shared memory and the copy engine: what is stored, and what lies beside it.
#include "cuda_emulation/dot_check.h"

#include <gmock/gmock.h>

namespace tilewright::emulation {
namespace {

using tile::samples::as_tf32;
using tile::samples::MatmulKernel;
using tile::samples::of_bytes;

// A tile of one, two and three pieces of 64 columns, of one and two of 64 rows a warpgroup; as many places as
// pieces, fewer, and more.
TEST_F(EmulatedDot, ResultsLeaveByTheCopyEngine) {
  for (int places : {2, 3, 5}) {
    check({.m = 256, .n = 256, .k = 128, .block_n = 64}, wgmma(256, 2, places));
    check({.m = 512, .n = 384, .k = 64, .block_m = 256, .block_n = 192}, wgmma(256, 2, places));
    check({.m = 192, .n = 512, .k = 64, .block_m = 64, .block_n = 128}, wgmma(128, 2, places));
  }
  check({.dtype = DType::f16, .out = DType::f16, .m = 256, .n = 512, .k = 64, .block_n = 256},
        wgmma(256, 2, 2));
}

TEST_F(EmulatedDot, WarpgroupsStoreTilesOfTheirOwn) {
  check({.m = 768, .n = 384, .k = 64, .block_n = 192}, cutlass_pingpong(2, 2));
  check({.m = 320, .n = 512, .k = 192, .block_m = 64, .block_n = 256, .bias_gelu = true},
        cutlass_pingpong(3, 3));
  check({.batch = 3, .m = 200, .n = 136, .k = 72, .block_n = 64, .bias_gelu = true}, cutlass_pingpong(3, 2));
}

// Several results take turns with the stages, two for each at least.
TEST_F(EmulatedDot, SeveralResultsLeaveByTheCopyEngine) {
  for (const int results : {2, 3})
    for (const int more : {0, 1, 2}) {
      MatmulKernel m{.m = 256, .n = 384, .k = 96, .beside = results - 1, .beside_type = DType::bf16};
      check(m, wgmma(256, 2, 2 * results + more));
      m.block_n = 64, m.residuals = 1;
      check(m, cutlass_pingpong(2, 2 * results + more));
      check({.out = DType::f32, .batch = 2, .m = 65, .n = 136, .k = 72, .beside = results - 1},
            wgmma(256, 2, 2 * results + more));
    }
}

// Tiles that they are computed with come by their stages, as many as these have room for, two for each:
// residuals and what is updated. Others are loaded by the threads.
TEST_F(EmulatedDot, TilesComeByTheStagesOfSeveralResults) {
  using ::testing::HasSubstr;
  using ::testing::Not;
  MatmulKernel m{.m = 256, .n = 384, .k = 96, .block_n = 192, .beside = 1, .beside_type = DType::bf16};
  for (const int residuals : {0, 1, 2}) {
    m.residuals = residuals;
    for (const int stages : {4, 5, 6}) {
      const std::string text = text_of(m, wgmma(256, 2, stages));
      for (int tile = 0; tile < 4; ++tile)
        EXPECT_EQ(text.find(fmt::format("fetch<{}>(store_stages, 1,", tile)) != std::string::npos,
                  tile <= residuals && tile < stages / 2)
            << residuals << " " << stages;
      EXPECT_EQ(text.find("store_stages.skip(1);") != std::string::npos, residuals == 2 && stages == 6);
    }
    for (const int stages : {4, 5, 6, 7}) {
      check(m, wgmma(256, 2, stages));
      check(m, cutlass_pingpong(2, stages));
    }
  }
  MatmulKernel moments{.out = DType::f32, .m = 200, .n = 264, .k = 96, .block_n = 128, .beside = 2};
  for (const int stages : {6, 9}) check(moments, wgmma(256, 2, stages));
}

// Nothing is written beside the tensor: the check looks at what lies around it.
TEST_F(EmulatedDot, WhatOverhangsIsNotStored) {
  for (Index m : {1, 7, 127, 129})
    for (Index n : {8, 72, 136})
      check({.m = m, .n = n, .k = 40, .block_m = 64, .block_n = 64}, wgmma(128, 2, 2));
  check({.batch = 2, .m = 129, .n = 264, .k = 136, .bias_gelu = true}, wgmma(256, 2, 2));
  check({.dtype = DType::f16, .out = DType::f32, .m = 127, .n = 132, .k = 72, .b_by_columns = true},
        wgmma(256, 2, 2));
}

TEST_F(EmulatedDot, ResultsOf32BitsLeaveAsTheyAre) {
  check({.out = DType::f32, .m = 256, .n = 256, .k = 64}, wgmma(256, 2, 2));
  check({.out = DType::f32,
         .m = 200,
         .n = 160,
         .k = 64,
         .block_n = 160,
         .b_by_columns = true,
         .bias_gelu = true},
        wgmma(256, 2, 3));
  check(of_bytes(DType::i8, {.out = DType::i32, .m = 200, .n = 136, .k = 144}), wgmma(256, 2, 2));
}

TEST_F(EmulatedDot, PromotedAndRoundedProductsAreStoredAlike) {
  check(of_bytes(DType::f8e4m3, {.m = 256, .n = 192, .k = 256, .block_n = 192}), wgmma(256, 2, 2));
  check(as_tf32({.m = 256, .k = 96, .b_by_columns = true}, DType::bf16), wgmma(256, 2, 2));
}

TEST_F(EmulatedDot, TilesAreReducedWhileTheyAreStored) {
  for (bool own : {false, true}) {
    check({.m = 512, .n = 256, .k = 64, .row_sums = true, .maxima = true},
          own ? cutlass_pingpong(2, 2) : wgmma(256, 2, 2));
    check({.out = DType::f32, .m = 300, .n = 264, .k = 136, .bias_gelu = true, .maxima = true},
          own ? cutlass_pingpong(2, 3) : wgmma(256, 2, 3));
  }
  check({.m = 256, .n = 512, .k = 64, .block_n = 256, .bias_gelu = true, .row_sums = true, .maxima = true},
        wgmma(256, 2, 2));
}

// More than the registers hold of a whole tile: loaded for pieces of it, of two rows of a thread and of one.
TEST_F(EmulatedDot, WhatIsLoadedBesideALargeTileComesByPieces) {
  check({.m = 256, .n = 384, .k = 64, .block_n = 192, .beside = 3}, wgmma(256, 2));
  check({.out = DType::f32, .m = 200, .n = 264, .k = 72, .block_n = 256, .bias_gelu = true, .beside = 2},
        wgmma(256, 2));
  check({.m = 320, .n = 384, .k = 64, .block_n = 128, .beside = 4}, cutlass_pingpong(2));
  EXPECT_THAT(refusal({.m = 320, .n = 384, .k = 64, .block_n = 192, .beside = 4}, cutlass_pingpong(2)),
              ::testing::HasSubstr("no registers are left"));
}

TEST_F(EmulatedDot, WhatFollowsTheSendIsTheNextTile) {
  const std::string text = text_of({.m = 512, .n = 512, .block_n = 256}, wgmma(256, 2, 2));
  EXPECT_NE(text.find("send(store_stages, c_map, index"), std::string::npos) << text;
  EXPECT_EQ(text.find("store("), std::string::npos) << text;
  EXPECT_EQ(text.find("across_quad"), std::string::npos) << text;
}

TEST_F(EmulatedDot, ViewsMayBeCalledAsWhatIsPrinted) {
  tile::Kernel kernel = tile::samples::matmul({.m = 128, .n = 128, .k = 64});
  kernel.views[0].name = "send", kernel.views[1].name = "end_of_pieces", kernel.views[2].name = "put";
  expect_right(*backend_, kernel, wgmma(256, 2, 2));
}

// Rows that begin anywhere are stored by threads, from the same stages: of 16 bits a first element alone, or
// none; panels that the edge cuts; several batches, warpgroups, results.
TEST_F(EmulatedDot, RowsThatAreNotAlignedLeaveByThreads) {
  for (const Index n : {1, 63, 66, 129, 190, 193})
    for (const Index m : {1, 65, 200})
      for (const DType out : {DType::bf16, DType::f32})
        check({.out = out, .m = m, .n = n, .k = 40, .block_m = 64, .block_n = 64, .b_by_columns = true},
              wgmma(128, 2, 2));
  check({.dtype = DType::f16,
         .out = DType::f16,
         .batch = 3,
         .m = 259,
         .n = 333,
         .k = 72,
         .block_n = 192,
         .b_by_columns = true},
        wgmma(256, 2, 3));
  check({.batch = 3, .m = 259, .n = 333, .k = 72, .block_n = 192, .b_by_columns = true, .bias_gelu = true},
        cutlass_pingpong(2, 2));
  check({.m = 259, .n = 201, .k = 72, .b_by_columns = true, .beside = 1, .beside_type = DType::bf16},
        wgmma(256, 2, 4));
  check({.m = 200, .n = 201, .k = 72, .b_by_columns = true, .maxima = true}, wgmma(256, 2, 2));
  check(of_bytes(DType::i8, {.out = DType::i32, .m = 200, .n = 131, .k = 144, .b_by_columns = true}),
        wgmma(256, 2, 2));
  const std::string text = text_of({.m = 200, .n = 201, .k = 72, .b_by_columns = true}, wgmma(256, 2, 2));
  EXPECT_THAT(text,
              ::testing::HasSubstr("send_rows<4>(store_stages, c_waiting[0], panel > 0, panel < 1, c_tile"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("c_map")));
}

TEST_F(EmulatedDot, SaysWhyResultsDoNotLeaveByStages) {
  const auto says = [&](const MatmulKernel& m, const tile::Schedule& s, const char* why) {
    EXPECT_NE(refusal(m, s).find(why), std::string::npos) << refusal(m, s);
  };
  says({.block_n = 32, .b_by_columns = true}, wgmma(256, 2, 2), "no whole number of 64 by 64");
  says({}, wgmma(256, 2, 1), "2 at least");
  says(of_bytes(DType::f8e4m3, {.out = DType::f8e4m3}), wgmma(256, 2, 2), "neither 16 nor 32 bits");
}

}  // namespace
}  // namespace tilewright::emulation
