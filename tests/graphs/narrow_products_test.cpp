// Precision as a rewriting: which operations of an MLP, of attention and of a GPT-2 step, with their
// gradients, run in which type; and the rewritten graphs beside float64 and beside the program as it was
// written.
#include "passes/graph/narrow_products.h"

#include "ir/text.h"
#include "ops/attention.h"
#include "ops/composites.h"
#include "ops/ops.h"
#include "ops/rows.h"
#include "passes/graph/differentiate.h"
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

Value given(Graph& g, const char* name, const Shape& shape, DType dtype = DType::f32) {
  return {&g, g.add_input(name, {dtype, shape})};
}

// Losses, whose first inputs are what they are differentiated with.
Graph mlp_loss(DType dtype = DType::f32) {
  Graph g("mlp");
  const Value w = given(g, "w", {12, 24}, dtype), v = given(g, "v", {24, 6}, dtype),
              b = given(g, "b", {24}, dtype), x = given(g, "x", {8, 12}, dtype);
  const Value y = ops::matmul(ops::gelu(ops::matmul(x, w) + b, ops::Gelu::tanh), v);
  g.set_outputs({ops::mean(ops::cast(y * y, dtype == DType::f64 ? dtype : DType::f32)).id});
  return g;
}
Graph attention_loss(DType dtype = DType::f32) {
  Graph g("attention");
  const Value wq = given(g, "wq", {8, 24}, dtype), wo = given(g, "wo", {8, 8}, dtype),
              x = given(g, "x", {2, 6, 8}, dtype);
  const Value qkv = ops::matmul(x, ops::broadcast_to(wq, {2, 8, 24}));
  const auto heads = [&](Index part) {
    const Value one = ops::slice_axis(qkv, 2, {.start = 8 * part, .stop = 8 * (part + 1)});
    return ops::transpose(ops::reshape(one, {2, 6, 2, 4}), {0, 2, 1, 3});
  };
  const Value past = ops::ge(ops::iota(g, {6, 6}, 0), ops::iota(g, {6, 6}, 1));
  const Value mixed =
      ops::attend(ops::attention_scores(heads(0), heads(1), 0.5), heads(2), {.mask = past, .result = dtype})
          .out;
  const Value y = ops::matmul(ops::reshape(ops::swap_axes(mixed, 1, 2), {12, 8}), wo);
  g.set_outputs({ops::mean(ops::cast(y * y, DType::f32)).id});
  return g;
}
Graph with_gradient(const Graph& loss) { return passes::differentiate(loss, {0, 1}); }
constexpr TrainingStep kTinyStep{
    .layers = 2, .batch = 2, .time = 6, .channels = 8, .heads = 2, .vocabulary = 11};

bool is_view(const Node& n) {
  return n.op->kind == OpClass::reshape || n.op->kind == OpClass::transpose ||
         n.op->kind == OpClass::expand || n.op->kind == OpClass::slice;
}

// Everything but products is f32: what is narrow is a rounded operand, a product's result or a view of one,
// and nothing but products, views and casts reads it.
void expect_only_products_narrow(const Graph& g, DType type, int products) {
  const std::vector<bool> live = g.live();
  int found = 0;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g.node(id);
    if (!live[static_cast<std::size_t>(id)]) continue;
    const bool is_product = n.op->kind == OpClass::matmul, is_cast = n.op->kind == OpClass::cast;
    for (const NodeId o : n.operands) {
      if (is_product) {
        EXPECT_EQ(g.type(o).dtype, type) << id;
      }
      if (g.type(o).dtype == type) {
        EXPECT_TRUE(is_product || is_cast || is_view(n)) << n.op->name;
      }
    }
    if (n.type.dtype == type) {
      EXPECT_TRUE(is_product || is_cast || is_view(n)) << n.op->name;
    } else if (is_float(n.type.dtype)) {
      EXPECT_EQ(n.type.dtype, DType::f32) << n.op->name;
    }
    found += is_product ? 1 : 0;
  }
  EXPECT_EQ(found, products);
}

