// Whatever is planned can be printed: kernels under schedules that fit them more or less.
#include "backends/cuda/plan/plan.h"
#include "backends/cuda/print/printer.h"
#include "support/attention_kernels.h"
#include "support/matmul_kernels.h"
#include "support/sample_kernels.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using tile::Kernel;
using tile::Schedule;

std::vector<Kernel> kernels() {
  return {tile::samples::row_softmax(DType::bf16, 4096, 1024),
          tile::samples::row_softmax_looped(DType::f32, 512, 8192, 1024),
          tile::samples::matmul({.m = 1024, .n = 1024, .k = 512, .bias_gelu = true}),
          tile::samples::matmul({.m = 1024, .n = 1024, .k = 512, .maxima = true}),
          tile::samples::attention({.heads = 4, .queries = 1024, .keys = 1024}),
          tile::samples::attention_gradient_q({.heads = 4, .queries = 1024, .keys = 1024, .causal = true})};
}

// Every combination of a few values of each field that decides about legality.
std::vector<Schedule> schedules() {
  std::vector<tile::ScheduleKind> kinds{tile::CpuLoops(), tile::LibraryCall{.name = "cublaslt"}};
  for (const int row : {4, 128})
    for (const int stages : {1, 2, 4}) {
      for (const int cluster : {1, 2})
        kinds.emplace_back(tile::ElementLoops{.threads_per_row = row, .cluster = cluster, .stages = stages});
      kinds.emplace_back(tile::FmaBlocks{.threads_per_row = row, .stages = stages});
    }
  for (const int stages : {1, 2, 4})
    for (const int group_m : {0, 8}) {
      kinds.emplace_back(tile::MmaDot{.stages = stages, .group_m = group_m});
      for (const int cluster : {1, 2})
        kinds.emplace_back(tile::WgmmaScaled{.stages = stages, .group_m = group_m, .cluster = cluster});
      for (const bool longest_first : {false, true})
        kinds.emplace_back(
            tile::MmaB2b{.stages = stages, .group_m = group_m, .longest_first = longest_first});
      for (const int places : {0, 1, 2}) {
        kinds.emplace_back(tile::WgmmaDot{.stages = stages, .group_m = group_m, .store_stages = places});
        kinds.emplace_back(tile::WgmmaPingpong{.stages = stages, .group_m = group_m, .store_stages = places});
        for (const bool longest_first : {false, true})
          for (const tile::Rounds rounds :
               {tile::Rounds::apart, tile::Rounds::overlapped, tile::Rounds::fa3_pingpong})
            kinds.emplace_back(tile::WgmmaB2b{.stages = stages,
                                              .group_m = group_m,
                                              .longest_first = longest_first,
                                              .rounds = rounds,
                                              .store_stages = places});
      }
    }
  std::vector<Schedule> all;
  for (const int threads : {64, 128, 256})
    for (const tile::ScheduleKind& kind : kinds) all.push_back({.threads = threads, .kind = kind});
  return all;
}

TEST(PlannedKernels, ArePrinted) {
  int planned = 0, refused = 0;
  for (const Kernel& kernel : kernels())
    for (const Schedule& schedule : schedules()) {
      const auto plan = plan_kernel(kernel, schedule, {.arch = {9, 0, true}});
      if (!plan) {
        EXPECT_FALSE(plan.error().message.empty());
        ++refused;
        continue;
      }
      ++planned;
      backends::Source source;
      ASSERT_NO_THROW(source = print_kernel(kernel, *plan)) << kernel.name << " " << to_string(schedule);
      EXPECT_EQ(source.launch.shared_bytes, plan->shared.dynamic);
    }
  EXPECT_GT(planned, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tilewright::cuda
