// Back-to-back matmuls on the device against the reference interpreter: as tests/cuda_emulation/b2b_test.cpp.
#include "backends/cuda/cuda_backend.h"
#include "support/attention_kernels.h"
#include "support/backend_parity.h"
#include "support/kernel_check.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using tile::samples::AttentionKernel;

class B2bMatmuls : public ::testing::Test {
 protected:
  B2bMatmuls() : backend_(CudaBackend::open({}).value()) {}

  // Under every schedule that the backend proposes, and those of devices without wgmma with so many `places`
  // for each block.
  void check(const std::string& what, const tile::Kernel& kernel, double spread = 1,
             const std::vector<int>& places = {1, 2}) {
    std::vector<tile::Schedule> schedules;
    for (const backends::Candidate& c : backend_->candidates(kernel))
      if (c.refusal.empty() && dot_unit(c.schedule) == tile::DotUnit::wgmma) schedules.push_back(c.schedule);
    EXPECT_GE(schedules.size(), 3u) << what;
    for (int stages : places) schedules.push_back({.threads = 256, .kind = tile::MmaB2b{.stages = stages}});
    for (const tile::Schedule& schedule : schedules) {
      const auto r = test::check_kernel(
          *backend_, kernel, schedule,
          {.scale = spread, .odd_share = 0, .model = {.scale = 32, .flush_subnormals = true}});
      EXPECT_TRUE(r.problem.empty()) << what << " " << to_string(schedule) << ": " << r.problem;
      EXPECT_TRUE(r.refused.empty()) << what << " " << to_string(schedule) << ": " << r.refused;
    }
  }
  void check(const AttentionKernel& a, double spread = 1) { check(to_string(a), attention(a), spread); }

  std::unique_ptr<backends::Backend> backend_;
};

TEST_F(B2bMatmuls, AttentionMatchesTheReference) {
  check({.queries = 128, .keys = 512});
  check({.heads = 2, .queries = 256, .keys = 640, .depth = 128, .columns = 128});
  check({.dtype = DType::f16, .out = DType::f32, .queries = 256, .keys = 256, .columns = 128});
  check({.heads = 4, .shared = 2, .queries = 128, .keys = 256, .depth = 128, .columns = 128});
}

TEST_F(B2bMatmuls, RaggedLengthsAndMasks) {
  for (bool splits : {false, true}) {
    check({.heads = 3, .queries = 200, .keys = 333, .splits = splits, .gap = 8});
    check({.heads = 2, .queries = 200, .keys = 333, .causal = true, .splits = splits, .gap = 8});
    check({.heads = 5, .queries = 700, .keys = 700, .causal = true, .skips = true, .splits = splits});
    check({.queries = 130, .keys = 1, .causal = true, .splits = splits});
  }
}

TEST_F(B2bMatmuls, RowsThatSeeNothing) {
  for (bool skips : {false, true})
    check({.queries = 256,
           .keys = 256,
           .causal = true,
           .unseen = 150,
           .skips = skips,
           .splits = skips,
           .log_sum_exp = true});
}

TEST_F(B2bMatmuls, ScoresThatOverflowWithoutTheirMaximum) { check({.queries = 128, .keys = 512}, 12); }

TEST_F(B2bMatmuls, TwoProductsBeforeTheLast) {
  for (bool causal : {false, true}) {
    const AttentionKernel a{.heads = 2, .queries = 200, .keys = 300, .block_n = 64, .causal = causal};
    check(to_string(a), attention_gradient_q(a), 1, {2});
  }
}

// Which program comes first differs from launch to launch; what is added to what does not.
TEST_F(B2bMatmuls, AreTheSameBitByBitInAHundredLaunches) {
  const AttentionKernel a{.heads = 4, .queries = 700, .keys = 700, .causal = true, .splits = true};
  for (const tile::Kernel& kernel : {attention(a), attention_gradient_q(a)}) {
    int checked = 0;
    for (const backends::Candidate& c : backend_->candidates(kernel)) {
      if (!c.refusal.empty()) continue;
      std::string source;
      const auto r =
          test::check_parity(kernel, {.odd_share = 0, .model = {.scale = 32, .flush_subnormals = true}},
                             test::on_backend(*backend_, c.schedule, source, 100));
      EXPECT_TRUE(r.ok()) << kernel.name << " [" << to_string(c.schedule) << "]: " << r.message;
      ++checked;
    }
    EXPECT_GE(checked, 3) << kernel.name;
  }
}

}  // namespace
}  // namespace tilewright::cuda