void expect_same_signature(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.inputs().size(), b.inputs().size());
  ASSERT_EQ(a.outputs().size(), b.outputs().size());
  for (std::size_t i = 0; i < a.inputs().size(); ++i) {
    EXPECT_EQ(a.type(a.inputs()[i]), b.type(b.inputs()[i]));
    EXPECT_EQ(a.node(a.inputs()[i]).name, b.node(b.inputs()[i]).name);
  }
  for (std::size_t i = 0; i < a.outputs().size(); ++i)
    EXPECT_EQ(a.type(a.outputs()[i]), b.type(b.outputs()[i]));
}

// The number of products with results of each type.
std::map<DType, int> result_types(const Graph& g) {
  std::map<DType, int> count;
  const std::vector<bool> live = g.live();
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[static_cast<std::size_t>(id)] && g.node(id).op->kind == OpClass::matmul)
      ++count[g.type(id).dtype];
  return count;
}

class NarrowProducts : public testing::TestWithParam<Precision> {
 protected:
  DType type_ = GetParam() == Precision::bf16 ? DType::bf16 : DType::f16;
};

TEST_P(NarrowProducts, OfAnMlpAndItsGradientReadTheTypeAndTheRestIsF32) {
  const Graph joint = with_gradient(mlp_loss()), g = with_narrow_products(joint, GetParam());
  expect_same_signature(joint, g);
  expect_only_products_narrow(g, type_, 5);  // two forward, dw, dv, and the gradient of what is between
  // Rounded are those that another product is made of: both forward ones, the first behind its bias, and the
  // gradient between; dw and dv are not.
  EXPECT_EQ(result_types(g), (std::map<DType, int>{{type_, 2}, {DType::f32, 3}}));
  int biased = 0;
  for (const Node& n : g.nodes())
    biased += n.op->kind == OpClass::cast && n.type.dtype == type_ &&
                      g.node(n.operands[0]).op == &ops::kAdd && n.type.shape == Shape({8, 24})
                  ? 1
                  : 0;
  EXPECT_EQ(biased, 2) << "behind the bias, and the activation";
}

TEST_P(NarrowProducts, OfAttentionKeepScoresInF32) {
  const Graph joint = with_gradient(attention_loss()), g = with_narrow_products(joint, GetParam());
  expect_same_signature(joint, g);
  expect_only_products_narrow(g, type_, 11);
  // What names its type keeps it: scores, and the sum that weights are divided behind.
  int named = 0;
  for (const Node& n : joint.nodes()) named += n.op->kind == OpClass::matmul && n.attrs.has("dtype") ? 1 : 0;
  EXPECT_EQ(named, 2);
  const std::map<DType, int> results = result_types(g);
  EXPECT_EQ(results.at(DType::f32), named + 2) << "and dwq, dwo";
}

TEST_P(NarrowProducts, OfAGpt2StepLeaveMastersMomentsAndUpdatesInF32) {
  const Graph step = graph_of(kTinyStep), g = with_narrow_products(step, GetParam());
  expect_same_signature(step, g);
  // Forward six a block (qkv, scores, weights times values, output, two of the MLP) and the logits; two each
  // in the gradient.
  expect_only_products_narrow(g, type_, 3 * (6 * kTinyStep.layers + 1));
  // Gradients of weights, four a block and that of the table, the gradient that the first block leaves to the
  // tables' rows; and the four a block that are rounded behind their bias.
  EXPECT_EQ(result_types(g).at(DType::f32), 4 * kTinyStep.layers + 1 + 1 + 4 * kTinyStep.layers);
}

TEST_P(NarrowProducts, AreTheSameWhenRewrittenAgain) {
  for (const Graph& g : {with_gradient(mlp_loss()), with_gradient(attention_loss()), graph_of(kTinyStep)}) {
    const Graph once = with_narrow_products(g, GetParam());
    EXPECT_EQ(with_narrow_products(once, GetParam()), once);
    EXPECT_FALSE(once == g);
  }
}

