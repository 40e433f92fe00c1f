// What arithmetic on positions becomes in a group's program.
#include "passes/nest/fold_index.h"

#include "ops/functions.h"

#include <gtest/gtest.h>

namespace tilewright::passes {
namespace {

using ir::Value;

struct FoldIndex : testing::Test {
  ir::Graph g{"g"};
  Value rows = ops::iota(g, {10, 20}, 0), columns = ops::iota(g, {10, 20}, 1);

  // The program that computes `v`, without its first line and its store.
  std::string program_of(Value v) {
    Group group{.nodes = {}, .outputs = {v.id}};
    for (ir::NodeId id = 0; id <= v.id; ++id)
      if (g.node(id).op->kind != ir::OpClass::input && !is_inlined(g.node(id))) group.nodes.push_back(id);
    const auto built = build_loop_nest(g, group);
    if (const Refusal* refusal = std::get_if<Refusal>(&built)) return std::string(name(*refusal));
    const std::string text = to_string(g, std::get<LoopNest>(built));
    return text.substr(text.find('\n') + 1);
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

TEST_F(FoldIndex, SumsProductsQuotientsAndRemainders) {
  const auto last_of = [&](Value v) {
    const std::string text = program_of(v);
    const auto store = text.rfind("  %"), index = text.rfind("= index", store);
    return text.substr(index, text.find(" : ", index) - index);
  };
  EXPECT_EQ(last_of(rows * 3 - columns + 7), "= index [7 + 3*i0 + -1*i1]");
  EXPECT_EQ(last_of(ops::trunc_div(rows * 20 + columns, 20)), "= index [i0]");
  EXPECT_EQ(last_of(ops::rem(rows * 20 + columns, 20)), "= index [i1]");
  EXPECT_EQ(last_of(ops::maximum(rows, columns - 30)), "= index [i0]");
}

// Truncated division of what may be negative is no floor; nor do types that wrap around fold.
TEST_F(FoldIndex, LeavesWhatMeansSomethingElse) {
  EXPECT_TRUE(has(program_of(ops::trunc_div(rows - columns, 4)), "op div"));
  EXPECT_TRUE(has(program_of(ops::rem(rows - 1, 4)), "op rem"));
  EXPECT_TRUE(has(program_of(ops::cast(rows, DType::i8) + ops::cast(columns, DType::i8)), "op add"));
  EXPECT_TRUE(has(program_of(rows * columns), "op mul"));
  EXPECT_TRUE(has(program_of(ops::maximum(rows, columns)), "op maximum"));
}

TEST_F(FoldIndex, DecidesComparisonsByRanges) {
  const Value x{&g, g.add_input("x", {DType::f32, {10, 20}})},
      y{&g, g.add_input("y", {DType::f32, {10, 20}})};
  const auto reads = [&](Value condition) {
    const std::string text = program_of(ops::where(condition, ops::neg(x), ops::exp(y)) + 1.0);
    return std::string(has(text, "op neg") ? "x" : "") + (has(text, "op where") ? "?" : "") +
           (has(text, "op exp") ? "y" : "");
  };
  EXPECT_EQ(reads(ops::lt(rows, 10)), "x");
  EXPECT_EQ(reads(ops::lt(rows, 9)), "x?y");
  EXPECT_EQ(reads(ops::bit_and(ops::ge(rows, 0), ops::gt(columns, 3))), "x?y");
  EXPECT_EQ(reads(ops::bit_and(ops::gt(rows, columns + 10), ops::gt(columns, 3))), "y");
  EXPECT_EQ(reads(ops::bit_or(ops::ne(rows, -1), ops::gt(columns, 3))), "x");
}

// A window that ends at the row, and what lies before it; another number, another position and data stay.
TEST_F(FoldIndex, LeavesOutComparisonsThatOthersImply) {
  const Value flags{&g, g.add_input("flags", {DType::boolean, {10, 20}})};
  const Value before = ops::le(columns, rows), apart = rows - columns,
              window = ops::bit_and(ops::le(apart, 4), ops::ge(apart, 0)),
              wide = ops::bit_and(ops::le(apart, 4), ops::ge(apart, -3));
  const auto comparisons = [&](Value v) {
    const std::string text = program_of(v);
    int found = 0;
    for (const char* op : {"op le", "op lt", "op ge", "op gt", "op eq", "op ne"})
      for (std::size_t at = text.find(op); at != std::string::npos; at = text.find(op, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(comparisons(ops::bit_and(before, window)), 2);
  EXPECT_EQ(comparisons(ops::bit_and(window, before)), 2);
  EXPECT_EQ(comparisons(ops::bit_and(before, wide)), 2);
  EXPECT_EQ(comparisons(ops::bit_and(window, ops::bit_and(wide, flags))), 2);
  EXPECT_EQ(comparisons(ops::bit_and(ops::bit_and(window, flags), before)), 2);
  EXPECT_EQ(comparisons(ops::bit_or(before, window)), 1);
  EXPECT_EQ(comparisons(ops::bit_or(ops::bit_not(before), ops::gt(columns, rows + 2))), 1);
  EXPECT_EQ(comparisons(ops::bit_and(ops::eq(rows, columns), before)), 1);
  EXPECT_EQ(comparisons(ops::bit_and(before, ops::le(columns, rows + rows))), 2);
  EXPECT_EQ(comparisons(ops::bit_or(ops::eq(rows, columns), ops::lt(columns, rows))), 2);
}

TEST_F(FoldIndex, ReadsElementsAtPositionsAsViews) {
  const Value table{&g, g.add_input("table", {DType::f32, {30}})};
  const std::string inside = program_of(ops::neg(ops::take(table, rows - columns + 19, 0)));
  EXPECT_TRUE(has(inside, "load %2 [19 + i0 + -1*i1] :")) << inside;
  const std::string outside = program_of(ops::neg(ops::take(table, rows - columns + 18, 0)));
  EXPECT_TRUE(has(outside, " if #")) << outside;
}

}  // namespace
}  // namespace tilewright::passes
