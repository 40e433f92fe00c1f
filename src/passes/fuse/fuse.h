// Fusion: which nodes share a kernel. Pairs of groups are merged where the kernels they become are predicted
// to take less time.
#pragma once

#include "passes/fuse/group_plans.h"

#include <tilewright/passes/fuse/recompute.h>

#include <future>

namespace tilewright::passes {

// Two neighbouring groups that stayed apart, and why.
struct NotFused {
  ir::NodeId producer = -1;  // a node of the one
  ir::NodeId consumer = -1;  // a node of the other that reads it
  Refusal refusal = Refusal::none;
};

struct Fusion {
  std::vector<Group> groups;  // in an order that respects every dependence
  std::vector<NotFused> not_fused;
  std::vector<ir::NodeId> recomputed;  // in every group that reads them, instead of stored
  std::string recomputing;             // what was decided about such values, and why; empty: there are none
  double seconds = 0;                  // predicted, of all groups
  double floor_s = 0;                  // what their bytes and operations take at the target's rates
  GroupWork work;                      // what fusion's own time is spent on
  std::shared_ptr<GroupPlans> plans;  // of its groups among others; none: they are made where they are wanted
};

// `graph` must be materialized (below). Chains of producers and consumers, siblings, and cheap producers of
// several consumers are fused. Large values that are cheap to make are computed again in each group that
// reads them (recompute.h).
Fusion fuse(const ir::Graph& graph, const tile::Target& target, Recompute recompute = Recompute::by_cost);
struct FusionOptions {
  Recompute recompute = Recompute::by_cost;
  // Pieces of the graph's large values, which are made and used one after another. One piece's memory serves
  // them all, so that a stored value takes that part of its bytes.
  Index pieces = 1;
};
// Whether work on a graph and its plans is begun at once on a thread of its own, or where it is asked for:
// small graphs are fused in the time that some threads take to begin, and on one core it would only come
// before what is needed first.
std::launch launch_of(const ir::Graph& graph, GroupPlans& plans);
// fuse() for the plans' target.
Fusion fuse(const ir::Graph& graph, const std::shared_ptr<GroupPlans>& plans, const FusionOptions& options);

// The same of the graph or, where memory is worth it, of one in which a value that is too large to store is
// computed in chunks (chunked_matmul.h).
struct FusedGraph {
  ir::Graph graph;
  Fusion fusion;
};
FusedGraph fuse_chunked(const ir::Graph& graph, const tile::Target& target,
                        Recompute recompute = Recompute::by_cost);

// No fusion: every node that computes is a group of its own (eager mode), and is not priced.
Fusion keep_apart(const ir::Graph& graph);

}  // namespace tilewright::passes
