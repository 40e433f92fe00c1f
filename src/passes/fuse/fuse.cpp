// Fusion with values stored, and with large ones computed again; the better one.
#include "passes/fuse/fuse.h"

#include "base/side_by_side.h"
#include "passes/fuse/merge_groups.h"
#include "passes/fuse/recompute.h"
#include "passes/fuse/recompute_outputs.h"
#include "passes/tiling/group_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;

namespace {

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

// Fusions by what they compute again. Of a large program those that will be asked for are begun together.
class Fusions {
 public:
  explicit Fusions(const FusionInput& input) : input_(input) {}

  void begin(const std::set<NodeId>& again) {
    if (begun_.count(again) != 0) return;
    begun_[again] = std::async(launch_of(input_.graph, input_.plans), [&input = input_, again] {
      GroupForms forms(input.graph);
      return merge_groups({input.graph, input.target, input.plans, forms}, again);
    });
  }

  Fusion of(const std::set<NodeId>& again) {
    const auto begun = begun_.find(again);
    if (begun == begun_.end()) return merge_groups(input_, again);
    Fusion out = begun->second.get();
    begun_.erase(begun);
    return out;
  }

 private:
  const FusionInput& input_;
  std::map<std::set<NodeId>, std::future<Fusion>> begun_;
};

// A fusion of the program, from one that stores every value on: values are computed again where that is worth
// it.
class Recomputation {
 public:
  // `candidates`: what will be tried to be computed again, should that save anything.
  Recomputation(const FusionInput& input, const FusionOptions& options,
                const std::vector<std::set<NodeId>>& candidates)
      : input_(input), options_(options), casts_(widening_casts(input.graph)), fusions_(input) {
    for (const std::set<NodeId>& values : candidates) fusions_.begin(all_again(values));
    best_ = fusions_.of(casts_);
  }

  // All of the values, or those of their parts that are worth it. Other fusions of the whole program take
  // time: they are looked at where a part is too large for a cache.
  void try_values(const std::set<NodeId>& values, ToSave what) {
    if (try_together(values, what)) return;
    const std::vector<std::set<NodeId>> parts = independent_parts(input_.graph, values);
    if (parts.size() < 2) return;
    for (const std::set<NodeId>& part : parts)
      if (has_large(input_, part, again_)) try_together(part, what);
  }

  Fusion result() { return std::move(best_); }

 private:
  struct Affected {
    double stored_bytes = 0;  // of the values
    double seconds = 0;       // of the kernels that write or read them
  };
  Affected affected_by(const std::set<NodeId>& values) const {
    Affected out;
    for (const Group& g : best_.groups) {
      const bool touches = std::any_of(g.nodes.begin(), g.nodes.end(), [&](NodeId id) {
        const std::set<NodeId> from = sources_of(input_.graph, id, {});
        return values.count(id) != 0 ||
               std::any_of(from.begin(), from.end(), [&](NodeId s) { return values.count(s) != 0; });
      });
      if (!touches) continue;
      out.seconds += input_.plans.price(input_.graph, input_.forms, g).seconds;
      for (NodeId o : g.outputs)
        if (values.count(o)) out.stored_bytes += bytes_of(input_.graph.type(o));
    }
    return out;
  }

  // These values and the casts beside them.
  std::set<NodeId> all_again(const std::set<NodeId>& values) const {
    std::set<NodeId> all = casts_beside(input_.graph, casts_, values);
    all.insert(values.begin(), values.end());
    return all;
  }

  bool is_worth(ToSave what, const Affected& affected, double more_seconds) const {
    if (options_.recompute == Recompute::always) return true;
    if (what == ToSave::time) return more_seconds < -input_.target.prediction_error * affected.seconds;
    const double held = affected.stored_bytes / static_cast<double>(options_.pieces);
    return more_seconds < 0 || (!input_.target.cache_holds(held) &&
                                more_seconds <= (slowest(held, input_.target) - 1) * affected.seconds);
  }

  // False where they stay stored.
  bool try_together(const std::set<NodeId>& values, ToSave what) {
    const Affected affected = affected_by(values);
    if (affected.stored_bytes == 0) return true;  // everything that reads them is one kernel already
    std::set<NodeId> again = again_;
    again.insert(values.begin(), values.end());
    Fusion recomputed = fusions_.of(all_again(again));
    const double more = recomputed.seconds - best_.seconds;
    const bool taken = is_worth(what, affected, more);
    const std::string decision = fmt::format(
        "{} values of {:.1f} MB are {}: predicted {:.1f} us stored, {:.1f} us computed again", values.size(),
        affected.stored_bytes / 1e6, taken ? "computed again by each kernel that reads them" : "stored",
        affected.seconds * 1e6, (affected.seconds + more) * 1e6);
    if (!taken) {
      if (best_.recomputing.empty()) best_.recomputing = decision;
      return false;
    }
    const bool others =
        !again_.empty() && !std::includes(values.begin(), values.end(), again_.begin(), again_.end());
    recomputed.recomputing = others ? best_.recomputing + "\n  " + decision : decision;
    best_ = std::move(recomputed);
    again_ = std::move(again);
    return true;
  }

  const FusionInput& input_;
  const FusionOptions& options_;
  const std::set<NodeId> casts_;
  Fusions fusions_;
  Fusion best_;
  std::set<NodeId> again_;  // the values that it computes again
};

}  // namespace

std::launch launch_of(const Graph& graph, GroupPlans& plans) {
  constexpr NodeId kLargeGraph = 256;  // chosen; their kernels do not depend on how many cores there are
  if (graph.size() < kLargeGraph) return std::launch::deferred;
  plans.serve_threads();
  return has_several_cores() ? std::launch::async : std::launch::deferred;
}

Fusion fuse(const Graph& graph, const std::shared_ptr<GroupPlans>& plans, const FusionOptions& options) {
  const Recompute recompute = options.recompute;
  GroupForms forms(graph);
  const FusionInput input{graph, plans->target(), *plans, forms};
  std::vector<std::set<NodeId>> tried;
  std::set<NodeId> large, smaller_too;
  if (recompute != Recompute::never) {
    const bool always = recompute == Recompute::always;
    large = recomputable(graph, always ? 1 : kMuchLarger);
    smaller_too = always ? large : recomputable(graph, 1);
    if (!large.empty()) tried.push_back(large);
    if (has_large(input, smaller_too, large)) tried.push_back(smaller_too);
  }
  Recomputation search(input, options, tried);
  if (!large.empty()) search.try_values(large, ToSave::memory);
  if (has_large(input, smaller_too, large)) search.try_values(smaller_too, ToSave::time);
  Fusion out = search.result();
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
