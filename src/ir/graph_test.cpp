// Graphs: sharing, inference at the door, errors with places, liveness.
#include "ir/op.h"
#include "ir/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace tilewright::ir {
namespace {

// A row of its own, as ir knows none but `input`.
Type infer_pair(std::span<const Type> operands, const Attrs&) {
  if (operands[0] != operands[1])
    throw Error("operand types differ, " + to_string(operands[0]) + " and " + to_string(operands[1]));
  return operands[0];
}
Type infer_shape(std::span<const Type>, const Attrs& attrs) {
  return {DType::f32, Shape(attrs.integers("shape"))};
}
HostTensor no_eval(std::span<const HostTensor* const>, const Attrs&, const Type&) { return {}; }
const Op kPair = {"pair", 2, OpClass::pointwise, "test", infer_pair, no_eval, no_gradient, structural};
const Op kFill = {"fill", 0, OpClass::constant, "test", infer_shape, no_eval, no_gradient, structural};
const Op* const kOps[] = {&kPair, &kFill};

std::string message_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Graph, SharesEqualNodes) {
  Graph g;
  const NodeId x = g.add_input("x", {DType::f32, {4}});
  const NodeId a = g.add(kPair, {x, x});
  EXPECT_EQ(g.add(kPair, {x, x}), a);
  EXPECT_NE(g.add(kPair, {a, x}), a);
  EXPECT_NE(g.add(kPair, {x, x}, {{"mode", Index{1}}}), a);
  EXPECT_EQ(g.size(), 4);
}

TEST(Graph, NeverSharesInputs) {
  Graph g;
  EXPECT_NE(g.add_input("x", {}), g.add_input("x", {}));
}

TEST(Graph, ConstantsDifferBySignOfZeroAndAgreeOnNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Graph g;
  auto fill = [&](Attr value) {
    return g.add(kFill, {}, {{"shape", std::vector<Index>{}}, {"value", value}});
  };
  EXPECT_NE(fill(0.0), fill(-0.0));
  EXPECT_EQ(fill(nan), fill(-nan));
  EXPECT_NE(fill(1.0), fill(Index{1}));
}

TEST(Graph, ErrorNamesOpTypesAndPlace) {
  Graph g;
  const NodeId x = g.add_input("x", {DType::f32, {4}});
  const NodeId y = g.add_input("y", {DType::f32, {3}});
  EXPECT_EQ(message_of([&] { g.add(kPair, {x, y}, {}, "model.cpp:41"); }),
            "pair: operand types differ, f32[4] and f32[3] (at model.cpp:41)");
  const LocationScope scope(g, "model.cpp:42");
  EXPECT_EQ(message_of([&] { g.add(kPair, {x}); }), "pair: wants 2 operands, got 1 (at model.cpp:42)");
}

TEST(Graph, NodesTakeTheScopesLocation) {
  Graph g;
  const NodeId x = g.add_input("x", {});
  {
    const LocationScope scope(g, "a.cpp:1");
    EXPECT_EQ(g.node(g.add(kPair, {x, x})).location, "a.cpp:1");
  }
  EXPECT_EQ(g.location(), "");
}

TEST(Graph, RefusesHugeAndNegativeShapes) {
  Graph g;
  auto fill = [&](std::vector<Index> shape) {
    return message_of([&] { g.add(kFill, {}, {{"shape", shape}}); });
  };
  EXPECT_EQ(fill({Index{1} << 40, Index{1} << 40}),
            "fill: shape [1099511627776,1099511627776] has too many elements for any memory");
  EXPECT_EQ(fill({-1}), "fill: shape [-1] has a negative extent");
  EXPECT_EQ(fill({0, Index{1} << 40}), "no error");
}

TEST(Graph, AttributesOfTheWrongKindAreErrors) {
  Graph g;
  EXPECT_EQ(message_of([&] { g.add(kFill, {}, {}); }), "fill: attribute shape is missing");
  EXPECT_EQ(message_of([&] { g.add(kFill, {}, {{"shape", 2.0}}); }),
            "fill: attribute shape must be a list of integers");
}

TEST(Graph, UsersAndLiveFollowTheOutputs) {
  Graph g;
  const NodeId x = g.add_input("x", {DType::f32, {4}});
  const NodeId a = g.add(kPair, {x, x});
  const NodeId dead = g.add(kPair, {a, a});
  g.set_outputs({a});
  EXPECT_EQ(g.users()[static_cast<std::size_t>(x)], std::vector<NodeId>{a});
  EXPECT_TRUE(g.live()[static_cast<std::size_t>(x)]);
  EXPECT_FALSE(g.live()[static_cast<std::size_t>(dead)]);
}

