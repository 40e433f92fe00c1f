// Gradients of micro-batches beside that of one large batch, and moving averages of weights.
#include <gtest/gtest.h>

#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/tilewright.hpp>

#include <cmath>
#include <vector>

#include "support/errors.h"

namespace tilewright::nn {
namespace {

constexpr Index kExamples = 48, kIn = 7, kOut = 5;

struct Dense {
  Tensor weight, bias;
  TILEWRIGHT_FIELDS(weight, bias)
};

class AveragesTest : public testing::Test {
 protected:
  static Tensor loss(const Dense& l, const Tensor& x, const Tensor& wanted) {
    return mean(square(matmul(x, l.weight) + l.bias - wanted));
  }
  Dense gradient(const Tensor& x, const Tensor& wanted) {
    return value_and_grad([&](const Dense& l) { return loss(l, x, wanted); })(layer_).second;
  }
  Dense gradient_of_parts(Index parts) {
    const auto add = compile([&](const Dense& sum, const Dense& l, const Tensor& x, const Tensor& wanted) {
      const auto [value, own] = value_and_grad([&](const Dense& m) { return loss(m, x, wanted); })(l);
      return accumulate(sum, own, 1.0 / static_cast<double>(parts));
    });
    Dense sum = no_gradient(layer_);
    for (Index part = 0; part < parts; ++part) {
      const Index from = part * kExamples / parts, to = (part + 1) * kExamples / parts;
      sum = add(sum, layer_, x_[slice(from, to)], wanted_[slice(from, to)]);
    }
    return sum;
  }

  Context ctx_{{.cache_directory = "", .seed = 8}};
  Dense layer_{ctx_.randn({kIn, kOut}), ctx_.randn({kOut})};
  Tensor x_ = ctx_.randn({kExamples, kIn}), wanted_ = ctx_.randn({kExamples, kOut});
};

// An element of the gradient of the weight is Σ over rows of 2/(rows·out) · x · e: in any order and any
// number of parts its error is at most (terms + the roundings of each) · u · Σ|terms|, twice as much between
// two. Those of a term: e, a product of kIn terms with a bias and a difference, and four more.
TEST_F(AveragesTest, PartsAddUpToTheLargeBatch) {
  const std::vector<double> x = x_.to_vector<double>(), wanted = wanted_.to_vector<double>(),
                            w = layer_.weight.to_vector<double>(), b = layer_.bias.to_vector<double>();
  const double u = 0x1p-24, roundings = kExamples + (kIn + 2) + 4;
  std::vector<double> exact(kIn * kOut), size(kIn * kOut);
  for (Index r = 0; r < kExamples; ++r)
    for (Index o = 0; o < kOut; ++o) {
      const auto at = [](Index i) { return static_cast<std::size_t>(i); };
      double e = b[at(o)] - wanted[at(r * kOut + o)],
             amount = std::abs(b[at(o)]) + std::abs(wanted[at(r * kOut + o)]);
      for (Index i = 0; i < kIn; ++i) {
        const double term = x[at(r * kIn + i)] * w[at(i * kOut + o)];
        e += term, amount += std::abs(term);
      }
      for (Index i = 0; i < kIn; ++i) {
        const double factor = 2 * x[at(r * kIn + i)] / (kExamples * kOut);
        exact[at(i * kOut + o)] += factor * e;
        size[at(i * kOut + o)] += std::abs(factor) * amount;
      }
    }
  for (const Index parts : {2, 48}) {
    const std::vector<double> got = gradient_of_parts(parts).weight.to_vector<double>();
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], exact[i], roundings * u * size[i]) << parts << " parts, element " << i;
  }
  const std::vector<double> whole = gradient(x_, wanted_).weight.to_vector<double>(),
                            parts = gradient_of_parts(6).weight.to_vector<double>();
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(parts[i], whole[i], 2 * roundings * u * size[i]);
}

TEST_F(AveragesTest, NarrowGradientsAddUpInF32) {
  const Dense narrow = map_tensors([](const Tensor& t) { return cast(t, DType::bf16); }, layer_);
  const Dense sum = no_gradient(narrow);
  EXPECT_EQ(sum.weight.dtype(), DType::f32);
  const Dense some = map_tensors([](const Tensor& t) { return full_like(t, 1.0); }, narrow);
  Dense all = sum;
  for (int i = 0; i < 512; ++i) all = accumulate(all, some, 1.0 / 512);
  EXPECT_EQ(all.bias.to_vector<double>(), std::vector<double>(kOut, 1)) << "bf16 would stop at 256 of them";
}

TEST_F(AveragesTest, AnEmaIsTheWeightedSumOfWhatWas) {
  const double decay = 0.9;
  Dense average = make_ema(layer_), now = layer_;
  const auto next =
      compile([&](const Dense& a, const Dense& p) { return ema(a, p, decay); }, {.donate = {0}});
  std::vector<double> wanted = layer_.weight.to_vector<double>();
  for (int step = 0; step < 30; ++step) {
    now = map_tensors([](const Tensor& t) { return t * 0.8 + 0.1; }, now);
    average = next(average, now);
    const std::vector<double> own = now.weight.to_vector<double>();
    for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = decay * wanted[i] + (1 - decay) * own[i];
  }
  const std::vector<double> got = average.weight.to_vector<double>();
  // Three roundings a step of values up to `most`, of which each step forgets a tenth.
  double most = 0;
  for (const double v : layer_.weight.to_vector<double>()) most = std::max(most, std::abs(v) + 1);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 3 * 0x1p-24 * most / (1 - decay));
  EXPECT_NO_THROW((void)layer_.weight.to_vector<double>()) << "the first average has memory of its own";
}

TEST_F(AveragesTest, AnEmaOfNarrowWeightsIsF32) {
  const Tensor weight = ctx_.full({4}, 1.0, DType::bf16);
  struct One {
    Tensor weight;
    TILEWRIGHT_FIELDS(weight)
  };
  One average = make_ema(One{weight});
  for (int step = 0; step < 100; ++step) average = ema(average, One{weight * 2.0}, 0.999);
  EXPECT_EQ(average.weight.dtype(), DType::f32);
  EXPECT_NEAR(average.weight.to_vector<double>()[0], 2 - std::pow(0.999, 100), 1e-5);
}

TEST_F(AveragesTest, MistakesSayWhatToDo) {
  test::expect_says([&] { (void)ema(layer_, layer_, 1.5); }, {"ema: a decay of 1.5", "averages_test.cpp:"});
  test::expect_says([&] { (void)ema(layer_, layer_, std::nan("")); }, {"ema: a decay of nan"});
}

}  // namespace
}  // namespace tilewright::nn
