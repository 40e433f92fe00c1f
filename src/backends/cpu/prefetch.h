// Fetching ahead: while one program computes, the next one's rows are on their way to the second-level cache.
//
// A program that walks its row several times waits for memory in the first walk only, and leaves the memory
// idle in the others. Measured on Zen 4, softmax of 4096 rows of 8192 f32: 8.2 ms, with the next row fetched
// during the second walk 5.2 ms, what copying as many bytes takes.
#pragma once

#include "backends/cpu/kernel_text.h"

#include <map>
#include <vector>

namespace tilewright::cpu {

// Loads whose rows the loop shall fetch for the next program.
using Prefetches = std::map<const printer::ElementLoop*, std::vector<const printer::Instr*>>;

// For the loops of a plan's outermost steps.
Prefetches choose_prefetches(const KernelText& k);

// How many elements further the next program finds its own block; 0: at the same place, or not known.
Index next_program_distance(const KernelText& k, const tile::Op& load);

}  // namespace tilewright::cpu
