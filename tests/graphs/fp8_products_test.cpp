// Precisions of 8 bits as a rewriting: which products of a GPT-2 step they take and with which types, what
// stays apart, and values and gradients beside float64 within what roundings of scaled operands may bring.
#include "ir/text.h"
#include "ops/composites.h"
#include "ops/ops.h"
#include "ops/rows.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/narrow_products.h"
#include "passes/graph/replace_nodes.h"
#include "support/draws.h"
#include "support/graph_check.h"
#include "support/host_values.h"
#include "support/run_graph.h"
#include "support/training_step.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tilewright::test {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpClass;
using ir::Value;
using passes::with_narrow_products;
using Tensors = std::vector<ir::HostTensor>;
using Types = std::pair<DType, DType>;  // of a product's operands

constexpr DType kE4 = DType::f8e4m3, kE5 = DType::f8e5m2, kBf16 = DType::bf16;

Value argument(Graph& g, const char* name, const Shape& shape, DType dtype = DType::f32) {
  return {&g, g.add_input(name, {dtype, shape})};
}

std::map<Types, int> product_types(const Graph& g) {
  std::map<Types, int> count;
  const std::vector<bool> live = g.live();
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g.node(id);
    if (live[static_cast<std::size_t>(id)] && n.op->kind == OpClass::matmul)
      ++count[{g.type(n.operands[0]).dtype, g.type(n.operands[1]).dtype}];
  }
  return count;
}

constexpr TrainingStep kSmallStep{
    .layers = 2, .batch = 2, .time = 6, .channels = 8, .heads = 2, .vocabulary = 11};

class Fp8Products : public testing::TestWithParam<Precision> {
 protected:
  bool by_tensor_ = GetParam() == Precision::fp8;
  DType gradients_ = by_tensor_ ? kE5 : kE4;
};

// Two matrices behind each other with a bias between, and the gradient by all three.
Graph two_layers(const Shape& x_shape = {8, 12}) {
  Graph g("two_layers");
  const Value w = argument(g, "w", {12, 24}), v = argument(g, "v", {24, 6}), b = argument(g, "b", {24}),
              x = argument(g, "x", x_shape);
  const Value y = ops::matmul(ops::relu(ops::matmul(x, w) + b), v);
  g.set_outputs({ops::mean(y * y).id});
  return passes::differentiate(g, {0, 1, 2});
}

TEST_P(Fp8Products, OfAGpt2StepAreThoseOfItsBlocks) {
  const Graph step = graph_of(kSmallStep), g = with_narrow_products(step, GetParam());
  const int layers = kSmallStep.layers;
  // Four weights a block, each multiplied once and twice in the gradient.
  std::map<Types, int> wanted;
  wanted[{kE4, kE4}] += 4 * layers;
  wanted[{gradients_, kE4}] += 4 * layers;  // dy · wᵀ
  wanted[{kE4, gradients_}] += 4 * layers;  // xᵀ · dy
  // Scores, weights times values, and the logits, whose table is the embedding's.
  wanted[{kBf16, kBf16}] += 3 * (2 * layers + 1);
  EXPECT_EQ(product_types(g), wanted);
  ASSERT_EQ(step.inputs().size(), g.inputs().size());
  for (std::size_t i = 0; i < step.outputs().size(); ++i)
    EXPECT_EQ(step.type(step.outputs()[i]), g.type(g.outputs()[i]));
}

// A batch of sequences is one matrix of all its rows, in the gradient of the weights, too.
TEST_P(Fp8Products, OfABatchAreOfOneMatrix) {
  for (const Shape& shape : {Shape{8, 12}, Shape{2, 4, 12}, Shape{2, 1, 4, 12}}) {
    SCOPED_TRACE(to_string(shape));
    const Graph g = with_narrow_products(two_layers(shape), GetParam());
    const std::vector<bool> live = g.live();
    int found = 0;
    for (NodeId id = 0; id < g.size(); ++id) {
      const Node& n = g.node(id);
      if (!live[static_cast<std::size_t>(id)] || n.op->kind != OpClass::matmul) continue;
      ++found;
      EXPECT_TRUE(is_f8(g.type(n.operands[0]).dtype));
      EXPECT_EQ(n.type.shape.rank(), 2);
      EXPECT_EQ(n.type.dtype, DType::f32);
    }
    EXPECT_EQ(found, 5);  // the first layer's input has no gradient
  }
}

