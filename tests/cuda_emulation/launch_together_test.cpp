// Short launches of one kernel that run as one: from compile() to what the blocks of a grid's rows compute.
#include <tilewright/tilewright.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/open_device.h"
#include "tensor/state.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

void emulate_together(Context& ctx, const std::string& architecture) {
  const std::shared_ptr<runtime::Device> opened = test::open_device("emulated:" + architecture, "");
  detail::ContextState& state = *ctx.state();
  state.devices[opened->name()] = std::make_unique<detail::DeviceState>(opened, &state.cache);
  state.options.device = opened->name();
}

std::vector<Tensor> tensors(Context& ctx, Index count, Index size) {
  std::vector<Tensor> out;
  out.reserve(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) out.push_back(ctx.arange(size, DType::f32) + static_cast<double>(i));
  return out;
}

// Kernels of a report whose launches run with others.
int bundled(const SpecialisationReport& report, const std::string& note) {
  int count = 0;
  for (const KernelReport& k : report.kernels)
    if (k.note.find(note) != std::string::npos) {
      ++count;
      EXPECT_THAT(k.source, HasSubstr(".at[blockIdx.y]"));
    }
  return count;
}

// Each kernel multiplies by a number of its own, which it is passed, and the last two read what others wrote.
TEST(LaunchTogether, EachLaunchHasItsOwnArguments) {
  for (const char* const arch : {"sm_80", "sm_90a"}) {
    Context ctx({.device = "cpu", .cache_directory = ""});
    emulate_together(ctx, arch);
    const auto f = compile([](const std::vector<Tensor>& x) {
      std::vector<Tensor> out;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Tensor by_row = reshape(x[i], {5, 20});
        out.push_back(cumsum(by_row * (0.5 + static_cast<double>(i)), 1));
      }
      for (std::size_t i = 0; i < 2; ++i) out.push_back(cumsum(out[i] * 0.25, 0));
      return out;
    });
    const std::vector<Tensor> x = tensors(ctx, 6, 100);
    const std::vector<Tensor> out = f(x);
    for (std::size_t i = 0; i < 8; ++i) {
      const std::vector<float> got = out[i].to_vector<float>();
      std::vector<float> expected = i < 6 ? x[i].to_vector<float>() : out[i - 6].to_vector<float>();
      for (std::size_t e = 0; e < expected.size(); ++e) {
        expected[e] *= i < 6 ? 0.5f + static_cast<float>(i) : 0.25f;
        const std::size_t back = i < 6 ? 1 : 20;  // along rows, or down columns
        if (i < 6 ? e % 20 > 0 : e >= 20) expected[e] += expected[e - back];
        ASSERT_NEAR(got[e], expected[e], 1e-5 * std::abs(expected[e])) << arch << " " << i << ", " << e;
      }
    }
    EXPECT_EQ(bundled(f.report().front(), "one launch with 5 more of its kind"), 6);
    EXPECT_EQ(bundled(f.report().front(), "one launch with 1 more of its kind"), 2);
  }
}

// More launches than fit a launch's arguments, over donated tensors.
TEST(LaunchTogether, AnUpdateOfManyTensorsIsAFewLaunches) {
  Context ctx({.device = "cpu", .cache_directory = ""});
  emulate_together(ctx, "sm_90a");
  constexpr Index kCount = 300;
  const auto f = compile(
      [](const std::vector<Tensor>& x, const Tensor& rate) {
        std::vector<Tensor> out;
        out.reserve(x.size());
        for (const Tensor& t : x) out.push_back(t - rate * t);
        return out;
      },
      {.donate = {0}});
  std::vector<Tensor> x = tensors(ctx, kCount, 33);
  const Tensor rate = ctx.scalar(0.5);
  const tile::Plan plan = f.prepare(x, rate).graph->compiled.plan;
  EXPECT_EQ(plan.steps.size(), static_cast<std::size_t>(kCount));
  EXPECT_EQ(std::count_if(plan.steps.begin(), plan.steps.end(),
                          [](const tile::PlanStep& step) { return !step.beside_previous; }),
            2);
  const std::vector<Tensor> out = f(x, rate);
  for (Index i = 0; i < kCount; ++i) {
    const std::vector<float> got = out[static_cast<std::size_t>(i)].to_vector<float>();
    for (std::size_t e = 0; e < got.size(); ++e)
      ASSERT_EQ(got[e], 0.5f * static_cast<float>(static_cast<std::size_t>(i) + e)) << i << ", " << e;
  }
}

}  // namespace
}  // namespace tilewright
