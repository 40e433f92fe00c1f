// Indices out of range: raised with the index, its place and the line, at once on the CPU and by compiled
// functions of a Context that asks for it.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;
using Integers = std::vector<std::int64_t>;

struct Problem {
  explicit Problem(std::optional<bool> check)
      : ctx({.device = "cpu", .cache_directory = "", .check = check}),
        x(ctx.from(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {4, 2})) {}
  Tensor indices(const Integers& values, DType dtype = DType::i64) {
    return ctx.from(values, {static_cast<Index>(values.size())}, dtype);
  }
  Context ctx;
  Tensor x;
};

TEST(Indices, OutOfRangeAreErrorsOnTheCpu) {
  Problem p({});
  const std::string here = "index_errors_test.cpp:";
  for (const DType dtype : {DType::i64, DType::i32, DType::i8}) {
    const Tensor minus = p.indices({0, 3, -1, 9}, dtype), past = p.indices({0, 4, 1, 2}, dtype);
    expect_says([&] { take(p.x, minus, 0); }, {"take: index -1 at [2] of [4] is out of range", "[0, 4)",
                                               "do not count from the end", here});
    expect_says([&] { take(p.x, past, 1); }, {"take: index 4 at [1] of [4]", "[0, 2)", here});
    expect_says([&] { embedding(p.x, past); }, {"embedding: index 4 at [1] of [4]", "[0, 4)", here});
    expect_says([&] { take_along(p.x, reshape(past, {2, 2}), 0); },
                {"take_along: index 4 at [0, 1] of [2,2]", "[0, 4)", here});
    expect_says([&] { scatter_add(past, p.x, 0, {3, 2}); }, {"scatter_add: index 4 at [1]", "[0, 3)", here});
    expect_says([&] { cross_entropy(p.x, p.indices({0, 1, 1, 2}, dtype)); },
                {"cross_entropy: label 2 at [3] of [4]", "[0, 2)", here});
    expect_says([&] { linear_cross_entropy(p.x, p.x, past); },
                {"linear_cross_entropy: label 4 at [1]", here});
    expect_says([&] { value_and_grad([&](const Tensor& w) { return sum(take(w, minus, 0)); })(p.x); },
                {"take: index -1 at [2]", here});
    expect_says(
        [&] {
          value_and_grad([](const Tensor& w, const Tensor& at) { return cross_entropy(w, at); })(p.x, past);
        },
        {"cross_entropy: label 4 at [1]", here});
  }
  EXPECT_EQ(take(p.x, p.indices({3, 0}), 0).to_vector<float>(), (std::vector<float>{7, 8, 1, 2}));
  EXPECT_EQ(one_hot(p.indices({1, 7}), 2).to_vector<float>(), (std::vector<float>{0, 1, 0, 0}));
}

// The shape is told where both are wrong: the index would be looked for in an axis that is not meant.
TEST(Indices, WrongShapesAreToldBeforeWrongIndices) {
  Problem p({});
  const Tensor five = p.indices({0, 9, 1, 1, 0});
  expect_says([&] { cross_entropy(p.x, five); }, {"cross_entropy: wants logits", "i64[5]"});
  expect_says([&] { take_along(p.x, five, 0); }, {"take_along: index [5] must match [4,2]"});
  expect_says([&] { scatter_add(five, p.x, 0, {3, 2}); }, {"scatter_add: the update must be [5,2]"});
}

