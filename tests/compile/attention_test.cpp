// Attention written with plain ops: the reduction algebra makes one kernel of it, which holds no matrix of
// scores.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tilewright {
namespace {

struct Sizes {
  Index batch, heads, queries, keys, depth;
};

Tensor scores(const Tensor& q, const Tensor& k) {
  return matmul(q, transpose(k, {0, 1, 3, 2})) * (1.f / std::sqrt(static_cast<float>(q.shape()[3])));
}

class Attention : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = ""}};

  using Function = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&)>;

  // Compares with the same ops one by one; the extra tensor is the mask or bias.
  std::size_t check(const Function& f, const Sizes& s, const Tensor& extra, float spread = 1) {
    const Tensor q = ctx_.randn({s.batch, s.heads, s.queries, s.depth}) * spread,
                 k = ctx_.randn({s.batch, s.heads, s.keys, s.depth}),
                 v = ctx_.randn({s.batch, s.heads, s.keys, s.depth});
    const auto compiled = compile(f);
    const auto got = compiled(q, k, v, extra).to_vector<float>(), want = f(q, k, v, extra).to_vector<float>();
    // Two sums of up to `keys` and `depth` products of normal numbers in another order, and a softmax whose
    // arguments they move: 2^-20 is some times what f32 allows at these sizes.
    for (std::size_t e = 0; e < got.size(); ++e) {
      if (std::isnan(want[e]) && std::isnan(got[e])) continue;
      const bool near = std::abs(got[e] - want[e]) <= 4e-6 * spread * (1 + std::abs(want[e]));
      EXPECT_TRUE(near) << "element " << e << ": " << got[e] << " for " << want[e];
      if (!near) break;
    }
    return compiled.report().front().kernels.size();
  }
};

TEST_P(Attention, IsOneKernel) {
  for (const Sizes& s : {Sizes{2, 3, 128, 512, 64}, Sizes{1, 2, 100, 777, 32}, Sizes{1, 4, 1, 1000, 64},
                         Sizes{1, 1, 65, 300, 80}}) {
    SCOPED_TRACE(s.keys);
    const auto f = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&) {
      return matmul(softmax(scores(q, k)), v);
    };
    EXPECT_EQ(check(f, s, ctx_.ones({1})), 1U);
  }
}

TEST_P(Attention, TakesScoresThatOverflowWithoutTheirMaximum) {
  const auto f = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&) {
    return matmul(softmax(scores(q, k)), v);
  };
  EXPECT_EQ(check(f, {1, 2, 64, 600, 32}, ctx_.ones({1}), 60), 1U);
}

// A mask of its own memory: additive, with rows that begin or end masked, over several blocks.
TEST_P(Attention, TakesAMaskInItsKernel) {
  const Sizes s{1, 2, 70, 900, 32};
  std::vector<float> mask(static_cast<std::size_t>(s.queries * s.keys));
  for (Index q = 0; q < s.queries; ++q)
    for (Index k = 0; k < s.keys; ++k)
      mask[static_cast<std::size_t>(q * s.keys + k)] =
          k >= 10 * q && k < 10 * q + 150 ? 0.f : -std::numeric_limits<float>::infinity();
  const auto f = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& m) {
    return matmul(softmax(scores(q, k) + m), v);
  };
  EXPECT_EQ(check(f, s, ctx_.from(mask, {s.queries, s.keys})), 1U);
}

// Rows with nothing to attend are NaN here, as they are when the ops run one by one.
TEST_P(Attention, RowsWithNothingToAttendAreWhatTheOpsGive) {
  const Sizes s{1, 1, 8, 300, 16};
  std::vector<float> mask(static_cast<std::size_t>(s.queries * s.keys));
  for (Index k = 0; k < s.keys; ++k) mask[static_cast<std::size_t>(3 * s.keys + k)] = -INFINITY;
  const auto f = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& m) {
    return matmul(softmax(scores(q, k) + m), v);
  };
  check(f, s, ctx_.from(mask, {s.queries, s.keys}));
}

// Groups of query heads share keys and values: views, not copies.
TEST_P(Attention, SharesKeysAmongHeads) {
  const Tensor q = ctx_.randn({1, 8, 64, 32}), k = ctx_.randn({1, 2, 512, 32}),
               v = ctx_.randn({1, 2, 512, 32});
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    const auto every = [](const Tensor& t) {
      return reshape(broadcast_to(reshape(t, {1, 2, 1, 512, 32}), {1, 2, 4, 512, 32}), {1, 8, 512, 32});
    };
    return matmul(softmax(scores(a, every(b))), every(c));
  };
  const auto compiled = compile(f);
  const auto got = compiled(q, k, v).to_vector<float>(), want = f(q, k, v).to_vector<float>();
  for (std::size_t e = 0; e < got.size(); ++e) ASSERT_NEAR(got[e], want[e], 4e-6) << e;
  EXPECT_EQ(compiled.report().front().kernels.size(), 1U) << compiled.explain();
}

INSTANTIATE_TEST_SUITE_P(Devices, Attention, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
