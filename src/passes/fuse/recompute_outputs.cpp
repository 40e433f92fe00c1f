// The search for stored values that their readers compute again in less time.
#include "passes/fuse/recompute_outputs.h"

#include "passes/fuse/group_maker.h"
#include "passes/fuse/recompute.h"
#include "passes/fuse/saving.h"
#include "passes/tiling/group_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace tilewright::passes {

namespace {

using ir::Graph;
using ir::NodeId;
using ir::OpClass;

// What one output of a group is made of.
struct Recipe {
  std::vector<NodeId> nodes;   // to be computed, the output among them; sorted
  std::vector<NodeId> from;    // what these read from memory; sorted
  std::vector<NodeId> stored;  // of `from`, what the group computes: its outputs, now or from now on; sorted
};

class Boundaries {
 public:
  Boundaries(const Graph& graph, GroupPlans& plans, GroupForms& forms, Fusion& fusion)
      : graph_(graph),
        plans_(plans),
        forms_(forms),
        fusion_(fusion),
        again_(fusion.recomputed.begin(), fusion.recomputed.end()),
        sources_(static_cast<std::size_t>(graph.size())) {
    for (NodeId o : graph.outputs()) kept_.insert(storage_node(graph, o));
    for (const Group& g : fusion.groups) prices_.push_back(price(g).value_or(GroupPrice()));
    for (std::size_t g = 0; g < fusion.groups.size(); ++g)
      for (NodeId id : fusion.groups[g].nodes)
        for (NodeId s : sources(id))
          if (!holds(fusion.groups[g].nodes, s)) readers_[s].insert(g);
  }

  void run() {
    for (std::size_t g = 0; g < fusion_.groups.size(); ++g)
      while (take_one_from(g)) {
      }
    if (taken_ == 0) return;
    fusion_.seconds = fusion_.floor_s = 0;
    for (const GroupPrice& p : prices_) fusion_.seconds += p.seconds, fusion_.floor_s += p.floor_s;
    fusion_.recomputing +=
        fmt::format("{}{} values of {:.1f} MB are computed again from smaller ones where they are read",
                    fusion_.recomputing.empty() ? "" : "\n  ", taken_, taken_bytes_ / 1e6);
  }

 private:
  std::optional<GroupPrice> price(const Group& group) {
    const GroupPrice price = plans_.price(graph_, forms_, group);
    return price.refusal == Refusal::none ? std::optional(price) : std::nullopt;
  }

  // What a node reads, views passed.
  const std::set<NodeId>& sources(NodeId id) {
    std::optional<std::set<NodeId>>& known = sources_[static_cast<std::size_t>(id)];
    if (!known) known = sources_of(graph_, id, {});
    return *known;
  }

  double bytes(NodeId id) const { return bytes_of(graph_.type(id)); }

  // Whether a value can be made again from what stands in memory: not one that was put there on purpose, nor
  // one that no kernel stores.
  bool is_made_again(NodeId id) const {
    const ir::Node& n = graph_.node(id);
    return is_elementwise(n) && !is_copy(graph_, n);
  }

  std::optional<Recipe> recipe(const Group& group, NodeId output) {
    Recipe out{.nodes = {output}};
    std::vector<NodeId> open = {output};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      for (NodeId s : sources(id)) {
        if (holds(out.nodes, s) || holds(out.from, s)) continue;
        const bool inside = holds(group.nodes, s), is_stored = holds(group.outputs, s);
        if (inside && !is_stored && is_made_again(s)) {
          insert(out.nodes, s);
          open.push_back(s);
          continue;
        }
        if (inside && again_.count(s)) return std::nullopt;
        insert(out.from, s);
        if (inside) insert(out.stored, s);
      }
    }
    return out;
  }

  // Whether a matmul of the group takes the value, or what the group makes of it, as an operand.
  bool feeds_matmul(const Group& group, NodeId value) {
    std::set<NodeId> fed = {value};
    for (NodeId id : group.nodes) {  // in an order that respects dependences
      const std::set<NodeId>& from = sources(id);
      if (std::none_of(from.begin(), from.end(), [&](NodeId s) { return fed.count(s) != 0; })) continue;
      if (graph_.node(id).op->kind == OpClass::matmul) return true;
      fed.insert(id);
    }
    return false;
  }

  bool reads(const Group& group, NodeId value) {
    return std::any_of(group.nodes.begin(), group.nodes.end(),
                       [&](NodeId id) { return sources(id).count(value) != 0; });
  }

