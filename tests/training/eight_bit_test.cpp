// Tensors in 8 bits by blocks: what a rounding may change and what its mean is, averages that move, and AdamW
// with such moments beside that of f32.
#include <gtest/gtest.h>

#include <tilewright/nn/checkpoint.h>
#include <tilewright/nn/eight_bit.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/tilewright.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "nn/eight_bit.h"
#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright::nn {
namespace {

constexpr double kLeastCode = 0x1p-9 / 448;  // the least code over the largest

class EightBitTest : public testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder(), .seed = 4}};
  Tensor seed(Index number) { return ctx_.scalar(static_cast<double>(number), DType::i64); }
};

// The largest of each element's block.
std::vector<double> block_maxima(const std::vector<double>& x) {
  std::vector<double> most(x.size());
  for (std::size_t begin = 0; begin < x.size(); begin += kEightBitBlock) {
    const std::size_t end = std::min(x.size(), begin + static_cast<std::size_t>(kEightBitBlock));
    double own = 0;
    for (std::size_t i = begin; i < end; ++i) own = std::max(own, std::abs(x[i]));
    std::fill(most.begin() + static_cast<std::ptrdiff_t>(begin),
              most.begin() + static_cast<std::ptrdiff_t>(end), own);
  }
  return most;
}

TEST_P(EightBitTest, IsOffByHalfACodeOfItsBlock) {
  for (const Shape& shape : {Shape{7}, Shape{3, 256}, Shape{5, 201}}) {
    const Tensor x = exp(ctx_.randn(shape) * 4.f) * ctx_.randn(shape);  // over many powers of two
    const EightBit kept = to_eight_bit(x);
    EXPECT_EQ(kept.codes.dtype(), DType::f8e4m3);
    EXPECT_EQ(kept.codes.shape(), shape);
    EXPECT_EQ(kept.scales.shape(), Shape{ceil_div(x.size(), kEightBitBlock)});
    const auto want = x.to_vector<double>(), got = from_eight_bit(kept).to_vector<double>(),
               most = block_maxima(want);
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double bound = std::max(0x1p-4 * std::abs(want[i]), kLeastCode / 2 * most[i]) * (1 + 1e-6);
      EXPECT_LE(std::abs(got[i] - want[i]), bound) << i;
      worst = std::max(worst, std::abs(got[i] - want[i]) / bound);
    }
    EXPECT_GT(worst, 0.5);
  }
}

TEST_P(EightBitTest, BlocksHaveScalesOfTheirOwnAndZerosStayZero) {
  std::vector<float> values(3 * 256, 0.F);
  values[0] = 1e30F, values[1] = 1e29F, values[256] = 1e-20F, values[257] = -7e-21F;
  const auto got = from_eight_bit(to_eight_bit(ctx_.from(values, {768}))).to_vector<double>();
  for (const std::size_t i : {0, 1, 256, 257}) EXPECT_NEAR(got[i], values[i], 0x1p-4 * std::abs(values[i]));
  for (std::size_t i = 2; i < 256; ++i) EXPECT_EQ(got[i], 0);
  for (std::size_t i = 512; i < 768; ++i) EXPECT_EQ(got[i], 0);
}

TEST_P(EightBitTest, WhatIsNotFiniteMakesItsBlockNanAndNoOther) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(512, 1.F);
    values[300] = bad;
    const Tensor x = ctx_.from(values, {512});
    for (const EightBit& kept : {to_eight_bit(x), to_eight_bit(x, seed(1))}) {
      const auto got = from_eight_bit(kept).to_vector<double>();
      for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(got[i], 1);
      for (std::size_t i = 256; i < 512; ++i) EXPECT_TRUE(std::isnan(got[i])) << i;
    }
  }
}

// Each draw is one of the two codes about the number, and the mean of many the number: of 400 draws it is off
// by half a code's distance over √400, here by 5 times that at most.
TEST_P(EightBitTest, StochasticRoundingHasTheNumberAsItsMean) {
  constexpr int kDraws = 400;
  const Tensor x = exp(ctx_.randn({1, 512}) * 3.f) * ctx_.randn({1, 512});
  const auto draw =
      compile([](const Tensor& t, const Tensor& s) { return from_eight_bit(to_eight_bit(t, s)); });
  const auto want = x.to_vector<double>(), most = block_maxima(want);
  std::vector<double> sum(want.size());
  for (int d = 0; d < kDraws; ++d) {
    const auto got = draw(x, seed(d)).to_vector<double>();
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double code = std::max(0x1p-3 * std::abs(want[i]), kLeastCode * most[i]) * (1 + 1e-5);
      ASSERT_LE(std::abs(got[i] - want[i]), code) << i;
      sum[i] += got[i];
    }
  }
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double code = std::max(0x1p-3 * std::abs(want[i]), kLeastCode * most[i]);
    EXPECT_NEAR(sum[i] / kDraws, want[i], 5 * code / 2 / std::sqrt(kDraws)) << i;
  }
  EXPECT_EQ(draw(x, seed(7)).to_vector<float>(), draw(x, seed(7)).to_vector<float>());
  EXPECT_NE(draw(x, seed(7)).to_vector<float>(), draw(x, seed(8)).to_vector<float>());
}

