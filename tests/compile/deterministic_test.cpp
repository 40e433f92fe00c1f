// CompileOptions::deterministic: sums by index are what else would differ from run to run.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using Tensors = std::vector<Tensor>;

constexpr int kRuns = 100;

class Deterministic : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};

  static bool same_bits(const Tensors& a, const Tensors& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::vector<float> x = a[i].to_vector<float>(), y = b[i].to_vector<float>();
      if (x.size() != y.size() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0)
        return false;
    }
    return true;
  }

  static std::string atomics(const CompiledList& f) {
    const std::vector<SpecialisationReport> report = f.report();
    std::string notes;
    for (const KernelReport& k : report.front().kernels) notes += k.note;
    return notes;
  }

  // Bit-equal in every run, near to what atomics give, which explain() names.
  void check(const std::function<Tensors(const Tensors&)>& function, const Tensors& in, double bound) {
    const auto fixed = compile(function, {.deterministic = true}), any = compile(function);
    const Tensors first = fixed(in), other = any(in);
    for (int run = 1; run < kRuns; ++run) ASSERT_TRUE(same_bits(first, fixed(in))) << run;
    EXPECT_EQ(atomics(fixed).find("by atomics"), std::string::npos) << fixed.explain();
    EXPECT_NE(atomics(any).find("by atomics"), std::string::npos) << any.explain();
    for (std::size_t i = 0; i < first.size(); ++i) {
      const std::vector<float> x = first[i].to_vector<float>(), y = other[i].to_vector<float>();
      for (std::size_t e = 0; e < x.size(); ++e) ASSERT_NEAR(x[e], y[e], bound) << i << " " << e;
    }
  }
};

TEST_P(Deterministic, SumsByIndex) {
  const Tensor index = ctx_.randint({70}, 9) - 1;  // one of them is outside: it adds nothing
  const Tensor update = ctx_.randn({5, 70, 3}), whole = ctx_.randn({70});
  check([&](const Tensors& in) { return Tensors{scatter_add(in[0], in[1], 1, {5, 7, 3})}; }, {index, update},
        1e-5);
  check([&](const Tensors& in) { return Tensors{scatter_add(in[0], in[1], 0, {7})}; }, {index, whole}, 1e-5);
  const auto slope = value_and_grad(
      [](const Tensor& x, const Tensor& at, const Tensor& dy) { return sum(take_along(x, at, 0) * dy); });
  check([&](const Tensors& in) { return Tensors{slope(in[0], in[1], in[2]).second * 2.f}; },
        {ctx_.randn({40, 6}), ctx_.randint({60, 6}, 40), ctx_.randn({60, 6})}, 1e-5);
}

// So many places that the indices are sorted: runs of one, long runs, and indices outside, which add nothing.
TEST_P(Deterministic, SumsByIndexIntoManyPlaces) {
  for (const Index count : {2, 64, 77}) {
    const Tensor spread = ctx_.randint({count}, 402) - 1, close = ctx_.randint({count}, 3) + 398,
                 rows = ctx_.randn({2, count, 5});
    for (const Tensor& index : {spread, close})
      check([&](const Tensors& in) { return Tensors{scatter_add(in[0], in[1], 1, {2, 400, 5})}; },
            {index, rows}, 1e-5);
  }
  const Tensor tokens = ctx_.randint({3, 40}, 700), dy = ctx_.randn({3, 40, 8});
  const auto slope = grad([&](const Tensor& table) { return sum(embedding(table, tokens) * dy); });
  check([&](const Tensors& in) { return Tensors{slope(in[0])}; }, {ctx_.randn({700, 8})}, 1e-5);
}

// Tables whose number of rows changes, on both sides of where indices are sorted.
TEST_P(Deterministic, TablesOfAnyNumberOfRows) {
  const Tensor tokens = ctx_.randint({40}, 60), dy = ctx_.randn({40, 4});
  const auto slope = grad([&](const Tensor& table) { return sum(embedding(table, tokens) * dy); });
  const std::function<Tensors(const Tensors&)> function = [&](const Tensors& in) {
    return Tensors{slope(in[0])};
  };
  const auto any_size = compile(function, {.deterministic = true, .dynamic = {{0, 0}}}),
             atomics = compile(function);
  for (const Index rows : {64, 128, 250, 500, 777}) {
    const Tensors in{ctx_.randn({rows, 4})};
    const std::vector<float> x = any_size(in)[0].to_vector<float>(), y = atomics(in)[0].to_vector<float>();
    for (std::size_t e = 0; e < x.size(); ++e) ASSERT_NEAR(x[e], y[e], 1e-5) << rows << " " << e;
  }
}

// What is added is added to 0.
TEST_P(Deterministic, SumsOfMinusZeroAreZero) {
  for (const Index count : {1, 2, 64}) {
    const Tensor index = ctx_.zeros({count}, DType::i32), update = -ctx_.zeros({count});
    for (const Index rows : {3, 1000}) {
      const auto f = compile([&](const Tensor& i, const Tensor& u) { return scatter_add(i, u, 0, {rows}); },
                             {.deterministic = true});
      EXPECT_FALSE(std::signbit(f(index, update).to_vector<float>()[0])) << count << " " << rows;
    }
  }
}

TEST_P(Deterministic, GradientsOfAnEmbeddingOfAttentionAndOfItsSlopes) {
  const Tensor tokens = ctx_.randint({1, 20}, 11);
  const auto loss = [&](const Tensors& in) {
    const Tensor x = embedding(in[0], tokens);  // (1, 20, 16)
    const Tensor heads = swap_axes(reshape(x, {1, 20, 2, 8}), 1, 2);
    const AttentionOptions options{.score = alibi_score(in[1]), .mask = causal_mask()};
    return Tensors{sum(square(attention(heads, heads, heads, options)))};
  };
  const auto slopes = value_and_grad([&](const Tensors& in) { return loss(in); }, {0, 1});
  check([&](const Tensors& in) { return tensors_of(slopes(in)); }, {ctx_.randn({11, 16}), ctx_.rand({2})},
        1e-3);
}

// Products that share out their depth, and attention with gradients, without the option.
TEST_P(Deterministic, WhatHasNoSumsByIndexIsSoAnyway) {
  const Tensor a = ctx_.randn({3, 3000}), b = ctx_.randn({3000, 5}), q = ctx_.randn({1, 2, 70, 16});
  const auto slopes = value_and_grad(
      [](const Tensor& x) { return sum(square(attention(x, x, x, {.mask = causal_mask()}))); }, {0});
  const auto f = compile([&](const Tensors& in) {
    Tensors out = tensors_of(slopes(in[2]));
    out.push_back(matmul(in[0], in[1]));
    out.push_back(sum(in[1]));
    return out;
  });
  const Tensors first = f({a, b, q});
  for (int run = 1; run < kRuns; ++run) ASSERT_TRUE(same_bits(first, f({a, b, q}))) << run;
}

INSTANTIATE_TEST_SUITE_P(Devices, Deterministic, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
