// What fusion is told a kernel takes is what its first schedule is predicted to take, on every architecture.
#include "backends/cuda/schedule/candidates.h"

#include "backends/cuda/cuda_backend.h"
#include "support/attention_kernels.h"
#include "support/matmul_kernels.h"
#include "support/sample_kernels.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

TEST(Candidates, ArePredictedForTheArchitectureThatTheyAreListedFor) {
  const tile::Kernel kernels[] = {tile::samples::row_softmax(DType::f32, 64, 1 << 18),
                                  tile::samples::matmul({.m = 1024, .n = 1024, .k = 512}),
                                  tile::samples::attention({.queries = 1024, .keys = 1024})};
  for (const char* architecture : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120"}) {
    const auto backend = CudaBackend::open({.compile_only = architecture}).value();
    for (const tile::Kernel& kernel : kernels) {
      const std::vector<backends::Candidate> all = backend->candidates(kernel);
      ASSERT_FALSE(all.empty());
      ASSERT_EQ(all.front().refusal, "");
      EXPECT_EQ(backend->target().predicted_us(kernel, backend->target()), all.front().predicted_us)
          << architecture << " " << kernel.name;
    }
  }
}

}  // namespace
}  // namespace tilewright::cuda