// Squares are kept by their roots, and are the mean of what is drawn themselves: those of the roots would be
// too large by the roots' variance, half a percent here on average.
TEST_P(EightBitTest, SquaresHaveThemselvesAsTheirMean) {
  constexpr int kDraws = 400;
  const Tensor x = square(exp(ctx_.randn({1, 4096}) * 0.5f));
  const auto draw = compile([](const Tensor& t, const Tensor& s) {
    const Location here = Location::current();
    return sum(squares_from_eight_bit(squares_to_eight_bit(t, s, here), here) / t);
  });
  // A code's distance is at most an eighth of a root, a quarter and a bit of a square; a draw is off by at
  // most half of that in the root mean square.
  double mean_of_all = 0;
  for (int d = 0; d < kDraws; ++d) mean_of_all += draw(x, seed(d)).item() / 4096 / kDraws;
  EXPECT_NEAR(mean_of_all, 1, 5 * 0.133 / std::sqrt(4096.0 * kDraws));
}

// An average that goes from 1/2 to 1 by a hundredth of the way a step: each step is less than half a code.
TEST_P(EightBitTest, AnAverageMovesWhereRoundingToNearestWouldStandStill) {
  const auto step = compile([](const EightBit& kept, const Tensor& s) {
    const Tensor now = from_eight_bit(kept);
    return to_eight_bit(now + (1.f - now) * 0.01f, s);
  });
  const auto to_nearest = compile([](const EightBit& kept) {
    const Tensor now = from_eight_bit(kept);
    return to_eight_bit(now + (1.f - now) * 0.01f);
  });
  std::vector<float> first(1024, 0.5F);
  for (std::size_t i = 0; i < first.size(); i += 256) first[i] = 1.F;  // the scale stays
  EightBit kept = to_eight_bit(ctx_.from(first, {1024})), stuck = kept;
  for (int i = 0; i < 100; ++i) kept = step(kept, seed(i)), stuck = to_nearest(stuck);
  const double exact = 1 - 0.5 * std::pow(0.99, 100);
  // A draw is off by half a code, an eighth, at most; an average of them by that over √(1 - 0.99²), and their
  // mean over a thousand by that over √1000: 0.014, of which three times.
  EXPECT_NEAR(mean(from_eight_bit(kept)).item(), exact, 0.042);
  EXPECT_NEAR(mean(from_eight_bit(stuck)).item(), 0.5, 0.01);
}

TEST_P(EightBitTest, SaysWhatDoesNotFit) {
  const EightBit kept = to_eight_bit(ctx_.ones({300}));
  test::expect_says([&] { to_eight_bit(ctx_.ones({4}, DType::i32)); },
                    {"to_eight_bit: i32[4]", "eight_bit_test.cpp:"});
  test::expect_says([&] { from_eight_bit({kept.codes, kept.codes}); },
                    {"from_eight_bit: codes f8e4m3[300]", "f32[2]", "eight_bit_test.cpp:"});
}

TEST_P(EightBitTest, OfNoElementsHasNoBlocks) {
  const EightBit kept = to_eight_bit(ctx_.zeros({0, 3}));
  EXPECT_EQ(kept.scales.shape(), Shape{0});
  EXPECT_EQ(from_eight_bit(kept).shape(), (Shape{0, 3}));
}

struct TwoWeights {
  Tensor matrix, bias;
  TILEWRIGHT_FIELDS(matrix, bias)
};
constexpr Index kHeight = 30, kWidth = 70, kMoves = 100;
constexpr double kPace = 0.01;

