// Runs the table of limits: all functions of one type in a graph, and their gradients in another.
#pragma once

#include "support/limit_table.h"
#include "support/run_graph.h"

#include "ops/ops.h"
#include "passes/graph/differentiate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::test {

using RunGraph = std::function<std::vector<ir::HostTensor>(const ir::Graph& graph,
                                                           std::span<const ir::HostTensor> inputs)>;

// What separates a result from what is expected, in units of its type's last place: the bounds of prim.h for
// f32 and what a composite adds to them; narrower types round once more.
inline double allowed_ulp(DType dtype) { return size_bytes(dtype) >= 4 ? 8 : 1; }

inline double smallest_subnormal(DType dtype) { return min_normal(dtype) * 2 * unit_roundoff(dtype); }

inline double unit_at(DType dtype, double value) {
  int exponent = 0;
  std::frexp(std::max(std::abs(value), min_normal(dtype)), &exponent);
  return std::ldexp(2 * unit_roundoff(dtype), exponent - 1);
}

// Saturated values are exact: 1 - erf(x) is 0 for large x, whatever it is multiplied by.
enum class Closeness : unsigned char { rounded, exact };

// Empty where `got` is `want`, rounded to the type. -0 is expected as such, of 0 either is.
inline std::string limit_problem(DType dtype, double got, double want,
                                 Closeness closeness = Closeness::rounded) {
  const double rounded = round_to(dtype, want);
  // Beyond f32, in which narrower types are computed, numbers may be zeros.
  constexpr double kSmallestF32 = 0x1p-126;
  bool right = false;
  if (std::isnan(rounded)) {
    right = std::isnan(got);
  } else if (std::isinf(rounded) || std::isinf(got)) {
    right = got == rounded;
  } else {
    // Below the normal range what a result is made of may have lost digits: 96 times a subnormal number.
    const bool lost = size_bytes(dtype) >= 4 && std::abs(rounded) < min_normal(dtype);
    const double units = lost ? 64 : allowed_ulp(dtype);
    right = std::abs(got - rounded) <= units * unit_at(dtype, rounded) ||
            (dtype != DType::f64 && got == 0 && std::abs(rounded) < kSmallestF32);
    if (closeness == Closeness::exact) right = got == rounded;
    if (rounded == 0) right = right && (got == 0 || want != 0);
    if (want == 0 && std::signbit(want)) right = right && std::signbit(got);
  }
  return right ? "" : fmt::format("{}, wanted {}", got, rounded);
}

// Sums of the outputs, differentiated: each input's gradient.
inline ir::Graph gradients_of(ir::Graph graph) {
  std::optional<ir::Value> loss;
  for (ir::NodeId id : graph.outputs()) {
    const ir::Value sum = ops::cast(ops::sum(ir::Value{&graph, id}), DType::f64);
    loss = loss ? *loss + sum : sum;
  }
  graph.set_outputs({loss->id});
  std::vector<int> all;
  all.reserve(graph.inputs().size());
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) all.push_back(static_cast<int>(i));
  return passes::differentiate(graph, all);
}

inline ir::HostTensor host_floats(DType dtype, const Shape& shape, std::vector<double> numbers) {
  for (double& n : numbers) n = round_to(dtype, n);
  return {.type = {dtype, shape}, .f = std::move(numbers), .i = {}};
}

// `unsigned_zeros`: functions of which this device gives 0 where the table has -0.
inline void expect_unary_limits(DType dtype, const RunGraph& run,
                                const std::set<std::string_view>& unsigned_zeros = {}) {
  const double most = max_finite(dtype), least = smallest_subnormal(dtype);
  const ir::HostTensor x =
      host_floats(dtype, {kArguments}, {-kInf, -most, -96, -least, -0.0, 0.0, least, 96, most, kInf, kNaN});
  ir::Graph graph("limits");
  std::vector<ir::NodeId> outputs;
  std::vector<ir::HostTensor> inputs;
  for (const UnaryLimits& row : kUnaryLimits) {
    outputs.push_back(row.apply({&graph, graph.add_input(row.name, x.type)}).id);
    inputs.push_back(x);
  }
  graph.set_outputs(outputs);
  const auto values = run(graph, inputs), gradients = run(gradients_of(graph), inputs);
  for (std::size_t r = 0; r < std::size(kUnaryLimits); ++r) {
    const UnaryLimits& row = kUnaryLimits[r];
    for (std::size_t i = 0; i < kArguments; ++i) {
      // A type without infinities has its largest number there.
      const bool saturated = std::isinf(kInf) && !std::isinf(x.f[i]) && (i == 0 || i == kArguments - 2);
      if (saturated) continue;
      // What is beyond f32 or f64 is within reach of narrow types: there the formula says it.
      const bool reaches = (i == 1 || i == kArguments - 3) && max_finite(dtype) < 1e6;
      const auto wanted = [&](const Cell& cell, double (*formula)(double)) {
        const bool is_number = std::isfinite(cell.number) && cell.number != 0 && !cell.by_formula;
        return cell.by_formula || (reaches && std::isinf(cell.number) && !is_number) ? formula(x.f[i])
                                                                                     : cell.number;
      };
      double want = wanted(row.value[i], row.value_at);
      if (want == 0 && unsigned_zeros.count(row.name) > 0) want = 0;
      const std::string value =
                            limit_problem(dtype, values[r].f[i], want,
                                          row.value[i].by_formula ? Closeness::rounded : Closeness::exact),
                        slope = limit_problem(dtype, gradients[r + 1].f[i],
                                              wanted(row.gradient[i], row.gradient_at));
      EXPECT_EQ(value, "") << row.name << " of " << kArgumentNames[i] << " in " << name(dtype);
      EXPECT_EQ(slope, "") << "the gradient of " << row.name << " at " << kArgumentNames[i] << " in "
                           << name(dtype);
    }
  }
}

