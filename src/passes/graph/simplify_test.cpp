// Each rewrite of simplify by name: what it makes, and where it must keep its hands off.
#include "passes/graph/simplify.h"

#include "ir/text.h"
#include "ops/composites.h"
#include "ops/ops.h"
#include "ops/rows.h"

#include <gtest/gtest.h>

#include <limits>

namespace tilewright::passes {
namespace {

using ir::Value;

struct SimplifyFixture : testing::Test {
  ir::Graph g{"g"};
  Value input(const char* name, DType dtype = DType::f32, const Shape& shape = {4}) {
    return {&g, g.add_input(name, {dtype, shape})};
  }
  // The op names of the simplified graph of `v`, inputs left out.
  std::string ops_of(Value v) {
    g.set_outputs({v.id});
    const ir::Graph simple = simplify(g);
    std::string names;
    for (const ir::Node& node : simple.nodes())
      if (node.op != &ir::input_op) names += (names.empty() ? "" : " ") + std::string(node.op->name);
    return names;
  }
};
using Simplify = SimplifyFixture;

// A row without elements has the product 0, where e · v / Σ e would be 0 / 0.
TEST_F(Simplify, DividesByRowSumsBehindAProductOfSomething) {
  const auto divides_behind = [&](const char* name, Index columns) {
    const Value x = input(name, DType::f32, {3, columns});
    const Value y = ops::matmul(ops::softmax(x), ops::swap_axes(x, 0, 1));
    const std::string names = ops_of(y);
    return names.rfind("mul") > names.rfind("matmul") + 3;
  };
  EXPECT_TRUE(divides_behind("x", 5));
  EXPECT_FALSE(divides_behind("empty", 0));
}

// Exactly the same numbers: infinity times a positive number is infinity.
TEST_F(Simplify, ScalesWhatAMaskLeaves) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Value x = input("x"), seen = input("seen", DType::boolean);
  const auto masked = [&](double by, double other) { return ops::where(seen, x * by, other); };
  EXPECT_EQ(ops_of(masked(0.125, -kInfinity)), "constant constant where mul");
  EXPECT_EQ(ops_of(masked(3, kInfinity)), "constant constant where mul");
  EXPECT_EQ(ops_of(masked(-3, -kInfinity)), "constant constant mul where") << "turns the infinity over";
  EXPECT_EQ(ops_of(masked(0.125, -1e30)), "constant mul constant where") << "another number";
  const Value scaled = x * 5.0;
  EXPECT_EQ(ops_of(ops::where(seen, scaled, -kInfinity) + scaled), "constant constant mul where add")
      << "the product is needed as well";
}

// unmasked_rows: what is chosen of a product's rows and columns need not be chosen of its operands.
TEST_F(Simplify, ChoosesRowsOfAProductOnce) {
  const auto choices = [&](Value v) {
    const std::string names = ops_of(v);
    int count = 0;
    for (std::size_t at = names.find("where"); at != std::string::npos; at = names.find("where", at + 1))
      ++count;
    return count;
  };
  const Value a = input("a", DType::f32, {3, 5, 4}), b = input("b", DType::f32, {3, 4, 6}),
              keys = input("keys", DType::f32, {3, 6, 4}), rows = input("rows", DType::boolean, {3, 5, 1}),
              others = input("others", DType::boolean, {3, 5, 1}),
              columns = input("columns", DType::boolean, {3, 1, 6});
  const auto of_rows = [&](Value c) { return ops::where(c, a, 0.0); };
  EXPECT_EQ(choices(ops::where(rows, ops::matmul(of_rows(rows), b), 0.0)), 1);
  EXPECT_EQ(choices(ops::where(rows, ops::matmul(of_rows(others), b), 0.0)), 2) << "other rows";
  EXPECT_EQ(choices(ops::where(ops::logical_and(rows, columns), ops::matmul(of_rows(rows), b), 0.0)), 1);
  EXPECT_EQ(choices(ops::where(ops::logical_or(rows, columns), ops::matmul(of_rows(rows), b), 0.0)), 2)
      << "rows that are not chosen are read in some columns";
  const Value product = ops::matmul(of_rows(rows), b);
  EXPECT_EQ(choices(ops::where(rows, product, 0.0) + product), 2) << "the product is needed as well";
  const Value seen = ops::where(ops::swap_axes(columns, 1, 2), keys, 0.0);
  EXPECT_EQ(choices(ops::where(columns, ops::matmul(a, ops::swap_axes(seen, 1, 2)) * 0.5, -1.0)), 1);
  EXPECT_EQ(choices(ops::where(rows, ops::matmul(a, ops::swap_axes(seen, 1, 2)), -1.0)), 2)
      << "all columns are read";
  const Value mask = input("mask", DType::boolean, {3, 5, 6}), seeing = ops::any(mask, {2}, ops::Keep::yes);
  EXPECT_EQ(choices(ops::where(mask, ops::matmul(of_rows(seeing), b), 0.0)), 1);
  EXPECT_EQ(choices(ops::where(ops::logical_and(mask, columns), ops::matmul(of_rows(seeing), b), 0.0)), 1);
  EXPECT_EQ(choices(ops::where(ops::logical_not(mask), ops::matmul(of_rows(seeing), b), 0.0)), 2)
      << "where the mask does not hold, other rows are read";
}

TEST_F(Simplify, DropsDeadNodesAndKeepsInputs) {
  const Value x = input("x");
  input("unused");
  ops::exp(x);
  g.set_outputs({ops::tanh(x).id});
  const ir::Graph simple = simplify(g);
  EXPECT_EQ(ir::print(simple),
            "graph @g(%x: f32[4], %unused: f32[4]) -> f32[4] {\n  %2 = tanh %x : f32[4]\n  return %2\n}\n");
}

TEST_F(Simplify, MergesCommutedOperands) {
  const Value x = input("x");
  const Value y = input("y");
  EXPECT_EQ(ops_of((x + y) * (y + x)), "add mul");
  EXPECT_EQ(ops_of((x - y) * (y - x)), "sub sub mul");
}

TEST_F(Simplify, IdentitiesOfFloats) {
  const Value x = input("x");
  EXPECT_EQ(ops_of(x - 0.0), "");
  EXPECT_EQ(ops_of(x + -0.0), "");
  EXPECT_EQ(ops_of(1.0 * x / 1.0), "");
  EXPECT_EQ(ops_of(x * -1.0), "neg");
  EXPECT_EQ(ops_of(-(-x)), "");
  EXPECT_EQ(ops_of(ops::maximum(x, x)), "");
  EXPECT_EQ(ops_of(ops::stop_gradient(x)), "");
  EXPECT_EQ(ops_of(ops::with_gradient_of(x, ops::exp(x))), "");
}

TEST_F(Simplify, KeepsWhatNansInfinitiesAndSignedZerosCanSee) {
  const Value x = input("x");
  EXPECT_EQ(ops_of(x + 0.0), "constant add");  // -0 + 0 is +0
  EXPECT_EQ(ops_of(x * 0.0), "constant mul");  // inf * 0 is NaN
  EXPECT_EQ(ops_of(x - x), "sub");             // inf - inf is NaN
  EXPECT_EQ(ops_of(x / x), "div");
  EXPECT_EQ(ops_of(0.0 - x), "constant sub");           // 0 - 0 is +0, neg gives -0
  EXPECT_EQ(ops_of(ops::pow(x, 0.5)), "constant pow");  // pow(-inf, 0.5) is inf, sqrt(-inf) is NaN
}

TEST_F(Simplify, IdentitiesOfIntegers) {
  const Value x = input("x", DType::i32);
  EXPECT_EQ(ops_of(x + 0), "");
  EXPECT_EQ(ops_of(x * 0), "constant");
  EXPECT_EQ(ops_of(x - x), "constant");
  EXPECT_EQ(ops_of(ops::bit_xor(x, x)), "constant");
  EXPECT_EQ(ops_of(ops::bit_not(ops::bit_not(x))), "");
}

TEST_F(Simplify, SmallPowersBecomeProducts) {
  const Value x = input("x");
  EXPECT_EQ(ops_of(ops::pow(x, 2)), "mul");
  EXPECT_EQ(ops_of(ops::pow(x, 3.0)), "mul mul");
  EXPECT_EQ(ops_of(ops::pow(x, -1)), "reciprocal");
  EXPECT_EQ(ops_of(ops::pow(x, 1)), "");
}

TEST_F(Simplify, DividesByPowersOfTwoOnly) {
  const Value x = input("x");
  EXPECT_EQ(ops_of(x / 8.0), "constant mul");
  EXPECT_EQ(ops_of(x / 3.0), "constant div");
}

TEST_F(Simplify, FoldsConstants) {
  const Value x = input("x");
  const Value c = ops::exp(ops::full_like(x, 0.0) + ops::full_like(x, 1.0));
  EXPECT_EQ(ops_of(x * c), "constant mul");
}

TEST_F(Simplify, ResolvesConditions) {
  const Value x = input("x");
  const Value y = input("y");
  const Value c = ops::gt(x, y);
  EXPECT_EQ(ops_of(ops::where(c, x, x)), "");
  EXPECT_EQ(ops_of(ops::where(ops::lt(ops::full_like(x, 1.0), 2.0), x, y)), "");
  EXPECT_EQ(ops_of(ops::where(ops::bit_not(c), x, y)), "gt where");
  EXPECT_EQ(ops_of(ops::where(c, ops::where(c, x, 0.0), y)), "gt where");
}

TEST_F(Simplify, CastsThroughAWiderTypeDisappear) {
  const Value x = input("x", DType::bf16);
  EXPECT_EQ(ops_of(ops::cast(ops::cast(x, DType::f32), DType::bf16)), "");
  EXPECT_EQ(ops_of(ops::cast(ops::cast(x, DType::f32), DType::f64)), "cast");
  EXPECT_EQ(ops_of(ops::cast(ops::cast(x, DType::f8e4m3), DType::f32)), "cast cast");
  const Value i = input("i", DType::i32);
  EXPECT_EQ(ops_of(ops::cast(ops::cast(i, DType::f64), DType::i32)), "");
  EXPECT_EQ(ops_of(ops::cast(ops::cast(i, DType::f64), DType::i8)),
            "cast cast");  // saturates, i32 to i8 wraps
  EXPECT_EQ(ops_of(ops::cast(ops::cast(i, DType::f32), DType::i32)), "cast cast");  // f32 has 24 bits
}

// Between a load and a store a narrow value is f32; only the cast rounds it.
TEST_F(Simplify, CastsThatRoundAComputedNarrowValueStay) {
  const Value y = ops::exp(input("x", DType::bf16));
  EXPECT_EQ(ops_of(ops::cast(ops::cast(y, DType::f32), DType::bf16)), "exp cast cast");
}

TEST_F(Simplify, ViewsOfViewsMerge) {
  const Value x = input("x", DType::f32, {2, 3, 4});
  EXPECT_EQ(ops_of(ops::reshape(ops::reshape(x, {24}), {2, 3, 4})), "");
  EXPECT_EQ(ops_of(ops::transpose(ops::transpose(x, {2, 0, 1}), {1, 2, 0})), "");
  EXPECT_EQ(ops_of(ops::flip(ops::flip(x, {1}), {1})), "");
  EXPECT_EQ(ops_of(ops::slice_axis(ops::slice_axis(x, 2, {.step = 2}), 2, {.start = 1})), "slice");
  const Value unit = input("u", DType::f32, {3, 1, 4});
  EXPECT_EQ(ops_of(ops::swap_axes(unit, 0, 1)), "reshape");
  EXPECT_EQ(ops_of(ops::broadcast_to(ops::broadcast_to(unit, {3, 5, 4}), {3, 5, 4})), "expand");
}

TEST_F(Simplify, ComputesBeforeExpanding) {
  const Value row = input("row", DType::f32, {3, 1});
  const Value wide = ops::broadcast_to(row, {3, 100});
  g.set_outputs({ops::exp(wide * 2.0).id});
  const ir::Graph simple = simplify(g);
  for (const ir::Node& node : simple.nodes())
    EXPECT_TRUE(node.op != &ops::kExp || node.type.shape == Shape({3, 1}));
  EXPECT_EQ(ops_of(ops::exp(wide * 2.0)), "constant mul exp expand");
}

TEST_F(Simplify, ReductionsMerge) {
  const Value x = input("x", DType::f32, {2, 3, 4});
  EXPECT_EQ(ops_of(ops::sum(ops::sum(x, {1}), {0})), "sum");
  EXPECT_EQ(ops_of(ops::max(ops::max(x, {2}, ops::Keep::yes), {2})), "max");
  EXPECT_EQ(ops_of(ops::sum(input("u", DType::f32, {5, 1}), {1})), "reshape");
}

TEST_F(Simplify, SumOfExpandMultiplies) {
  const Value x = input("x", DType::f32, {3, 1});
  const Value wide = ops::broadcast_to(x, {3, 7});
  EXPECT_EQ(ops_of(ops::sum(wide, {1})), "reshape constant mul");
  EXPECT_EQ(ops_of(ops::max(wide, {1})), "reshape");
  EXPECT_EQ(ops_of(ops::sum(ops::broadcast_to(x, {3, 0}), {1})), "expand sum");  // of nothing: 0, not NaN
}

TEST_F(Simplify, ASumThatPicksOneElementReadsIt) {
  const Value x = input("x", DType::f32, {3, 7});
  const Value label = input("label", DType::i64, {3});
  const Value is_label = ops::eq(ops::iota(g, {3, 7}, 1), ops::unsqueeze(label, -1));
  const std::string picked = ops_of(ops::sum(ops::where(is_label, ops::exp(x), 0.0), {1}));
  EXPECT_NE(picked.find("take_along"), std::string::npos) << picked;
  EXPECT_EQ(picked.find("sum"), std::string::npos) << picked;
  // Along the other axis the comparison does not pick one; what is not 0 elsewhere is summed.
  EXPECT_NE(ops_of(ops::sum(ops::where(is_label, x, 0.0), {0})).find("sum"), std::string::npos);
  EXPECT_NE(ops_of(ops::sum(ops::where(is_label, x, 1.0), {1})).find("sum"), std::string::npos);
}

TEST_F(Simplify, ATransposedProductIsAProductOfTransposes) {
  const Value a = input("a", DType::f32, {2, 3, 4}), b = input("b", DType::f32, {2, 4, 5});
  const auto transposed = [](Value v) { return ops::swap_axes(v, -1, -2); };
  const Value x = input("x", DType::f32, {2, 4, 3});
  EXPECT_EQ(ops_of(transposed(ops::matmul(transposed(x), b))), "transpose matmul");
  // One that is read as it is, too, stays: the product is not made twice.
  const Value product = ops::matmul(a, b);
  EXPECT_EQ(ops_of(ops::concat({ops::reshape(transposed(product), {30}), ops::reshape(product, {30})}, 0)),
            "matmul transpose reshape reshape concat");
  // Where other axes move as well, rows and columns change places all the same.
  EXPECT_EQ(ops_of(ops::transpose(ops::matmul(a, b), {2, 0, 1})), "transpose transpose matmul transpose");
}

TEST_F(Simplify, RowSumsOfAProductComeFromTheSmallerOne) {
  const Value s = input("s", DType::f32, {2, 8, 9}), v = input("v", DType::f32, {2, 9, 3}),
              g = input("g", DType::f32, {2, 8, 3});
  const Value e = ops::exp(s - ops::maximum(ops::max(s, {-1}, ops::Keep::yes), -1e30));
  const Value y = ops::matmul(e, v);
  const Value wide = ops::sum(ops::matmul(g, ops::swap_axes(v, -1, -2)) * e, {-1});
  const std::string weights = "max reshape constant maximum expand sub exp ";
  EXPECT_EQ(ops_of(wide * ops::sum(y, {-1})), weights + "matmul mul sum sum mul");
  // Without the other product there is nothing to gain.
  EXPECT_EQ(ops_of(wide), weights + "transpose matmul mul sum");
  // What is not between 0 and 1 may make the other product infinite where this one is not.
  const Value large = ops::exp(s);
  const Value wider = ops::sum(ops::matmul(g, ops::swap_axes(v, -1, -2)) * large, {-1});
  EXPECT_EQ(ops_of(wider * ops::sum(ops::matmul(large, v), {-1})),
            "transpose matmul exp mul sum matmul sum mul");
  // A result that is scaled row by row is read instead of the one before it.
  const Value scale = input("c", DType::f32, {2, 8, 1}), z = y * scale;
  const Value row = ops::sum(g * y, {-1}, ops::Keep::yes) * scale;
  EXPECT_EQ(ops_of(ops::concat({z, row}, 2)), weights + "matmul expand mul mul sum reshape concat");
}

TEST_F(Simplify, SumsOverABatchOfProductsAreOneProduct) {
  const Value a = input("a", DType::f32, {2, 3, 4, 5}), b = input("b", DType::f32, {2, 3, 5, 6});
  EXPECT_EQ(ops_of(ops::sum(ops::matmul(a, b), {1})), "transpose reshape reshape matmul");
  EXPECT_EQ(ops_of(ops::sum(ops::reshape(ops::matmul(a, b), {6, 4, 6}), {0})),
            "reshape transpose reshape reshape matmul");
  EXPECT_EQ(ops_of(ops::sum(ops::matmul(a, b), {2})), "matmul sum");
}

TEST_F(Simplify, KeepsTheSignatureWhenAnOutputIsAnInput) {
  const Value x = input("x");
  g.set_outputs({(x * 1.0).id, x.id, (x * 1.0).id});
  const ir::Graph simple = simplify(g);
  EXPECT_EQ(simple.outputs(), (std::vector<ir::NodeId>{0, 0, 0}));
}

TEST_F(Simplify, EveryRewriteIsDocumented) {
  for (std::span<const Rewrite> table : rewrite_tables())
    for (const Rewrite& rule : table) {
      EXPECT_FALSE(rule.name.empty());
      EXPECT_FALSE(rule.doc.empty());
    }
}

}  // namespace
}  // namespace tilewright::passes