class EightBitAdamW : public EightBitTest {
 protected:
  // The slope of a step, the same whatever the weights are: rounded moments change what is made of it alone.
  TwoWeights slope(Index step) {
    const Tensor s = seed(step), other = seed(step + 1000);
    return {(uniform(s, {kHeight, kWidth}) - 0.3f) * exp(uniform(seed(-1), {kHeight, kWidth}) * 6.f),
            uniform(other, {kWidth}) - 0.7f};
  }
  struct Run {
    std::vector<double> values;  // after all steps
    std::vector<double> most;    // the largest step of each, over the rate
  };
  Run run(const Optimizer& optimizer) {
    const auto step =
        compile([&](const TwoWeights& p, const OptimizerState<TwoWeights>& state, const TwoWeights& g,
                    const Tensor& r) { return optimizer.update(p, g, state, r); },
                {.donate = {0, 1}});
    TwoWeights p{ctx_.zeros({kHeight, kWidth}), ctx_.zeros({kWidth})};
    OptimizerState<TwoWeights> state = optimizer.init(p);
    const auto values = [&] {
      auto all = p.matrix.to_vector<double>();
      const auto bias = p.bias.to_vector<double>();
      all.insert(all.end(), bias.begin(), bias.end());
      return all;
    };
    Run out{values(), {}};
    out.most.resize(out.values.size());
    for (Index i = 0; i < kMoves; ++i) {
      std::tie(p, state) = step(p, state, slope(i), ctx_.scalar(kPace));
      const auto now = values();
      for (std::size_t k = 0; k < now.size(); ++k)
        out.most[k] = std::max(out.most[k], std::abs(now[k] - out.values[k]) / kPace);
      out.values = now;
    }
    return out;
  }
};

// A rounding moves a moment by less than half a code in the root mean square: m by 2⁻⁴ of itself, the root of
// v by as much, and the step by that share of itself, u. An average keeps beta of it a step, so that it
// counts 1 / (1 - beta) times in the sum of all steps; roundings of kMoves steps are independent. To first
// order the weights are off by rate · u · 2⁻⁴ · √kMoves · 1 / (1 - beta) for each moment, in the root mean
// square over them.
TEST_P(EightBitAdamW, StaysWithinItsRoundingsOfF32For100Steps) {
  const AdamWOptions wide{.beta2 = 0.95, .weight_decay = 0};
  const Run want = run(adamw(wide));
  for (const auto& [first, second] :
       {std::pair{DType::f8e4m3, DType::f8e4m3}, {DType::f8e4m3, DType::bf16}}) {
    SCOPED_TRACE(std::string(name(second)));
    AdamWOptions narrow = wide;
    narrow.moments = first, narrow.second_moments = second;
    const Run got = run(adamw(narrow));
    const double of_m = 0x1p-4 / (1 - wide.beta1),
                 of_v = (is_f8(second) ? 0x1p-4 : 0x1p-9) / (1 - wide.beta2);
    const double share = std::sqrt(kMoves * (of_m * of_m + of_v * of_v)) * kPace;
    double squares = 0, bound = 0, moved = 0;
    for (std::size_t i = 0; i < want.values.size(); ++i) {
      const double off = got.values[i] - want.values[i];
      squares += off * off, bound += share * share * want.most[i] * want.most[i];
      moved += want.values[i] * want.values[i];
    }
    EXPECT_LE(std::sqrt(squares), std::sqrt(bound));
    EXPECT_LT(std::sqrt(bound), 0.7 * std::sqrt(moved)) << "it would accept a training that stands still";
    EXPECT_GT(std::sqrt(squares), 0.001 * std::sqrt(moved)) << "they are rounded";
  }
}

TEST_P(EightBitAdamW, KeepsAByteAndScalesOfBlocks) {
  const TwoWeights p{ctx_.zeros({kHeight, kWidth}), ctx_.zeros({kWidth})};
  const auto types = [&](const AdamWOptions& options) {
    std::vector<DType> all;
    for (const TwoWeights& slot : adamw(options).init(p).slots) all.push_back(slot.matrix.dtype());
    return all;
  };
  const DType f8 = DType::f8e4m3, f32 = DType::f32;
  EXPECT_EQ(types({.beta2 = 0.95, .moments = f8}), (std::vector{f8, f32, f8, f32}));
  EXPECT_EQ(types({.moments = f8, .second_moments = f32}), (std::vector{f8, f32, f32}));
  EXPECT_EQ(types({.beta2 = 0.95, .moments = f32, .second_moments = DType::bf16}),
            (std::vector{f32, DType::bf16}));
}

// A parameter whose gradient was ever so small is moved by no more than others: a root of 0 is no divisor.
TEST_P(EightBitAdamW, SmallGradientsOfABlockAreNoLargeSteps) {
  const Optimizer optimizer =
      adamw({.beta2 = 0.95, .epsilon = 1e-30, .weight_decay = 0, .moments = DType::f8e4m3});
  std::vector<float> slopes(256, 1.F);
  for (std::size_t i = 1; i < slopes.size(); ++i) slopes[i] = std::exp2(-static_cast<float>(i) / 8);
  const Tensor g = ctx_.from(slopes, {256});
  const auto step = compile([&](const Tensor& p, const OptimizerState<Tensor>& s, const Tensor& r) {
    return optimizer.update(p, g, s, r);
  });
  Tensor p = ctx_.zeros({256});
  OptimizerState<Tensor> state = optimizer.init(p);
  for (int i = 0; i < 50; ++i) {
    const auto [next, after] = step(p, state, ctx_.scalar(1.));
    for (const double d : (next - p).to_vector<double>()) EXPECT_LT(std::abs(d), 5) << i;
    p = next, state = after;
  }
}

