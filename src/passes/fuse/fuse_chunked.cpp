// Whether a value that is too large to store is computed in chunks.
#include "passes/fuse/chunked_matmul.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/recompute.h"
#include "passes/graph/simplify.h"
#include "passes/store/materialize.h"
#include "passes/tiling/group_cost.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::passes {

using ir::NodeId;

FusedGraph fuse_chunked(const ir::Graph& graph, const tile::Target& target, Recompute recompute) {
  const auto plans = std::make_shared<GroupPlans>(target);
  FusedGraph whole{graph, fuse(graph, plans, recompute)};
  if (recompute == Recompute::never) return whole;
  ChunkOptions options{.least_bytes = static_cast<double>(target.cache_bytes)};
  if (recompute == Recompute::always) options = {.times = 1};
  auto cut = chunk_matmul(graph, options);
  if (!cut) return whole;
  FusedGraph chunks{materialize(simplify(cut->graph), target), {}};
  chunks.fusion = fuse(chunks.graph, plans, recompute);
  const std::set<NodeId> made(cut->made.begin(), cut->made.end());
  GroupForms forms(graph);
  double stored = 0, affected = 0;
  for (const Group& g : whole.fusion.groups) {
    for (NodeId o : g.outputs) stored += made.count(o) ? bytes_of(graph.type(o)) : 0;
    const bool touches = std::any_of(g.nodes.begin(), g.nodes.end(), [&](NodeId id) {
      return made.count(id) || std::find(cut->readers.begin(), cut->readers.end(), id) != cut->readers.end();
    });
    if (!touches) continue;
    affected += plans->price(graph, forms, g).seconds;
  }
  const double more = chunks.fusion.seconds - whole.fusion.seconds;
  const bool worth =
      more < 0 || (stored > cut->chunk_bytes && more <= (slowest(stored, target) - 1) * affected);
  FusedGraph& taken = recompute == Recompute::always || worth ? chunks : whole;
  taken.fusion.work = plans->work();
  taken.fusion.recomputing +=
      fmt::format("{}{} values of {:.1f} MB are {}: predicted {:.1f} us stored, {:.1f} us in chunks",
                  taken.fusion.recomputing.empty() ? "" : "\n  ", made.size(), stored / 1e6,
                  &taken == &chunks ? fmt::format("computed again in {} chunks of at most {:.1f} MB",
                                                  cut->chunks, cut->chunk_bytes / 1e6)
                                    : "stored",
                  affected * 1e6, (affected + more) * 1e6);
  return std::move(taken);
}

}  // namespace tilewright::passes
