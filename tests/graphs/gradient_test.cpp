// Every vjp against central differences in float64, generated from the op table.
#include "support/op_samples.h"

#include "ir/text.h"
#include "ops/functions.h"
#include "ops/ops.h"
#include "passes/differentiate.h"
#include "passes/simplify.h"

#include <gtest/gtest.h>

#include <cmath>

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

// Central differences of second order; h balances rounding (eps / h) with the rule's error (h * h).
void expect_gradients(const ir::Graph& g, std::vector<ir::HostTensor> inputs, const std::string& what) {
  std::vector<int> wrt;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_float(inputs[i].type.dtype)) wrt.push_back(static_cast<int>(i));
  const ir::Graph joint = passes::differentiate(g, wrt);
  const auto values = ops::evaluate(joint, inputs);
  const auto simple = ops::evaluate(passes::simplify(joint), inputs);
  const double h = 1e-5;
  for (std::size_t w = 0; w < wrt.size(); ++w) {
    const ir::HostTensor& grad = values[w + 1];
    EXPECT_EQ(difference(simple[w + 1], grad, {1e-12, 1e-12}), "") << what << " simplified";
    std::vector<double>& x = inputs[static_cast<std::size_t>(wrt[w])].f;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double kept = x[i];
      x[i] = kept + h;
      const double above = loss_at(g, inputs);
      x[i] = kept - h;
      const double below = loss_at(g, inputs);
      x[i] = kept;
      const double wanted = (above - below) / (2 * h);
      EXPECT_NEAR(grad.f[i], wanted, 1e-7 + 1e-7 * std::fabs(wanted))
          << what << ", operand " << wrt[w] << ", element " << i;
    }
  }
}

// Where differences hold only away from steps and kinks, numbers keep a distance of 0.01 from each other and
// from whole numbers.
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
      // Differences of stop_gradient are those of the identity; its gradient is zero by definition.
      if (op->name == "stop_gradient") continue;
      ++checked;
      expect_gradients(loss_graph(*op, sample), operands, ir::print(sample_graph(*op, sample)));
    }
  }
  EXPECT_GT(checked, 200);
}

TEST(Gradients, RowsWithoutOneAreOnlyThoseWithoutFloatResultsAndThreeScans) {
  std::vector<std::string_view> names;
  for (const ir::Op* op : ops::all_ops()) {
    if (op->vjp != ir::no_gradient || op->arity == 0) continue;
    for (const OpSample& sample : op_samples(*op, DType::f64))
      if (is_float(op->infer(sample.operands, sample.attrs).dtype)) {
        names.push_back(op->name);
        break;
      }
  }
  EXPECT_EQ(names, (std::vector<std::string_view>{"cumprod", "cummax", "cummin"}));
}

}  // namespace
}  // namespace tilewright::test
