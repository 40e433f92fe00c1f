// Every vjp against central differences in float64, generated from the op table.
#include "support/op_samples.h"

#include "ir/text.h"
#include "ops/composites.h"
#include "ops/ops.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/simplify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tilewright::test {
namespace {

using ir::Value;

// loss = sum(weights * result), so that every element's gradient differs.
ir::Graph loss_graph(const ir::Op& op, const OpSample& sample) {
  ir::Graph g = sample_graph(op, sample);
  const Value y{&g, g.outputs()[0]};
  const Value position = ops::iota(g, {y.shape().size()}, 0);
  const Value weights = ops::reshape(ops::sin(ops::cast(position, DType::f64) + 1.0), y.shape());
  g.set_outputs({ops::sum(y * weights).id});
  return g;
}

double loss_at(const ir::Graph& g, const std::vector<ir::HostTensor>& inputs) {
  return ops::evaluate(g, inputs)[0].f[0];
}

// The sum of what a loss adds up, without signs: its roundings are as large, however small the loss.
double size_of_terms(const ir::Graph& g, const std::vector<ir::HostTensor>& inputs) {
  ir::Graph terms = g;
  const Value loss{&terms, terms.outputs()[0]};
  const bool is_sum = terms.node(loss.id).op->name == "sum";
  const Value added = is_sum ? Value{&terms, terms.node(loss.id).operands[0]} : loss;
  terms.set_outputs({ops::sum(ops::abs(added)).id});
  return loss_at(terms, inputs);
}

// Central differences of a loss by one element of an input.
struct Differences {
  const ir::Graph& loss;
  const std::vector<ir::HostTensor>& inputs;
  double& x;  // the element
  double by(double h) const {
    const double kept = x;
    x = kept + h;
    const double above = loss_at(loss, inputs), end = x;
    x = kept - h;
    const double below = loss_at(loss, inputs), width = end - x;
    x = kept;
    return (above - below) / width;
  }
};

// A difference of second order is off by two things. Both losses are rounded, by an ulp of their terms for
// each of some operations in a row: kRoundings * eps * terms / 2h. And the rule itself is off by h^2 / 6 of
// the third derivative, which is a third of what the same rule with 2h differs by: twice that is let pass,
// for derivatives beyond. What the rule is off by is found where rounding does not explain a difference.
void expect_gradients(const ir::Graph& g, std::vector<ir::HostTensor> inputs, const std::string& what) {
  constexpr double kRoundings = 16, kStep = 1e-5, kEpsilon = std::numeric_limits<double>::epsilon();
  std::vector<int> wrt;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_float(inputs[i].type.dtype)) wrt.push_back(static_cast<int>(i));
  const ir::Graph joint = passes::differentiate(g, wrt);
  const auto values = ops::evaluate(joint, inputs);
  const auto simple = ops::evaluate(passes::simplify(joint), inputs);
  const double rounding = kRoundings * kEpsilon * size_of_terms(g, inputs) / (2 * kStep);
  for (std::size_t w = 0; w < wrt.size(); ++w) {
    const ir::HostTensor& grad = values[w + 1];
    EXPECT_EQ(difference(simple[w + 1], grad, {1e-12, 1e-12}), "") << what << " simplified";
    std::vector<double>& x = inputs[static_cast<std::size_t>(wrt[w])].f;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Differences difference{g, inputs, x[i]};
      const double wanted = difference.by(kStep);
      double tolerance = rounding;
      if (!(std::fabs(grad.f[i] - wanted) <= tolerance))
        tolerance += 2.0 / 3 * std::fabs(difference.by(2 * kStep) - wanted);
      EXPECT_NEAR(grad.f[i], wanted, tolerance) << what << ", operand " << wrt[w] << ", element " << i;
    }
  }
}

// Moves numbers 0.01 away from each other and from whole numbers, for differences that hold only away from
// steps and kinks.
void separate(std::vector<ir::HostTensor>& inputs) {
  int position = 0;
  for (ir::HostTensor& tensor : inputs)
    for (double& v : tensor.f) v = std::floor(v) + 0.05 + 0.9 * std::fmod(0.618034 * ++position, 1.0);
}

