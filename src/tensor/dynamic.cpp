// Other sizes to compare with, and the comparison.
#include "tensor/dynamic.h"

#include "tensor/size_family.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

namespace {

// Sizes that are likely to be lowered alike: the double, and some that keep what the size is a multiple of.
constexpr int kProbes = 3;
Index probe_size(Index size, int probe) {
  constexpr Index kSmallStep = 64, kLargeStep = 8192;
  if (probe == 0) return size * 2;
  return size + (probe == 1 ? kSmallStep : kLargeStep);
}

std::vector<ir::Type> types_at(const std::vector<ir::Type>& arguments, const std::vector<DynamicDim>& dynamic,
                               int probe) {
  std::vector<ir::Type> out = arguments;
  for (const DynamicDim& d : dynamic) {
    ir::Type& type = out[static_cast<std::size_t>(d.argument)];
    std::vector<Index> extents = type.shape.extents();
    Index& size = extents[static_cast<std::size_t>(d.axis)];
    size = probe_size(size, probe);
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

void check_dynamic(const std::vector<DynamicDim>& dynamic, const std::vector<ir::Type>& arguments,
                   const Location& where) {
  for (const DynamicDim& d : dynamic) {
    if (d.argument < 0 || d.argument >= static_cast<int>(arguments.size()))
      throw Error(fmt::format("compile: dynamic dimension of argument {}, the function has {}", d.argument,
                              arguments.size()),
                  where);
    const int rank = arguments[static_cast<std::size_t>(d.argument)].shape.rank();
    if (d.axis < 0 || d.axis >= rank)
      throw Error(
          fmt::format("compile: dynamic axis {} of argument {}, which has rank {}", d.axis, d.argument, rank),
          where);
    if (std::count(dynamic.begin(), dynamic.end(), d) > 1)
      throw Error(fmt::format("compile: axis {} of argument {} is dynamic twice", d.axis, d.argument), where);
  }
}

std::shared_ptr<CompiledGraph> compile_for_sizes(DeviceState& device, const ir::Graph& graph,
                                                 const TraceAt& trace_at,
                                                 const std::vector<ir::Type>& arguments,
                                                 const std::vector<DynamicDim>& dynamic,
                                                 const GraphOptions& options, std::string& how) {
  const auto other = [&](std::size_t i) -> std::optional<ir::Graph> {
    if (i == kProbes) return std::nullopt;
    return trace_at(types_at(arguments, dynamic, static_cast<int>(i)));
  };
  SizeFamily::Shared shared = family_of(device, graph, options)->shared(device, graph, other);
  how = shared.graph ? fmt::format("kernels take up to {} sizes as arguments",
                                   argument_count(shared.graph->compiled.plan))
                     : "kernels for these sizes alone: " + shared.why_not;
  return std::move(shared.graph);
}

}  // namespace tilewright::detail
