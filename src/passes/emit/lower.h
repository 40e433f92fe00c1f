// Lowering: a fusion group becomes one tile kernel (two when a reduction is shared by several programs).
#pragma once

#include "passes/emit/tile_emitter.h"
#include "passes/tiling/tile_group.h"

#include <utility>

namespace tilewright::passes {

struct Lowered {
  std::vector<EmittedKernel> kernels;  // in launch order
  std::vector<Temporary> temporaries;
  std::vector<ir::NodeId> zeroed;  // outputs that must hold zeros before the first kernel
  std::vector<int> zeroed_temporaries;
  // Outputs that must hold what another node does before the first kernel: (that node, output).
  std::vector<std::pair<ir::NodeId, ir::NodeId>> copied;
  // The first kernel with other tiles, for a tuner: the same views in the same order, the same results.
  std::vector<tile::Kernel> variants;
};

struct LowerOptions {
  std::string name;  // of the kernel
  bool variants = false;
};
Lowered lower(const ir::Graph& graph, const TiledGroup& group, const tile::Target& target,
              const LowerOptions& options);

// The same of a group that differs in its nodes alone, whose are `to` in the places of `from`.
void rename_nodes(Lowered& lowered, const std::vector<ir::NodeId>& from, const std::vector<ir::NodeId>& to);

}  // namespace tilewright::passes