TEST_P(Fp8Products, AreTheSameWhenRewrittenAgain) {
  for (const Graph& g : {two_layers(), two_layers({2, 4, 12}), graph_of(kSmallStep)}) {
    const Graph once = with_narrow_products(g, GetParam());
    EXPECT_EQ(with_narrow_products(once, GetParam()), once);
    EXPECT_FALSE(once == g);
  }
}

// One set of scales for what is multiplied twice.
TEST_P(Fp8Products, ShareScaledOperands) {
  const Graph g = with_narrow_products(two_layers(), GetParam());
  int casts = 0;
  const std::vector<bool> live = g.live();
  for (NodeId id = 0; id < g.size(); ++id)
    casts +=
        live[static_cast<std::size_t>(id)] && g.node(id).op->kind == OpClass::cast && is_f8(g.type(id).dtype);
  // x, w, the activation, v and both gradients; by blocks rows of x, of the activation and of dy go along two
  // depths, and so have two sets.
  EXPECT_EQ(casts, by_tensor_ ? 6 : 9);
}

TEST_P(Fp8Products, LeaveWhatIsNoWeightIn16Bits) {
  const auto expect_16_bits = [&](const Graph& g) {
    for (const auto& [types, count] : product_types(with_narrow_products(g, GetParam())))
      EXPECT_EQ(types, (Types{kBf16, kBf16})) << g.name();
  };
  Graph computed("computed");
  const Value x = argument(computed, "x", {4, 8});
  computed.set_outputs({ops::matmul(ops::exp(x), ops::swap_axes(ops::tanh(x), 0, 1)).id});
  expect_16_bits(computed);
  Graph named("named");  // as logits of a loss
  named.set_outputs({ops::matmul(argument(named, "x", {4, 8}), argument(named, "w", {8, 9}), DType::f32).id});
  expect_16_bits(named);
  Graph tied("tied");
  const Value table = argument(tied, "table", {9, 8});
  const Value rows = ops::embedding(table, argument(tied, "tokens", {4}, DType::i64));
  tied.set_outputs({ops::matmul(ops::exp(rows), ops::swap_axes(table, 0, 1)).id});
  expect_16_bits(tied);
  Graph groups("groups");  // matrices that blocks of rows pick
  const Value picked =
      ops::take(argument(groups, "w", {3, 8, 5}), argument(groups, "group", {2}, DType::i64), 0);
  groups.set_outputs({ops::matmul(argument(groups, "x", {2, 4, 8}), picked).id});
  expect_16_bits(groups);
}

TEST_P(Fp8Products, LeaveOtherTypesAlone) {
  for (const DType dtype : {DType::f64, DType::bf16, DType::f16}) {
    Graph g("typed");
    g.set_outputs({ops::matmul(argument(g, "x", {4, 8}, dtype), argument(g, "w", {8, 9}, dtype)).id});
    EXPECT_EQ(with_narrow_products(g, GetParam()), g);
  }
}

// --- values

Tensors inputs_between(const Graph& g, double low, double high) {
  Random random(11);
  Tensors in;
  for (const NodeId id : g.inputs()) {
    const Node& n = g.node(id);
    if (is_integer(n.type.dtype))
      in.push_back(random_indices(n.type, 0, kSmallStep.vocabulary - 1, random));
    else if (n.name.starts_with("v_") || n.name.starts_with("correction"))
      in.push_back(random_host(n.type, {.low = 0.5, .high = 1}, random));
    else
      in.push_back(random_host(n.type, {.low = low, .high = high}, random));
  }
  return in;
}

Tensors rounded_values(const Graph& g, const Tensors& in) {
  return ops::evaluate(g, in, [](const Node& n, ir::HostTensor& value) {
    for (double& v : value.f) v = round_to(n.type.dtype, v);
  });
}