TEST(GraphText, PrintsOneOpALine) {
  Graph g("mlp");
  const NodeId x = g.add_input("x", {DType::bf16, {32, 8}});
  const NodeId y = g.add(kPair, {x, x}, {{"mode", std::string("tanh")}, {"at", std::vector<Index>{1, -2}}});
  g.set_outputs({y, x});
  EXPECT_EQ(print(g),
            "graph @mlp(%x: bf16[32,8]) -> (bf16[32,8], bf16[32,8]) {\n"
            "  %1 = pair %x, %x {at=[1,-2], mode=tanh} : bf16[32,8]\n"
            "  return %1, %x\n"
            "}\n");
}

void expect_round_trip(const Graph& g) {
  const auto parsed = parse(print(g), kOps);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message << "\n" << print(g);
  EXPECT_TRUE(parsed.value() == g) << print(g) << print(parsed.value());
}

TEST(GraphText, RoundTripKeepsOddNamesAndLateInputs) {
  Graph g("a graph \"quoted\"\n");
  const NodeId x = g.add_input("same", {DType::f32, {}});
  const NodeId y = g.add_input("same", {DType::f32, {}});
  const NodeId sum = g.add(kPair, {x, y});
  const NodeId late = g.add_input("2", {DType::f32, {}});
  g.add_input("", {DType::boolean, {0}});
  g.set_outputs({sum, g.add(kPair, {sum, late}), sum});
  expect_round_trip(g);
}

TEST(GraphText, RoundTripKeepsEveryKindOfAttribute) {
  const double infinity = std::numeric_limits<double>::infinity();
  Graph g;
  for (Attr value : {Attr(Index{-7}), Attr(0.1), Attr(-0.0), Attr(1e300), Attr(infinity), Attr(-infinity),
                     Attr(std::numeric_limits<double>::quiet_NaN()), Attr(std::vector<Index>{}),
                     Attr(std::string("inf")), Attr(std::string("nancy")), Attr(std::string("two words\\")),
                     Attr(std::string("")), Attr(std::numeric_limits<Index>::min())})
    g.add(kFill, {}, {{"shape", std::vector<Index>{}}, {"value", value}});
  EXPECT_EQ(g.size(), 13);
  expect_round_trip(g);
}

TEST(GraphText, RoundTripOfTheEmptyGraph) { expect_round_trip(Graph("empty")); }

std::string complaint(std::string_view text) {
  const auto parsed = parse(text, kOps);
  return parsed.ok() ? "parsed" : parsed.error().message;
}

TEST(GraphText, CommentsAndSpacingAreFree) {
  EXPECT_EQ(complaint("graph@g(%x:f32[]) // c\n->f32[]{%y=pair %x,%x:f32[] return %y}"), "parsed");
}

TEST(GraphText, ComplaintsCarryLineAndColumn) {
  EXPECT_EQ(complaint(""), "graph text 1:1: expected 'graph'");
  EXPECT_EQ(complaint("graph @g(%x: f33[]) -> f32[] { return %x }"),
            "graph text 1:14: f33 is not an element type");
  EXPECT_EQ(complaint("graph @g(%x: f32[]) -> f32[] {\n  %y = pear %x : f32[]\n  return %y }"),
            "graph text 2:8: pear is not an operation");
  EXPECT_EQ(complaint("graph @g(%x: f32[]) -> f32[] {\n  %y = pair %x, %z : f32[]\n  return %y }"),
            "graph text 2:17: %z is not defined here");
  EXPECT_EQ(complaint("graph @g(%x: f32[]) -> f32[] {\n  %y = pair %x : f32[]\n  return %y }"),
            "graph text 2:8: pair: wants 2 operands, got 1");
  EXPECT_EQ(complaint("graph @g(%x: f32[]) -> f32[] {\n  %y = pair %x, %x : f32[1]\n  return %y }"),
            "graph text 2:22: pair gives f32[], not f32[1]");
  EXPECT_EQ(complaint("graph @g(%x: f32[]) -> f32[2] { return %x }"),
            "graph text 1:33: the returned values differ from the signature's types");
  EXPECT_EQ(complaint("graph @g(%x: f32[] at 9) -> f32[] { return }"),
            "graph text 1:10: the body ends before node 9");
  EXPECT_EQ(complaint("graph @g(%x: f32[], %x: f32[]) -> f32[] { return %x }"),
            "graph text 1:21: %x is defined twice");
  EXPECT_EQ(complaint("graph @g() -> () { %c = fill {shape=[1,1.5]} : f32[1] return }"),
            "graph text 1:40: expected an integer");
}

}  // namespace
}  // namespace tilewright::ir
