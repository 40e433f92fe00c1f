// Primitives as C++ expressions: where brackets stand, and which device header each needs.
#include "backends/cuda/print/prim_text.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using printer::Accuracy;
using tile::Prim;

const TypedText kX{"x", DType::f32}, kY{"y", DType::f32};
const TypedText kSum{"a + b", DType::f32, 1, Binding::sum}, kCall{"f(a, b)", DType::f32, 1, Binding::call};

std::string text(const PrimUse& use, const std::vector<TypedText>& operands) {
  return prim_expression(use, operands, DType::f32).text;
}

TEST(PrimText, OperandsStandInBracketsWhereTheyBindLess) {
  EXPECT_EQ(text({Prim::mul, DType::f32}, {kSum, kX}), "(a + b) * x");
  EXPECT_EQ(text({Prim::add, DType::f32}, {kSum, kX}), "a + b + x");
  EXPECT_EQ(text({Prim::sub, DType::f32}, {kX, kSum}), "x - (a + b)");
  EXPECT_EQ(text({Prim::mul, DType::f32}, {kCall, kX}), "f(a, b) * x");
  EXPECT_EQ(text({Prim::max, DType::f32}, {kSum, kX}), "max(a + b, x)");
  EXPECT_EQ(text({Prim::neg, DType::f32}, {kSum}), "-(a + b)");
  EXPECT_EQ(text({Prim::lt, DType::f32}, {kSum, kX}), "a + b < x");
  const TypedText test = prim_expression({Prim::lt, DType::f32}, {kX, kY}, DType::boolean);
  EXPECT_EQ(text({Prim::select, DType::f32}, {test, kX, kSum}), "x < y ? x : a + b");
  EXPECT_EQ(text({Prim::bit_and, DType::boolean, Accuracy::exact, true, true}, {test, kX}), "x < y && x");
  EXPECT_EQ(text({Prim::bit_and, DType::boolean}, {test, kX}), "(x < y) & x");
}

TEST(PrimText, OfASignOnlyThatOfANameIsShort) {
  EXPECT_TRUE(prim_expression({Prim::neg, DType::f32}, {kX}, DType::f32).is_short());
  EXPECT_FALSE(prim_expression({Prim::neg, DType::f32}, {kCall}, DType::f32).is_short());
  EXPECT_FALSE(prim_expression({Prim::abs, DType::f32}, {kX}, DType::f32).is_short());
}

// Behind a pointer the terms of a sum would be added to it one by one.
TEST(PrimText, SumsOfIndicesAreKeptTogether) {
  const PrimUse plus{.prim = Prim::add, .dtype = DType::i64, .wraps = false};
  EXPECT_EQ(text(plus, {kSum, kX}), "(a + b) + x");
  EXPECT_EQ(text(plus, {kX, literal_text(DType::i64, {.i = -5}, DType::i32)}), "x - 5");
  EXPECT_EQ(text({Prim::add, DType::i64}, {kX, kY}), "add(x, y)");
}

TEST(PrimText, AWrittenCallSaysItsHeader) {
  EXPECT_EQ(prim_header({Prim::add, DType::f32}), "");
  EXPECT_EQ(prim_header({Prim::add, DType::i64}), "arith");
  EXPECT_EQ(prim_header({Prim::isnan, DType::f32}), "arith");
  EXPECT_EQ(prim_header({Prim::exp, DType::f32}), "math");
  EXPECT_EQ(prim_header({Prim::exp, DType::f32, Accuracy::narrow}), "math_fast");
  EXPECT_EQ(prim_header({Prim::exp, DType::f64, Accuracy::narrow}), "math");
  EXPECT_EQ(prim_header({.prim = Prim::mul, .dtype = DType::f32, .rounded = true}), "arith");
}

}  // namespace
}  // namespace tilewright::cuda