inline void expect_binary_limits(DType dtype, const RunGraph& run) {
  const auto of_type = [&](double n) {
    const double most = max_finite(dtype), size = std::abs(n);
    if (size == L) return std::copysign(most, n);
    if (size == S) return std::copysign(smallest_subnormal(dtype), n);
    if (size == kOneOfL || size == kHalfOfL) return std::copysign((size == kOneOfL ? 1 : 0.5) / most, n);
    return n;
  };
  ir::Graph graph("limits");
  std::vector<ir::NodeId> outputs;
  std::vector<ir::HostTensor> inputs;
  for (const BinaryLimits& row : kBinaryLimits) {
    std::vector<double> a, b;
    for (const Cells& c : row.rows) a.push_back(of_type(c.a)), b.push_back(of_type(c.b));
    const Shape shape{static_cast<Index>(a.size())};
    inputs.push_back(host_floats(dtype, shape, a));
    inputs.push_back(host_floats(dtype, shape, b));
    const ir::Value x{&graph, graph.add_input(fmt::format("{}_a", row.name), {dtype, shape})},
        y{&graph, graph.add_input(fmt::format("{}_b", row.name), {dtype, shape})};
    outputs.push_back(row.apply(x, y).id);
  }
  graph.set_outputs(outputs);
  const auto values = run(graph, inputs), gradients = run(gradients_of(graph), inputs);
  for (std::size_t r = 0; r < std::size(kBinaryLimits); ++r) {
    std::size_t i = 0;
    for (const Cells& c : kBinaryLimits[r].rows) {
      const double a = inputs[2 * r].f[i], b = inputs[2 * r + 1].f[i];
      // Types without infinities have no such row.
      if ((std::isinf(c.a) && !std::isinf(a)) || (std::isinf(c.b) && !std::isinf(b))) {
        ++i;
        continue;
      }
      const std::string where = fmt::format("{}({}, {}) in {}", kBinaryLimits[r].name, a, b, name(dtype));
      EXPECT_EQ(limit_problem(dtype, values[r].f[i], of_type(c.value)), "") << where;
      EXPECT_EQ(limit_problem(dtype, gradients[2 * r + 1].f[i], of_type(c.da)), "") << "d/da of " << where;
      EXPECT_EQ(limit_problem(dtype, gradients[2 * r + 2].f[i], of_type(c.db)), "") << "d/db of " << where;
      ++i;
    }
  }
}

inline void expect_row_limits(DType dtype, const RunGraph& run) {
  for (const RowLimits& row : kRowLimits) {
    ir::Graph graph("rows");
    const auto count = static_cast<Index>(row.x.size());
    const ir::Value x{&graph, graph.add_input("x", {dtype, {1, count}})};
    graph.set_outputs({row.apply(x).id});
    const std::vector<ir::HostTensor> inputs = {host_floats(dtype, {1, count}, row.x)};
    const auto value = run(graph, inputs)[0].f, gradient = run(gradients_of(graph), inputs)[1].f;
    ASSERT_EQ(value.size(), row.value.size()) << row.name;
    for (std::size_t i = 0; i < value.size(); ++i)
      EXPECT_EQ(limit_problem(dtype, value[i], row.value[i]), "")
          << row.name << " at " << i << " in " << name(dtype);
    for (std::size_t i = 0; i < gradient.size(); ++i)
      EXPECT_EQ(limit_problem(dtype, gradient[i], row.gradient[i]), "")
          << "the gradient of " << row.name << " at " << i << " in " << name(dtype);
  }
}

}  // namespace tilewright::test
