// Which loads a persistent kernel can copy ahead into shared memory, while it computes on the program before.
#pragma once

#include "backends/cuda/layout/layout.h"

namespace tilewright::cuda {

inline constexpr Index kSlotBytes = 16;  // one cp.async

struct StagedLoad {
  const tile::Op* op;
  const printer::ElementLoop* loop;
  Index slots;  // of 16 bytes, a thread
};

// Loads at the kernel's own level of whole vectors of 16 bytes and more, from views that the kernel only
// reads, at places that the program id and the arguments decide; each used by one loop only, or kept by it.
std::vector<StagedLoad> find_staged_loads(const LayoutInput& input, const Layouts& layouts);

}  // namespace tilewright::cuda