TEST_P(NarrowProducts, LeaveOtherProgramsAsTheyAre) {
  const auto expect_untouched = [&](const Graph& g) { EXPECT_EQ(with_narrow_products(g, GetParam()), g); };
  expect_untouched(with_gradient(mlp_loss(DType::f64)));
  expect_untouched(with_gradient(mlp_loss(DType::bf16)));
  expect_untouched(with_gradient(mlp_loss(DType::f16)));
  expect_untouched(with_gradient(attention_loss(DType::bf16)));
  TrainingStep by_hand = kTinyStep;
  by_hand.compute = DType::bf16;
  expect_untouched(graph_of(by_hand));
  for (const DType dtype : {DType::i8, DType::i32, DType::i64}) {
    Graph g("whole");
    g.set_outputs({ops::matmul(given(g, "a", {3, 4}, dtype), given(g, "b", {4, 5}, dtype)).id});
    expect_untouched(g);
  }
  Graph outer("outer");
  outer.set_outputs({ops::matmul(given(outer, "a", {3, 1}), given(outer, "b", {1, 5})).id});
  expect_untouched(outer);
  Graph wide("wide");
  wide.set_outputs({ops::matmul(given(wide, "a", {3, 4}), given(wide, "b", {4, 5}), DType::f64).id});
  expect_untouched(wide);
}

TEST(NarrowProductsOf, F32AndTf32ChangeNoGraph) {
  const Graph g = graph_of(kTinyStep);
  EXPECT_EQ(with_narrow_products(g, Precision::f32), g);
  EXPECT_EQ(with_narrow_products(g, Precision::tf32), g);
}

// A product of the gradient reads what the forward one has rounded: one cast a value.
TEST_P(NarrowProducts, ShareWhatIsRounded) {
  const Graph g = with_narrow_products(with_gradient(mlp_loss()), GetParam());
  std::map<NodeId, int> casts;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g.node(id).op->kind == OpClass::cast && g.type(id).dtype == type_) ++casts[g.node(id).operands[0]];
  EXPECT_EQ(casts.size(), 7U);  // x, w, v, the activation, two gradients; and what has a bias
  for (const auto& [value, count] : casts) EXPECT_EQ(count, 1) << value;
}

// The gradient of a bias sums what the products of that gradient read, which is stored once; sums along rows,
// as those of a softmax, read what they always read.
TEST_P(NarrowProducts, SumsOverRowsReadWhatProductsRead) {
  const Graph with_bias = passes::differentiate(mlp_loss(), {0, 2});
  for (const Graph& g : {with_bias, with_gradient(attention_loss())}) {
    const Graph out = with_narrow_products(g, GetParam());
    int over_rows = 0;
    for (const Node& n : out.nodes()) {
      if (n.op != &ops::kSum || n.type.shape.rank() == 0) continue;
      const Node& read = out.node(n.operands[0]);
      const bool is_wide = read.op->kind == OpClass::cast && out.type(read.operands[0]).dtype == type_;
      const bool is_over_rows = n.attrs.integers("axes").back() + 1 < read.type.shape.rank();
      if (is_over_rows) ++over_rows;
      EXPECT_EQ(n.type.dtype, DType::f32);
      EXPECT_TRUE(is_over_rows || !is_wide);
      if (g.name() == with_bias.name()) {
        EXPECT_TRUE(is_wide);
      }
    }
    EXPECT_EQ(over_rows, 1);
  }
}

// A value that was of the type is multiplied as it is; of a table that a caller has, no more than is read is
// rounded.
TEST_P(NarrowProducts, RoundNothingThatNeedsNone) {
  Graph g("exact");
  const Value a = given(g, "a", {4, 8}, type_), b = given(g, "b", {1000, 6}),
              rows = ops::slice_axis(b, 0, {.start = 0, .stop = 8});
  g.set_outputs({ops::matmul(ops::cast(a, DType::f32), rows).id});
  const Graph out = with_narrow_products(g, GetParam());
  const Node& product = out.node(out.outputs()[0]);
  EXPECT_EQ(product.operands[0], out.inputs()[0]);
  EXPECT_EQ(out.node(product.operands[1]).op->kind, OpClass::cast);
  EXPECT_EQ(out.type(product.operands[1]).shape, Shape({8, 6}));
}

using Tensors = std::vector<ir::HostTensor>;

