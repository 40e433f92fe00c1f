// Attention written with plain ops: the reduction algebra makes one kernel of it, which holds no matrix of
// scores.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

struct AttentionSizes {
  Index batch, heads, queries, keys, depth;
};

Tensor scores(const Tensor& q, const Tensor& k) {
  return matmul(q, transpose(k, {0, 1, 3, 2})) * (1.f / std::sqrt(static_cast<float>(q.shape()[3])));
}

class Attention : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};

  using Function = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&)>;

  // Compares with the same ops one by one; the extra tensor is the mask or bias.
  std::size_t check(const Function& f, const AttentionSizes& s, const Tensor& extra, float spread = 1) {
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

  // Several results, each compared with the same ops one by one.
  template <class F>
  KernelReport expect_kernels(std::size_t kernels, const F& f, const std::vector<Tensor>& args) {
    using S = typename detail::SignatureOf<F>::Type;
    const auto many = detail::as_leaves_function(std::type_identity<S>(), f, "f", Location::current());
    const CompiledList compiled([&](const std::vector<Tensor>& in) { return many({in, {}}).tensors; });
    const auto got = compiled(args), want = many({args, {}}).tensors;
    for (std::size_t o = 0; o < got.size(); ++o) {
      EXPECT_EQ(got[o].shape(), want.at(o).shape());
      const auto x = got[o].to_vector<float>(), y = want[o].template to_vector<float>();
      for (std::size_t e = 0; e < x.size(); ++e)
        if (!(std::abs(x[e] - y[e]) <= 4e-6 * (1 + std::abs(y[e])))) {
          ADD_FAILURE() << "output " << o << ", element " << e << ": " << x[e] << " for " << y[e];
          break;
        }
    }
    EXPECT_EQ(compiled.report().front().kernels.size(), kernels) << compiled.explain();
    return compiled.report().front().kernels[0];
  }
};

TEST_P(Attention, IsOneKernel) {
  for (const AttentionSizes& s : {AttentionSizes{2, 3, 128, 512, 64}, AttentionSizes{1, 2, 120, 1000, 32},
                                  AttentionSizes{1, 4, 1, 1000, 64}, AttentionSizes{1, 2, 63, 500, 80}}) {
    SCOPED_TRACE(s.keys);
    const auto f = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&) {
      return matmul(softmax(scores(q, k)), v);
    };
    // Scores of a single query are few: whether they are worth a kernel of their own is the machine's to say.
    EXPECT_LE(check(f, s, ctx_.ones({1})), s.queries == 1 ? 2U : 1U);
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
  const AttentionSizes s{1, 2, 120, 1000, 32};
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
  const AttentionSizes s{1, 1, 8, 300, 16};
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

// What was reduced along the rows is stored beside the result.
TEST_P(Attention, StoresWhatItReducedAlongTheRows) {
  struct Case {
    Index queries, keys, depth, columns;
  };
  for (const Case& c : {Case{120, 1000, 32, 32}, Case{60, 500, 16, 80}, Case{64, 40, 8, 1}}) {
    SCOPED_TRACE(c.columns);
    const auto f = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
      const Tensor s = scores(q, k), largest = max(s, {-1}, Keep::yes), e = exp(s - largest);
      const Tensor total = sum(e, {-1}, Keep::yes);
      const Shape rows{2, 3, c.queries};
      return std::vector<Tensor>{matmul(e, v) / total, reshape(largest + log(total), rows),
                                 reshape(largest, rows), reshape(total, {6, c.queries})};
    };
    expect_kernels(1, f,
                   {ctx_.randn({2, 3, c.queries, c.depth}), ctx_.randn({2, 3, c.keys, c.depth}),
                    ctx_.randn({2, 3, c.keys, c.columns})});
  }
}

// Programs of several blocks of columns share rows, and the first of them stores what depends on the rows.
TEST_P(Attention, StoresRowsOnceBesideManyColumns) {
  const auto f = [](const Tensor& x, const Tensor& w) {
    const Tensor largest = max(x, {-1}, Keep::yes);
    return std::vector<Tensor>{matmul(x, w) - largest, reshape(largest * 2.f, {2, 50})};
  };
  // Fusing saves nothing on devices whose launches cost nothing: these have two kernels.
  const std::size_t kernels = ctx_.options().device == "cpu" ? 1 : 2;
  const auto tile = expect_kernels(kernels, f, {ctx_.randn({100, 90}), ctx_.randn({90, 2000})}).tile;
  EXPECT_EQ(tile.find("branch") != std::string::npos, kernels == 1) << tile;
}

// The rows' log-sum-exp alone is a kernel of the same kind, without a product at its end.
TEST_P(Attention, ReducesScoresWithoutAProduct) {
  const auto f = [](const Tensor& q, const Tensor& k) {
    return std::vector<Tensor>{logsumexp(matmul(q, transpose(k, {0, 2, 1})), {-1})};
  };
  expect_kernels(1, f, {ctx_.randn({2, 300, 32}), ctx_.randn({2, 1000, 32})});
}

// Another element of the product is another product: it is not computed a second time beside it.
TEST_P(Attention, KeepsOneResultOfAProduct) {
  const Tensor a = ctx_.randn({40, 30}), b = ctx_.randn({30, 50});
  const auto f = [](const Tensor& x, const Tensor& y) {
    const Tensor product = matmul(x, y);
    return std::pair{exp(product), cumsum(slice(product, 1, {.start = 3, .stop = 4}) * 2.f, 0)};
  };
  const auto compiled = compile(f);
  const auto got = compiled(a, b), want = f(a, b);
  const auto x = got.second.to_vector<float>(), y = want.second.to_vector<float>();
  for (std::size_t e = 0; e < x.size(); ++e) ASSERT_NEAR(x[e], y[e], 1e-4) << e;
}

INSTANTIATE_TEST_SUITE_P(Devices, Attention, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
