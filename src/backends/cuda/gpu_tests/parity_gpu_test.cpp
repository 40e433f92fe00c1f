// Printed kernels on the device against the reference interpreter: every small kernel under its candidate
// schedules and under some that no model would choose.
#include "backends/cuda/cuda_backend.h"
#include "support/hand_kernels.h"
#include "support/kernel_check.h"
#include "support/random_kernel.h"

#include <tilewright/tile/text.h>

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

// Three launches of a kernel for up to eight: each has addresses and a number of elements of its own.
TEST(Parity, LaunchesTogetherHaveTheirOwnArguments) {
  const auto backend = open_backend();
  const tile::Kernel kernel = tile::parse(R"(kernel @copy(
    %x: view<f32,[%n],strides=[1],align=16>,
    %y: view<f32,[%n],strides=[1],align=16>,
    %n: i64)
    grid(cdiv(%n,1024)) together(8) {
  %0 = program_id 0 : i64
  %1 = constant 1024 : i64
  %start = mul %0, %1 : i64
  %3 = load %x[%start] {fill=0.0} : tile<f32,[1024]>
  store %y[%start], %3 {bounded=true} : tile<f32,[1024]>
}
)")
                                  .value();
  const tile::Schedule schedule = backend->candidates(kernel).front().schedule;
  const auto source = backend->print(kernel, schedule);
  const auto program = backend->load(kernel, *source, *backend->compile(kernel, *source));
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_EQ((*program)->most_together(), 8);
  constexpr std::size_t kElements = 3000, kBytes = kElements * sizeof(float);
  const std::vector<std::int64_t> counts = {3000, 2049, 2500};  // of one grid
  std::vector<void*> views;
  views.reserve(6);
  for (int i = 0; i < 6; ++i) views.push_back(*backend->allocate(kBytes));
  const auto expect_copies = [&](float written) {
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<float> y(kElements);
      ASSERT_TRUE(backend->copy(y.data(), views[2 * i + 1], kBytes, backends::CopyKind::device_to_host).ok());
      for (std::size_t e = 0; e < kElements; ++e)
        ASSERT_EQ(y[e], e < static_cast<std::size_t>(counts[i]) ? written + static_cast<float>(i) : -1)
            << i << ", " << e;
    }
  };
  const auto prepare = [&](float value) {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::vector<float> x(kElements, value + static_cast<float>(i)), y(kElements, -1);
      ASSERT_TRUE(backend->copy(views[2 * i], x.data(), kBytes, backends::CopyKind::host_to_device).ok());
      ASSERT_TRUE(backend->copy(views[2 * i + 1], y.data(), kBytes, backends::CopyKind::host_to_device).ok());
    }
  };
  prepare(2);
  ASSERT_TRUE((*program)->launch({views.data(), counts.data(), {3, 1, 1}, 3}).ok());
  expect_copies(2);
  prepare(5);
  const auto replay = backend->record({{program->get(), views, counts, {3, 1, 1}, 3}});
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  ASSERT_TRUE((*replay)->run().ok());
  expect_copies(5);
  prepare(7);
  ASSERT_TRUE((*replay)->run().ok());
  expect_copies(7);
  for (void* v : views) backend->release(v, kBytes);
}

}  // namespace
}  // namespace tilewright::cuda
