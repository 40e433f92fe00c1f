// Sums that the blocks of a cluster share: each multiplies a part of k and stores a part of the columns.
#include "cuda_emulation/dot_check.h"

namespace tilewright::emulation {
namespace {

using tile::samples::MatmulKernel;

tile::Schedule shared_out(int parts, int threads, int stages, int store_places = 0) {
  tile::Schedule s = wgmma(threads, stages);
  s.parts = parts, s.store_places = store_places;
  return s;
}

// As many blocks of k as parts, twice as many, and a last part that is shorter; one program and several, more
// than the emulated device has clusters.
TEST_F(EmulatedDot, BlocksOfAClusterShareASum) {
  for (Index k : {256, 448, 512})
    for (Index m : {128, 640}) check({.m = m, .n = 128, .k = k}, shared_out(4, 256, 2));
  check({.m = 128, .n = 256, .k = 192, .block_n = 256}, shared_out(2, 256, 3));
  check({.m = 64, .n = 512, .k = 512, .block_m = 64, .block_n = 256}, shared_out(8, 128, 3));
  check({.m = 128, .n = 192, .k = 448, .block_n = 96, .b_by_columns = true}, shared_out(3, 256, 3));
}

TEST_F(EmulatedDot, SharedSumsHaveRaggedEdgesAndAnyType) {
  for (Index m : {1, 7, 127, 129}) check({.batch = 2, .m = m, .n = 136, .k = 200}, shared_out(4, 256, 2));
  check({.dtype = DType::f16,
         .out = DType::f32,
         .m = 130,
         .n = 264,
         .k = 328,
         .block_m = 64,
         .bias_gelu = true},
        shared_out(2, 128, 3));
  check({.dtype = DType::i8,
         .out = DType::i32,
         .m = 200,
         .n = 136,
         .k = 528,
         .block_k = 128,
         .b_by_columns = true},
        shared_out(4, 256, 2));
  check({.dtype = DType::f32,
         .out = DType::f32,
         .m = 200,
         .n = 136,
         .k = 140,
         .block_k = 32,
         .b_by_columns = true,
         .bias_gelu = true,
         .tf32 = true},
        shared_out(2, 256, 2));
}

TEST_F(EmulatedDot, SharedSumsLeaveByTheCopyEngine) {
  check({.m = 256, .n = 512, .k = 256, .block_n = 256, .bias_gelu = true}, shared_out(4, 256, 3, 2));
  check({.batch = 2, .m = 129, .n = 264, .k = 136}, shared_out(2, 256, 2, 3));
}

TEST_F(EmulatedDot, SaysWhyASumIsNotShared) {
  const auto says = [&](const MatmulKernel& m, const tile::Schedule& s, const char* why) {
    EXPECT_NE(refusal(m, s).find(why), std::string::npos) << refusal(m, s);
  };
  says({.k = 192}, shared_out(4, 256, 2), "blocks of k are too few");
  says({.k = 512, .block_n = 64}, shared_out(4, 256, 2), "slices of 32");
  says({.out = DType::f32, .k = 512, .row_sums = true}, shared_out(2, 256, 2), "whole rows");
  says({.n = 256, .k = 512, .block_n = 256}, shared_out(2, 256, 2), "no room");
  says({.k = 512, .any_depth = true}, shared_out(2, 256, 2), "start from zeros");
}

}  // namespace
}  // namespace tilewright::emulation
