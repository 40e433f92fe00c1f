// How a program walks its rows when these come from memory: in which direction, and what each walk fetches of
// the next program's rows.
//
// A program that walks its row several times waits for memory in the first walk only, and leaves the memory
// idle in the others. So the next row is fetched to the second-level cache meanwhile, in the two walks that
// take longest: in one alone the memory only reads, and only writes in another. And where a row and what is
// kept of it do not fit the first-level cache, every other walk goes backwards: it begins with what the one
// before it touched last. Measured on Zen 5, softmax of 2048 rows of 8192 f32 against a copy of as many
// bytes: 0.67 of its rate with the row fetched in the second walk alone, 0.81 with half of it fetched in the
// third, which stores, 0.89 with the second walk backwards (docs/notes/2026-11-22-cpu-rows.md).
#pragma once

#include "backends/cpu/text/kernel_text.h"

#include <map>
#include <vector>

namespace tilewright::cpu {

// What a loop fetches of the next program's block of a load: so many quarters, beginning with number `first`.
struct FetchedAhead {
  const printer::Instr* load = nullptr;
  int first = 0, quarters = 0;
};
struct RowWalk {
  std::vector<FetchedAhead> ahead;
  bool backwards = false;  // unless something in the loop depends on the order
};
using RowWalks = std::map<const printer::ElementLoop*, RowWalk>;

// The walks of the loops of a plan's outermost steps.
RowWalks choose_row_walks(const KernelText& k);

// Elements from a program's block to the block that it fetches ahead: the next one or, where blocks are
// short, as many further as memory takes to answer. 0: at the same place, or not known.
Index distance_ahead(const KernelText& k, const tile::Op& load);

}  // namespace tilewright::cpu
