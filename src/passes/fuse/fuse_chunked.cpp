// Whether rows of operands are aligned, and a value that is too large to store is computed in chunks.
#include "passes/fuse/aligned_rows.h"
#include "passes/fuse/chunked_matmul.h"
#include "passes/fuse/chunked_rows.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/recompute.h"
#include "passes/graph/simplify.h"
#include "passes/store/materialize.h"
#include "passes/tiling/group_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <limits>

namespace tilewright::passes {

using ir::NodeId;

namespace {

// The graph as it is, or with aligned rows of products' operands where that is predicted to be faster.
FusedGraph fuse_aligned(const ir::Graph& graph, const std::shared_ptr<GroupPlans>& plans,
                        const FusionOptions& how) {
  FusedGraph as_it_is{graph, fuse(graph, plans, how)};
  std::optional<ir::Graph> aligned = align_rows(graph, *plans);
  if (!aligned) return as_it_is;
  Fusion fusion = fuse(*aligned, plans, how);
  if (fusion.seconds >= as_it_is.fusion.seconds) return as_it_is;
  return {std::move(*aligned), std::move(fusion)};
}

FusedGraph fuse_rows(const RowChunks& rows, const std::shared_ptr<GroupPlans>& plans, Recompute recompute) {
  FusedGraph pieces = fuse_aligned(materialize(rows.graph, plans->target()), plans,
                                   {.recompute = recompute, .pieces = rows.pieces});
  pieces.fusion.work = plans->work();
  pieces.fusion.recomputing +=
      fmt::format("{}a product of {:.1f} MB is computed in {} pieces of its rows",
                  pieces.fusion.recomputing.empty() ? "" : "\n  ", rows.whole_bytes / 1e6, rows.pieces);
  return pieces;
}

struct Columns {
  FusedGraph fused;
  bool is_cut = false;
};

// The graph as it is, or with a large product in chunks of its columns where memory is worth it.
Columns fuse_columns(const ir::Graph& graph, const std::shared_ptr<GroupPlans>& plans,
                     const ChunkOptions& options, Recompute recompute) {
  const tile::Target& target = plans->target();
  FusedGraph whole = fuse_aligned(graph, plans, {.recompute = recompute});
  auto cut = chunk_matmul(whole.graph, options);
  if (!cut) return {std::move(whole)};
  FusedGraph chunks =
      fuse_aligned(materialize(simplify(cut->graph), target), plans, {.recompute = recompute});
  const std::set<NodeId> made(cut->made.begin(), cut->made.end());
  GroupForms forms(whole.graph);
  double stored = 0, affected = 0;
  for (const Group& g : whole.fusion.groups) {
    for (NodeId o : g.outputs) stored += made.count(o) ? bytes_of(whole.graph.type(o)) : 0;
    const bool touches = std::any_of(g.nodes.begin(), g.nodes.end(), [&](NodeId id) {
      return made.count(id) || std::find(cut->readers.begin(), cut->readers.end(), id) != cut->readers.end();
    });
    if (!touches) continue;
    affected += plans->price(whole.graph, forms, g).seconds;
  }
  const double more = chunks.fusion.seconds - whole.fusion.seconds;
  // Chunks are for what is too large to store: below that they may take no longer than predictions err.
  const double enough = 1 + target.prediction_error;
  const double most = stored < kMany ? enough : std::max(enough, slowest(stored, target));
  const bool worth = more < 0 || (stored > cut->chunk_bytes && more <= (most - 1) * affected);
  FusedGraph& taken = recompute == Recompute::always || worth ? chunks : whole;
  taken.fusion.work = plans->work();
  taken.fusion.recomputing +=
      fmt::format("{}{} values of {:.1f} MB are {}: predicted {:.1f} us stored, {:.1f} us in chunks",
                  taken.fusion.recomputing.empty() ? "" : "\n  ", made.size(), stored / 1e6,
                  &taken == &chunks ? fmt::format("computed again in {} chunks of at most {:.1f} MB",
                                                  cut->chunks, cut->chunk_bytes / 1e6)
                                    : "stored",
                  affected * 1e6, (affected + more) * 1e6);
  const bool is_cut = &taken == &chunks;
  return {std::move(taken), is_cut};
}

}  // namespace

FusedGraph fuse_chunked(const ir::Graph& graph, const tile::Target& target, Recompute recompute) {
  const auto plans = std::make_shared<GroupPlans>(target);
  const auto cache_bytes = static_cast<double>(target.cache_bytes);
  ChunkOptions options{.least_bytes = cache_bytes};
  RowChunkOptions row_options{.piece_bytes = cache_bytes};
  if (recompute == Recompute::always) {
    options = {.times = 1};
    row_options = {.least_bytes = 0, .most_for_sums = std::numeric_limits<double>::infinity()};
  }
  if (recompute == Recompute::never) return fuse_aligned(graph, plans, {.recompute = recompute});
  const auto rows = chunk_rows(graph, target, row_options);
  const bool has_columns = chunk_matmul(graph, options).has_value();
  if (rows && !has_columns) return fuse_rows(*rows, plans, recompute);
  // Columns compute the product again for its gradient and keep little of it at once. Rows compute it once:
  // where the time for what they keep is not asked for.
  if (!rows || rows->held_bytes >= kMany || recompute == Recompute::always)
    return fuse_columns(graph, plans, options, recompute).fused;
  std::future<FusedGraph> by_rows =
      std::async(launch_of(graph, *plans), [&] { return fuse_rows(*rows, plans, recompute); });
  Columns columns = fuse_columns(graph, plans, options, recompute);
  FusedGraph pieces = by_rows.get();
  // Beside a product that is stored whole, pieces that take as long save its memory.
  const double seconds = columns.fused.fusion.seconds;
  const bool taken = pieces.fusion.seconds < seconds * (columns.is_cut ? 1 : 1 + target.prediction_error);
  const std::string both = fmt::format("; predicted {:.1f} us for the whole program, {:.1f} us without",
                                       pieces.fusion.seconds * 1e6, seconds * 1e6);
  if (taken) pieces.fusion.recomputing += both;
  FusedGraph& out = taken ? pieces : columns.fused;
  out.fusion.work = plans->work();
  return std::move(out);
}

}  // namespace tilewright::passes
