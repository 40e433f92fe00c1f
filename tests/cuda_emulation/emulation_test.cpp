// The printed CUDA text means what the kernel means: hand-written kernels under several schedules.
#include "cuda_emulation/emulated_cuda.h"

#include "support/hand_kernels.h"
#include "support/kernel_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::emulation {
namespace {

using testing_support::check_kernel;
using testing_support::CheckResult;

TEST(Emulation, TranslatesPtxAndSharedMemory) {
  EXPECT_EQ(
      translate("asm volatile(\"max.NaN.f32 %0, %1, %2;\" : \"=f\"(o.v[0]) : \"f\"(f(a, b)), \"f\"(b));"),
      "ptx_max_NaN_f32(o.v[0], f(a, b), b);");
  EXPECT_EQ(translate("asm(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(rank));"),
            "ptx_cluster_ctarank(rank);");
  EXPECT_EQ(translate("__shared__ f32 m[2][8];"),
            "f32 (&m)[2][8] = *static_cast<f32 (*)[2][8]>(emu_shared(sizeof(f32 [2][8])));");
}

class Small : public ::testing::TestWithParam<tile::Schedule> {};

TEST_P(Small, KernelsMatchTheReference) {
  auto backend = open_emulated_cuda("sm_90a");
  ASSERT_TRUE(backend.ok()) << backend.error().message;
  int refused = 0;
  const auto kernels = tile::samples::small_kernels();
  for (const tile::samples::HandKernel& k : kernels) {
    const CheckResult r = check_kernel(**backend, k.kernel, k.scalars, {.schedule = GetParam()});
    EXPECT_TRUE(r.problem.empty()) << k.name << ": " << r.problem;
    refused += r.refused.empty() ? 0 : 1;
    if (!r.refused.empty()) fmt::print("{} [{}]: {}\n", k.name, to_string(GetParam()), r.refused);
  }
  EXPECT_LT(refused, static_cast<int>(kernels.size())) << "every kernel was refused";
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, Small,
    ::testing::Values(
        tile::Schedule{.threads = 128, .threads_per_row = 128, .vector_bytes = 16},
        tile::Schedule{.threads = 128, .threads_per_row = 32, .vector_bytes = 16},
        tile::Schedule{.threads = 64, .threads_per_row = 8, .vector_bytes = 8},
        tile::Schedule{.threads = 96, .threads_per_row = 96, .vector_bytes = 4, .keep_in_registers = false},
        tile::Schedule{.threads = 64, .threads_per_row = 64, .vector_bytes = 16, .persistent = true},
        tile::Schedule{.threads = 64, .threads_per_row = 64, .vector_bytes = 16, .cluster = 4}));

}  // namespace
}  // namespace tilewright::emulation
