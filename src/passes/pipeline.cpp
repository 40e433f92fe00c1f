// The readable list of passes. Each is a file of its own in the folder that its #include names:
//   with_narrow_products, where a precision asks for it → in_fixed_order, where that is asked for →
//   with_scans_in_blocks → with_selections → with_sorts_in_runs →
//   with_sums_apart, which gives a second graph that goes the same way, and the faster one is taken →
//   simplify → with_converted_factors → with_products_by_parts → with_variances_by_parts → with_sums_by_rows
//   → with_separated_axes                             rewrite the graph materialize stores what memory must
//   hold fuse_chunked, or keep_apart                     chooses the groups, each of which becomes a kernel
//   plan_groups                                     writes their kernels (emit/), buffers and launches; where
//                                                   memory is short, launches again (fit_memory.h)
#include "passes/pipeline.h"

#include "passes/fuse/separated_axes.h"
#include "passes/graph/converted_factors.h"
#include "passes/graph/fixed_order.h"
#include "passes/graph/long_scans.h"
#include "passes/graph/long_sorts.h"
#include "passes/graph/narrow_products.h"
#include "passes/graph/products_by_parts.h"
#include "passes/graph/selections.h"
#include "passes/graph/simplify.h"
#include "passes/graph/sums_apart.h"
#include "passes/graph/sums_by_rows.h"
#include "passes/graph/variances_by_parts.h"
#include "passes/store/materialize.h"

#include <future>
#include <utility>

namespace tilewright::passes {

namespace {

void tell(const PipelineOptions& options, std::string_view part) {
  if (options.passed) options.passed(part);
}

// The graph as it is fused.
ir::Graph stored(ir::Graph g, const tile::Target& target, const PipelineOptions& options) {
  if (options.simplify) g = simplify(g);
  g = with_converted_factors(g, target);
  g = with_products_by_parts(g, target);
  g = with_variances_by_parts(g, target);
  g = with_sums_by_rows(g, target);
  g = with_separated_axes(g, target);
  tell(options, "rewrite");
  g = materialize(g, target);
  tell(options, "store");
  return g;
}

FusedGraph fused(ir::Graph g, const tile::Target& target, const PipelineOptions& options) {
  FusedGraph out = fuse_chunked(stored(std::move(g), target, options), target, options.recompute);
  tell(options, "fuse");
  return out;
}

}  // namespace

Compiled run_pipeline(const ir::Graph& graph, const tile::Target& target, const PipelineOptions& options) {
  ir::Graph g = with_narrow_products(graph, options.precision);
  if (options.deterministic) g = in_fixed_order(g);
  g = with_scans_in_blocks(g, target);
  g = with_selections(g, target);
  g = with_sorts_in_runs(g, target);
  const std::optional<ir::Graph> sums_apart =
      options.fuse && options.simplify ? with_sums_apart(g) : std::nullopt;
  const PlanOptions planning{.variants = options.variants, .arena_bytes = options.arena_bytes};
  Compiled out;
  if (options.fuse) {
    // Two graphs are fused side by side; progress is told of the first.
    std::future<FusedGraph> apart;
    if (sums_apart)
      apart = std::async(std::launch::async, [&sums_apart, &target, quiet = options]() mutable {
        quiet.passed = nullptr;
        return fused(*sums_apart, target, quiet);
      });
    FusedGraph best = fused(std::move(g), target, options);
    if (sums_apart) {
      FusedGraph other = apart.get();
      if (other.fusion.seconds < best.fusion.seconds) best = std::move(other);
    }
    out = plan_groups(std::move(best.graph), std::move(best.fusion), target, planning);
  } else {
    g = stored(std::move(g), target, options);
    Fusion apart = keep_apart(g);
    out = plan_groups(std::move(g), std::move(apart), target, planning);
  }
  tell(options, "plan");
  return out;
}

}  // namespace tilewright::passes
