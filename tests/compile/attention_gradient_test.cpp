// The backward pass of attention written with plain ops: scores are computed again in each kernel that reads
// them, so that nothing of queries × keys is in memory. Against the ops one by one, and against differences.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using Tensors = std::vector<Tensor>;

struct GradientSizes {
  Index heads, queries, keys, depth;
  Index kv_heads = 0;  // 0: as many as heads
};

// What is done with scores (1, H, Q, K): q and k are coordinates (Q, 1) and (K), extra is a parameter.
struct Variant {
  const char* name;
  std::function<Tensor(const Tensor& scores, const Tensor& q, const Tensor& k, const Tensor& extra)> score;
  std::function<Shape(const GradientSizes&)> extra = [](const GradientSizes&) { return Shape{1}; };
};

constexpr float kNever = -std::numeric_limits<float>::infinity();

const Variant kPlain{"plain", [](const Tensor& s, const Tensor&, const Tensor&, const Tensor&) { return s; }};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      kPlain,
      {"causal", [](const Tensor& s, const Tensor& q, const Tensor& k,
                    const Tensor&) { return where(ge(q, k), s, kNever); }},
      {"window: the last rows have nothing to attend",
       [](const Tensor& s, const Tensor& q, const Tensor& k, const Tensor&) {
         return where(logical_and(logical_and(ge(q, k), lt(q - k, 9)), lt(k, 30)), s, kNever);
       }},
      {"soft cap",
       [](const Tensor& s, const Tensor&, const Tensor&, const Tensor&) { return tanh(s * 0.5) * 2.0; }},
      {"a bias for each key",
       [](const Tensor& s, const Tensor&, const Tensor&, const Tensor& bias) { return s + bias; },
       [](const GradientSizes& z) { return Shape{z.keys}; }},
      {"a matrix of biases",
       [](const Tensor& s, const Tensor&, const Tensor&, const Tensor& bias) { return s + bias; },
       [](const GradientSizes& z) { return Shape{z.queries, z.keys}; }},
  };
  return all;
}

Tensor for_every_head(const Tensor& x, const GradientSizes& z) {
  if (z.kv_heads == 0) return x;
  const Index shared = z.heads / z.kv_heads;
  return reshape(
      broadcast_to(reshape(x, {1, z.kv_heads, 1, z.keys, z.depth}), {1, z.kv_heads, shared, z.keys, z.depth}),
      {1, z.heads, z.keys, z.depth});
}

// Arguments: q, k, v, extra, what the results are weighted with, and the coordinates. Rows with nothing to
// attend give 0.
Tensor loss(const Variant& variant, const GradientSizes& z, const Tensors& x) {
  const Tensor k = for_every_head(x[1], z), v = for_every_head(x[2], z);
  const Tensor scores = matmul(x[0], swap_axes(k, -1, -2)) * (1 / std::sqrt(static_cast<double>(z.depth)));
  const Tensor s = variant.score(scores, x[5], x[6], x[3]);
  // The maximum of nothing is -inf: a finite bound leaves exp(-inf) of it.
  const Tensor e = exp(s - stop_gradient(maximum(max(s, {-1}, Keep::yes), -1e30)));
  const Tensor total = sum(e, {-1}, Keep::yes);
  const Tensor p = e * reciprocal(where(eq(total, 0.0), 1.0, total));
  return sum(matmul(p, v) * x[4]);
}

// Largest difference, as a part of the largest value wanted.
double distance(const Tensor& got, const Tensor& want) {
  const auto g = cast(got, DType::f64).to_vector<double>(), w = cast(want, DType::f64).to_vector<double>();
  double apart = 0, largest = 0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (std::isnan(g[i]) || std::isnan(w[i])) return std::numeric_limits<double>::infinity();
    apart = std::max(apart, std::abs(g[i] - w[i]));
    largest = std::max(largest, std::abs(w[i]));
  }
  return apart / largest;
}

