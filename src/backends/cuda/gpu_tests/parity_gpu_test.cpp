// Printed kernels on the device against the reference interpreter: every small kernel under its candidate
// schedules and under some that no model would choose.
#include "backends/cuda/cuda_backend.h"
#include "support/hand_kernels.h"
#include "support/kernel_check.h"
#include "support/random_kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace tilewright::cuda {
namespace {

using test::check_kernel;

std::unique_ptr<backends::Backend> open_backend() {
  auto backend = CudaBackend::open({});
  if (!backend) throw Error(backend.error().message);
  return std::move(*backend);
}

constexpr tile::Schedule kOddSchedules[] = {
    {.threads = 128, .kind = tile::ElementLoops{.threads_per_row = 32}},
    {.threads = 64, .vector_bytes = 8, .kind = tile::ElementLoops{.threads_per_row = 8}},
    {.threads = 96, .vector_bytes = 4, .kind = tile::ElementLoops{.threads_per_row = 96}},
    {.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 64, .cluster = 4}},
    {.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 64, .stages = 2}},
    {.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 64, .cluster = 2, .stages = 3}},
    {.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 16, .cluster = 4}},
};

// In parts, which processes share (GTEST_TOTAL_SHARDS): compiling takes minutes.
constexpr std::size_t kParts = 6;
class PartOfParity : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Parity, PartOfParity, testing::Range(std::size_t{0}, kParts));

TEST_P(PartOfParity, SmallKernelsMatchTheReference) {
  const auto backend = open_backend();
  int checked = 0;
  const std::vector<tile::samples::HandKernel> kernels = tile::samples::small_kernels();
  for (std::size_t i = GetParam(); i < kernels.size(); i += kParts) {
    const tile::samples::HandKernel& k = kernels[i];
    std::vector<tile::Schedule> schedules(std::begin(kOddSchedules), std::end(kOddSchedules));
    for (const backends::Candidate& c : backend->candidates(k.kernel))
      if (c.refusal.empty()) schedules.push_back(c.schedule);
    for (const tile::Schedule& s : schedules) {
      // Approximate instructions err by more than their exact namesakes: 2^-17 where a value ends in bf16.
      const auto r = check_kernel(
          *backend, k.kernel, s,
          {.scalars = k.scalars, .odd_share = 0.0002, .model = {.scale = 32, .flush_subnormals = true}});
      EXPECT_TRUE(r.problem.empty()) << k.name << ": " << r.problem;
      checked += r.refused.empty() ? 1 : 0;
    }
  }
  fmt::print("{} kernel runs compared\n", checked);
}

// A few: kernel_fuzz takes any number. TILEWRIGHT_RANDOM_KERNELS=first:count for others.
TEST(Parity, RandomKernelsMatchTheReference) {
  const auto backend = open_backend();
  int first = 0, count = 24, checked = 0;
  if (const char* range = std::getenv("TILEWRIGHT_RANDOM_KERNELS"))
    std::sscanf(range, "%d:%d", &first, &count);
  for (int seed = first; seed < first + count; ++seed) {
    const auto random = test::random_kernel(static_cast<std::uint64_t>(seed));
    std::vector<tile::Schedule> schedules = {
        kOddSchedules[static_cast<std::size_t>(seed) % std::size(kOddSchedules)]};
    schedules.push_back(backend->candidates(random.kernel).front().schedule);
    for (const tile::Schedule& s : schedules) {
      const auto r =
          check_kernel(*backend, random.kernel, s,
                       {.scalars = random.scalars, .model = {.scale = 32, .flush_subnormals = true}});
      EXPECT_TRUE(r.problem.empty()) << "seed " << seed << ": " << r.problem;
      checked += r.refused.empty() ? 1 : 0;
    }
  }
  fmt::print("{} random kernel runs compared\n", checked);
}

TEST(Parity, RecordedLaunchesRepeat) {
  const auto backend = open_backend();
  const tile::Kernel kernel = tile::samples::elu_of(1000, 256);
  const tile::Schedule schedule = backend->candidates(kernel).front().schedule;
  const auto source = backend->print(kernel, schedule);
  const auto program = backend->load(kernel, *source, *backend->compile(kernel, *source));
  ASSERT_TRUE(program.ok());
  std::vector<float> x(1000, 1.5f), y(1000);
  void* dx = *backend->allocate(4000);
  void* dy = *backend->allocate(4000);
  ASSERT_TRUE(backend->copy(dx, x.data(), 4000, backends::CopyKind::host_to_device).ok());
  ASSERT_TRUE(backend->fill(dy, {0xff}, 4000).ok());
  // y = elu(x), then x = elu(y): the second launch sees the first one's result.
  const auto replay =
      backend->record({{program->get(), {dx, dy}, {}, {4, 1, 1}}, {program->get(), {dy, dx}, {}, {4, 1, 1}}});
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  ASSERT_TRUE((*replay)->run().ok());
  ASSERT_TRUE((*replay)->run().ok());
  ASSERT_TRUE(backend->copy(y.data(), dy, 4000, backends::CopyKind::device_to_host).ok());
  for (float v : y) ASSERT_EQ(v, 1.5f);
  backend->release(dx, 4000);
  backend->release(dy, 4000);
}

}  // namespace
}  // namespace tilewright::cuda
