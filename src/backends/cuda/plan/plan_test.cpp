// What a plan decides, and what it refuses with the reason.
#include "backends/cuda/plan/plan.h"

#include "support/attention_kernels.h"
#include "support/matmul_kernels.h"
#include "support/sample_kernels.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using tile::DotUnit;
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

Schedule wgmma() {
  return {.threads = 256, .threads_per_row = 4, .vector_bytes = 16, .stages = 4, .dot = DotUnit::wgmma};
}

TEST(CudaPlan, AnOrderOfProgramsWantsTheAxesItOrders) {
  const Schedule plain{.threads = 128, .threads_per_row = 128, .vector_bytes = 16};
  EXPECT_EQ(why_not(rows(), plain), "");
  Schedule group_m = plain, longest_first = plain;
  group_m.group_m = 8, longest_first.longest_first = true;
  EXPECT_EQ(why_not(rows(), group_m), "group_m: wants a second grid axis");
  EXPECT_EQ(why_not(rows(), longest_first),
            "longest_first: wants a second grid axis, and no other order of programs");
}

TEST(CudaPlan, WarpgroupsOfTheirOwnWantTheUnitThatHasThem) {
  Schedule s = wgmma();
  s.cutlass_pingpong = true;
  EXPECT_EQ(why_not(product(), s), "");
  s.dot = DotUnit::mma;
  EXPECT_EQ(why_not(product(), s), "cutlass_pingpong: wants dot=wgmma");
}

TEST(CudaPlan, SharedMemoryIsCounted) {
  Schedule s = wgmma();
  const auto plan = plan_kernel(product(), s, kHopper);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->pipeline, PipelineKind::wgmma_dot);
  EXPECT_EQ(plan->shared.dynamic, 4 * (128 + 128) * 64 * 2 + 1024);
  s.stages = 8;
  EXPECT_EQ(why_not(product(), s), "needs 263168 bytes of shared memory, a block has 230400");
}

TEST(CudaPlan, RoundsThatOverlapAreKnownByTheirLoop) {
  Schedule s = wgmma();
  s.stages = 2, s.intra_warpgroup_overlap = true;
  const auto plan = plan_kernel(tile::samples::attention({.queries = 1024, .keys = 1024}), s, kHopper);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->pipeline, PipelineKind::wgmma_b2b);
  EXPECT_EQ(plan->rounds.of_loop.size(), 1u);
  EXPECT_EQ(why_not(product(), s), "intra_warpgroup_overlap: the loop is no b2b of dots");
}

}  // namespace
}  // namespace tilewright::cuda
