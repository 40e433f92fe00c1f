// The readable list of passes. Each is a file of its own in the folder that its #include names:
//   in_fixed_order, where that is asked for → with_scans_in_blocks → with_sorts_in_runs →
//   with_sums_apart, which gives a second graph that goes the same way, and the faster one is taken →
//   simplify → with_products_by_parts → with_variances_by_parts → with_sums_by_rows → with_separated_axes
//                                                   rewrite the graph
//   materialize                                     stores what memory must hold
//   fuse_chunked, or keep_apart                     chooses the groups, each of which becomes a kernel
//   plan_groups                                     writes their kernels (emit/), buffers and launches; where
//                                                   memory is short, launches again (fit_memory.h)
#include "passes/pipeline.h"

#include "passes/fuse/separated_axes.h"
#include "passes/graph/fixed_order.h"
#include "passes/graph/long_scans.h"
#include "passes/graph/long_sorts.h"
#include "passes/graph/products_by_parts.h"
#include "passes/graph/simplify.h"
#include "passes/graph/sums_apart.h"
#include "passes/graph/sums_by_rows.h"
#include "passes/graph/variances_by_parts.h"
#include "passes/store/materialize.h"

#include <utility>

namespace tilewright::passes {

namespace {

// The graph as it is stored and fused.
ir::Graph rewritten(ir::Graph g, const tile::Target& target, const PipelineOptions& options) {
  if (options.simplify) g = simplify(g);
  g = with_products_by_parts(g, target);
  g = with_variances_by_parts(g, target);
  g = with_sums_by_rows(g, target);
  g = with_separated_axes(g, target);
  return materialize(g, target);
}

}  // namespace

Compiled run_pipeline(const ir::Graph& graph, const tile::Target& target, const PipelineOptions& options) {
  ir::Graph g = options.deterministic ? in_fixed_order(graph) : graph;
  g = with_scans_in_blocks(g, target);
  g = with_sorts_in_runs(g, target);
  const std::optional<ir::Graph> sums_apart =
      options.fuse && options.simplify ? with_sums_apart(g) : std::nullopt;
  g = rewritten(std::move(g), target, options);
  const PlanOptions planning{.variants = options.variants, .arena_bytes = options.arena_bytes};
  if (!options.fuse) {
    Fusion apart = keep_apart(g);
    return plan_groups(std::move(g), std::move(apart), target, planning);
  }
  FusedGraph fused = fuse_chunked(g, target, options.recompute);
  if (sums_apart) {
    FusedGraph other = fuse_chunked(rewritten(*sums_apart, target, options), target, options.recompute);
    if (other.fusion.seconds < fused.fusion.seconds) fused = std::move(other);
  }
  return plan_groups(std::move(fused.graph), std::move(fused.fusion), target, planning);
}

}  // namespace tilewright::passes
