// The end of the road: kernels, buffers and launches of a graph whose groups were chosen.
#pragma once

#include "passes/fuse/fuse.h"
#include "passes/plan/memory_fit.h"
#include "passes/plan/overwrite_inputs.h"
#include "passes/tiling/group_cost.h"

#include <tilewright/perf/cost.h>
#include <tilewright/tile/plan.h>

#include <optional>
#include <string>
#include <vector>

namespace tilewright::passes {

// What the passes made of a graph: the plan, and what explain() and the stage dumps show.
struct Compiled {
  tile::Target target;
  tile::Plan plan;
  ir::Graph graph;  // after simplify and materialize
  Fusion fusion;
  struct KernelInfo {
    std::vector<ir::NodeId> nodes;  // graph nodes it computes
    GroupCost cost;
    std::string note;  // what lowering found, for explain()
  };
  std::vector<KernelInfo> kernels;  // beside plan.kernels
  // Groups that could not be lowered, and why: each of their nodes has kernels of its own. Nothing but a
  // mistake in fusion makes one.
  std::vector<std::string> taken_apart;
  // The kernels of plan.kernels with other tiles, of each those that were asked for and that there are.
  std::vector<std::vector<tile::Kernel>> variants;
  // Outputs that were to lie in inputs' memory (overwrite_inputs()).
  std::vector<Overwriting> overwriting;
  std::optional<MemoryFit> memory;  // where temporaries were given a limit
};

struct PlanOptions {
  bool variants = false;                            // kernels with other tiles, too, for a tuner
  std::optional<Index> arena_bytes = std::nullopt;  // that temporaries may take (fit_memory.h)
};

// Any groups do: one that has no kernel is taken apart. The graph is a materialized one.
Compiled plan_groups(ir::Graph graph, Fusion fusion, const tile::Target& target,
                     const PlanOptions& options = {});

}  // namespace tilewright::passes
