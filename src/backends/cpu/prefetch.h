// Fetching ahead: while one program computes, the next one's rows are on their way to the second-level cache.
//
// A program that walks its row several times waits for memory in the first walk only, and leaves the memory
// idle in the others. So the next row is fetched meanwhile, in the two walks that take longest: in one alone
// the memory only reads, and only writes in another. Measured on Zen 5, softmax of 2048 rows of 8192 f32,
// against a copy of as many bytes: 0.80 of its rate with the row fetched in the second walk, 0.94 with half
// of it fetched in the third, which stores (docs/notes/2026-11-22-cpu-rows-and-chains.md).
#pragma once

#include "backends/cpu/kernel_text.h"

#include <map>
#include <vector>

namespace tilewright::cpu {

// What a loop fetches of the next program's block of a load: so many quarters, beginning with number `first`.
struct FetchedAhead {
  const printer::Instr* load = nullptr;
  int first = 0, quarters = 0;
};
using Prefetches = std::map<const printer::ElementLoop*, std::vector<FetchedAhead>>;

// For the loops of a plan's outermost steps.
Prefetches choose_prefetches(const KernelText& k);

// How many elements further the program finds its own block that is the next one or, where blocks are short,
// as many on as memory needs to answer; 0: at the same place, or not known.
Index distance_ahead(const KernelText& k, const tile::Op& load);

}  // namespace tilewright::cpu
