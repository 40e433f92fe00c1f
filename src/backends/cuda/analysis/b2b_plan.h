// The loop plan of a back-to-back matmul: without what the tensor cores do by themselves, and cut so that
// they have work while the element loops run.
#pragma once

#include "backends/cuda/analysis/b2b_matmul.h"
#include "backends/printer/loop_plan.h"

namespace tilewright::cuda {

// Removes the element loops that write the zeros with which dots begin.
void erase_fills(const B2bMatmul& b2b, printer::LoopPlan& plan);

// FLOPs of a dot in one round of its loop.
double flops_of(const tile::Kernel& kernel, const B2bDot& dot);

// Whether a loop's rounds choose between the elements of tiles, as a mask does.
bool chooses_elements(const tile::Kernel& kernel, const tile::Op& loop);
// Random words that a round of a loop draws.
Index drawn_elements(const tile::Kernel& kernel, const tile::Op& loop);

// The dot of a loop that may run under the steps of the next round: the last one, whose operand a is
// computed; those before it wait for nothing but blocks of memory. Null where it is not so.
const B2bDot* late_dot(const B2bMatmul& b2b, const tile::Op& loop);

// Whether the loops of programs further along the grid's second axis begin later and end alike; and whether
// they begin or end elsewhere at all.
bool begins_by_row(const B2bMatmul& b2b, const tile::Kernel& kernel);
bool differs_by_row(const B2bMatmul& b2b, const tile::Kernel& kernel);

// Whether `next`, the step behind a loop, is a loop that goes on with what the first carries, over the same
// blocks, and runs only if the first does: a late dot of the first may then run under `next`'s first round.
bool goes_on(const B2bMatmul& b2b, const tile::Kernel& kernel, const printer::Step& loop,
             const printer::Step& next);

// Puts what is written to the late dots' sums into element loops of their own.
void part_sums(const B2bMatmul& b2b, printer::LoopPlan& plan);
// Whether a step writes what is carried in `buffer`.
bool keeps(const printer::LoopPlan& plan, const printer::Step& step, tile::ValueId buffer);
// Whether a step reads or writes what the dot reads from registers, or its sum.
bool touches(const printer::LoopPlan& plan, const printer::Step& step, const B2bDot& dot);
// The buffers that an element loop or a move of buffers reads or writes, and those that it writes.
struct BufferUses {
  std::set<tile::ValueId> all, written;
};
BufferUses buffer_uses(const printer::LoopPlan& plan, const printer::Step& step);
// The scalars that a step reads.
void add_scalars_read(const printer::Step& step, std::set<tile::ValueId>& read);

}  // namespace tilewright::cuda
