// Priority fusion over pairs of groups.
#include "passes/fuse/fuse.h"

#include "passes/fuse/group_order.h"
#include "passes/fuse/recompute.h"
#include "passes/nest/tile_shape.h"
#include "passes/nest/walk_group.h"
#include "passes/tiling/dot_shapes.h"
#include "passes/tiling/group_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;
using ir::OpClass;

namespace {

// A pair of siblings is looked at when the buffer they share is at least this large.
constexpr Index kSiblingBytes = 1 << 12;

// Groups of each kind (readers, writers, readers of one buffer) that one is tried with: the nearest. A
// layer's values have fewer; one that a thousand groups read is not tried with all of them after every merge.
constexpr std::ptrdiff_t kMostNeighbours = 8;

bool computes(const ir::Node& n) { return n.op->kind != OpClass::input && !is_inlined(n); }

class Fuser {
 public:
  // The nodes in `again` are parts of every group that reads them, and never stored.
  Fuser(const Graph& graph, const tile::Target& target, std::set<NodeId> again)
      : graph_(graph), target_(target), again_(std::move(again)), live_(graph.live()) {
    for (NodeId o : graph.outputs()) graph_outputs_.insert(storage_node(graph, o));
    sources_.resize(static_cast<std::size_t>(graph.size()));
    consumers_.resize(static_cast<std::size_t>(graph.size()));
    group_of_.assign(static_cast<std::size_t>(graph.size()), -1);
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (!live_[index(id)] || !computes(graph.node(id)) || graph.type(id).shape.size() == 0) continue;
      if (again_.count(id)) continue;
      sources_[index(id)] = sources_of(graph, id, again_);
      for (NodeId s : sources_[index(id)]) consumers_[index(s)].insert(id);
      group_of_[index(id)] = static_cast<int>(groups_.size());
      groups_.push_back({.nodes = {id},
                         .sources = sources_[index(id)],
                         .has_product = graph.node(id).op->kind == OpClass::matmul});
    }
    for (State& g : groups_) refresh(g);
    order_ = GroupOrder(static_cast<int>(groups_.size()));
    tried_with_.resize(groups_.size());
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g)
      for (NodeId s : groups_[index(g)].sources) {
        buffer_readers_[s].insert(g);
        if (group_of_[index(s)] >= 0) order_.add_edge(group_of_[index(s)], g);
      }
  }

  Fusion run() {
    merge_pairs();
    if (!target_.any_size) merge_statistics();
    duplicate_cheap_producers();
    return finish();
  }

  Fusion apart() { return finish(); }

 private:
  struct State {
    bool alive = true;
    std::set<NodeId> nodes;
    std::set<NodeId> sources;  // of all its nodes
    bool has_product = false;
    Group group;
    double seconds = 0;
  };
  using Pair = std::pair<int, int>;  // of groups, the smaller number first
  struct Trial {
    Refusal refusal = Refusal::none;
    double saved = 0;
  };

  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

  Group make_group(const std::set<NodeId>& nodes) const {
    Group g{.statistics = statistics_};
    std::set<NodeId> all = nodes;
    add_recomputed(graph_, again_, all);
    g.nodes.assign(all.begin(), all.end());
    for (NodeId id : nodes) {
      bool needed = graph_outputs_.count(id) != 0;
      for (NodeId c : consumers_[index(id)]) needed = needed || !nodes.count(c);
      if (needed) g.outputs.push_back(id);
    }
    return g;
  }

  bool reduces_product(const Group& group) const { return !last_matmul(graph_, group).reductions.empty(); }

  bool may_have_product(const State& g) const { return g.has_product || !again_.empty(); }

  // A group by itself, as tiles may be reduced now.
  void reconsider(State& g) const {
    if (!may_have_product(g)) return;
    const Group group = make_group(g.nodes);
    if (!reduces_product(group)) return;
    Refusal why = Refusal::none;
    const std::optional<double> now = seconds(group, &why);
    if (now && *now < g.seconds) g.group = group, g.seconds = *now;
  }

  std::optional<double> seconds(const Group& group, Refusal* why) const {
    auto built = build_program(graph_, group);
    ++programs_;
    if (auto* refusal = std::get_if<Refusal>(&built)) {
      syms_ += group.nodes.size();
      *why = *refusal;
      return std::nullopt;
    }
    const GroupProgram& program = std::get<GroupProgram>(built);
    syms_ += program.syms.size();
    if (program.outer_dots().size() > 1 && !program.has_inner_dots() && !fills_tensor_cores(program)) {
      *why = Refusal::no_time_saved;
      return std::nullopt;
    }
    std::set<NodeId> views;
    for (const Sym& s : program.syms)
      if (s.kind == Sym::Kind::load) views.insert(s.node);
    if (views.size() + program.outputs.size() > kMaxViews) {
      *why = Refusal::too_many_operands;
      return std::nullopt;
    }
    return group_cost(graph_, program, target_).seconds(target_);
  }

  // Several sums of a loop that only multiplies are as fast as one product each where their narrower tiles
  // stand in the registers of tensor cores and are enough for all units.
  bool fills_tensor_cores(const GroupProgram& program) const {
    return chains_on_tensor_cores(program, target_) &&
           program_count(program, choose_dot_shape(program, target_)) >= target_.units;
  }

  void refresh(State& g) {
    g.group = make_group(g.nodes);
    Refusal why = Refusal::none;
    g.seconds = seconds(g.group, &why).value_or(0);
  }

  std::set<int> consumer_groups(int g) const {
    std::set<int> out;
    for (NodeId id : groups_[static_cast<std::size_t>(g)].nodes) {
      if (copies_.count(id)) continue;  // whoever reads it has its own
      for (NodeId c : consumers_[index(id)]) {
        const auto copied = copies_.find(c);
        if (copied != copies_.end())
          out.insert(copied->second.begin(), copied->second.end());
        else
          out.insert(group_of_[index(c)]);
      }
    }
    out.erase(g);
    return out;
  }

  Group together(int a, int b) const {
    std::set<NodeId> nodes = groups_[static_cast<std::size_t>(a)].nodes;
    const State& other = groups_[static_cast<std::size_t>(b)];
    nodes.insert(other.nodes.begin(), other.nodes.end());
    return make_group(nodes);
  }

  // Of pairs that were looked at before, those that tiles' statistics change.
  bool is_open(const Pair& pair) const {
    return !statistics_ ||
           ((may_have_product(groups_[index(pair.first)]) || may_have_product(groups_[index(pair.second)])) &&
            reduces_product(together(pair.first, pair.second)));
  }

  bool closes_cycle(const Pair& pair) const {
    return order_.has_path_through_third(pair.first, pair.second) ||
           order_.has_path_through_third(pair.second, pair.first);
  }

  Trial try_merge(const Pair& pair) const {
    const State &a = groups_[index(pair.first)], &b = groups_[index(pair.second)];
    if (a.nodes.size() + b.nodes.size() > kMostSyms) return {Refusal::too_long, 0};
    if (closes_cycle(pair)) return {Refusal::would_cycle, 0};
    Refusal why = Refusal::none;
    const std::optional<double> merged = seconds(together(pair.first, pair.second), &why);
    if (!merged) return {why, 0};
    const double saved = a.seconds + b.seconds - *merged;
    return {saved > 0 ? Refusal::none : Refusal::no_time_saved, saved};
  }

  // Groups are numbered as their first nodes are, so that near ones have near numbers.
  std::set<Pair> neighbours_of(int g) const {
    std::set<Pair> pairs;
    auto add = [&](int other) {
      if (other != g) pairs.insert({std::min(g, other), std::max(g, other)});
    };
    const std::set<int>&readers = order_.readers(g), &writers = order_.writers(g);
    std::ptrdiff_t left = kMostNeighbours;
    for (auto r = readers.begin(); r != readers.end() && left > 0; ++r, --left) add(*r);
    left = kMostNeighbours;
    for (auto w = writers.rbegin(); w != writers.rend() && left > 0; ++w, --left) add(*w);
    for (int sibling : siblings_of(g)) add(sibling);
    return pairs;
  }

  // The nearest of those that read a large buffer that `g` reads.
  std::vector<int> siblings_of(int g) const {
    std::set<Pair> by_distance;
    for (NodeId s : groups_[index(g)].sources) {
      const ir::Type& type = graph_.type(s);
      if (type.shape.size() * static_cast<Index>(size_bytes(type.dtype)) < kSiblingBytes) continue;
      const std::set<int>& all = buffer_readers_.at(s);
      const auto own = all.lower_bound(g);
      std::ptrdiff_t left = kMostNeighbours;
      for (auto r = own; r != all.end() && left > 0; ++r, --left) by_distance.insert({*r - g, *r});
      left = kMostNeighbours;
      for (auto r = own; r != all.begin() && left > 0; --left) --r, by_distance.insert({g - *r, *r});
    }
    std::vector<int> nearest;
    for (const auto& [distance, group] : by_distance)
      if (distance > 0 && std::ssize(nearest) < kMostNeighbours) nearest.push_back(group);
    return nearest;
  }

  void examine(int g) {
    for (const Pair& pair : neighbours_of(g)) {
      if (trials_.count(pair) || !is_open(pair)) continue;
      const Trial trial = trials_[pair] = try_merge(pair);
      tried_with_[index(pair.first)].insert(pair.second);
      tried_with_[index(pair.second)].insert(pair.first);
      if (trial.refusal == Refusal::none) ranked_.insert({-trial.saved, pair});
    }
  }

  void forget(const Pair& pair) {
    const auto trial = trials_.find(pair);
    ranked_.erase({-trial->second.saved, pair});
    trials_.erase(trial);
  }

  // The one that saves most. Of equal producers of one group the last: when it runs, what the others leave is
  // there, and what it reads need not wait for them.
  Pair best() const {
    constexpr double kEqual = 1e-9;
    const auto [least, pair] = *ranked_.begin();
    int producer = pair.first;
    for (int other : tried_with_[index(pair.second)]) {
      if (other >= pair.second || other < producer) continue;
      const Trial& trial = trials_.at({other, pair.second});
      if (trial.refusal == Refusal::none && -least - trial.saved <= kEqual * -least) producer = other;
    }
    return {producer, pair.second};
  }

  void merge_pairs() {
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g)
      if (groups_[index(g)].alive) examine(g);
    while (!ranked_.empty()) {
      const Pair pair = best();
      const auto [a, b] = pair;
      // Another merge may have closed a path between the two since the trial.
      if (closes_cycle(pair)) {
        ranked_.erase({-trials_.at(pair).saved, pair});
        trials_[pair] = {Refusal::would_cycle, 0};
        continue;
      }
      merge(a, b);
      for (int g : {a, b}) {
        for (int other : tried_with_[index(g)]) {
          forget({std::min(g, other), std::max(g, other)});
          tried_with_[index(other)].erase(g);
        }
        tried_with_[index(g)].clear();
      }
      examine(a);
    }
    for (const auto& [pair, trial] : trials_) refusals_[pair] = trial.refusal;
    trials_.clear();
    for (std::set<int>& others : tried_with_) others.clear();
  }

  // What reads a product's result as a whole row is best served first: attention, a softmax of its own. How
  // many parts tiles leave depends on the sizes, so that kernels for any of them do without.
  void merge_statistics() {
    statistics_ = true;
    for (State& g : groups_)
      if (g.alive) reconsider(g);
    merge_pairs();
  }

  void merge(int into, int from) {
    State& a = groups_[static_cast<std::size_t>(into)];
    State& b = groups_[static_cast<std::size_t>(from)];
    for (NodeId id : b.nodes) group_of_[index(id)] = into;
    for (NodeId s : b.sources) {
      buffer_readers_[s].erase(from);
      buffer_readers_[s].insert(into);
    }
    order_.merge(into, from);
    a.nodes.merge(b.nodes);
    a.sources.merge(b.sources);
    a.has_product = a.has_product || b.has_product;
    b.alive = false;
    refresh(a);
  }

  // A producer that several groups read and that no merge could take: computed again in each of them when
  // that is faster.
  void duplicate_cheap_producers() {
    for (std::size_t i = groups_.size(); i-- > 0;) {
      State& g = groups_[i];
      if (!g.alive || !only_elementwise(g)) continue;
      const bool reaches_outside = std::any_of(g.nodes.begin(), g.nodes.end(),
                                               [&](NodeId id) { return graph_outputs_.count(id) != 0; });
      const std::set<int> consumers = consumer_groups(static_cast<int>(i));
      if (reaches_outside || consumers.size() < 2) continue;
      double before = g.seconds, after = 0;
      bool possible = true;
      for (int c : consumers) {
        const State& consumer = groups_[static_cast<std::size_t>(c)];
        std::set<NodeId> nodes = consumer.nodes;
        nodes.insert(g.nodes.begin(), g.nodes.end());
        Group merged = make_group(nodes);
        merged.outputs = consumer.group.outputs;
        Refusal why = Refusal::none;
        const std::optional<double> s = seconds(merged, &why);
        possible = possible && s.has_value();
        before += consumer.seconds;
        after += s.value_or(0);
      }
      if (!possible || after >= before) continue;
      for (NodeId id : g.nodes) {
        std::set<int>& in = copies_[id];
        in.erase(static_cast<int>(i));
        in.insert(consumers.begin(), consumers.end());
      }
      for (int c : consumers) {
        State& consumer = groups_[static_cast<std::size_t>(c)];
        consumer.nodes.insert(g.nodes.begin(), g.nodes.end());
        const std::vector<NodeId> outputs = consumer.group.outputs;
        consumer.group = make_group(consumer.nodes);
        consumer.group.outputs = outputs;
        Refusal why = Refusal::none;
        consumer.seconds = seconds(consumer.group, &why).value_or(0);
      }
      g.alive = false;
    }
  }

  bool only_elementwise(const State& g) const {
    return std::all_of(g.nodes.begin(), g.nodes.end(), [&](NodeId id) {
      const OpClass k = graph_.node(id).op->kind;
      return k == OpClass::pointwise || k == OpClass::cast || k == OpClass::random;
    });
  }

  // Groups in dependence order; ties by their numbers.
  Fusion finish() {
    Fusion out;
    add_in_order(out);
    for (const auto& [pair, refusal] : refusals_) record(pair.first, pair.second, refusal, out);
    for (const State& g : groups_)
      if (g.alive) out.seconds += g.seconds;
    out.recomputed.assign(again_.begin(), again_.end());
    out.programs = programs_;
    out.syms = syms_;
    return out;
  }

  void add_in_order(Fusion& out) const {
    std::map<NodeId, std::vector<int>> waiting;  // for a value: the groups that read it
    std::vector<int> missing(groups_.size());    // values that a group waits for
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    std::size_t alive = 0;
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g) {
      if (!groups_[index(g)].alive) continue;
      ++alive;
      for (NodeId s : read_from_others(groups_[index(g)])) {
        waiting[s].push_back(g);
        ++missing[index(g)];
      }
      if (missing[index(g)] == 0) ready.push(g);
    }
    while (!ready.empty()) {
      const Group& next = groups_[index(ready.top())].group;
      ready.pop();
      out.groups.push_back(next);
      for (NodeId o : next.outputs) {
        for (int g : waiting[o])
          if (--missing[index(g)] == 0) ready.push(g);
        waiting.erase(o);
      }
    }
    TW_CHECK(out.groups.size() == alive, "fusion made a cycle");
  }

  std::set<NodeId> read_from_others(const State& g) const {
    std::set<NodeId> out;
    for (NodeId id : g.nodes)
      for (NodeId s : sources_[index(id)])
        if (!g.nodes.count(s) && group_of_[index(s)] >= 0) out.insert(s);
    return out;
  }

  void record(int a, int b, Refusal refusal, Fusion& out) const {
    if (!groups_[static_cast<std::size_t>(a)].alive || !groups_[static_cast<std::size_t>(b)].alive) return;
    for (auto [p, c] : {std::pair{a, b}, std::pair{b, a}})
      for (NodeId id : groups_[static_cast<std::size_t>(p)].nodes)
        for (NodeId user : consumers_[index(id)])
          if (groups_[static_cast<std::size_t>(c)].nodes.count(user)) {
            out.not_fused.push_back({id, user, refusal});
            return;
          }
  }

  const Graph& graph_;
  const tile::Target& target_;
  std::set<NodeId> again_;
  std::vector<bool> live_;
  std::set<NodeId> graph_outputs_;
  std::vector<std::set<NodeId>> sources_, consumers_;
  std::vector<int> group_of_;
  bool statistics_ = false;                 // of products' tiles are tried
  std::map<NodeId, std::set<int>> copies_;  // of what was duplicated: the groups that compute it
  std::vector<State> groups_;
  GroupOrder order_{0};
  std::map<NodeId, std::set<int>> buffer_readers_;  // groups that read a value from memory
  std::map<Pair, Trial> trials_;
  std::vector<std::set<int>> tried_with_;     // beside groups_: the other halves of their trials
  std::set<std::pair<double, Pair>> ranked_;  // trials that save time: how much, negative
  std::map<Pair, Refusal> refusals_;
  mutable std::size_t programs_ = 0, syms_ = 0;
};

