// Donated arguments: their memory is the outputs', and their handles are spent.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/kernel_folder.h"
#include "tensor/state.h"
#include "tensor/storage.h"

namespace tilewright {
namespace {

using Floats = std::vector<float>;

Floats values(const Tensor& t) { return t.to_vector<float>(); }

class Donate : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
};

TEST_P(Donate, AnOutputLiesWhereTheArgumentLay) {
  const auto plain = [](const Tensor& x, const Tensor& y) { return std::pair{exp(x) + y, sum(x)}; };
  const auto f = compile(plain, {.donate = {0}});
  Tensor x = ctx_.randn({33, 65}), y = ctx_.randn({33, 65});
  const Floats expected = values(compile(plain)(x, y).first);
  const void* was_at = detail::storage_address(x);
  const auto [z, total] = f(x, y);
  EXPECT_EQ(detail::storage_address(z), was_at);
  EXPECT_EQ(values(z), expected);
  EXPECT_EQ(f.report().front().in_place, std::vector<std::string>{"donated: argument 0 becomes output 0"});
  EXPECT_NE(f.explain().find("donated: argument 0 becomes output 0"), std::string::npos);
}

TEST_P(Donate, SpentHandlesSayWhereTheyWere) {
  const auto f = compile([](const Tensor& x) { return x * 2.f; }, {.donate = {0}});
  const std::vector<Tensor> handles(2, ctx_.ones({3}));  // of one tensor
  const Tensor &x = handles[0], &handle = handles[1], y = f(x);
  EXPECT_EQ(values(y), (Floats{2, 2, 2}));
  EXPECT_EQ(x.shape(), (Shape{3})) << "its type is still known";
  const std::vector<std::string> says = {"was donated to the compiled function called at",
                                         "donate_test.cpp:"};
  const auto expect_spent = [&](const std::function<void()>& use, const char* what) {
    SCOPED_TRACE(what);
    test::expect_says(use, {what, says[0], says[1]});
  };
  expect_spent([&] { values(x); }, "to_vector: this tensor was donated");
  expect_spent([&] { handle + 1.f; }, "add: operand 0");
  expect_spent([&] { f(x); }, "compile: argument 0");
  expect_spent([&] { f.into({x}, {y}); }, "into: output 0");
  expect_spent([&] { sum(x).item(); }, "sum: operand 0");
  const auto captures = compile([&](const Tensor& t) { return t + x; });
  expect_spent([&] { captures(y); }, "operand 1");
  Tensor later = ctx_.ones({3});
  const auto reads_later = compile([&](const Tensor& t) { return t + later; });
  EXPECT_EQ(values(reads_later(y)), (Floats{3, 3, 3}));
  f(later);
  expect_spent([&] { reads_later(y); }, "captured tensor 0");
}

TEST_P(Donate, OfWhatFitsNoOutputTheMemoryIsFreed) {
  const auto f = compile([](const Tensor& x) { return sum(x, {0}); }, {.donate = {0}});
  const Tensor x = ctx_.ones({4, 3});
  EXPECT_EQ(values(f(x)), (Floats{4, 4, 4}));
  EXPECT_EQ(f.report().front().in_place,
            std::vector<std::string>{"donated: argument 0 is freed behind the call: no output has its "
                                     "size and type"});
  EXPECT_EQ(x.impl()->buffer, nullptr);
  // Read after its place was wanted: elements that other programs write.
  const auto turn = compile([](const Tensor& t) { return transpose(t, {1, 0}) + t; }, {.donate = {0}});
  const Tensor square = ctx_.randn({70, 70});
  const Floats expected = values(compile([](const Tensor& t) { return transpose(t, {1, 0}) + t; })(square));
  EXPECT_EQ(values(turn(square)), expected);
  EXPECT_NE(turn.explain().find("donated: argument 0 is freed behind the call: kernel"), std::string::npos)
      << turn.explain();
}

TEST_P(Donate, ArgumentsOfTwoUsesAreRefused) {
  Tensor x = ctx_.ones({3});
  const auto f = compile([](const Tensor& a, const Tensor& b) { return a + b; }, {.donate = {1}});
  test::expect_says([&] { f(x, x); },
                    {"argument 1 is donated, and it is argument 0 as well", "donate_test.cpp:"});
  const auto captures = compile([&](const Tensor& a) { return a + x; }, {.donate = {0}});
  test::expect_says([&] { captures(x); }, {"argument 0 is donated, and the function captures it"});
  const auto no_such = compile([](const Tensor& a) { return a + 1.f; }, {.donate = {1}});
  test::expect_says([&] { no_such(x); }, {"argument 1 is to be donated, the function has 1"});
  EXPECT_EQ(values(x), (Floats{1, 1, 1})) << "nothing was spent";
}

TEST_P(Donate, StatesPassThroughALoop) {
  const auto step = [](const Tensor& p, const Tensor& m, const Tensor& g) {
    const Tensor next = 0.9f * m + g;
    return std::pair{p - 0.1f * next, next};
  };
  const auto f = compile(step, {.donate = {0, 1}});
  const auto apart = compile(step);
  Tensor p = ctx_.randn({1000}), m = ctx_.zeros({1000});
  const Tensor g = ctx_.randn({1000});
  Tensor q = p + 0.f, n = m + 0.f;
  for (int i = 0; i < 5; ++i) {
    std::tie(p, m) = f(p, m, g);
    std::tie(q, n) = apart(q, n, g);
    ASSERT_EQ(values(p), values(q));
    ASSERT_EQ(values(m), values(n));
  }
}

TEST_P(Donate, PartOfAnotherFunctionItDonatesNothing) {
  const auto inner = compile([](const Tensor& x) { return x + 1.f; }, {.donate = {0}});
  const auto outer = compile([&](const Tensor& x) { return inner(x) * x; });
  const Tensor x = ctx_.full({3}, 2);
  EXPECT_EQ(values(outer(x)), (Floats{6, 6, 6}));
  EXPECT_EQ(values(x), (Floats{2, 2, 2}));
}

INSTANTIATE_TEST_SUITE_P(Devices, Donate, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