TEST_P(EightBitAdamW, IsSavedAndGoesOnToTheSameBits) {
  const Optimizer optimizer = adamw({.beta2 = 0.95, .moments = DType::f8e4m3});
  const auto step = compile([&](const TwoWeights& p, const OptimizerState<TwoWeights>& s, const TwoWeights& g,
                                const Tensor& r) { return optimizer.update(p, g, s, r); });
  const auto steps = [&](std::pair<TwoWeights, OptimizerState<TwoWeights>> at, Index from, Index to) {
    for (Index i = from; i < to; ++i) at = step(at.first, at.second, slope(i), ctx_.scalar(kPace));
    return at;
  };
  const TwoWeights p{ctx_.randn({kHeight, kWidth}), ctx_.randn({kWidth})};
  const auto half = steps({p, optimizer.init(p)}, 0, 5), whole = steps(half, 5, 10);
  const auto path =
      std::filesystem::temp_directory_path() / (std::string("tw_eight_bit_") + GetParam() + ".safetensors");
  save_checkpoint(path.string(), half, {});
  const auto again = steps(load_checkpoint(ctx_, path.string(), half).tree, 5, 10);
  std::filesystem::remove(path);
  const std::vector<Tensor> want = tensors_of(whole), got = tensors_of(again);
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(got[i].to_vector<double>(), want[i].to_vector<double>()) << i;
}

TEST(EightBitMoments, AreRefusedWhereTheirRoundingsWouldBeTooLarge) {
  test::expect_says([] { adamw({.moments = DType::f8e4m3}); },
                    {"adamw: beta2 is 0.999", "of 8 bits", "at most 0.99", "eight_bit_test.cpp:"});
  test::expect_says([] { adamw({.beta1 = 0.995, .moments = DType::f8e4m3, .second_moments = DType::f32}); },
                    {"adamw: beta1 is 0.995"});
  test::expect_says([] { adamw({.moments = DType::f8e5m2}); }, {"adamw: moments in f8e5m2"});
  test::expect_says([] { adamw({.beta1 = 1}); }, {"adamw: beta1 is 1; it is at least 0 and below 1"});
  test::expect_says([] { adamw({.beta2 = std::nan("")}); }, {"adamw: beta2 is nan"});
  test::expect_says([] { muon({.others = {.epsilon = -1}}); }, {"muon: epsilon is -1"});
}

// A state has the slots of the optimizer that made it: their number, types and shapes are looked at.
TEST(EightBitMoments, AreReadByTheOptimizerThatKeepsThem) {
  Context ctx({.device = "cpu", .cache_directory = test::kernel_folder()});
  const std::vector<Tensor> p{ctx.ones({3, 4})};
  const auto adam = [](DType first, DType second) {
    return adamw({.beta2 = 0.95, .moments = first, .second_moments = second});
  };
  constexpr DType wide = DType::f32, half = DType::bf16, narrow = DType::f8e4m3;
  const std::vector<Optimizer> all{sgd(),
                                   sgd({.momentum = 0.9}),
                                   adam(wide, wide),
                                   adam(half, half),
                                   adam(narrow, half),
                                   adam(half, narrow),
                                   adam(narrow, narrow)};
  for (std::size_t made = 0; made < all.size(); ++made)
    for (std::size_t taken = 0; taken < all.size(); ++taken) {
      const auto state = all[made].init(p);
      const auto step = [&] { (void)all[taken].update(p, p, state, ctx.scalar(0.1)); };
      if (made == taken)
        step();
      else
        test::expect_says(step,
                          {"Optimizer: the state of parameter", "init() made it", "eight_bit_test.cpp:"});
    }
}

TEST_P(EightBitAdamW, AreThoseOfWhatMuonLeaves) {
  const auto after = [&](DType moments) {
    return run(muon({.others = {.beta2 = 0.95, .weight_decay = 0, .moments = moments}})).values;
  };
  const auto wide = after(DType::f32), narrow = after(DType::f8e4m3);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const bool is_matrix = i < static_cast<std::size_t>(kHeight * kWidth);
    EXPECT_NEAR(narrow[i], wide[i], is_matrix ? 0 : 0.5) << i;  // a bias moves by about 0.01 a step
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, EightBitTest, testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(Devices, EightBitAdamW, testing::Values("cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright::nn
