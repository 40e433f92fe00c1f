// Other sizes to compare with, and the comparison.
#include "tensor/dynamic.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace tilewright::detail {

namespace {

// Sizes that are likely to be lowered alike: the double, and some that keep what the size is a multiple of.
// A size that is so many times the least may always be that.
constexpr int kProbes = 3;
Index probe_size(Index size, Index least, int probe) {
  constexpr Index kSmallStep = 64, kLargeStep = 8192;
  if (probe == 0) return size * 2;
  const Index times = least > 1 && size % least == 0 ? size / least : 1;
  return size + times * (probe == 1 ? kSmallStep : kLargeStep);
}

std::vector<ir::Type> types_at(const std::vector<ir::Type>& arguments, const std::vector<DynamicDim>& dynamic,
                               int probe) {
  std::vector<ir::Type> out = arguments;
  Index least = std::numeric_limits<Index>::max();
  for (const DynamicDim& d : dynamic)
    least = std::min(least, arguments[static_cast<std::size_t>(d.argument)].shape[d.axis]);
  for (const DynamicDim& d : dynamic) {
    ir::Type& type = out[static_cast<std::size_t>(d.argument)];
    std::vector<Index> extents = type.shape.extents();
    Index& size = extents[static_cast<std::size_t>(d.axis)];
    size = probe_size(size, least, probe);
    type.shape = Shape(extents);
  }
  return out;
}

std::size_t argument_count(const tile::Plan& plan) {
  std::size_t most = 0;
  for (const tile::PlanStep& step : plan.steps) most = std::max(most, step.scalars.size());
  return most;
}

}  // namespace

TracedAt::TracedAt(const Trace& trace)
    : graph(trace.graph),
      captured(trace.inputs.begin() + static_cast<std::ptrdiff_t>(trace.arguments), trace.inputs.end()),
      draws(trace.draws),
      checks(trace.checks) {}

bool TracedAt::uses_what(const TracedAt& other, std::size_t arguments) const {
  if (draws != other.draws || checks.size() != other.checks.size() ||
      captured.size() != other.captured.size())
    return false;
  for (std::size_t i = 0; i < captured.size(); ++i) {
    const bool drawn = std::find(draws.begin(), draws.end(), arguments + i) != draws.end();
    if (!drawn && captured[i].impl() != other.captured[i].impl()) return false;
  }
  return true;
}

std::vector<DynamicDim> with_axes_from_0(const std::vector<DynamicDim>& dynamic,
                                         const std::vector<ir::Type>& arguments, const Location& where) {
  std::vector<DynamicDim> out;
  for (const DynamicDim& d : dynamic) {
    if (d.argument < 0 || d.argument >= static_cast<int>(arguments.size()))
      throw Error(fmt::format("compile: dynamic dimension of argument {}, the function has {}", d.argument,
                              arguments.size()),
                  where);
    const ir::Type& type = arguments[static_cast<std::size_t>(d.argument)];
    const auto axis = normalize_axis(d.axis, type.shape.rank());
    if (!axis)
      throw Error(fmt::format("compile: dynamic axis {} of argument {} is out of range for {}", d.axis,
                              d.argument, to_string(type)),
                  where);
    const DynamicDim one{.argument = d.argument, .axis = *axis};
    if (std::find(out.begin(), out.end(), one) != out.end())
      throw Error(fmt::format("compile: axis {} of argument {} is dynamic twice", *axis, d.argument), where);
    out.push_back(one);
  }
  return out;
}

SizeFamily::Others imagined_sizes(const TraceAt& trace_at, const std::vector<ir::Type>& arguments,
                                  const std::vector<DynamicDim>& dynamic) {
  return [=](std::size_t i) -> std::optional<ir::Graph> {
    if (i == kProbes) return std::nullopt;
    return trace_at(types_at(arguments, dynamic, static_cast<int>(i))).graph;
  };
}

bool are_alike(const std::vector<ir::Type>& a, const std::vector<ir::Type>& b,
               const std::vector<DynamicDim>& dynamic) {
  const auto is_dynamic = [&](std::size_t argument, int axis) {
    return std::any_of(dynamic.begin(), dynamic.end(), [&](const DynamicDim& d) {
      return d.argument == static_cast<int>(argument) && d.axis == axis;
    });
  };
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Shape &x = a[i].shape, &y = b[i].shape;
    if (a[i].dtype != b[i].dtype || x.rank() != y.rank()) return false;
    for (int axis = 0; axis < x.rank(); ++axis)
      if (x[axis] != y[axis] && !is_dynamic(i, axis)) return false;
  }
  return true;
}

std::shared_ptr<CompiledGraph> compile_for_sizes(DeviceState& device, const ir::Graph& graph,
                                                 const SizeFamily::Others& others,
                                                 const GraphOptions& options, std::string& how) {
  SizeFamily::Shared shared = family_of(device, graph, options)->shared(device, graph, others);
  if (shared.graph) {
    const auto count = argument_count(shared.graph->compiled.plan);
    how = count == 1 ? "kernels take 1 size as an argument"
                     : fmt::format("kernels take up to {} sizes as arguments", count);
  } else {
    how = "kernels for these sizes alone: " +
          (shared.why_not.empty() ? "there are no others yet" : shared.why_not);
  }
  return std::move(shared.graph);
}

}  // namespace tilewright::detail
