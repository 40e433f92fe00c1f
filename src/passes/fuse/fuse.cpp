// Fusion with values stored, and with large ones computed again; the better one.
#include "passes/fuse/fuse.h"

#include "passes/fuse/merge_groups.h"
#include "passes/fuse/recompute.h"
#include "passes/fuse/recompute_outputs.h"
#include "passes/tiling/group_cost.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;

namespace {

// Fusions of the program that store some values, and that compute them again.
struct Alternatives {
  Fusion stored, recomputed;
};

// The casts that are not made of values in `again`: kernels may need what these give as memory.
std::set<NodeId> casts_beside(const Graph& graph, const std::set<NodeId>& casts,
                              const std::set<NodeId>& again) {
  std::set<NodeId> out;
  for (NodeId cast : casts) {
    const std::set<NodeId> from = sources_of(graph, cast, casts);
    if (std::none_of(from.begin(), from.end(), [&](NodeId s) { return again.count(s) != 0; }))
      out.insert(cast);
  }
  return out;
}

// Whether a value of `all` that is not of `some` is too large for a cache: another fusion of the whole
// program is worth it.
bool has_large(const FusionInput& input, const std::set<NodeId>& all, const std::set<NodeId>& some) {
  return std::any_of(all.begin(), all.end(), [&](NodeId id) {
    return some.count(id) == 0 && !input.target.cache_holds(bytes_of(input.graph.type(id)));
  });
}

// What values may be computed again for: large ones to save memory, too; others where that is clearly faster.
enum class ToSave { time, memory };

Fusion choose_recomputation(const FusionInput& input, const FusionOptions& options,
                            const std::set<NodeId>& again, ToSave what, Alternatives both) {
  const Graph& graph = input.graph;
  const tile::Target& target = input.target;
  double bytes = 0, affected = 0;
  for (const Group& g : both.stored.groups) {
    const bool touches = std::any_of(g.nodes.begin(), g.nodes.end(), [&](NodeId id) {
      const std::set<NodeId> from = sources_of(graph, id, {});
      return again.count(id) != 0 ||
             std::any_of(from.begin(), from.end(), [&](NodeId s) { return again.count(s) != 0; });
    });
    if (!touches) continue;
    affected += input.plans.price(graph, input.forms, g).seconds;
    for (NodeId o : g.outputs)
      if (again.count(o)) bytes += bytes_of(graph.type(o));
  }
  if (bytes == 0) return std::move(both.stored);  // everything that reads them is one kernel already
  const double held = bytes / static_cast<double>(options.pieces);
  const double more = both.recomputed.seconds - both.stored.seconds;
  const bool worth = what == ToSave::time
                         ? more < -target.prediction_error * affected
                         : more < 0 || (!target.cache_holds(held) && more <= (slowest(held) - 1) * affected);
  const bool chosen = options.recompute == Recompute::always || worth;
  Fusion& taken = chosen ? both.recomputed : both.stored;
  if (!chosen && !taken.recomputing.empty()) return std::move(taken);  // what was decided before stands
  taken.recomputing = fmt::format(
      "{} values of {:.1f} MB are {}: predicted {:.1f} us stored, {:.1f} us computed again", again.size(),
      bytes / 1e6, chosen ? "computed again by each kernel that reads them" : "stored", affected * 1e6,
      (affected + more) * 1e6);
  return std::move(taken);
}

}  // namespace

Fusion fuse(const Graph& graph, const std::shared_ptr<GroupPlans>& plans, const FusionOptions& options) {
  const Recompute recompute = options.recompute;
  GroupForms forms(graph);
  const FusionInput input{graph, plans->target(), *plans, forms};
  const std::set<NodeId> casts = widening_casts(graph);
  Fusion out = merge_groups(input, casts);
  const auto try_again = [&](const std::set<NodeId>& again, ToSave what) {
    std::set<NodeId> all = casts_beside(graph, casts, again);
    all.insert(again.begin(), again.end());
    out = choose_recomputation(input, options, again, what, {std::move(out), merge_groups(input, all)});
  };
  if (recompute != Recompute::never) {
    const bool always = recompute == Recompute::always;
    const std::set<NodeId> large = recomputable(graph, always ? 1 : kMuchLarger);
    if (!large.empty()) try_again(large, ToSave::memory);
    const std::set<NodeId> smaller_too = always ? large : recomputable(graph, 1);
    if (has_large(input, smaller_too, large)) try_again(smaller_too, ToSave::time);
  }
  if (recompute != Recompute::never) recompute_outputs(graph, *plans, forms, out);
  out.work = plans->work();
  out.plans = plans;
  return out;
}

Fusion fuse(const Graph& graph, const tile::Target& target, Recompute recompute) {
  return fuse(graph, std::make_shared<GroupPlans>(target), {.recompute = recompute});
}

Fusion keep_apart(const Graph& graph) {
  GroupPlans none({});
  GroupForms forms(graph);
  return leave_apart({graph, none.target(), none, forms});
}

}  // namespace tilewright::passes