TEST(Gradients, OfEveryRowMatchDifferences) {
  int checked = 0;
  for (const ir::Op* op : ops::all_ops()) {
    if (op->vjp == ir::no_gradient) continue;
    Random random(11);
    for (const OpSample& sample : op_samples(*op, DType::f64)) {
      if (op->infer(sample.operands, sample.attrs).dtype != DType::f64) continue;
      auto operands = sample_operands(*op, sample, random);
      if (!op->domain.smooth) separate(operands);
      // Differences of these are those of the identity; their gradients are what they are for.
      if (op->name == "stop_gradient" || op->name == "with_gradient_of") continue;
      ++checked;
      expect_gradients(loss_graph(*op, sample), operands, ir::print(sample_graph(*op, sample)));
    }
  }
  EXPECT_GT(checked, 200);
}

// A loss of one f64 input of the shape given, with labels and a seed beside it.
using Loss = Value (*)(Value x, Value labels, Value seed);
struct NamedLoss {
  const char* name;
  Shape shape;
  Loss loss;
};

Value weighted(Value y) {
  const Value position = ops::reshape(ops::iota(*y.graph, {y.shape().size()}, 0), y.shape());
  return ops::sum(y * ops::cos(ops::cast(position, DType::f64)));
}

const NamedLoss kLosses[] = {
    {"mean", {3, 4}, [](Value x, Value, Value) { return weighted(ops::mean(x, {0})); }},
    {"var", {3, 4}, [](Value x, Value, Value) { return weighted(ops::var(x, {1}, {.ddof = 1})); }},
    {"logsumexp", {3, 4}, [](Value x, Value, Value) { return weighted(ops::logsumexp(x, {1})); }},
    {"softmax", {3, 4}, [](Value x, Value, Value) { return weighted(ops::softmax(x)); }},
    {"softmax of axis 0", {3, 4}, [](Value x, Value, Value) { return weighted(ops::softmax(x, 0)); }},
    {"log_softmax", {3, 4}, [](Value x, Value, Value) { return weighted(ops::log_softmax(x)); }},
    {"layer_norm",
     {3, 4},
     [](Value x, Value, Value) {
       const Value row = ops::select(x, 0, 0);  // as gamma and beta, so that their gradients are checked
       return weighted(ops::layer_norm(x, row, row));
     }},
    {"rms_norm",
     {3, 4},
     [](Value x, Value, Value) { return weighted(ops::rms_norm(x, ops::select(x, 0, 1))); }},
    {"gelu", {7}, [](Value x, Value, Value) { return weighted(ops::gelu(x)); }},
    {"gelu tanh", {7}, [](Value x, Value, Value) { return weighted(ops::gelu(x, ops::Gelu::tanh)); }},
    {"silu", {7}, [](Value x, Value, Value) { return weighted(ops::silu(x)); }},
    {"elu", {7}, [](Value x, Value, Value) { return weighted(ops::elu(x, 1.5)); }},
    {"terms of 1e-4 to 1e4", {7}, [](Value x, Value, Value) { return weighted(ops::exp(x * 4.6)); }},
    {"relu", {7}, [](Value x, Value, Value) { return weighted(ops::relu(x)); }},
    {"clamp", {7}, [](Value x, Value, Value) { return weighted(ops::clamp(x, -1.01, 1.02)); }},
    {"softplus", {7}, [](Value x, Value, Value) { return weighted(ops::softplus(x)); }},
    {"cross_entropy", {3, 4}, [](Value x, Value labels, Value) { return ops::cross_entropy(x, labels); }},
    {"cross_entropy ignoring",
     {3, 4},
     [](Value x, Value labels, Value) { return ops::cross_entropy(x, labels, {.ignore_index = 1}); }},
    {"embedding", {3, 4}, [](Value x, Value labels, Value) { return weighted(ops::embedding(x, labels)); }},
    {"dropout",
     {3, 4},
     [](Value x, Value, Value seed) { return weighted(ops::dropout(x, seed, {.p = 0.3})); }},
    {"stack, split, flip",
     {3, 4},
     [](Value x, Value, Value) {
       const auto parts = ops::split(x, 1, {1, 3});
       return weighted(
           ops::stack({ops::square(x), ops::flip(ops::concat({parts[1], parts[0]}, 1), {0, 1})}, 1));
     }},
    {"attention",
     {4, 3},
     [](Value x, Value, Value) {
       return weighted(ops::matmul(ops::softmax(ops::matmul(x, ops::swap_axes(x, 0, 1)) * 0.5), x));
     }},
    {"matmul with broadcast batch",
     {2, 3, 4},
     [](Value x, Value, Value) {
       return weighted(ops::matmul(x, ops::swap_axes(ops::select(x, 0, 1), 0, 1)));
     }},
};

