// Schedules of mma.sync and fma_blocks: all threads copy the blocks of later steps into shared memory
// (cp.async) while they multiply the present ones.
#include "backends/cuda/analysis/access.h"
#include "backends/cuda/plan/pipelines.h"
#include "backends/cuda/plan/refusal.h"

#include <bit>
#include <cstdint>

namespace tilewright::cuda {

using printer::Step;
using tile::Kernel;
using tile::Op;

namespace {

// Threads that copy whole panels of 8 rows at once.
bool copies_panels(const tile::Schedule& s) {
  constexpr int kFewest = 64;
  return s.threads >= kFewest && std::has_single_bit(static_cast<unsigned>(s.threads));
}

// Copies of one operand's blocks.
Status check_copy(const Kernel& kernel, const CudaPlan& plan, const TensorOperand& o) {
  const Access access(kernel, plan.ranges, *o.load);
  if (access.checked_below(o.inner_dim()) || access.checked_below(o.outer_dim()))
    return refusal("dot: a block may begin before its view");
  return Unit{};
}

// Whether the threads can copy the blocks of a loop of one dot.
Status check_copies(const Kernel& kernel, const CudaPlan& plan) {
  if (stages(plan.schedule) < 2) return refusal("dot: copying ahead wants two stages at least");
  for (const TensorOperand* o : {&plan.dots.dot->a, &plan.dots.dot->b})
    if (Status s = check_copy(kernel, plan, *o); !s) return s;
  return Unit{};
}

// A block of fma_blocks in shared memory, with the four places that pad each k (FmaBlock::pitch in
// tw_cuda/fma_dot.cuh).
Index fma_block_bytes(const TensorOperand& o) {
  constexpr Index kPadded = 4;
  return (o.rows + kPadded) * o.depth * static_cast<Index>(size_bytes(o.dtype));
}

// Gives blocks and exchanged values one place in shared memory: values are exchanged behind the loop, when no
// copy is under way any more.
Status place_dot(int stages, Index block_bytes, CudaPlan& plan) {
  plan.shared.dynamic = round_up(std::max(plan.shared.exchanged, stages * block_bytes + kSwizzleBytes), 16);
  return Unit{};
}

// A loop of dots, and those inside it.
Status check_loops(const Kernel& kernel, CudaPlan& plan, const std::vector<Step>& steps) {
  const B2bMatmul& b2b = *plan.dots.b2b;
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::loop && b2b.has_dots(*step.op)) {
      const Op& op = *step.op;
      for (const B2bDot& d : b2b.dots)
        if (d.outermost == &op && d.is_nested()) return refusal("mma: dots stand around a loop of dots");
      auto points = find_copy_points(b2b, step, stages(plan.schedule));
      if (!points) return points.error();
      plan.copy_points[&op] = std::move(*points);
    }
    for (const auto& body : step.body)
      if (Status s = check_loops(kernel, plan, body); !s) return s;
  }
  return Unit{};
}

}  // namespace

Status check_kind(const Kernel& kernel, const tile::MmaDot&, CudaPlan& plan) {
  const TensorDot& dot = *plan.dots.dot;
  const TileFrame& f = result_frame(plan, *dot.dot);
  if (f.col_steps() % 2 != 0) return refusal("mma: a warp takes pairs of 8 columns");
  const Index across = f.threads_per_row / 4, down = plan.schedule.threads / 32 / across;
  if (dot.a.rows % (16 * down) != 0 || dot.b.rows % (16 * across) != 0)
    return refusal("mma: the block is no whole number of the warps' 16 by 16");
  return check_copies(kernel, plan);
}

Status check_kind(const Kernel& kernel, const tile::FmaBlocks&, CudaPlan& plan) {
  const TileFrame& f = result_frame(plan, *plan.dots.dot->dot);
  if (!copies_panels(plan.schedule))
    return refusal("fma_blocks: wants a power of two of threads, 64 at least");
  if (plan.dots.dot->a.depth % 8 != 0) return refusal("fma_blocks: the depth is no multiple of 8");
  for (const TensorOperand* o : {&plan.dots.dot->a, &plan.dots.dot->b})
    if (!std::has_single_bit(static_cast<std::uint64_t>(o->rows)))
      return refusal("fma_blocks: rows and columns of a tile are no powers of two");
  if (f.ragged_rows() || f.ragged_cols()) return refusal("fma_blocks: threads do not share the tile evenly");
  return check_copies(kernel, plan);
}

Status check_kind(const Kernel& kernel, const tile::MmaB2b& kind, CudaPlan& plan) {
  const B2bMatmul& b2b = *plan.dots.b2b;
  if (kind.stages < 1) return refusal("mma: wants a layout for each block");
  if (!copies_panels(plan.schedule)) return refusal("mma: wants a power of two of threads, 64 at least");
  for (const B2bDot& d : b2b.dots) {
    const TileFrame& f = result_frame(plan, *d.op);
    if (f.map != RowMap::mma || f.col_steps() % 2 != 0)
      return refusal("mma: a warp takes pairs of 8 columns");
    if (d.a < 0 && (!stands_as_accumulator(plan, d.op->operands[0]) || f.threads_per_row != kQuad))
      return refusal("dot: operand a does not stand in registers as an accumulator");
  }
  if (Status why = check_loops(kernel, plan, plan.loops->steps); !why) return why;
  for (const B2bBlock& b : b2b.blocks)
    for (const B2bBlock::Fetch& f : b.fetches) {
      TensorOperand o = b.operand;
      o.load = f.load;
      if (Status why = check_copy(kernel, plan, o); !why) return why;
    }
  return Unit{};
}

Status place_blocks(const tile::MmaDot& kind, CudaPlan& plan) {
  return place_dot(kind.stages, plan.dots.dot->a.bytes() + plan.dots.dot->b.bytes(), plan);
}

Status place_blocks(const tile::FmaBlocks& kind, CudaPlan& plan) {
  return place_dot(kind.stages, fma_block_bytes(plan.dots.dot->a) + fma_block_bytes(plan.dots.dot->b), plan);
}

// Threads that copy themselves have no warps to fetch another program's blocks.
Status place_blocks(const tile::MmaB2b& kind, CudaPlan& plan) {
  if (plan.shared.exchanged > 0) return refusal("mma: threads exchange tiles");
  Index bytes = kSwizzleBytes;
  for (const B2bBlock& b : plan.dots.b2b->blocks) {
    plan.block_stages.push_back(b.resident() ? 1 : kind.stages);
    bytes += plan.block_stages.back() * b.operand.bytes();
  }
  plan.shared.dynamic = round_up(bytes, 16);
  return Unit{};
}

const TileFrame& result_frame(const CudaPlan& plan, const Op& dot) {
  const auto layout = plan.layouts.buffers.find(plan.loops->storage(dot.results[0]));
  TW_CHECK(layout != plan.layouts.buffers.end(), "a dot's result has no registers");
  return plan.layouts.frame(layout->second);
}

bool stands_as_accumulator(const CudaPlan& plan, tile::ValueId operand) {
  const auto left = plan.layouts.buffers.find(plan.loops->storage(operand));
  return left != plan.layouts.buffers.end() && left->second.part == Part::all &&
         plan.layouts.frame(left->second).map == RowMap::mma;
}

}  // namespace tilewright::cuda