Tensors inputs_of(const Graph& g) {
  Random random(11);
  Tensors in;
  for (const NodeId id : g.inputs()) {
    const Node& n = g.node(id);
    if (is_integer(n.type.dtype))
      in.push_back(random_indices(n.type, 0, kTinyStep.vocabulary - 1, random));
    else if (n.name.starts_with("v_"))  // second moments
      in.push_back(random_host(n.type, {.low = 0.1, .high = 1}, random));
    else if (n.name.starts_with("correction"))
      in.push_back(random_host(n.type, {.low = 1, .high = 2}, random));
    else
      in.push_back(random_host(n.type, {.low = -0.7, .high = 0.7}, random));
  }
  return in;
}

// The pipeline's own road, on what a device computes, beside the float64 oracle of the rewritten graph.
TEST_P(NarrowProducts, ComputeWhatFloat64SaysOfTheRewrittenGraph) {
  for (const char* device : {"reference", "cpu"}) {
    GraphRunner runner(device);
    for (const Graph& g : {with_gradient(mlp_loss()), with_gradient(attention_loss()), graph_of(kTinyStep)}) {
      SCOPED_TRACE(fmt::format("{} on {}", g.name(), device));
      const Tensors in = inputs_of(g);
      const passes::Compiled compiled =
          passes::run_pipeline(g, runner.device->target(), {.precision = GetParam()});
      const Graph oracle = oracle_of(with_narrow_products(g, GetParam()), compiled);
      EXPECT_EQ(difference_from(oracle, in, runner.run(compiled, in), {}), "");
    }
  }
}

// Products of any shapes and types, with their first and second derivatives.
TEST_P(NarrowProducts, OfRandomGraphsComputeWhatFloat64Says) {
  GraphCheck check({.device = "cpu"});
  std::uint64_t rewritten = 0, all = draws(120);
  for (std::uint64_t seed = 0; seed < all; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraphOptions options =
        graph_of_seed(seed, seed % 3 == 0 ? GraphFamily::mixed : GraphFamily::products);
    options.matmuls = true;
    const Graph g = random_graph(options), out = with_narrow_products(g, GetParam());
    expect_same_signature(g, out);
    EXPECT_EQ(with_narrow_products(out, GetParam()), out);
    if (out == g) continue;
    ++rewritten;
    ASSERT_EQ(check.problem_with(out, seed), "") << ir::print(g);
  }
  EXPECT_GT(8 * rewritten, all) << "too few have products of f32";
}

// The value in float64, with every value rounded to its type.
double rounded_value(const Graph& g, const Tensors& in) {
  return ops::evaluate(g, in,
                       [](const Node& n, ir::HostTensor& value) {
                         for (double& v : value.f) v = round_to(n.type.dtype, v);
                       })[0]
      .f[0];
}

bool sums_rows(const Node& n, const Value& x) {
  return n.op == &ops::kSum && n.attrs.integers("axes").back() + 1 < x.shape().rank();
}

// The graph with zeros added to whatever may be rounded: to each factor and to each result of its products,
// to what is summed over rows, and to what has had a bias added. They stand for what a rounding changes
// there.
struct Roundable {
  Graph graph{"roundable"};
  std::vector<NodeId> places;  // what is rounded, in the new graph
  std::vector<int> changes;    // the inputs that stand for the changes
};
Roundable roundable(const Graph& g) {
  Roundable out;
  std::vector<std::string> names;
  out.graph =
      passes::replace_nodes(g, [&](const Node& n, const std::vector<Value>& x) -> std::optional<Value> {
        if (x.empty()) return std::nullopt;
        Graph& into = *x[0].graph;
        const auto changed = [&](const Value& v) {
          names.push_back(fmt::format("change{}", names.size()));
          out.places.push_back(v.id);
          return v + Value{&into, into.add_input(names.back(), v.type())};
        };
        if (sums_rows(n, x[0])) return Value{&into, into.add(*n.op, {changed(x[0]).id}, n.attrs)};
        if (n.op == &ops::kAdd && n.type.dtype == DType::f32) return changed(x[0] + x[1]);
        if (n.op->kind != OpClass::matmul) return std::nullopt;
        const Value a = changed(x[0]), b = changed(x[1]);
        return changed({&into, into.add(*n.op, {a.id, b.id}, n.attrs)});
      });
  const std::vector<NodeId>& inputs = out.graph.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (out.graph.node(inputs[i]).name.starts_with("change")) out.changes.push_back(static_cast<int>(i));
  return out;
}

