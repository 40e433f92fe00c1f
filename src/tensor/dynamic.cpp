// Other sizes to compare with, and the comparison.
#include "tensor/dynamic.h"

#include "passes/plan/generalise.h"

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
  }
}

std::shared_ptr<CompiledGraph> compile_for_sizes(DeviceState& device, const ir::Graph& graph,
                                                 const TraceAt& trace_at,
                                                 const std::vector<ir::Type>& arguments,
                                                 const CompileOptions& options,
                                                 const std::vector<passes::Overwrite>& over,
                                                 std::string& how) {
  const passes::PipelineOptions pipeline{
      .fuse = options.fuse, .recompute = options.recompute, .deterministic = options.deterministic};
  // Rows held whole are tiles as long as the row. Walked in blocks they may have any length.
  const tile::Target target = with_policy(device.target, {.allow_tf32 = options.allow_tf32});
  tile::Target whole_rows = target;
  whole_rows.any_size = true;
  whole_rows.predicted_us = nullptr;  // of this size alone: other sizes would be fused otherwise
  tile::Target by_blocks = whole_rows;
  by_blocks.row_bytes = 0;
  std::optional<ir::Graph> probes[kProbes];
  how = "";
  for (const tile::Target& lowered_for : {whole_rows, by_blocks}) {
    passes::Compiled compiled = lowered(graph, lowered_for, pipeline);
    compiled.target = target;
    for (int probe = 0; probe < kProbes; ++probe) {
      std::string reason;
      try {
        if (!probes[probe]) probes[probe] = trace_at(types_at(arguments, options.dynamic, probe));
        auto general = passes::generalise(compiled.plan, lowered(*probes[probe], lowered_for, pipeline).plan);
        if (general) {
          how = fmt::format("kernels take up to {} sizes as arguments", argument_count(*general));
          compiled.plan = std::move(*general);
          overwrite_inputs(compiled, over);
          return load_graph(device, std::move(compiled), output_types(graph));
        }
        reason = general.error().message;
      } catch (const Error& e) {
        reason = fmt::format("the function fails at another size: {}", e.what());
      }
      if (how.empty()) how = "kernels for these sizes alone: " + reason;
    }
  }
  passes::Compiled compiled = lowered(graph, target, pipeline);
  overwrite_inputs(compiled, over);
  return load_graph(device, std::move(compiled), output_types(graph));
}

}  // namespace tilewright::detail