TEST(Indices, OutOfRangeAreErrorsOfCompiledFunctionsThatCheck) {
  Problem p(true);
  const Tensor good = p.indices({3, 0, 2}), bad = p.indices({3, 0, -5}), table = p.x;
  const auto f = compile([](const Tensor& x, const Tensor& at) {
    const Tensor rows = take(x, at + 1, 0);
    return std::pair{rows, sum(embedding(x, at))};
  });
  const Tensor low = p.indices({2, 0, -1}), fine = p.indices({2, 0, 1});
  for (int call = 0; call < 2; ++call) {
    EXPECT_EQ(f(p.x, fine).first.to_vector<float>(), (std::vector<float>{7, 8, 3, 4, 5, 6}));
    expect_says([&] { f(p.x, low); }, {"embedding: index -1 at [2] of [3]", "index_errors_test.cpp:"});
    expect_says([&] { f(p.x, good); }, {"take: index 4 at [0] of [3]", "index_errors_test.cpp:"});
  }
  Tensor rows = p.ctx.empty({3, 2}), total = p.ctx.empty({});
  f.into({rows, total}, {p.x, fine});
  EXPECT_EQ(total.item(), 5 + 6 + 1 + 2 + 3 + 4);
  expect_says([&] { f.into({rows, total}, {p.x, low}); }, {"embedding: index -1"});

  const auto slope =
      value_and_grad([&](const Tensor& x, const Tensor& at) { return sum(take(x, at * 1, 0)); });
  const auto step = compile([&](const Tensor& x, const Tensor& at) { return slope(x, at).second; });
  for (int call = 0; call < 2; ++call) {
    EXPECT_EQ(step(p.x, good).to_vector<float>(), (std::vector<float>{1, 1, 0, 0, 1, 1, 1, 1}));
    expect_says([&] { step(p.x, bad); }, {"take: index -5 at [2] of [3]", "index_errors_test.cpp:"});
    expect_says([&] { slope(p.x, bad); }, {"take: index -5 at [2] of [3]"});
  }
  const auto broken = compile([](const Tensor& x, const Tensor& at) {
    const Tensor row = take(x, at, 0);
    return row + sum(row).item() + take(x, at - 1, 0);
  });
  for (int call = 0; call < 2; ++call) {
    expect_says([&] { broken(p.x, bad); }, {"take: index -5 at [2]"});
    expect_says([&] { broken(p.x, good); }, {"take: index -1 at [1]"});
    broken(p.x, p.indices({1, 1, 3}));
  }
}

TEST(Indices, EndsOfGroupsAscend) {
  const auto product = [](Problem& p, const Integers& ends) {
    const Tensor w = p.ctx.ones({static_cast<Index>(ends.size()), 2, 3});
    return ragged_matmul(p.x, w, p.indices(ends));
  };
  const auto compiled = compile(
      [](const Tensor& x, const Tensor& w, const Tensor& ends) { return ragged_matmul(x, w, ends * 1); });
  Problem by_default({}), checked(true);
  for (Problem* p : {&by_default, &checked}) {
    expect_says(
        [&] { product(*p, {1, 3, 2}); },
        {"ragged_matmul: end 2 at [2] of [3] is less than the one before it", "index_errors_test.cpp:"});
    expect_says([&] { product(*p, {1, 5, 5}); }, {"ragged_matmul: end 5 at [1] of [3]", "[0, 5)"});
    EXPECT_EQ(product(*p, {0, 4}).to_vector<float>()[3], 7);
  }
  const Tensor w = checked.ctx.ones({3, 2, 3});
  for (int call = 0; call < 2; ++call) {
    expect_says(
        [&] { compiled(checked.x, w, checked.indices({1, 3, 2})); },
        {"ragged_matmul: end 2 at [2] of [3] is less than the one before it", "index_errors_test.cpp:"});
    EXPECT_EQ(compiled(checked.x, w, checked.indices({1, 1, 4})).to_vector<float>()[9], 15);
  }
}

TEST(Indices, AreReadAsZeroWhereNothingChecks) {
  Problem off(false), by_default({});
  EXPECT_EQ(take(off.x, off.indices({-1, 1}), 0).to_vector<float>(), (std::vector<float>{0, 0, 3, 4}));
  const auto f = compile([](const Tensor& x, const Tensor& at) { return take(x, at, 0); });
  EXPECT_EQ(f(by_default.x, by_default.indices({-1, 1})).to_vector<float>(),
            (std::vector<float>{0, 0, 3, 4}));
  EXPECT_EQ(f.report()[0].kernels.size(), 1u);
}

}  // namespace
}  // namespace tilewright