// The graph with a scale of one product taken twice as large as it is.
Graph with_a_wrong_scale(const Graph& g, int number) {
  return passes::replace_nodes(
      g, [&, at = 0](const Node& n, const std::vector<Value>& x) mutable -> std::optional<Value> {
        if (n.op->kind != OpClass::matmul || at++ != number) return std::nullopt;
        Graph& into = *x[0].graph;
        return Value{&into, into.add(*n.op, {x[0].id, x[1].id}, n.attrs)} * 2.0;
      });
}

// The largest relative distance of any output.
double largest_distance(const Tensors& got, const Tensors& want) {
  double most = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    for (std::size_t j = 0; j < want[i].f.size(); ++j)
      most = std::max(most, std::abs(got[i].f[j] - want[i].f[j]) / std::abs(want[i].f[j]));
  return most;
}

// Positive numbers do not cancel: a sum of products is off by no more than its terms are, relatively,
// and these by what their factors are. Numbers within an eighth of the largest are no subnormal codes of e4m3
// (2⁻⁶ of 448), so that each is rounded by at most u of itself.
//   y = x · w1 · w2 · 1: the second product's left factor is the first one's result.
TEST_P(Fp8Products, AndTheirGradientsAreOffByTheirRoundings) {
  constexpr Index kRows = 9, kIn = 131, kBetween = 70, kOut = 33;  // no multiples of any block
  Graph loss("positive");
  const Value w1 = argument(loss, "w1", {kIn, kBetween}), w2 = argument(loss, "w2", {kBetween, kOut}),
              x = argument(loss, "x", {kRows, kIn}), by = argument(loss, "by", {kRows, kOut});
  loss.set_outputs({ops::sum(ops::matmul(ops::matmul(x, w1), w2) * by).id});
  const Graph joint = passes::differentiate(loss, {0, 1, 2}), g = with_narrow_products(joint, GetParam());
  const Tensors in = inputs_between(joint, 0.25, 1), want = ops::evaluate(joint, in);
  const double u = unit_roundoff(kE4), du = unit_roundoff(gradients_), half = unit_roundoff(kBf16),
               f32 = 1000 *
                     unit_roundoff(DType::f32);  // sums of at most 131 terms, scales and their reciprocals
  // A result is rounded to bf16, and what is computed is so before it is rounded to 8 bits.
  const double first = (1 + u) * (1 + u) * (1 + half), slope = (1 + half) * (1 + du);
  const double bounds[] = {
      first * (1 + u) * (1 + u) * (1 + half) * (1 + half),  // the loss
      (1 + u) * slope * (1 + u) * (1 + half) * slope,       // xᵀ · (by · w2ᵀ)
      first * (1 + u) * (1 + half) * slope,                 // (x · w1)ᵀ · by
      slope * (1 + u) * (1 + half) * slope * (1 + u),       // by · w2ᵀ · w1ᵀ
  };
  const Tensors got = rounded_values(g, in);
  ASSERT_EQ(got.size(), std::size(bounds));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double distance = largest_distance({got[i]}, {want[i]});
    EXPECT_LE(distance, bounds[i] * (1 + f32) - 1) << i;
    EXPECT_GT(distance, 1e-5) << i;
  }
  // Any of its six products scaled wrong is seen in some output.
  for (int product = 0; product < 6; ++product) {
    const Tensors wrong = rounded_values(with_a_wrong_scale(g, product), in);
    bool seen = false;
    for (std::size_t i = 0; i < wrong.size(); ++i)
      seen = seen || largest_distance({wrong[i]}, {want[i]}) > bounds[i] * (1 + f32) - 1;
    EXPECT_TRUE(seen) << product;
  }
}

