// The distance by which rounding can move a graph's outputs, found by rounding at random.
#include "ops/ops.h"
#include "ops/rows.h"
#include "support/interval_reference.h"
#include "support/random_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilewright::test {

namespace {

void widen(ir::HostTensor& spread, const ir::HostTensor& noisy, const ir::HostTensor& exact) {
  for (std::size_t i = 0; i < exact.f.size(); ++i) {
    const bool equal = noisy.f[i] == exact.f[i] || (std::isnan(noisy.f[i]) && std::isnan(exact.f[i]));
    const double distance = equal ? 0 : std::fabs(noisy.f[i] - exact.f[i]);
    spread.f[i] = std::isnan(distance) ? INFINITY : std::max(spread.f[i], distance);
  }
  for (std::size_t i = 0; i < exact.i.size(); ++i)
    if (noisy.i[i] != exact.i[i]) spread.i[i] = 1;
}

// The number of terms that each element of a sum or product of matrices adds.
Index terms_of(const ir::Graph& graph, const ir::Node& node) {
  const auto operand = [&] { return graph.node(node.operands[0]).type.shape; };
  if (node.op->kind == ir::OpClass::matmul) return operand()[operand().rank() - 1];
  if (node.op != &ops::kSum || node.type.shape.size() == 0) return 1;
  return operand().size() / node.type.shape.size();
}

// The error of a sum of n terms, each addition of which rounds what was added so far: a random walk of n
// steps, each at most a unit roundoff of a partial sum, and partial sums are about as large as the sums of a
// whole tensor. A value that cancels is off by as much as the others.
double accumulated_error(const ir::Graph& graph, const ir::Node& node, const ir::HostTensor& value) {
  const Index terms = terms_of(graph, node);
  if (terms <= 1 || value.f.empty()) return 0;
  double squares = 0;
  for (const double v : value.f) squares += std::isfinite(v) ? v * v : 0;
  return unit_roundoff(compute_dtype(node.type.dtype)) *
         std::sqrt(static_cast<double>(terms) * squares / static_cast<double>(value.f.size()));
}

}  // namespace

Reference reference_with_spread(const ir::Graph& graph, std::span<const ir::HostTensor> inputs,
                                SpreadOptions options) {
  Reference reference{ops::evaluate(graph, inputs), {}};
  for (const ir::HostTensor& value : reference.values) {
    ir::HostTensor zero = value;
    std::fill(zero.f.begin(), zero.f.end(), 0.0);
    std::fill(zero.i.begin(), zero.i.end(), 0);
    reference.spread.push_back(std::move(zero));
  }
  // Rounding as f32 does finds what no noise hits: differences that become exactly 0.
  const auto rounded = ops::evaluate(graph, inputs, [&](const ir::Node& node, ir::HostTensor& value) {
    if (node.type.dtype == DType::f64) return;
    for (double& v : value.f) v = static_cast<float>(v);
  });
  for (std::size_t i = 0; i < rounded.size(); ++i)
    widen(reference.spread[i], rounded[i], reference.values[i]);
  Random random(options.seed);
  for (int run = 0; run < options.runs; ++run) {
    const auto noisy = ops::evaluate(graph, inputs, [&](const ir::Node& node, ir::HostTensor& value) {
      const double noise = noise_of(node.type.dtype), walk = accumulated_error(graph, node, value);
      for (double& v : value.f) {
        v *= 1 + noise * random.real(-1, 1);
        if (walk > 0) v += walk * random.real(-1, 1);
      }
    });
    for (std::size_t i = 0; i < noisy.size(); ++i) widen(reference.spread[i], noisy[i], reference.values[i]);
  }
  return reference;
}

namespace {

std::string difference(const ir::HostTensor& got, const ir::HostTensor& wanted, const ir::HostTensor& spread,
                       double factor) {
  if (got.type != wanted.type)
    return fmt::format("type {} instead of {}", to_string(got.type), to_string(wanted.type));
  const DType dtype = wanted.type.dtype;
  for (std::size_t i = 0; i < wanted.i.size(); ++i)
    if (got.i[i] != wanted.i[i] && spread.i[i] == 0)
      return fmt::format("element {}: {} instead of {}", i, got.i[i], wanted.i[i]);
  for (std::size_t i = 0; i < wanted.f.size(); ++i) {
    if (std::isinf(spread.f[i]) || got.f[i] == wanted.f[i]) continue;
    if (std::isnan(wanted.f[i]) && std::isnan(got.f[i])) continue;
    const double bound =
        factor * spread.f[i] + 2 * noise_of(DType::f32) * std::fabs(wanted.f[i]) + 2 * min_normal(DType::f32);
    const double slack = std::isinf(wanted.f[i]) ? 0 : bound;  // inf - inf
    const double stored = round_to(dtype, got.f[i]);
    if (!(stored >= round_to(dtype, wanted.f[i] - slack) && stored <= round_to(dtype, wanted.f[i] + slack)))
      return fmt::format("element {}: {} instead of {} within {}", i, got.f[i], wanted.f[i], bound);
  }
  return "";
}

}  // namespace

std::string difference(std::span<const ir::HostTensor> got, const Reference& reference, double factor) {
  if (got.size() != reference.values.size()) return "another number of outputs";
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::string text = difference(got[i], reference.values[i], reference.spread[i], factor);
    if (!text.empty()) return fmt::format("output {}: {}", i, text);
  }
  return "";
}

}  // namespace tilewright::test
