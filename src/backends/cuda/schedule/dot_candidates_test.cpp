// What is considered for a dot is listed, with what it is predicted to take or why it is refused.
#include "backends/cuda/analysis/schedule_fields.h"
#include "backends/cuda/cuda_backend.h"
#include "support/matmul_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tilewright::cuda {
namespace {

using backends::Candidate;

std::vector<Candidate> candidates_of(Index rows, DType out) {
  const auto backend = CudaBackend::open({.compile_only = "sm_90a"}).value();
  return backend->candidates(tile::samples::matmul({.dtype = DType::bf16,
                                                    .out = out,
                                                    .m = rows,
                                                    .n = 3072,
                                                    .k = 1024,
                                                    .block_m = 128,
                                                    .block_n = 128,
                                                    .block_k = 64}));
}

bool refuses(const std::vector<Candidate>& all, int group_m, std::string_view why) {
  return std::any_of(all.begin(), all.end(), [&](const Candidate& c) {
    return (group_m == 0 || cuda::group_m(c.schedule) == group_m) && c.refusal.starts_with(why);
  });
}

TEST(DotCandidates, SwathsThatAreLongerThanTheResultAreRefused) {
  const std::vector<Candidate> few = candidates_of(256, DType::bf16), many = candidates_of(8192, DType::bf16);
  EXPECT_TRUE(refuses(few, 32, "group_m: the result has 2 rows of blocks"));
  EXPECT_FALSE(refuses(many, 32, "group_m:"));
  EXPECT_TRUE(few.front().refusal.empty());
}

TEST(DotCandidates, ResultsThatTheCopyEngineCannotSendAreRefused) {
  EXPECT_TRUE(refuses(candidates_of(8192, DType::f8e4m3), 0,
                      "store_stages: the result's elements have neither 16 nor 32 bits"));
  EXPECT_FALSE(refuses(candidates_of(8192, DType::bf16), 0, "store_stages:"));
}

TEST(DotCandidates, EveryOneHasATimeOrAReason) {
  for (const Candidate& c : candidates_of(256, DType::f8e4m3))
    EXPECT_EQ(c.refusal.empty(), c.predicted_us > 0) << to_string(c.schedule) << " " << c.refusal;
}

}  // namespace
}  // namespace tilewright::cuda