class AttentionGradient : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};

  Tensors arguments(const Variant& variant, const GradientSizes& z, DType dtype) {
    const Index kv = z.kv_heads == 0 ? z.heads : z.kv_heads;
    const auto normal = [&](const Shape& shape) { return cast(ctx_.randn(shape), dtype); };
    return {normal({1, z.heads, z.queries, z.depth}),
            normal({1, kv, z.keys, z.depth}),
            normal({1, kv, z.keys, z.depth}),
            normal(variant.extra(z)),
            normal({1, z.heads, z.queries, z.depth}),
            reshape(ctx_.arange(z.queries), {z.queries, 1}),
            ctx_.arange(z.keys)};
  }

  static auto gradients(const Variant& variant, const GradientSizes& z, const CompileOptions& options,
                        std::vector<int> wrt = {0, 1, 2}) {
    const auto of_list = [=](const Tensors& x) { return loss(variant, z, x); };
    const auto both = value_and_grad(of_list, std::move(wrt));
    return compile([=](const Tensors& x) { return tensors_of(both(x)); }, options);
  }

  // EpilogueReductions of the rows, their results, dq, dk and dv; sums of the loss and of the rows beside
  // them.
  static constexpr std::size_t kKernels = 8;

  void check(const Variant& variant, const GradientSizes& z) {
    SCOPED_TRACE(std::string(variant.name) + ", " + std::to_string(z.queries) + " queries");
    const Tensors args = arguments(variant, z, DType::f32);
    const auto compiled = gradients(variant, z, {.recompute = Recompute::always});
    const Tensors got = compiled(args), want = gradients(variant, z, {.fuse = false})(args);
    // Sums of up to 300 products in another order, behind an exponential: 2^-24 times the square root of
    // their number, some of them one after another.
    for (std::size_t i = 1; i < got.size(); ++i) EXPECT_LE(distance(got[i], want[i]), 4e-6) << i;
    const auto terms = static_cast<double>(args[4].shape().size());
    EXPECT_NEAR(got[0].item(), want[0].item(), 4e-6 * std::sqrt(terms));
    const SpecialisationReport report = compiled.report().front();
    EXPECT_LE(report.kernels.size(), kKernels) << compiled.explain();
    // Results of queries × depth, and rows of statistics.
    EXPECT_LE(report.arena_bytes, 4 * z.heads * (3 * std::max(z.queries, z.keys) * z.depth + 8 * z.queries))
        << compiled.explain();
  }
};

TEST_P(AttentionGradient, IsWhatTheOpsOneByOneGive) {
  for (const GradientSizes& z : {GradientSizes{2, 128, 256, 32}, GradientSizes{3, 70, 300, 16},
                                 GradientSizes{4, 64, 128, 8, 1}, GradientSizes{1, 300, 40, 8}})
    check(kPlain, z);
  for (const Variant& variant : variants()) check(variant, {4, 65, 130, 16, 2});
}

TEST_P(AttentionGradient, OfABiasIsAMatrixOfItsOwn) {
  const Variant& variant = variants().back();
  const GradientSizes z{2, 64, 200, 16};
  const Tensors args = arguments(variant, z, DType::f32);
  const Tensors got = gradients(variant, z, {.recompute = Recompute::always}, {0, 1, 2, 3})(args),
                want = gradients(variant, z, {.fuse = false}, {0, 1, 2, 3})(args);
  for (std::size_t i = 1; i < got.size(); ++i) EXPECT_LE(distance(got[i], want[i]), 4e-6) << i;
}

// Slopes in float64, along random directions: the error of a central difference goes with the step's square.
TEST_P(AttentionGradient, IsTheSlopeOfTheLoss) {
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    const GradientSizes z{4, 40, 50, 3, 2};
    const Tensors args = arguments(variant, z, DType::f64);
    const auto value = compile([=](const Tensors& x) { return Tensors{loss(variant, z, x)}; });
    const Tensors got = gradients(variant, z, {.recompute = Recompute::always})(args);
    for (std::size_t wrt : {0, 1, 2})
      for (int trial = 0; trial < 3; ++trial) {
        const Tensor direction = cast(ctx_.randn(args[wrt].shape()), DType::f64);
        constexpr double kStep = 1e-4;
        const auto at = [&](double step) {
          Tensors moved = args;
          moved[wrt] = args[wrt] + direction * step;
          return value(moved)[0].item();
        };
        const double slope = (at(kStep) - at(-kStep)) / (2 * kStep);
        const double want = sum(direction * got[wrt + 1]).item();
        EXPECT_NEAR(slope, want, 1e-6 * (1 + std::abs(slope))) << wrt;
      }
  }
}

TEST_P(AttentionGradient, IsTheSameBitByBitEveryTime) {
  const GradientSizes z{4, 130, 270, 16, 2};
  const Variant& variant = variants()[1];
  const Tensors args = arguments(variant, z, DType::f32);
  const auto compiled = gradients(variant, z, {.recompute = Recompute::always});
  const Tensors first = compiled(args);
  const int runs = std::string(GetParam()) == "reference" ? 3 : 100;
  for (int run = 0; run < runs; ++run) {
    const Tensors again = compiled(args);
    for (std::size_t i = 0; i < first.size(); ++i)
      ASSERT_EQ(again[i].to_vector<float>(), first[i].to_vector<float>()) << run;
  }
}

TEST_P(AttentionGradient, IsExplained) {
  const GradientSizes z{2, 256, 256, 16};
  const Tensors args = arguments(kPlain, z, DType::f32);
  const auto recomputed = gradients(kPlain, z, {.recompute = Recompute::always}),
             stored = gradients(kPlain, z, {.recompute = Recompute::never});
  recomputed(args), stored(args);
  EXPECT_NE(recomputed.explain().find("computed again"), std::string::npos) << recomputed.explain();
  EXPECT_GE(stored.report().front().arena_bytes, 2 * 256 * 256 * 4);
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionGradient, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
