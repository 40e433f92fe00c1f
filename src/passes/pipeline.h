// The readable list of passes: from a traced graph to a plan of tile kernels.
#pragma once

#include "passes/fuse/fuse.h"
#include "passes/plan/plan_groups.h"

#include <tilewright/passes/graph/precision.h>
#include <tilewright/tile/target.h>

#include <functional>
#include <optional>
#include <string_view>

namespace tilewright::passes {

struct PipelineOptions {
  bool fuse = true;  // false: one kernel per node (eager)
  bool simplify = true;
  Recompute recompute = Recompute::by_cost;
  Precision precision = Precision::f32;  // of products; tf32 is the target's, too
  bool deterministic = false;            // sums of floats in a fixed order, too
  bool variants = false;                 // for a tuner
  std::optional<Index> arena_bytes =
      std::nullopt;  // that temporaries may take: launches are repeated for that
  // Told when each part of the road is behind: "rewrite", "store", "fuse", "plan".
  std::function<void(std::string_view part)> passed = nullptr;
};

Compiled run_pipeline(const ir::Graph& graph, const tile::Target& target,
                      const PipelineOptions& options = {});

}  // namespace tilewright::passes
