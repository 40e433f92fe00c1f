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

}  // namespace
}  // namespace tilewright::passes