  // Bytes that no longer move, less those that do from now on.
  double bytes_saved(const Group& group, const Recipe& recipe, NodeId output,
                     const std::set<std::size_t>& readers) {
    double saved = bytes(output) * static_cast<double>(1 + readers.size());
    for (NodeId s : recipe.stored)
      if (!holds(group.outputs, s)) saved -= bytes(s);
    for (std::size_t r : readers)
      for (NodeId s : recipe.from)
        if (!reads(fusion_.groups[r], s)) saved -= bytes(s);
    return saved;
  }

  // The group without an output, and without what was computed for it alone.
  Group without(const Group& group, NodeId output, const Recipe& recipe) {
    Group out = group;
    out.outputs.erase(std::find(out.outputs.begin(), out.outputs.end(), output));
    for (NodeId s : recipe.stored) insert(out.outputs, s);
    std::set<NodeId> needed(out.outputs.begin(), out.outputs.end());
    for (std::size_t i = out.nodes.size(); i-- > 0;)
      if (needed.count(out.nodes[i])) {
        const std::set<NodeId>& from = sources(out.nodes[i]);
        needed.insert(from.begin(), from.end());
      }
    std::erase_if(out.nodes, [&](NodeId id) { return needed.count(id) == 0; });
    return out;
  }

  bool take_one_from(std::size_t g) {
    std::vector<NodeId> outputs = fusion_.groups[g].outputs;
    std::stable_sort(outputs.begin(), outputs.end(), [&](NodeId a, NodeId b) { return bytes(a) > bytes(b); });
    return std::any_of(outputs.begin(), outputs.end(), [&](NodeId o) { return take(g, o); });
  }

  bool take(std::size_t g, NodeId output) {
    const Group& group = fusion_.groups[g];
    const std::set<std::size_t> readers = readers_[output];  // a copy: it changes below
    if (kept_.count(output) || bytes(output) < plans_.target().recomputed_bytes || readers.empty() ||
        !is_made_again(output) || group.outputs.size() + group.nodes.size() > kMostExprs)
      return false;
    const std::optional<Recipe> made = recipe(group, output);
    if (!made || bytes_saved(group, *made, output, readers) <= 0) return false;
    const Group less = without(group, output, *made);
    Times before, after;
    if (less.outputs.empty()) return false;  // fusion has tried a copy of the whole group in each reader
    const std::optional<GroupPrice> price_less = price(less);
    if (!price_less) return false;
    before.add(prices_[g]), after.add(*price_less);
    std::map<std::size_t, std::pair<Group, GroupPrice>> changed;
    for (std::size_t r : readers) {
      Group more = fusion_.groups[r];
      if (feeds_matmul(more, output)) return false;
      more.nodes = joined(more.nodes, made->nodes);
      if (more.nodes.size() > kMostExprs) return false;
      const std::optional<GroupPrice> price_more = price(more);
      if (!price_more) return false;
      before.add(prices_[r]), after.add(*price_more);
      changed[r] = {std::move(more), *price_more};
    }
    // Where predictions are equal, the memory that is no longer needed decides.
    if (!saves(before, after, {.trusted = plans_.target().prediction_error, .error = 0})) return false;
    fusion_.groups[g] = less;
    prices_[g] = *price_less;
    for (auto& [r, now] : changed) {
      fusion_.groups[r] = std::move(now.first);
      prices_[r] = now.second;
      for (NodeId s : made->from)
        if (!holds(fusion_.groups[r].nodes, s)) readers_[s].insert(r);
    }
    readers_[output].clear();
    ++taken_;
    taken_bytes_ += bytes(output);
    return true;
  }

  const Graph& graph_;
  GroupPlans& plans_;
  GroupForms& forms_;
  Fusion& fusion_;
  const std::set<NodeId> again_;  // parts of every group that reads them, never stored
  std::set<NodeId> kept_;         // outputs of the graph
  std::vector<std::optional<std::set<NodeId>>> sources_;
  std::map<NodeId, std::set<std::size_t>> readers_;  // groups that read a value from memory
  std::vector<GroupPrice> prices_;                   // beside the fusion's groups
  std::size_t taken_ = 0;
  double taken_bytes_ = 0;
};

}  // namespace

void recompute_outputs(const Graph& graph, GroupPlans& plans, GroupForms& forms, Fusion& fusion) {
  Boundaries(graph, plans, forms, fusion).run();
}

}  // namespace tilewright::passes
