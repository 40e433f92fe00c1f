// The printed CUDA text means what the kernel means: hand-written and random kernels under several schedules.
#include "cuda_emulation/emulated_cuda.h"

#include "support/draws.h"
#include "support/hand_kernels.h"
#include "support/kernel_check.h"
#include "support/random_kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace tilewright::emulation {
namespace {

using test::check_kernel;

TEST(Emulation, TranslatesPtxAndSharedMemory) {
  EXPECT_EQ(
      translate("asm volatile(\"max.NaN.f32 %0, %1, %2;\" : \"=f\"(o.v[0]) : \"f\"(f(a, b)), \"f\"(b));"),
      "ptx_max_NaN_f32(o.v[0], f(a, b), b);");
  EXPECT_EQ(translate("asm(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(rank));"),
            "ptx_cluster_ctarank(rank);");
  EXPECT_EQ(translate("__shared__ f32 m[2][8];"),
            "f32 (&m)[2][8] = *static_cast<f32 (*)[2][8]>(emu_shared(sizeof(f32 [2][8])));");
}

constexpr tile::Schedule kSchedules[] = {
    {.threads = 128, .kind = tile::ElementLoops{.threads_per_row = 128}},
    {.threads = 128, .kind = tile::ElementLoops{.threads_per_row = 32}},
    {.threads = 64, .vector_bytes = 8, .kind = tile::ElementLoops{.threads_per_row = 8}},
    {.threads = 96, .vector_bytes = 4, .kind = tile::ElementLoops{.threads_per_row = 96}},
    {.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 64, .cluster = 4}},
    {.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 64, .stages = 2}},
    {.threads = 128, .kind = tile::ElementLoops{.threads_per_row = 64, .stages = 3}},
    {.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 64, .cluster = 2, .stages = 2}},
    {.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 16, .cluster = 4}},
    {.threads = 96, .vector_bytes = 8, .kind = tile::ElementLoops{.threads_per_row = 8, .cluster = 2}}};

// Share of odd values in the inputs of kernels that mix all of them: one NaN leaves nothing to compare.
constexpr double kFewOdd = 0.0002;

class Emulated : public ::testing::Test {
 protected:
  Emulated() : backend_(open_emulated_cuda("sm_90a").value()) {}
  // Returns whether the schedule was taken.
  bool check(const tile::Kernel& kernel, const tile::Schedule& schedule,
             const std::vector<std::int64_t>& scalars, double odd_share = 0.01) {
    const auto r = check_kernel(
        *backend_, kernel, schedule,
        {.scalars = scalars, .odd_share = odd_share, .model = {.scale = 2, .flush_subnormals = true}});
    EXPECT_TRUE(r.problem.empty()) << r.problem;
    return r.refused.empty();
  }
  std::unique_ptr<backends::Backend> backend_;
};

TEST_F(Emulated, HandWrittenKernelsMatchTheReference) {
  int taken = 0;
  const auto kernels = tile::samples::small_kernels();
  for (const tile::samples::HandKernel& k : kernels)
    for (const tile::Schedule& s : kSchedules) taken += check(k.kernel, s, k.scalars, kFewOdd) ? 1 : 0;
  EXPECT_GT(taken, static_cast<int>(kernels.size() * std::size(kSchedules)) / 2) << "schedules were refused";
}

// TILEWRIGHT_RANDOM_KERNELS=first:count for others: of few of them all may refuse the schedules that are
// drawn.
TEST_F(Emulated, RandomKernelsMatchTheReference) {
  int first = 0, count = static_cast<int>(test::draws(40));
  const char* range = std::getenv("TILEWRIGHT_RANDOM_KERNELS");
  if (range) std::sscanf(range, "%d:%d", &first, &count);
  int taken = 0;
  for (int seed = first; seed < first + count; ++seed) {
    const test::RandomKernel random = test::random_kernel(static_cast<std::uint64_t>(seed));
    const tile::Schedule& s = kSchedules[static_cast<std::size_t>(seed) % std::size(kSchedules)];
    SCOPED_TRACE(fmt::format("seed {}", seed));
    taken += check(random.kernel, s, random.scalars) ? 1 : 0;
    const auto candidates = backend_->candidates(random.kernel);
    ASSERT_FALSE(candidates.empty());
    ASSERT_TRUE(check(random.kernel, candidates.front().schedule, random.scalars))
        << "the first candidate was refused";
  }
  if (!range) EXPECT_GT(taken, count / 3) << "schedules were refused";
}

}  // namespace
}  // namespace tilewright::emulation