TEST(Gradients, OfCompositesMatchDifferences) {
  for (const NamedLoss& each : kLosses) {
    ir::Graph g;
    const Value x{&g, g.add_input("x", {DType::f64, each.shape})};
    const Value labels{&g, g.add_input("labels", {DType::i64, {3}})};
    const Value seed{&g, g.add_input("seed", {DType::i64, {}})};
    g.set_outputs({each.loss(x, labels, seed).id});
    Random random(17);
    std::vector<ir::HostTensor> inputs = {random_host(x.type(), {.low = -2, .high = 2}, random),
                                          random_indices(labels.type(), 0, 2, random),
                                          random_indices(seed.type(), 0, 99, random)};
    expect_gradients(g, inputs, each.name);
  }
}

// Lines whose zeros take different roads, among them lines of -0 and of zeros alone.
TEST(Gradients, OfRunningProductsPassZeros) {
  for (const int axis : {0, 1}) {
    ir::Graph g;
    const Value x{&g, g.add_input("x", {DType::f64, {5, 5}})};
    g.set_outputs({weighted(ops::cumprod(x, axis)).id});
    std::vector<ir::HostTensor> inputs = {{x.type(),
                                           {0.5, 2,   0, 3, 0.7,   // one zero
                                            0,   1.5, 0, 2, 0.25,  // two
                                            3,   0,   0, 0, 2,     // three, side by side
                                            0.3, 2,   5, 1, -0.,   // the last
                                            0,   0,   0, 0, 0},
                                           {}}};
    expect_gradients(g, inputs, fmt::format("axis {}", axis));
  }
}

// The running extremes are 1 3 3 3 4 4: the last of equal elements has the gradient, as in PyTorch, whose
// cummax compares by >=.
TEST(Gradients, OfRunningExtremesGoToTheLastOfEqualElements) {
  const auto gradient = [](Value (*scan)(Value, Index), double sign) {
    ir::Graph g;
    const Value x{&g, g.add_input("x", {DType::f64, {6}})};
    g.set_outputs({ops::sum(scan(x, 0)).id});
    std::vector<ir::HostTensor> inputs = {{x.type(), {1, 3, 3, 2, 4, 4}, {}}};
    for (double& v : inputs[0].f) v *= sign;
    return ops::evaluate(passes::differentiate(g, {0}), inputs)[1].f;
  };
  const std::vector<double> expected = {1, 1, 2, 0, 1, 1};
  EXPECT_EQ(gradient(ops::cummax, 1), expected);
  EXPECT_EQ(gradient(ops::cummin, -1), expected);
}

TEST(Gradients, RowsWithoutOneAreOnlyThoseWithoutFloatResults) {
  std::vector<std::string_view> names;
  for (const ir::Op* op : ops::all_ops()) {
    if (op->vjp != ir::no_gradient || op->arity == 0) continue;
    for (const OpSample& sample : op_samples(*op, DType::f64))
      if (is_float(op->infer(sample.operands, sample.attrs).dtype)) {
        names.push_back(op->name);
        break;
      }
  }
  EXPECT_EQ(names, std::vector<std::string_view>{});
}

}  // namespace
}  // namespace tilewright::test
