// Index expressions mean what the integers they stand for mean, and tile IR's truncating division may carry
// them out.
#include "passes/nest/index_expr.h"

#include <gtest/gtest.h>

namespace tilewright::passes {
namespace {

// The value at one point, with the division of tile IR: towards zero.
Index value_at(const IndexExpr& e, const std::vector<Index>& point) {
  Index sum = e.constant();
  for (const IndexExpr::Term& t : e.terms()) {
    Index atom = 0;
    if (!t.div_mod) {
      atom = point[static_cast<std::size_t>(t.variable)];
    } else {
      const Index inner = value_at(t.div_mod->inner, point);
      atom = t.div_mod->is_division ? inner / t.div_mod->divisor : inner % t.div_mod->divisor;
    }
    sum += t.factor * atom;
  }
  return sum;
}

TEST(IndexExpr, QuotientsAndRemaindersOfPositionsWalkedBackwards) {
  const Extents extents = {326, 3};
  for (const Index divisor : {2, 3, 7, 31, 93}) {
    for (const Index step : {-2, -1, 2, 3}) {
      const Index start = step < 0 ? 600 : -40;  // a padding's positions lie outside what is padded
      const IndexExpr at = IndexExpr::variable(0) * step + IndexExpr::variable(1) * divisor + start;
      const IndexExpr quotient = floor_div(at, divisor, extents), rest = remainder(at, divisor, extents);
      for (Index i = 0; i < extents[0]; ++i)
        for (Index j = 0; j < extents[1]; ++j) {
          const Index position = step * i + divisor * j + start;
          if (position < 0) continue;  // under a mask
          ASSERT_EQ(value_at(quotient, {i, j}), position / divisor) << to_string(quotient) << " at " << i;
          ASSERT_EQ(value_at(rest, {i, j}), position % divisor) << to_string(rest) << " at " << i;
        }
    }
  }
}

TEST(IndexExpr, QuotientAndRemainderMakeUpTheWhole) {
  const Extents extents{100, 7};
  const IndexExpr x = IndexExpr::variable(0), y = IndexExpr::variable(1);
  EXPECT_EQ(to_string(floor_div(x, 8, extents) * 24 + y + remainder(x, 8, extents) * 3),
            to_string(x * 3 + y));
  EXPECT_FALSE((floor_div(x, 8, extents) * 16 + remainder(x, 8, extents)).is_affine());
}

// Channels, rows and columns of an image, and the groups of channels that a reshape makes of them.
TEST(IndexExpr, WhatLiesBelowAPartOfTheDivisorDropsOut) {
  const Extents extents{24, 4, 5};
  const IndexExpr c = IndexExpr::variable(0), y = IndexExpr::variable(1), x = IndexExpr::variable(2);
  const IndexExpr position = c * 20 + y * 5 + x;
  EXPECT_EQ(to_string(floor_div(position, 120, extents)), to_string(floor_div(c, 6, extents)));
  EXPECT_EQ(to_string(remainder(position, 120, extents)),
            to_string(remainder(c, 6, extents) * 20 + y * 5 + x));
  // 3 columns more than a row holds: nothing may be dropped.
  EXPECT_FALSE(floor_div(c * 20 + y * 5 + x * 2, 120, extents) == floor_div(c, 6, extents));
  for (const Index divisor : {10, 30, 40, 60, 120, 240})
    for (const Index start : {-20, -3, 0, 7, 20}) {
      const IndexExpr at = position + start, quotient = floor_div(at, divisor, extents),
                      rest = remainder(at, divisor, extents);
      EXPECT_EQ(to_string(quotient * divisor + rest), to_string(at)) << divisor << " from " << start;
      for (Index i = 0; i < extents[0]; ++i)
        for (Index j = 0; j < extents[1]; ++j)
          for (Index k = 0; k < extents[2]; ++k) {
            const Index value = 20 * i + 5 * j + k + start;
            if (value < 0) continue;  // under a mask
            ASSERT_EQ(value_at(quotient, {i, j, k}), value / divisor) << to_string(quotient);
            ASSERT_EQ(value_at(rest, {i, j, k}), value % divisor) << to_string(rest);
          }
    }
}

}  // namespace
}  // namespace tilewright::passes
