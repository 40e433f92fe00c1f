// Rounds of back-to-back dots that overlap (tile::Rounds::overlapped): the last product of a round runs under
// the steps of the next one.
#pragma once

#include "backends/cuda/analysis/b2b_matmul.h"
#include "backends/cuda/layout/layout.h"

#include <map>
#include <set>
#include <vector>

namespace tilewright::cuda {

// The steps of a round by what they wait for.
struct B2bRound {
  std::vector<const printer::Step*> scalars;
  std::vector<const printer::Step*> first;    // products that wait for blocks alone
  std::vector<const printer::Step*> between;  // what is computed of them
  std::vector<const printer::Step*> sums;     // what touches the last product's sum
  std::vector<const printer::Step*> after;
  const B2bDot* late = nullptr;
  // A last product that begins with zeros has steps that add it, a round later, and buffers of its own round
  // that these read, which are kept aside.
  std::vector<const printer::Step*> adding;
  std::set<tile::ValueId> aside = {};
};

struct OverlappingRounds {
  std::map<const tile::Op*, B2bRound> of_loop;
  std::map<const tile::Op*, const printer::Step*>
      next;  // by loop: the one whose rounds go on with its late dot
  const printer::Step* next_of(const printer::Step& loop) const {
    const auto found = next.find(loop.op);
    return found == next.end() ? nullptr : found->second;
  }
};

// Fails with the reason where no rounds overlap, or not all that have a late dot can.
Result<OverlappingRounds> overlap_rounds(const tile::Kernel& kernel, const B2bMatmul& b2b,
                                         const printer::LoopPlan& plan, const Layouts& layouts);

}  // namespace tilewright::cuda
