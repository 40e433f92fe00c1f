// einsum of one to four operands, compared with a loop over all indices in f64; ellipses, types and errors.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/errors.h"

namespace tilewright {
namespace {

const std::string kLetters = "abcde";

struct Drawn {
  std::vector<std::string> operands;
  std::string out;
  std::map<char, Index> sizes;
  std::string spec() const {
    std::string text;
    for (std::size_t i = 0; i < operands.size(); ++i) text += (i == 0 ? "" : ",") + operands[i];
    return text + "->" + out;
  }
  Shape shape_of(const std::string& names) const {
    std::vector<Index> extents;
    for (const char c : names) extents.push_back(sizes.at(c));
    return Shape(extents);
  }
};

class Einsum : public ::testing::TestWithParam<const char*> {
 protected:
  std::string some_of(std::string from) {
    std::shuffle(from.begin(), from.end(), random_);
    return from.substr(0, std::uniform_int_distribution<std::size_t>(0, from.size())(random_));
  }
  Drawn draw() {
    Drawn d;
    for (const char c : kLetters) d.sizes[c] = std::uniform_int_distribution<Index>(1, 4)(random_);
    std::string named;
    const int count = std::uniform_int_distribution<int>(1, 4)(random_);
    for (int i = 0; i < count; ++i) d.operands.push_back(some_of(kLetters));
    for (const char c : kLetters)
      for (const std::string& names : d.operands)
        if (named.find(c) == std::string::npos && names.find(c) != std::string::npos) named += c;
    d.out = some_of(named);
    return d;
  }

  std::mt19937 random_{11};
  Context ctx_{{.device = GetParam(), .cache_directory = "", .threads = 1}};
};

// The place of an element in row-major order.
std::size_t place(const Drawn& d, const std::string& names, const std::map<char, Index>& at) {
  Index place = 0;
  for (const char c : names) place = place * d.sizes.at(c) + at.at(c);
  return static_cast<std::size_t>(place);
}

std::vector<double> by_loops(const Drawn& d, const std::vector<std::vector<double>>& values) {
  std::vector<double> out(static_cast<std::size_t>(d.shape_of(d.out).size()), 0);
  std::string named;  // a letter that nothing names is no index
  for (const char c : kLetters)
    for (const std::string& names : d.operands)
      if (named.find(c) == std::string::npos && names.find(c) != std::string::npos) named += c;
  std::map<char, Index> at;
  for (const char c : named) at[c] = 0;
  for (;;) {
    double term = 1;
    for (std::size_t i = 0; i < values.size(); ++i) term *= values[i][place(d, d.operands[i], at)];
    out[place(d, d.out, at)] += term;
    std::size_t axis = 0;
    while (axis < named.size() && ++at[named[axis]] == d.sizes.at(named[axis])) at[named[axis++]] = 0;
    if (axis == named.size()) return out;
  }
}

TEST_P(Einsum, IsTheSumOfProducts) {
  for (int round = 0; round < 60; ++round) {
    const Drawn d = draw();
    SCOPED_TRACE(d.spec());
    std::vector<Tensor> operands;
    std::vector<std::vector<double>> values;
    for (const std::string& names : d.operands) {
      operands.push_back(ctx_.randint(d.shape_of(names), 7, DType::f64) - 3.0);
      values.push_back(operands.back().to_vector<double>());
    }
    const Tensor got = einsum(d.spec(), operands);
    EXPECT_EQ(got.shape(), d.shape_of(d.out));
    EXPECT_EQ(got.to_vector<double>(), by_loops(d, values)) << "small integers are exact";
  }
}

TEST_P(Einsum, AnEllipsisBroadcasts) {
  const Tensor a = ctx_.randint({2, 1, 3, 4}, 7, DType::f64), b = ctx_.randint({5, 4, 6}, 7, DType::f64);
  const auto expect_same = [](const Tensor& got, const Tensor& want) {
    EXPECT_EQ(got.shape(), want.shape());
    EXPECT_EQ(got.to_vector<double>(), want.to_vector<double>());
  };
  expect_same(einsum("...ij,...jk->...ik", a, b), matmul(a, b));
  expect_same(einsum("...ij,...jk->ik...", a, b), transpose(matmul(a, b), {2, 3, 0, 1}));
  expect_same(einsum("...ij->...ji", {a}), swap_axes(a, -1, -2));
  expect_same(einsum("...j->j", {a}), sum(a, {0, 1, 2}));
  expect_same(einsum("i...,i...->...", a, a), sum(a * a, 0));
  expect_same(einsum("ij...,jk->...", {a[0], ctx_.ones({3, 2}, DType::f64)}), sum(a[0], {0, 1}) * 2.0);
}

TEST_P(Einsum, HasGradientsAndTypes) {
  const Tensor a = ctx_.full({2, 3}, 2), b = ctx_.full({3}, 3), c = ctx_.full({2}, 5);
  const auto f = [](const Tensor& x, const Tensor& y, const Tensor& z) {
    return einsum("ij,j,i->", {x, y, z});
  };
  EXPECT_EQ(compile(f)(a, b, c).item(), 6 * 30);
  const auto [of_a, of_b, of_c] = grad<0, 1, 2>(f)(a, b, c);
  EXPECT_EQ(of_a.to_vector<float>(), std::vector<float>(6, 15));
  EXPECT_EQ(of_b.to_vector<float>(), std::vector<float>(3, 20));
  EXPECT_EQ(of_c.to_vector<float>(), std::vector<float>(2, 18));
  const Tensor bytes = ctx_.full({300}, 100, DType::i8);
  EXPECT_EQ(einsum("i,i,i->", {bytes, bytes, ctx_.ones({300}, DType::i8)}).to_vector<Index>().at(0), 3000000);
}

TEST_P(Einsum, SaysWhatIsWrong) {
  const Tensor a = ctx_.ones({2, 3});
  const auto says = [&](std::string_view spec, const std::vector<Tensor>& in, const std::string& what) {
    test::expect_says([&] { einsum(spec, in); }, {"einsum", what, "einsum_test.cpp:"});
  };
  says("ij,jk", {a, a}, "->");
  says("ij,jk->ik", {a}, "of 2 operands, 1 are given");
  says("ij,jk->ik", {a, a}, "axis j is 3 in one operand and 2 in the other");
  says("ii->i", {a}, "named twice");
  says("i...j...->i", {a}, "no axis name");
  says("i2->i", {a}, "'2' is no axis name");
  says("i->i", {a}, "names 1 axes, the operand is [2,3]");
  says("...ijk->i", {a}, "names 3 axes");
  says("ij->k", {a}, "axis k is in no operand");
  says("...,...->...", {a, ctx_.ones({4, 3})}, "do not broadcast");
}

INSTANTIATE_TEST_SUITE_P(Devices, Einsum, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