// Scales of blocks are of blocks: a number that is large makes its own block's others coarse, and no other.
TEST(Fp8Blocks, ALargeNumberIsFeltInItsOwnBlockAlone) {
  constexpr Index kDepth = 256;
  Graph g("outlier");
  const Value x = argument(g, "x", {2, kDepth}), w = argument(g, "w", {kDepth, 3});
  g.set_outputs({ops::matmul(x, w).id});
  Tensors in = inputs_between(g, 0.25, 1);
  for (Index k = 0; k < kDepth; ++k)  // the second block is multiplied by 0 but for one place
    for (Index n = 0; n < 3; ++n)
      if (k >= kDepth / 2) in[1].f[static_cast<std::size_t>(k * 3 + n)] = 0;
  in[0].f[kDepth - 1] = 1e6;
  const Tensors want = ops::evaluate(g, in);
  EXPECT_LT(largest_distance(rounded_values(with_narrow_products(g, Precision::fp8_block), in), want), 0.14);
  EXPECT_GT(largest_distance(rounded_values(with_narrow_products(g, Precision::fp8), in), want), 0.9)
      << "by tensor all others of x are 0 beside it";
}

TEST_P(Fp8Products, OfZerosAreZeroAndOfVeryLargeAndSmallNumbersFinite) {
  Graph g("extremes");
  const Value x = argument(g, "x", {4, 8}), w = argument(g, "w", {8, 5});
  g.set_outputs({ops::matmul(x, w).id});
  const Graph narrow = with_narrow_products(g, GetParam());
  for (const auto& [a, b] :
       {std::pair{0.0, 1.0}, {1.0, 0.0}, {0.0, 0.0}, {1e30, 1e3}, {1e-25, 1e-3}, {1e30, 1e-30}}) {
    Tensors in = inputs_between(g, 0.25, 1);
    for (double& v : in[0].f) v *= a;
    for (double& v : in[1].f) v *= b;
    const Tensors want = ops::evaluate(g, in), got = rounded_values(narrow, in);
    for (std::size_t i = 0; i < want[0].f.size(); ++i)
      EXPECT_NEAR(got[0].f[i], want[0].f[i], 0.14 * want[0].f[i]) << a << " " << b;
  }
}

// The pipeline's own road, on what a device computes, beside the float64 oracle of the rewritten graph.
TEST_P(Fp8Products, ComputeWhatFloat64SaysOfTheRewrittenGraph) {
  for (const char* device : {"reference", "cpu"}) {
    GraphRunner runner(device);
    for (const Graph& g : {two_layers(), two_layers({2, 4, 12}), graph_of(kSmallStep)}) {
      SCOPED_TRACE(fmt::format("{} on {}", g.name(), device));
      const Tensors in = inputs_between(g, -0.7, 0.7);
      const passes::Compiled compiled =
          passes::run_pipeline(g, runner.device->target(), {.precision = GetParam()});
      const Graph oracle = oracle_of(with_narrow_products(g, GetParam()), compiled);
      EXPECT_EQ(difference_from(oracle, in, runner.run(compiled, in), {.runs = 500}), "");
    }
  }
}

TEST_P(Fp8Products, OfRandomGraphsComputeWhatFloat64Says) {
  GraphCheck check({.device = "cpu"});
  std::uint64_t rewritten = 0, all = draws(120);
  for (std::uint64_t seed = 0; seed < all; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraphOptions options =
        graph_of_seed(seed, seed % 3 == 0 ? GraphFamily::mixed : GraphFamily::products);
    options.matmuls = true;
    const Graph g = random_graph(options), out = with_narrow_products(g, GetParam());
    EXPECT_EQ(with_narrow_products(out, GetParam()), out);
    bool has_8_bits = false;
    for (const auto& [types, count] : product_types(out)) has_8_bits = has_8_bits || is_f8(types.first);
    if (out == g || !has_8_bits) continue;
    ++rewritten;
    ASSERT_EQ(check.problem_with(out, seed), "") << ir::print(g);
  }
  EXPECT_GT(20 * rewritten, all) << "too few have products of weights";
}

INSTANTIATE_TEST_SUITE_P(Scales, Fp8Products, testing::Values(Precision::fp8, Precision::fp8_block),
                         [](const auto& info) {
                           return info.param == Precision::fp8 ? std::string("tensor") : std::string("block");
                         });

}  // namespace
}  // namespace tilewright::test
