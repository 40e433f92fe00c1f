// Priority fusion over pairs of groups.
#include "passes/fuse/merge_groups.h"

#include "passes/fuse/checkpoints.h"
#include "passes/fuse/group_maker.h"
#include "passes/fuse/group_order.h"
#include "passes/fuse/saving.h"
#include "passes/nest/walk_group.h"
#include "passes/tiling/group_cost.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

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

// Neighbours that keep large values stay apart where they share less than this part of what each keeps.
// Chosen, not measured (docs/notes/2026-11-27-pieces-of-rows.md).
constexpr double kLittleInCommon = 1.0 / 8;

// Nodes that one group computes again: of a chain of producers each is made of the ones before it, so that
// copies without a bound are the square of its length.
constexpr std::size_t kMostCopies = 32;

// How much longer a pair may be predicted than its parts on the way to a larger group that gains: enough for
// any pair, but not for one that no schedule can run.
constexpr double kBold = 1e6;
// Fused twice, larger graphs would take longer than a second to lower on one core.
constexpr std::size_t kMostLookedAtTwice = 128;

class Fuser {
 public:
  // `trusted`: how much longer than its parts a pair may be predicted that saves by its floors, as a share.
  Fuser(const FusionInput& input, std::set<NodeId> again, double trusted)
      : graph_(input.graph),
        target_(input.target),
        trusted_(trusted),
        plans_(input.plans),
        forms_(input.forms),
        again_(std::move(again)),
        computes_products_again_(
            std::any_of(again_.begin(), again_.end(),
                        [&](NodeId id) { return graph_.node(id).op->kind == OpClass::matmul; })),
        values_(graph_, again_),
        calls_(checkpointed_calls(graph_)),
        group_of_(static_cast<std::size_t>(graph_.size()), -1) {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!values_.has(id)) continue;
      group_of_[index(id)] = static_cast<int>(groups_.size());
      groups_.push_back({.nodes = {id},
                         .sources = values_.sources(id),
                         .has_product = graph_.node(id).op->kind == OpClass::matmul});
    }
    for (State& g : groups_) g.group = make_group(g.nodes);
    order_ = GroupOrder(static_cast<int>(groups_.size()));
    tried_with_.resize(groups_.size());
    buffer_readers_.resize(group_of_.size());
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g)
      for (NodeId s : groups_[index(g)].sources) {
        insert(buffer_readers_[index(s)], g);
        if (group_of_[index(s)] >= 0) order_.add_edge(group_of_[index(s)], g);
      }
  }

  Fusion run() {
    for (State& g : groups_) {
      g.price = price(g.group).value_or(GroupPrice());
      g.least_s = g.price.seconds;
    }
    merge_pairs();
    if (!target_.any_size) combine_epilogue_reductions();
    duplicate_cheap_producers();
    return finish();
  }

  Fusion apart() { return finish(); }

 private:
  struct State {
    bool alive = true;
    std::vector<NodeId> nodes;    // sorted
    std::vector<NodeId> sources;  // of all its nodes; sorted
    bool has_product = false;
    std::size_t copies = 0;  // of its nodes: what is computed again in it
    Group group;
    GroupPrice price;  // nothing where it has none
    double least_s =
        0;  // that its nodes were predicted to take, in this group or in those it was merged from
  };
  using Pair = std::pair<int, int>;  // of groups, the smaller number first
  struct HashOfPair {
    std::size_t operator()(const Pair& p) const {
      return index(p.first) * 0x9e3779b97f4a7c15 + index(p.second);
    }
  };
  struct Trial {
    Refusal refusal = Refusal::none;
    double floor_saved_s = 0;  // by which pairs are ranked
    bool is_priced = false;    // else it may yet turn out to save no time
  };

  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

  Group make_group(const std::vector<NodeId>& nodes) const {
    return values_.group_of(nodes, epilogue_reductions_);
  }

  bool reduces_product(const Group& group) const { return !last_matmul(graph_, group).reductions.empty(); }

  bool may_have_product(const State& g) const { return g.has_product || computes_products_again_; }

  // A group by itself, as tiles may be reduced now.
  void reconsider(State& g) const {
    if (!may_have_product(g)) return;
    const Group group = make_group(g.nodes);
    if (!reduces_product(group)) return;
    const std::optional<GroupPrice> now = price(group);
    if (now && now->seconds < g.price.seconds)
      g.group = group, g.price = *now, g.least_s = std::min(g.least_s, now->seconds);
  }

  std::optional<GroupPrice> price(const Group& group) const {
    const GroupPrice price = plans_.price(graph_, forms_, group);
    return price.refusal == Refusal::none ? std::optional(price) : std::nullopt;
  }

  void refresh(State& g) {
    g.group = make_group(g.nodes);
    g.price = price(g.group).value_or(GroupPrice());
  }

  std::set<int> consumer_groups(int g) const {
    std::set<int> out;
    for (NodeId id : groups_[index(g)].nodes) {
      if (copies_.count(id)) continue;  // whoever reads it has its own
      for (NodeId c : values_.consumers(id)) {
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
    return make_group(joined(groups_[index(a)].nodes, groups_[index(b)].nodes));
  }

  bool gains(const Times& before, const Times& after) const {
    return saves(before, after, {.trusted = trusted_, .error = target_.prediction_error});
  }

  // On the second round only pairs that epilogue reductions affect are tried again.
  bool is_open(const Pair& pair) const {
    return !epilogue_reductions_ ||
           ((may_have_product(groups_[index(pair.first)]) || may_have_product(groups_[index(pair.second)])) &&
            reduces_product(together(pair.first, pair.second)));
  }

  bool closes_cycle(const Pair& pair) const {
    return order_.has_path_through_third(pair.first, pair.second) ||
           order_.has_path_through_third(pair.second, pair.first);
  }

  // Whether neither reads the other, each is the last to read large temporaries, and they have little in
  // common: as one kernel they would keep both, where one after the other they need one at a time.
  bool keeps_memory(const Pair& pair) const {
    const auto bytes_read = [&](int g, int other, bool in_common) {
      double bytes = 0;
      for (NodeId s : groups_[index(g)].sources) {
        const int writer = group_of_[index(s)];
        const bool other_reads = holds(groups_[index(other)].sources, s);
        const bool is_own = !other_reads && writer >= 0 && buffer_readers_[index(s)].size() == 1;
        if (in_common ? other_reads : is_own) bytes += bytes_of(graph_.type(s));
      }
      return bytes;
    };
    const auto [a, b] = pair;
    if (holds(order_.readers(a), b) || holds(order_.readers(b), a)) return false;
    const double kept = std::min(bytes_read(a, b, false), bytes_read(b, a, false));
    if (kept <= static_cast<double>(target_.cache_bytes)) return false;
    return bytes_read(a, b, true) < kLittleInCommon * kept;
  }

  // The checkpointed call that computes a group, 0 for none.
  int call_of(const State& g) const { return calls_.empty() ? 0 : calls_[index(g.nodes.front())]; }

  Trial try_merge(const Pair& pair) const {
    const State &a = groups_[index(pair.first)], &b = groups_[index(pair.second)];
    // Launched again, a kernel of both would want what both read.
    if (call_of(a) != call_of(b)) return {Refusal::keeps_memory, 0};
    if (a.nodes.size() + b.nodes.size() > kMostExprs) return {Refusal::too_long, 0};
    if (closes_cycle(pair)) return {Refusal::would_cycle, 0};
    if (keeps_memory(pair)) return {Refusal::keeps_memory, 0};
    const GroupPrice merged = plans_.floor(graph_, forms_, together(pair.first, pair.second));
    if (merged.refusal != Refusal::none) return {merged.refusal, 0};
    return {Refusal::none, a.price.floor_s + b.price.floor_s - merged.floor_s};
  }

  // Kernels are written and predicted when the pair's turn comes: most pairs end before, by other merges.
  bool saves_time(const Pair& pair) {
    Trial& trial = trials_.at(pair);
    if (trial.refusal != Refusal::none || trial.is_priced) return trial.refusal == Refusal::none;
    const State &a = groups_[index(pair.first)], &b = groups_[index(pair.second)];
    const GroupPrice merged = plans_.price(graph_, forms_, together(pair.first, pair.second));
    Times apart, one;
    apart.add(a.price), apart.add(b.price), one.add(merged);
    // What is lost on the way to a gain does not add up: merges are measured by the best that was known.
    apart.seconds = a.least_s + b.least_s;
    for (const State* part : {&a, &b})
      if (merged.refusal == Refusal::none && part->price.bytes < merged.bytes)
        apart.seconds +=
            plans_.seconds_beside(graph_, forms_, part->group, merged.bytes) - part->price.seconds;
    trial.is_priced = true;
    trial.refusal = merged.refusal;
    if (trial.refusal == Refusal::none && !gains(apart, one)) trial.refusal = Refusal::no_time_saved;
    if (trial.refusal != Refusal::none) ranked_.erase({-trial.floor_saved_s, pair});
    return trial.refusal == Refusal::none;
  }

  // Groups are numbered as their first nodes are, so that near ones have near numbers.
  std::vector<int> neighbours_of(int g) const {
    std::vector<int> near = siblings_of(g);
    const std::vector<int>&readers = order_.readers(g), &writers = order_.writers(g);
    std::ptrdiff_t left = kMostNeighbours;
    for (auto r = readers.begin(); r != readers.end() && left > 0; ++r, --left) near.push_back(*r);
    left = kMostNeighbours;
    for (auto w = writers.rbegin(); w != writers.rend() && left > 0; ++w, --left) near.push_back(*w);
    std::sort(near.begin(), near.end());
    near.erase(std::unique(near.begin(), near.end()), near.end());
    return near;
  }

  // The nearest of those that read a large buffer that `g` reads.
  std::vector<int> siblings_of(int g) const {
    std::vector<Pair> by_distance;
    for (NodeId s : groups_[index(g)].sources) {
      const ir::Type& type = graph_.type(s);
      if (type.shape.size() * static_cast<Index>(size_bytes(type.dtype)) < kSiblingBytes) continue;
      const std::vector<int>& all = buffer_readers_[index(s)];
      const auto own = std::lower_bound(all.begin(), all.end(), g);
      std::ptrdiff_t left = kMostNeighbours;
      for (auto r = own; r != all.end() && left > 0; ++r, --left) by_distance.push_back({*r - g, *r});
      left = kMostNeighbours;
      for (auto r = own; r != all.begin() && left > 0; --left) --r, by_distance.push_back({g - *r, *r});
    }
    std::sort(by_distance.begin(), by_distance.end());
    by_distance.erase(std::unique(by_distance.begin(), by_distance.end()), by_distance.end());
    std::vector<int> nearest;
    for (const auto& [distance, group] : by_distance)
      if (distance > 0 && std::ssize(nearest) < kMostNeighbours) nearest.push_back(group);
    return nearest;
  }

  void examine(int g) {
    for (int other : neighbours_of(g)) {
      const Pair pair = std::minmax(g, other);
      if (other == g || trials_.count(pair) || !is_open(pair)) continue;
      const Trial trial = trials_[pair] = try_merge(pair);
      insert(tried_with_[index(g)], other);
      insert(tried_with_[index(other)], g);
      if (trial.refusal == Refusal::none) ranked_.insert({-trial.floor_saved_s, pair});
    }
  }

  void forget(const Pair& pair) {
    const auto trial = trials_.find(pair);
    ranked_.erase({-trial->second.floor_saved_s, pair});
    trials_.erase(trial);
  }

  // The one whose floors say that it saves most: kernels of a few microseconds are predicted to save a launch
  // each, whatever they have in common. Of equal producers of one group the last: when it runs, what the
  // others leave is there, and what it reads need not wait for them.
  std::optional<Pair> best() {
    constexpr double kEqual = 1e-9;
    while (!ranked_.empty() && !saves_time(ranked_.begin()->second)) {
    }
    if (ranked_.empty()) return std::nullopt;
    const auto [least, pair] = *ranked_.begin();
    int producer = pair.first;
    for (int other : tried_with_[index(pair.second)]) {
      if (other >= pair.second || other < producer) continue;
      const Trial& trial = trials_.at({other, pair.second});
      if (-least - trial.floor_saved_s <= kEqual * -least && saves_time({other, pair.second}))
        producer = other;
    }
    return Pair{producer, pair.second};
  }

  void merge_pairs() {
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g)
      if (groups_[index(g)].alive) examine(g);
    while (const std::optional<Pair> pair = best()) {
      const auto [a, b] = *pair;
      // Another merge may have closed a path between the two since the trial.
      if (closes_cycle(*pair)) {
        ranked_.erase({-trials_.at(*pair).floor_saved_s, *pair});
        trials_[*pair] = {Refusal::would_cycle, 0};
        continue;
      }
      merge(a, b);
      for (int g : {a, b}) {
        for (int other : tried_with_[index(g)]) {
          forget(std::minmax(g, other));
          erase(tried_with_[index(other)], g);
        }
        tried_with_[index(g)].clear();
      }
      examine(a);
    }
    for (const auto& [pair, trial] : trials_) refusals_[pair] = trial.refusal;
    trials_.clear();
    for (std::vector<int>& others : tried_with_) others.clear();
  }

  // What reads a product's result as a whole row is best served first: attention, a softmax of its own. How
  // many parts tiles leave depends on the sizes, so that kernels for any of them do without.
  void combine_epilogue_reductions() {
    epilogue_reductions_ = true;
    for (State& g : groups_)
      if (g.alive) reconsider(g);
    merge_pairs();
  }

  void merge(int into, int from) {
    State& a = groups_[static_cast<std::size_t>(into)];
    State& b = groups_[static_cast<std::size_t>(from)];
    for (NodeId id : b.nodes) group_of_[index(id)] = into;
    for (NodeId s : b.sources) {
      erase(buffer_readers_[index(s)], from);
      insert(buffer_readers_[index(s)], into);
    }
    order_.merge(into, from);
    a.nodes = joined(a.nodes, b.nodes);
    a.sources = joined(a.sources, b.sources);
    a.has_product = a.has_product || b.has_product;
    b.alive = false;
    refresh(a);
    a.least_s = std::min(a.least_s + b.least_s, a.price.seconds);
  }

  // A producer that several groups read and that no merge could take: computed again in each of them when
  // that is faster.
  void duplicate_cheap_producers() {
    for (std::size_t i = groups_.size(); i-- > 0;) {
      State& g = groups_[i];
      if (!g.alive || !only_elementwise(g)) continue;
      const bool reaches_outside =
          std::any_of(g.nodes.begin(), g.nodes.end(), [&](NodeId id) { return values_.is_output(id); });
      const std::set<int> consumers = consumer_groups(static_cast<int>(i));
      if (reaches_outside || consumers.size() < 2) continue;
      Times before, after;
      before.add(g.price);
      bool possible = std::all_of(consumers.begin(), consumers.end(), [&](int c) {
        return groups_[index(c)].copies + g.nodes.size() <= kMostCopies;
      });
      if (!possible) continue;
      for (int c : consumers) {
        const State& consumer = groups_[index(c)];
        Group merged = make_group(joined(consumer.nodes, g.nodes));
        merged.outputs = consumer.group.outputs;
        const std::optional<GroupPrice> again = price(merged);
        possible = again.has_value();
        if (!possible) break;
        before.add(consumer.price), after.add(*again);
      }
      if (!possible || !gains(before, after)) continue;
      for (NodeId id : g.nodes) {
        std::set<int>& in = copies_[id];
        in.erase(static_cast<int>(i));
        in.insert(consumers.begin(), consumers.end());
      }
      for (int c : consumers) {
        State& consumer = groups_[index(c)];
        consumer.nodes = joined(consumer.nodes, g.nodes);
        consumer.copies += g.nodes.size();
        const std::vector<NodeId> outputs = consumer.group.outputs;
        consumer.group = make_group(consumer.nodes);
        consumer.group.outputs = outputs;
        consumer.price = price(consumer.group).value_or(GroupPrice());
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
      if (g.alive) out.seconds += g.price.seconds, out.floor_s += g.price.floor_s;
    out.recomputed.assign(again_.begin(), again_.end());
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
      for (NodeId s : values_.sources(id))
        if (!holds(g.nodes, s) && group_of_[index(s)] >= 0) out.insert(s);
    return out;
  }

  void record(int a, int b, const Refusal& refusal, Fusion& out) const {
    if (!groups_[index(a)].alive || !groups_[index(b)].alive) return;
    for (auto [p, c] : {std::pair{a, b}, std::pair{b, a}})
      for (NodeId id : groups_[index(p)].nodes)
        for (NodeId user : values_.consumers(id))
          if (holds(groups_[index(c)].nodes, user)) {
            out.not_fused.push_back({id, user, refusal});
            return;
          }
  }

  const Graph& graph_;
  const tile::Target& target_;
  const double trusted_;
  GroupPlans& plans_;
  GroupForms& forms_;
  const std::set<NodeId> again_;
  const bool computes_products_again_;
  const GroupMaker values_;
  const std::vector<int> calls_;  // of checkpoint(), by node
  std::vector<int> group_of_;
  bool epilogue_reductions_ = false;        // of products' tiles are tried
  std::map<NodeId, std::set<int>> copies_;  // of what was duplicated: the groups that compute it
  std::vector<State> groups_;
  GroupOrder order_{0};
  std::vector<std::vector<int>> buffer_readers_;  // groups that read a value from memory; sorted
  std::unordered_map<Pair, Trial, HashOfPair> trials_;
  std::vector<std::vector<int>> tried_with_;  // beside groups_: the other halves of their trials; sorted
  std::set<std::pair<double, Pair>> ranked_;  // trials that save time: how much of floors, negative
  std::map<Pair, Refusal> refusals_;
};

}  // namespace

Fusion merge_groups(const FusionInput& input, const std::set<NodeId>& again) {
  const double error = input.target.prediction_error;
  Fusion careful = Fuser(input, again, error).run();
  if (!input.target.predicted_us || careful.groups.size() > kMostLookedAtTwice) return careful;
  // A pair may be predicted to lose whose whole gains: a row's softmax in halves, say.
  Fusion bold = Fuser(input, again, kBold).run();
  const Times before{careful.seconds, careful.floor_s}, after{bold.seconds, bold.floor_s};
  return saves(before, after, {.trusted = error, .error = error}) ? std::move(bold) : std::move(careful);
}

Fusion leave_apart(const FusionInput& input) { return Fuser(input, {}, 0).apart(); }

}  // namespace tilewright::passes
