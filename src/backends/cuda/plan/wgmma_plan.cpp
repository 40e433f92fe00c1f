// The schedule dot=wgmma: a persistent kernel whose last warpgroup fetches blocks by TMA into a pipeline in
// shared memory while the others multiply them on the tensor cores and carry out what follows the loop.
#include "backends/cuda/layout/cluster_exchange.h"
#include "backends/cuda/machine/fitted.h"
#include "backends/cuda/plan/grid.h"
#include "backends/cuda/plan/pipelines.h"
#include "backends/cuda/plan/refusal.h"

#include <tilewright/tile/tensor_rate.h>

#include <fmt/format.h>

namespace tilewright::cuda {

using tile::Kernel;
using tile::Op;

namespace {

// The most warpgroups that multiply: two for single products, since with three ptxas has 128 registers a
// thread for an instruction that names 154 (C7602). A chain's sums are smaller.
constexpr int kMaxWarpgroups = 2, kMaxB2bWarpgroups = 3;
// Columns of the sum of 64 rows that the registers of a warpgroup hold.
constexpr Index kMostColumns = 256;

// Whether the loops of programs differ in length.
bool differ_in_length(const Kernel& kernel, const Op& loop) {
  const std::vector<bool> differs = printer::differ_between_programs(kernel);
  for (std::size_t i : {0u, 1u, 2u})
    if (differs[static_cast<std::size_t>(loop.operands[i])]) return true;
  return false;
}

Status check_multicast(const Kernel& kernel, const tile::Schedule& s, const TensorOperand& a,
                       const TensorOperand& b) {
  const Index below = kernel.grid.size() > 1 ? programs_along(kernel, 1).value_or(0) : 0;
  if (a.shared == b.shared || s.group_m % s.cluster != 0 || s.group_m == 0 || below == 0 ||
      below % s.cluster != 0)
    return refusal(
        fmt::format("cluster={}: no operand that neighbours along the second grid axis share", s.cluster));
  const TensorOperand& shared = a.shared ? a : b;
  if (shared.rows % (s.cluster * (shared.k_major ? 8 : 64)) != 0)
    return refusal(fmt::format("cluster={}: cannot share {} rows out", s.cluster, shared.rows));
  return Unit{};
}

// A warpgroup passes over the blocks of the others' programs: it must know how many they are.
Status check_cutlass_pingpong(const Kernel& kernel, const CudaPlan& plan, const TileFrame& f) {
  if (plan.schedule.threads <= kWarpgroup) return refusal("cutlass_pingpong: wants several warpgroups");
  if (plan.schedule.longest_first)
    return refusal("cutlass_pingpong: the programs are taken as they are counted");
  if (!tile::fits_pingpong(kWarpgroupRate, f.rows, f.cols))
    return refusal("cutlass_pingpong: a warpgroup's tile has at most 128 by 192 elements");
  if (differ_in_length(kernel, *plan.dots.dot->loop))
    return refusal("cutlass_pingpong: the loops of programs differ in length");
  return Unit{};
}

Status check_dot(const Kernel& kernel, const CudaPlan& plan) {
  const tile::Schedule& s = plan.schedule;
  const TensorDot& dot = *plan.dots.dot;
  if (s.intra_warpgroup_overlap) return refusal("intra_warpgroup_overlap: the loop is no b2b of dots");
  const TileFrame& f = result_frame(plan, *dot.dot);
  if (f.cols % 32 != 0 || f.cols > kMostColumns) return refusal("dot=wgmma: tiles of 32, 64 … 256 columns");
  // Products of 8-bit floats have two accumulators in a thread's 232 registers.
  constexpr Index kMostTwoLevel = 64 * 192;
  if (dot.two_level && f.rows * f.cols > dot_warpgroups(s) * kMostTwoLevel)
    return refusal("dot=wgmma: tiles of 8-bit floats have at most 192 columns for a warpgroup's 64 rows");
  if (s.cutlass_pingpong)
    if (Status why = check_cutlass_pingpong(kernel, plan, f); !why) return why;
  return s.cluster > 1 ? check_multicast(kernel, s, dot.a, dot.b) : Unit{};
}

// Blocks of a cluster share one operand of a product that is added up, and so walk through equally many
// rounds.
Status check_b2b_cluster(const Kernel& kernel, const CudaPlan& plan) {
  const B2bMatmul& b2b = *plan.dots.b2b;
  const auto& blocks = b2b.blocks;
  if (!accumulates_in_turn(b2b) || blocks.size() != 2 || blocks[0].resident() || blocks[1].resident())
    return refusal("dot=wgmma: b2b of dots stay within one block");
  if (differ_in_length(kernel, *b2b.dots[0].loop))
    return refusal("cluster: the loops of programs differ in length");
  return check_multicast(kernel, plan.schedule, blocks[0].operand, blocks[1].operand);
}

Status check_b2b(const Kernel& kernel, CudaPlan& plan) {
  const B2bMatmul& b2b = *plan.dots.b2b;
  if (plan.schedule.cutlass_pingpong) return refusal("cutlass_pingpong: the loop is no single dot");
  if (plan.schedule.cluster > 1)
    if (Status s = check_b2b_cluster(kernel, plan); !s) return s;
  for (const B2bDot& d : b2b.dots) {
    const TileFrame& f = result_frame(plan, *d.op);
    if (f.map != RowMap::mma || f.cols % 32 != 0 || f.cols > kMostColumns)
      return refusal("dot=wgmma: tiles of 32, 64 … 256 columns");
    if (d.a < 0 && !stands_as_accumulator(plan, d.op->operands[0]))
      return refusal("dot: operand a does not stand in registers as an accumulator");
  }
  if (b2b.scaled_accumulation() && !accumulates_in_turn(b2b) &&
      result_frame(plan, *b2b.dots[0].op).row_steps() > kBlockRows)
    return refusal("dot=wgmma: registers hold one block of 64 rows of a product");
  if (!plan.schedule.intra_warpgroup_overlap || b2b.scaled_accumulation()) return Unit{};
  auto rounds = overlap_rounds(kernel, b2b, plan.loops, plan.layouts);
  if (!rounds) return rounds.error();
  plan.rounds = std::move(*rounds);
  return Unit{};
}

Index tma_store_bytes(const tile::Schedule& s) {
  return s.threads / kWarpgroup * s.tma_store_stages * kPieceBytes;
}

// What is fetched once a program has two places where there is room: the next program's is under way while
// this one's loops run.
Index place_b2b(CudaPlan& plan) {
  Index once = 0, each = 0;
  for (const B2bBlock& b : plan.dots.b2b->blocks) (b.resident() ? once : each) += b.operand.bytes();
  each *= plan.schedule.stages;
  const Index twice = 2 * once + each + kSwizzleBytes + tma_store_bytes(plan.schedule);
  const int resident = twice <= plan.options.max_shared_bytes - kStaticSharedBytes ? 2 : 1;
  for (const B2bBlock& b : plan.dots.b2b->blocks)
    plan.places.push_back(b.resident() ? resident : plan.schedule.stages);
  return resident * once + each + kSwizzleBytes;
}

}  // namespace

Status check_wgmma(const Kernel& kernel, CudaPlan& plan) {
  const tile::Schedule& s = plan.schedule;
  const int warpgroups = s.threads / kWarpgroup;
  const bool b2b = plan.pipeline == PipelineKind::wgmma_b2b;
  if (!plan.options.arch.has_warpgroup_dots())
    return refusal(fmt::format("dot=wgmma: {} has none", plan.options.arch.text()));
  if (s.threads % kWarpgroup != 0 || warpgroups > (b2b ? kMaxB2bWarpgroups : kMaxWarpgroups))
    return refusal("dot=wgmma: threads are one or two warpgroups of 128");
  if (s.stages < 2) return refusal("dot=wgmma: wants two stages at least");
  if (s.fa3_pingpong &&
      (!(s.intra_warpgroup_overlap || (b2b && accumulates_in_turn(*plan.dots.b2b))) || warpgroups < 2))
    return refusal("fa3_pingpong: wants intra_warpgroup_overlap and several warpgroups");
  if (s.tma_store_stages == 1) return refusal("tma_store_stages: two at least");
  return b2b ? check_b2b(kernel, plan) : check_dot(kernel, plan);
}

// The operands' blocks, results that wait to be stored, and what warps that multiply exchange of each tile
// that is under way.
Status place_wgmma(CudaPlan& plan) {
  const tile::Schedule& s = plan.schedule;
  const Index exchanged = plan.shared.exchanged;
  if (plan.elements.warps_meet) return refusal("dot=wgmma: threads exchange values");
  if (exchanged > 0 && plan.dots.b2b && !plan.dots.b2b->multiplies_alone())
    return refusal("dot=wgmma: threads exchange values in the loop of a b2b");
  if (plan.dots.result && !plan.elements.sends_result)
    return refusal("tma_store_stages: the tile is not stored as the product stands in registers");
  const Index blocks = plan.dots.b2b
                           ? place_b2b(plan)
                           : s.stages * (plan.dots.dot->a.bytes() + plan.dots.dot->b.bytes()) + kSwizzleBytes;
  plan.shared.exchange_at = blocks + tma_store_bytes(s);
  plan.shared.dynamic = round_up(plan.shared.exchange_at + s.threads / program_threads(s) * exchanged, 16);
  return Unit{};
}

}  // namespace tilewright::cuda
