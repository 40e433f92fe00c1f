// Loss scaling: what f16 loses without it, what is left out where it overflows, how the scale moves.
#include <gtest/gtest.h>

#include <tilewright/nn/loss_scale.h>
#include <tilewright/tilewright.hpp>

#include <cmath>
#include <limits>

namespace tilewright::nn {
namespace {

struct LossScales : testing::Test {
  Context ctx{{.cache_directory = ""}};
};

TEST_F(LossScales, GrowAfterGoodStepsAndShrinkAfterABadOne) {
  const LossScaleOptions options{.first = 8, .growth = 4, .backoff = 0.25, .interval = 3};
  LossScale scale = make_loss_scale(ctx, options);
  const Tensor good = ctx.ones({}, DType::boolean), bad = ctx.zeros({}, DType::boolean);
  const std::pair<Tensor, double> steps[] = {{good, 8}, {good, 8}, {good, 32}, {good, 32}, {good, 32},
                                             {bad, 8},  {good, 8}, {good, 8},  {good, 32}};
  for (const auto& [finite, after] : steps) {
    scale = next_loss_scale(scale, finite, options);
    EXPECT_EQ(scale.scale.item(), after);
  }
  EXPECT_THROW(make_loss_scale(ctx, {.backoff = 1}), Error);
}

TEST_F(LossScales, AnyInfinityOrNaNIsFound) {
  const Tensor fine = ctx.ones({3});
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(all_finite({fine, ctx.from(std::vector<float>{1, bad, 2}, {3})}).item(), 0);
  EXPECT_EQ(all_finite({fine, fine}).item(), 1);
}

// Who says that products are of f16.
enum class Written : std::uint8_t { by_hand, by_precision };

// w is moved so that the mean of (x w - 1)² 1e-6 falls: its gradient through f16 is below 6e-8.
double trained(Context& ctx, Written written, double first_scale, int steps, int* left_out = nullptr) {
  const LossScaleOptions options{.first = first_scale, .interval = 1000};
  const Tensor x = ctx.ones({64, 4});
  const auto step = compile(
      [&](const Tensor& w, const LossScale& scale) {
        const auto loss = [&](const Tensor& p) {
          if (written == Written::by_precision) return mean(square(matmul(x, p) - 1.f) * 1e-6f) * scale.scale;
          const Tensor y = matmul(cast(x, DType::f16), cast(p, DType::f16));
          const Tensor far = cast(y, DType::f16) - 1.f;
          return mean(cast(far * far * 1e-6f, DType::f32)) * scale.scale;
        };
        const auto [value, gradient] = value_and_grad(loss)(w);
        const auto [slope, finite] = unscaled(gradient, scale);
        return std::tuple{choose(finite, w - slope * 5e4f, w), next_loss_scale(scale, finite, options),
                          finite};
      },
      {.precision = written == Written::by_precision ? Precision::f16 : Precision::f32});
  Tensor w = ctx.zeros({4, 2}), finite;
  LossScale scale = make_loss_scale(ctx, options);
  for (int i = 0; i < steps; ++i) {
    std::tie(w, scale, finite) = step(w, scale);
    if (left_out != nullptr) *left_out += finite.item() == 0 ? 1 : 0;
  }
  return square(matmul(x, w) - 1.f).mean().item();
}

TEST_F(LossScales, SaveAGradientThatF16Loses) {
  for (const Written written : {Written::by_hand, Written::by_precision}) {
    EXPECT_GT(trained(ctx, written, 1, 40), 0.9);  // it stays where it was
    EXPECT_LT(trained(ctx, written, 65536, 40), 0.01);
  }
}

TEST_F(LossScales, SurviveAnOverflow) {
  for (const Written written : {Written::by_hand, Written::by_precision}) {
    int left_out = 0;
    EXPECT_LT(trained(ctx, written, 0x1p60, 120, &left_out), 0.01);
    EXPECT_GT(left_out, 10);
    EXPECT_LT(left_out, 60);
  }
}

}  // namespace
}  // namespace tilewright::nn
