// differentiate: what it refuses and how it says so, shared values, stopped gradients.
#include "passes/graph/differentiate.h"

#include "ops/composites.h"
#include "ops/ops.h"
#include "ops/rows.h"

#include <gtest/gtest.h>

namespace tilewright::passes {
namespace {

using ir::Value;

struct GradientFixture : testing::Test {
  ir::Graph g;
  Value input(const char* name, DType dtype = DType::f32, const Shape& shape = {}) {
    return {&g, g.add_input(name, {dtype, shape})};
  }
  // The gradients of `loss` where every float input holds `at` and every integer 0.
  std::vector<std::vector<double>> gradients(Value loss, const std::vector<int>& wrt, double at) {
    g.set_outputs({loss.id});
    const ir::Graph joint = differentiate(g, wrt);
    std::vector<ir::HostTensor> inputs;
    for (ir::NodeId id : g.inputs()) {
      ir::HostTensor t;
      t.type = g.type(id);
      const auto n = static_cast<std::size_t>(t.type.shape.size());
      if (is_float(t.type.dtype))
        t.f.assign(n, at);
      else
        t.i.assign(n, 0);
      inputs.push_back(std::move(t));
    }
    std::vector<std::vector<double>> out;
    for (const ir::HostTensor& t : ops::evaluate(joint, inputs)) out.push_back(t.f);
    out.erase(out.begin());
    return out;
  }
  std::string complaint(Value loss, const std::vector<int>& wrt) {
    g.set_outputs({loss.id});
    try {
      differentiate(g, wrt);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};
using Differentiate = GradientFixture;
using Numbers = std::vector<std::vector<double>>;

TEST_F(Differentiate, AddsUpEveryUseOfAValue) {
  const Value x = input("x");
  EXPECT_EQ(gradients(x * x * x + 2.0 * x, {0}, 3), (Numbers{{29}}));
}

TEST_F(Differentiate, GivesGradientsInTheOrderAsked) {
  const Value x = input("x");
  const Value y = input("y");
  EXPECT_EQ(gradients(2.0 * x + 3.0 * y, {1, 0, 1}, 1), (Numbers{{3}, {2}, {3}}));
}

TEST_F(Differentiate, KeepsTheForwardOutputs) {
  const Value x = input("x");
  g.set_outputs({ops::exp(x).id, x.id});
  const ir::Graph joint = differentiate(g, {0});
  ASSERT_EQ(joint.outputs().size(), 3U);
  EXPECT_EQ(joint.outputs()[0], g.outputs()[0]);
  EXPECT_EQ(joint.outputs()[1], g.outputs()[1]);
}

TEST_F(Differentiate, GradientsHaveTheInputsType) {
  const Value x = input("x", DType::bf16, {2, 3});
  g.set_outputs({ops::sum(ops::cast(x, DType::f32) * ops::iota(g, {3}, 0)).id});
  const ir::Graph joint = differentiate(g, {0});
  EXPECT_EQ(joint.type(joint.outputs()[1]), x.type());
}

// The loss is f32, and so is the gradient of the product: it is rounded once, where it meets 16-bit operands.
TEST_F(Differentiate, GradientsMeet16BitOperandsInTheirType) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32, DType::f8e4m3}) {
    ir::Graph graph("g");
    const auto matrix = [&](const char* name) {
      return Value{&graph, graph.add_input(name, {dtype, {2, 2}})};
    };
    const Value a = matrix("a"), b = matrix("b"), w{&graph, graph.add_input("w", {DType::f32, {2, 2}})};
    graph.set_outputs({ops::sum(ops::matmul(a, b, DType::f32) * w).id});
    const ir::Graph joint = differentiate(graph, {0, 1});
    int products = 0;
    for (const ir::Node& n : joint.nodes()) {
      if (n.op->name != "matmul") continue;
      ++products;
      const DType operand_dtype = size_bytes(dtype) == 2 || products == 1 ? dtype : DType::f32;
      for (const ir::NodeId o : n.operands) EXPECT_EQ(joint.type(o).dtype, operand_dtype) << products;
    }
    EXPECT_EQ(products, 3);
    EXPECT_EQ(joint.type(joint.outputs()[1]), a.type());
    EXPECT_EQ(joint.type(joint.outputs()[2]), b.type());
  }
}

TEST_F(Differentiate, InputsThatDoNotMatterGetZeros) {
  input("unused", DType::f32, {2});
  const Value x = input("x");
  EXPECT_EQ(gradients(x * 1.0, {0}, 5), (Numbers{{0, 0}}));
}

TEST_F(Differentiate, StoppedAndStepwiseWaysGiveZeros) {
  const Value x = input("x");
  EXPECT_EQ(gradients(ops::stop_gradient(x) + ops::floor(x), {0}, 1.5), (Numbers{{0}}));
  EXPECT_EQ(gradients(x * ops::stop_gradient(x), {0}, 1.5), (Numbers{{1.5}}));
  EXPECT_EQ(gradients(ops::with_gradient_of(x, 3.0 * x), {0}, 1.5), (Numbers{{3}}));
}

TEST_F(Differentiate, TheInputItselfIsALoss) {
  const Value x = input("x");
  EXPECT_EQ(gradients(x, {0}, 7), (Numbers{{1}}));
}

TEST_F(Differentiate, WhereSendsTheGradientToTheChosenSide) {
  const Value x = input("x");
  const Value chosen = ops::where(ops::gt(x, 0.0), x * 3.0, x * 5.0);
  EXPECT_EQ(gradients(chosen, {0}, 1), (Numbers{{3}}));
  EXPECT_EQ(gradients(chosen, {0}, -1), (Numbers{{5}}));
}

// The side not taken overflows; its gradient must be 0, not 0 * inf.
TEST_F(Differentiate, EluStaysFiniteWhereExpOverflows) {
  const Value x = input("x");
  EXPECT_EQ(gradients(ops::elu(x), {0}, 1000), (Numbers{{1}}));
  EXPECT_EQ(gradients(ops::relu(x), {0}, 0), (Numbers{{0}}));
  EXPECT_EQ(gradients(ops::clamp(x, 0, 2), {0}, 0), (Numbers{{1}}));
}

TEST_F(Differentiate, TiesShareTheGradient) {
  const Value x = input("x", DType::f32, {4});
  EXPECT_EQ(gradients(ops::max(x), {0}, 2), (Numbers{{0.25, 0.25, 0.25, 0.25}}));
  const Value y = input("y");
  EXPECT_EQ(gradients(ops::maximum(y, y * 1.0), {1}, 2), (Numbers{{1}}));
}

TEST_F(Differentiate, RefusesALossThatIsNoFloatScalar) {
  const Value x = input("x", DType::f32, {2});
  const ir::LocationScope scope(g, "train.cpp:7");
  EXPECT_EQ(complaint(ops::exp(x), {0}),
            "differentiate: output 0 must be a float scalar, exp gives f32[2] (at train.cpp:7)");
  EXPECT_EQ(complaint(ops::argmax(x, 0), {0}),
            "differentiate: output 0 must be a float scalar, argmax gives i64[] (at train.cpp:7)");
}

TEST_F(Differentiate, RefusesInputsThatAreNoFloats) {
  const Value x = input("x");
  input("labels", DType::i32);
  EXPECT_EQ(complaint(x, {1}), "differentiate: input labels is i32[], gradients need a float type");
  EXPECT_EQ(complaint(x, {2}), "differentiate: there is no input 2");
}

TEST_F(Differentiate, NamesTheOpThatHasNoGradient) {
  const Value x = input("x", DType::f32, {3});
  const ir::LocationScope scope(g, "train.cpp:9");
  static const ir::Op opaque = [] {  // every float row of the table has one
    ir::Op op = ops::kExp;
    op.name = "opaque";
    op.vjp = ir::no_gradient;
    return op;
  }();
  EXPECT_EQ(complaint(ops::sum({&g, g.add(opaque, {x.id})}), {0}),
            "differentiate: opaque has no gradient (at train.cpp:9)");
}

// Steps have the gradient zero, so that second derivatives exist where a first one is a mask or a pick times
// something else: of max, relu, clamp, where, take_along.
TEST_F(Differentiate, StepsHaveTheGradientZero) {
  const Value x = input("x", DType::f32, {3});
  for (const Value step : {ops::gt(x, 0.0), ops::cast(x, DType::i32), ops::argmin(x, 0), ops::any(x)})
    EXPECT_EQ(gradients(ops::sum(ops::cast(step, DType::f32)), {0}, 1), (Numbers{{0, 0, 0}}));
}

TEST_F(Differentiate, OpsWithoutGradientAreFineBesideTheWay) {
  const Value x = input("x", DType::f32, {3});
  const Value scale = ops::cast(ops::argmax(x, 0), DType::f32) + 2.0;
  EXPECT_EQ(gradients(ops::sum(x * scale), {0}, 1), (Numbers{{2, 2, 2}}));
}

TEST_F(Differentiate, GradientNodesKeepTheForwardLocation) {
  const Value x = input("x");
  {
    const ir::LocationScope scope(g, "model.cpp:3");
    g.set_outputs({ops::tanh(x).id});
  }
  const ir::Graph joint = differentiate(g, {0});
  EXPECT_EQ(joint.node(joint.outputs()[1]).location, "model.cpp:3");
}

}  // namespace
}  // namespace tilewright::passes
