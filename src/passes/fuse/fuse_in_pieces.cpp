// Whether a value that is too large to store is computed in pieces.
#include "passes/fuse/fuse.h"
#include "passes/fuse/in_pieces.h"
#include "passes/fuse/recompute.h"
#include "passes/graph/simplify.h"
#include "passes/store/materialize.h"
#include "passes/tiling/group_cost.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::passes {

using ir::NodeId;

FusedGraph fuse_in_pieces(const ir::Graph& graph, const tile::Target& target, Recompute recompute) {
  const auto plans = std::make_shared<GroupPlans>(target);
  FusedGraph whole{graph, fuse(graph, plans, recompute)};
  if (recompute == Recompute::never) return whole;
  PieceOptions options{.least_bytes = static_cast<double>(target.cache_bytes)};
  if (recompute == Recompute::always) options = {.times = 1};
  auto cut = in_pieces(graph, options);
  if (!cut) return whole;
  FusedGraph pieces{materialize(simplify(cut->graph), target), {}};
  pieces.fusion = fuse(pieces.graph, plans, recompute);
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
  const double more = pieces.fusion.seconds - whole.fusion.seconds;
  const bool worth = more < 0 || (stored > cut->piece_bytes && more <= (kSlowest - 1) * affected);
  FusedGraph& taken = recompute == Recompute::always || worth ? pieces : whole;
  taken.fusion.work = plans->work();
  taken.fusion.recomputing +=
      fmt::format("{}{} values of {:.1f} MB are {}: predicted {:.1f} us stored, {:.1f} us in pieces",
                  taken.fusion.recomputing.empty() ? "" : "\n  ", made.size(), stored / 1e6,
                  &taken == &pieces ? fmt::format("computed again in {} pieces of at most {:.1f} MB",
                                                  cut->pieces, cut->piece_bytes / 1e6)
                                    : "stored",
                  affected * 1e6, (affected + more) * 1e6);
  return std::move(taken);
}

}  // namespace tilewright::passes
