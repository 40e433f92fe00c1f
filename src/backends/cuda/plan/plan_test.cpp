// What a plan decides, and what it refuses with the reason.
#include "backends/cuda/plan/plan.h"

#include "support/attention_kernels.h"
#include "support/matmul_kernels.h"
#include "support/sample_kernels.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using tile::Kernel;
using tile::Schedule;

const PlanOptions kHopper{.arch = {9, 0, true}};

std::string why_not(const Kernel& kernel, const Schedule& schedule) {
  const auto plan = plan_kernel(kernel, schedule, kHopper);
  if (plan) return "";
  EXPECT_EQ(plan.error().kind, Failure::Kind::unsupported);
  return plan.error().message;
}

Kernel rows() { return tile::samples::row_softmax(DType::f32, 4096, 1024); }
Kernel product() { return tile::samples::matmul({.m = 1024, .n = 1024, .k = 512}); }

Kernel attention() { return tile::samples::attention({.queries = 1024, .keys = 1024}); }

TEST(CudaPlan, AnOrderOfProgramsWantsTheAxesItOrders) {
  const auto b2b = [](int group_m, bool longest_first) {
    return Schedule{.threads = 256,
                    .kind = tile::WgmmaB2b{.group_m = group_m, .longest_first = longest_first}};
  };
  Kernel of_one_axis = attention();
  of_one_axis.grid.resize(1);
  for (tile::Op& op : of_one_axis.body.ops)
    if (op.kind == tile::OpKind::program_id && op.param > 0) op.kind = tile::OpKind::constant, op.param = 0;
  EXPECT_EQ(why_not(attention(), b2b(0, true)), "");
  EXPECT_EQ(why_not(attention(), b2b(8, false)), "");
  EXPECT_EQ(why_not(attention(), b2b(8, true)), "group_m: longest_first is another order of programs");
  EXPECT_EQ(why_not(of_one_axis, b2b(8, false)), "group_m: wants a second grid axis");
  EXPECT_EQ(why_not(of_one_axis, b2b(0, true)), "longest_first: wants a second grid axis");
}

TEST(CudaPlan, AKindWantsTheLoopsThatItIsFor) {
  EXPECT_EQ(why_not(product(), {.threads = 256, .kind = tile::WgmmaDot()}), "");
  EXPECT_EQ(why_not(product(), {.threads = 256, .kind = tile::WgmmaPingpong()}), "");
  EXPECT_EQ(why_not(product(), {.threads = 256, .kind = tile::WgmmaB2b()}),
            "dot: the loop is no back-to-back matmul");
  EXPECT_EQ(why_not(attention(), {.threads = 256, .kind = tile::WgmmaDot()}),
            "dot: the loop does more than one dot");
  EXPECT_EQ(why_not(attention(), {.threads = 256, .kind = tile::WgmmaScaled()}),
            "wgmma_scaled: nothing that is computed of products is added up");
  EXPECT_EQ(why_not(rows(), {.threads = 128, .kind = tile::ElementLoops{.threads_per_row = 128}}), "");
  EXPECT_NE(why_not(rows(), {.threads = 128, .kind = tile::MmaDot()}), "");
  EXPECT_NE(why_not(rows(), {.threads = 128, .kind = tile::CpuLoops()}), "");
}

// Rows of the next program are copied ahead also where each program's results take the place of its own.
TEST(CudaPlan, RowsThatAreOverwrittenInPlaceComeAhead) {
  const Schedule ahead{.threads = 128, .kind = tile::ElementLoops{.threads_per_row = 128, .stages = 2}};
  Kernel kernel = rows();
  EXPECT_EQ(why_not(kernel, ahead), "");
  for (tile::Op& op : kernel.body.ops)
    if (op.kind == tile::OpKind::store) op.param = 0;
  EXPECT_EQ(why_not(kernel, ahead), "");
}

// A warpgroup with a tile of its own has 192 registers of sums of 128x192.
TEST(CudaPlan, RegistersOfTilesBesideALargeOneAreCounted) {
  const auto why = [](int residuals, int beside) {
    const tile::samples::MatmulKernel m{.m = 2048,
                                        .n = 4096,
                                        .k = 64,
                                        .block_n = 192,
                                        .residuals = residuals,
                                        .beside = beside,
                                        .beside_type = DType::bf16};
    return why_not(
        tile::samples::matmul(m),
        {.threads = 256, .kind = tile::WgmmaPingpong{.stages = 3, .group_m = 4, .store_stages = 4}});
  };
  EXPECT_EQ(why(1, 0), "");
  EXPECT_EQ(why(2, 1), "") << "two of the tiles come by the stages";
  EXPECT_EQ(why(4, 1), "cutlass_pingpong: no registers are left for what the tile is computed with");
}

TEST(CudaPlan, SharedMemoryIsCounted) {
  const auto plan = plan_kernel(product(), {.threads = 256, .kind = tile::WgmmaDot{.stages = 4}}, kHopper);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->shared.dynamic, 4 * (128 + 128) * 64 * 2 + 1024);
  EXPECT_EQ(why_not(product(), {.threads = 256, .kind = tile::WgmmaDot{.stages = 8}}),
            "needs 263168 bytes of shared memory, a block has 230400");
}

TEST(CudaPlan, RoundsThatOverlapAreKnownByTheirLoop) {
  const auto plan = plan_kernel(
      attention(), {.threads = 256, .kind = tile::WgmmaB2b{.rounds = tile::Rounds::overlapped}}, kHopper);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->rounds.of_loop.size(), 1u);
}

}  // namespace
}  // namespace tilewright::cuda