// With the values stored, and without.
struct Alternatives {
  Fusion stored, recomputed;
};

Fusion choose_recomputation(const Graph& graph, const tile::Target& target, Recompute recompute,
                            Alternatives both) {
  const std::set<NodeId> again(both.recomputed.recomputed.begin(), both.recomputed.recomputed.end());
  double bytes = 0, affected = 0;
  for (const Group& g : both.stored.groups) {
    const bool touches = std::any_of(g.nodes.begin(), g.nodes.end(), [&](NodeId id) {
      const std::set<NodeId> from = sources_of(graph, id, {});
      return again.count(id) != 0 ||
             std::any_of(from.begin(), from.end(), [&](NodeId s) { return again.count(s) != 0; });
    });
    if (!touches) continue;
    const auto program = build_program(graph, g);
    affected += group_cost(graph, std::get<GroupProgram>(program), target).seconds(target);
    for (NodeId o : g.outputs)
      if (again.count(o)) bytes += bytes_of(graph.type(o));
  }
  if (bytes == 0) return std::move(both.stored);  // everything that reads them is one kernel already
  const double more = both.recomputed.seconds - both.stored.seconds;
  const bool beyond_cache = bytes * 2 > static_cast<double>(target.cache_bytes);
  const bool worth = more < 0 || (beyond_cache && more <= (kSlowest - 1) * affected);
  const bool chosen = recompute == Recompute::always || worth;
  Fusion& taken = chosen ? both.recomputed : both.stored;
  taken.recomputing = fmt::format(
      "{} values of {:.1f} MB are {}: predicted {:.1f} us stored, {:.1f} us computed again", again.size(),
      bytes / 1e6, chosen ? "computed again by each kernel that reads them" : "stored", affected * 1e6,
      (affected + more) * 1e6);
  const std::size_t programs = both.stored.programs + both.recomputed.programs,
                    syms = both.stored.syms + both.recomputed.syms;
  taken.programs = programs;
  taken.syms = syms;
  return std::move(taken);
}

}  // namespace

Fusion fuse(const Graph& graph, const tile::Target& target, Recompute recompute) {
  Fusion stored = Fuser(graph, target, {}).run();
  if (recompute == Recompute::never) return stored;
  const std::set<NodeId> again = recomputable(graph, recompute == Recompute::always ? 1 : kMuchLarger);
  if (again.empty()) return stored;
  Fusion recomputed = Fuser(graph, target, again).run();
  return choose_recomputation(graph, target, recompute, {std::move(stored), std::move(recomputed)});
}

Fusion keep_apart(const Graph& graph) { return Fuser(graph, tile::Target{}, {}).apart(); }

}  // namespace tilewright::passes