// A bound on what roundings to `type` of all factors and results of products change in a graph's value, to
// first order: the sum of each one's own size times the derivative by it.
double first_order_bound(const Graph& g, const Tensors& in, DType type) {
  const Roundable r = roundable(g);
  Graph joint = passes::differentiate(r.graph, r.changes);
  std::vector<NodeId> wanted(joint.outputs().end() - static_cast<std::ptrdiff_t>(r.changes.size()),
                             joint.outputs().end());
  wanted.insert(wanted.end(), r.places.begin(), r.places.end());
  joint.set_outputs(wanted);
  Tensors all;
  std::size_t next = 0;
  for (const NodeId id : joint.inputs()) {
    if (joint.node(id).name.starts_with("change")) {
      ir::HostTensor zeros{.type = joint.type(id), .f = {}, .i = {}};
      zeros.f.resize(static_cast<std::size_t>(zeros.type.shape.size()));
      all.push_back(std::move(zeros));
    } else {
      all.push_back(in[next++]);
    }
  }
  const Tensors got = ops::evaluate(joint, all);
  const std::size_t count = r.places.size();
  double bound = 0;
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t i = 0; i < got[k].f.size(); ++i)
      bound += std::abs(got[k].f[i]) *
               std::max(unit_roundoff(type) * std::abs(got[count + k].f[i]), min_subnormal(type) / 2);
  return bound;
}

// Some direction's component of all gradients, as one number; then that of their absolute values, which is
// what the first one would be if nothing cancelled.
Graph along_a_direction(const Graph& joint, std::size_t gradients) {
  Graph g = joint;
  const std::vector<NodeId> outputs = g.outputs();
  std::optional<Value> sum, size;
  for (std::size_t i = 1; i <= gradients; ++i) {
    const Value slope{&g, outputs[i]};
    const Value direction{&g, g.add_input(fmt::format("direction{}", i), slope.type())};
    const Value part = ops::sum(slope * direction), own = ops::sum(ops::abs(slope * direction));
    sum = sum ? *sum + part : part;
    size = size ? *size + own : own;
  }
  g.set_outputs({sum->id, size->id});
  return g;
}

// Losses, and gradients in a direction: as near to the f32 program as the roundings of factors and results
// allow; twice that, for terms of second order.
TEST_P(NarrowProducts, StayWithinTheirRoundingsOfTheF32Program) {
  TrainingStep step = kTinyStep;
  step.layers = 1;
  Graph gpt2 = graph_of(step), moments = gpt2;
  gpt2.set_outputs({gpt2.outputs()[0]});
  // The loss, and each parameter's first moment: its gradient, a tenth of it, is added there.
  std::vector<NodeId> first{moments.outputs()[0]};
  for (std::size_t i = 2; i < moments.outputs().size(); i += 3) first.push_back(moments.outputs()[i]);
  moments.set_outputs(first);
  for (const Graph& g : {mlp_loss(), attention_loss(), gpt2, along_a_direction(with_gradient(mlp_loss()), 2),
                         along_a_direction(with_gradient(attention_loss()), 2),
                         along_a_direction(moments, first.size() - 1)}) {
    SCOPED_TRACE(fmt::format("{}, {} inputs", g.name(), g.inputs().size()));
    const Tensors in = inputs_of(g);
    const Tensors values = ops::evaluate(g, in);
    const double exact = values[0].f[0], size = values.back().f[0], bound = first_order_bound(g, in, type_),
                 difference = std::abs(rounded_value(with_narrow_products(g, GetParam()), in) - exact);
    EXPECT_LE(difference, 2 * bound);
    EXPECT_GT(difference, 0);
    EXPECT_LT(bound, 40 * unit_roundoff(type_) * size) << "it would accept anything";
  }
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowProducts, testing::Values(Precision::bf16, Precision::f16),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(Precisions, HaveNames) {
  for (const Precision p : kAllPrecisions) EXPECT_EQ(parse_precision(name(p)), p);
  EXPECT_EQ(parse_precision("f64"), std::nullopt);
  EXPECT_EQ(name(static_cast<Precision>(77)), "?");
}

}  // namespace
}  // namespace tilewright::test
