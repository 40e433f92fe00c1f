// Numbers that the type they would take does not hold: an Error with the op, the number, the type and the
// user's line, where a wrapped number would be wrong without a word.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;
using Function = std::function<Tensor(const Tensor&)>;

class LiteralErrors : public ::testing::Test {
 protected:
  // At once and compiled.
  static void expect_refused(const Tensor& x, const Function& f, std::vector<std::string> parts) {
    parts.emplace_back("literal_errors_test.cpp:");
    parts.emplace_back("does not hold");
    expect_says([&] { f(x); }, parts);
    expect_says([&] { compile([&](const Tensor& t) { return f(t); })(x); }, parts);
  }
  Context ctx_{{.device = "reference", .cache_directory = ""}};
};

TEST_F(LiteralErrors, BesideIntegers) {
  const Tensor a = ctx_.from(std::vector<std::int8_t>{0, -24, 100}, {3}), u = ctx_.ones({3}, DType::u8),
               i = ctx_.ones({3}, DType::i32), l = ctx_.ones({3}, DType::i64);
  expect_refused(a, [](const Tensor& t) { return t + 200; }, {"add", "i8", "200", "-128 to 127", "cast"});
  expect_refused(a, [](const Tensor& t) { return 200 - t; }, {"sub", "i8", "200"});
  expect_refused(a, [](const Tensor& t) { return t > 200; }, {"gt", "i8", "200"});
  expect_refused(a, [](const Tensor& t) { return t == 256; }, {"eq", "i8", "256"});
  expect_refused(a, [](const Tensor& t) { return maximum(t, 1000); }, {"maximum", "i8", "1000"});
  expect_refused(a, [](const Tensor& t) { return where(t > 0, t, -129); }, {"where", "i8", "-129"});
  expect_refused(a, [](const Tensor& t) { return where(t > 0, 18446744073709551615u, 0); },
                 {"where", "i64", "18446744073709551615"});
  expect_refused(a, [](const Tensor& t) { return pow(t, 300); }, {"pow", "i8", "300"});
  expect_refused(a, [](const Tensor& t) { return t % 256; }, {"rem", "i8", "256"});
  expect_refused(u, [](const Tensor& t) { return t < -1; }, {"lt", "u8", "-1", "0 to 255"});
  expect_refused(u, [](const Tensor& t) { return t & 256; }, {"bit_and", "u8", "256"});
  expect_refused(i, [](const Tensor& t) { return t * 3000000000; }, {"mul", "i32", "3000000000"});
  expect_refused(l, [](const Tensor& t) { return t + 18446744073709551615u; },
                 {"add", "i64", "18446744073709551615"});
  const Tensor b = ctx_.ones({3}, DType::boolean);
  expect_refused(b, [](const Tensor& t) { return t + 3000000000; }, {"add", "i32", "3000000000"});
}

TEST_F(LiteralErrors, ThatFill) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor a = ctx_.ones({3}, DType::i8);
  expect_refused(a, [](const Tensor& t) { return full_like(t, 300); }, {"full_like", "i8", "300"});
  expect_refused(a, [](const Tensor& t) { return pad(t, 0, 1, 1, -129); }, {"pad", "i8", "-129"});
  expect_refused(a, [=](const Tensor& t) { return full_like(t, inf); }, {"full_like", "i8", "inf"});
  expect_says([&] { ctx_.full({2}, 256, DType::u8); }, {"full", "u8", "256", "literal_errors_test.cpp:"});
  expect_says([&] { ctx_.scalar(-1, DType::u8); }, {"scalar", "u8", "-1", "literal_errors_test.cpp:"});
}

TEST_F(LiteralErrors, AreNotMadeOfWhatFits) {
  const Tensor a = ctx_.from(std::vector<std::int8_t>{0, -24, 100}, {3});
  EXPECT_EQ((a + 127).to_vector<std::int32_t>(), (std::vector<std::int32_t>{127, 103, -29})) << "sums wrap";
  EXPECT_EQ((a >= -128).to_vector<bool>(), (std::vector<bool>{true, true, true}));
  EXPECT_EQ((a > 200.0).to_vector<bool>(), (std::vector<bool>{false, false, false})) << "compared as f32";
  EXPECT_EQ(full_like(a, -128.9).to_vector<std::int32_t>()[0], -128) << "a fraction is cut";
  EXPECT_EQ((ctx_.ones({1}) + 18446744073709551615u).item(), 0x1p64);
  EXPECT_EQ(where(a > 0, Index{1} << 40, 0).to_vector<Index>(), (std::vector<Index>{0, 0, Index{1} << 40}));
  const Tensor chosen = where(a > 0, 1e300, 0.5);
  EXPECT_EQ(chosen.dtype(), DType::f64) << "f32 would make it infinite";
  EXPECT_EQ(chosen.to_vector<double>(), (std::vector<double>{0.5, 0.5, 1e300}));
  EXPECT_EQ(where(a > 0, std::numeric_limits<double>::infinity(), 0.5).dtype(), DType::f32);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(ctx_.full({1}, static_cast<double>(most), DType::i64).item<std::int64_t>(), most);
  // The nearest double of each is 2^63, which i64 does not hold; it holds the numbers themselves.
  const Tensor zero = ctx_.zeros({1}, DType::i64);
  for (const std::int64_t literal : {most, most - 1, most - 510}) {
    EXPECT_EQ((zero + literal).item<std::int64_t>(), literal);
    EXPECT_TRUE((zero + literal == literal).to_vector<bool>()[0]);
    EXPECT_EQ(where(zero == 0, literal, 0).item<std::int64_t>(), literal);
    EXPECT_EQ(compile([&](const Tensor& t) { return t + literal; })(zero).item<std::int64_t>(), literal);
  }
}

}  // namespace
}  // namespace tilewright
