// Ways to share a multiprocessor's memory: as many blocks as there are, or fewer of them with room for more
// stages.
#include "backends/cuda/schedule/result_stages.h"

#include "backends/cuda/analysis/dot_use.h"
#include "backends/cuda/machine/fitted.h"

#include <algorithm>

namespace tilewright::cuda {

// A slot has as many stages whether a tile comes by it or a result leaves.
static_assert(kFewestStoreStages == kFetchStages);

std::vector<ResultStages> result_stages(const StageRoom& room) {
  const auto blocks_beside = [&](Index stages) {
    return std::min(room.blocks, (room.bytes - stages * room.groups * kPieceBytes) / room.block_bytes);
  };
  std::vector<ResultStages> ways;
  for (const Index least : {kFewestStages, kFewestBesideStores}) {
    Index slots = std::max(room.results, room.tiles);
    while (slots > room.results && blocks_beside(kFewestStoreStages * slots) < least) --slots;
    const Index fewest = kFewestStoreStages * slots, blocks = blocks_beside(fewest);
    if (blocks < least || (!ways.empty() && slots <= ways.back().slots)) continue;
    const Index left = (room.bytes - blocks * room.block_bytes) / (room.groups * kPieceBytes);
    ways.push_back({.blocks = static_cast<int>(blocks),
                    .stages = static_cast<int>(std::clamp(left, fewest, std::max(fewest, kMostStoreStages))),
                    .slots = slots});
  }
  return ways;
}

}  // namespace tilewright::cuda
