// The wgmma schedules: a persistent kernel whose last warpgroup fetches blocks by TMA into a pipeline in
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
// thread for an instruction that names 154 (C7602). A back-to-back matmul's sums are smaller.
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

Status check_multicast(const Kernel& kernel, const tile::WgmmaScaled& s, const TensorOperand& a,
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

Status check_warpgroups(const CudaPlan& plan, int most) {
  if (!plan.options.arch.has_warpgroup_dots())
    return refusal(fmt::format("wgmma: {} has none", plan.options.arch.text()));
  const int warpgroups = plan.schedule.threads / kWarpgroup;
  if (plan.schedule.threads % kWarpgroup != 0 || warpgroups > most)
    return refusal(fmt::format("wgmma: threads are at most {} warpgroups of 128", most));
  if (stages(plan.schedule) < 2) return refusal("wgmma: wants two stages at least");
  const std::size_t results = plan.dots.results.size(), fewest = 2 * std::max<std::size_t>(results, 1);
  if (const int n = store_stages(plan.schedule); n > 0 && static_cast<std::size_t>(n) < fewest)
    return refusal(fmt::format("store_stages: {} at least", fewest));
  return Unit{};
}

Status check_dot(const CudaPlan& plan) {
  if (Status s = check_warpgroups(plan, kMaxWarpgroups); !s) return s;
  const TensorDot& dot = *plan.dots.dot;
  const TileFrame& f = result_frame(plan, *dot.dot);
  if (f.cols % 32 != 0 || f.cols > kMostColumns) return refusal("wgmma: tiles of 32, 64 … 256 columns");
  // Products of 8-bit floats have two accumulators in a thread's 232 registers.
  constexpr Index kMostTwoLevel = 64 * 192;
  if (dot.two_level && f.rows * f.cols > dot_warpgroups(plan.schedule) * kMostTwoLevel)
    return refusal("wgmma: tiles of 8-bit floats have at most 192 columns for a warpgroup's 64 rows");
  return Unit{};
}

Status check_b2b(const CudaPlan& plan) {
  if (Status s = check_warpgroups(plan, kMaxB2bWarpgroups); !s) return s;
  for (const B2bDot& d : plan.dots.b2b->dots) {
    const TileFrame& f = result_frame(plan, *d.op);
    if (f.map != RowMap::mma || f.cols % 32 != 0 || f.cols > kMostColumns)
      return refusal("wgmma: tiles of 32, 64 … 256 columns");
    if (d.a < 0 && !stands_as_accumulator(plan, d.op->operands[0]))
      return refusal("dot: operand a does not stand in registers as an accumulator");
  }
  return Unit{};
}

// Blocks of a cluster share one operand of a product that is added up, and so walk through equally many
// rounds.
Status check_cluster(const Kernel& kernel, const tile::WgmmaScaled& kind, const B2bMatmul& b2b) {
  const auto& blocks = b2b.blocks;
  if (!accumulates_in_turn(b2b) || blocks.size() != 2 || blocks[0].resident() || blocks[1].resident())
    return refusal("cluster: widened operands stay within one block");
  if (differ_in_length(kernel, *b2b.dots[0].loop))
    return refusal("cluster: the loops of programs differ in length");
  return check_multicast(kernel, kind, blocks[0].operand, blocks[1].operand);
}

Index tma_store_bytes(const tile::Schedule& s) {
  return s.threads / kWarpgroup * store_stages(s) * kPieceBytes;
}

// What is fetched once a program has two stages where there is room: the next program's is under way while
// this one's loops run.
Index place_operands(const B2bMatmul& b2b, CudaPlan& plan) {
  const int looped = stages(plan.schedule);
  Index once = 0, each = 0;
  for (const B2bBlock& b : b2b.blocks) (b.resident() ? once : each) += b.operand.bytes();
  each *= looped;
  const Index twice = 2 * once + each + kSwizzleBytes + tma_store_bytes(plan.schedule);
  const int resident = twice <= plan.options.max_shared_bytes - kStaticSharedBytes ? 2 : 1;
  for (const B2bBlock& b : b2b.blocks) plan.block_stages.push_back(b.resident() ? resident : looped);
  return resident * once + each + kSwizzleBytes;
}
Index place_operands(const TensorDot& dot, const CudaPlan& plan) {
  return stages(plan.schedule) * (dot.a.bytes() + dot.b.bytes()) + kSwizzleBytes;
}

// Places, behind the operands' blocks, for results that wait to be stored, and for what warps that multiply
// exchange of each tile that is under way.
Status place_behind(Index blocks, CudaPlan& plan) {
  const tile::Schedule& s = plan.schedule;
  if (plan.elements.warps_meet) return refusal("wgmma: threads exchange values");
  if (plan.elements.staged_results < plan.dots.results.size())
    return refusal("store_stages: a tile is not stored as the product stands in registers");
  plan.shared.exchange_at = blocks + tma_store_bytes(s);
  plan.shared.dynamic =
      round_up(plan.shared.exchange_at + s.threads / program_threads(s) * plan.shared.exchanged, 16);
  return Unit{};
}

Status place_b2b(CudaPlan& plan) {
  const B2bMatmul& b2b = *plan.dots.b2b;
  if (plan.shared.exchanged > 0 && !b2b.multiplies_alone())
    return refusal("wgmma: threads exchange values in the loop of a back-to-back matmul");
  return place_behind(place_operands(b2b, plan), plan);
}

}  // namespace

Status check_kind(const Kernel&, const tile::WgmmaDot&, CudaPlan& plan) { return check_dot(plan); }

// A warpgroup passes over the blocks of the others' programs: it must know how many they are.
Status check_kind(const Kernel& kernel, const tile::WgmmaPingpong&, CudaPlan& plan) {
  if (Status s = check_dot(plan); !s) return s;
  const TensorDot& dot = *plan.dots.dot;
  const TileFrame& f = result_frame(plan, *dot.dot);
  if (plan.schedule.threads <= kWarpgroup) return refusal("cutlass_pingpong: wants several warpgroups");
  if (!tile::fits_pingpong(kWarpgroupRate, f.rows, f.cols))
    return refusal("cutlass_pingpong: a warpgroup's tile has at most 128 by 192 elements");
  if (differ_in_length(kernel, *dot.loop))
    return refusal("cutlass_pingpong: the loops of programs differ in length");
  return Unit{};
}

Status check_kind(const Kernel& kernel, const tile::WgmmaB2b& kind, CudaPlan& plan) {
  const B2bMatmul& b2b = *plan.dots.b2b;
  if (b2b.scaled_accumulation()) return refusal("wgmma_b2b: what is computed of products is added up");
  if (Status s = check_b2b(plan); !s) return s;
  if (kind.rounds == tile::Rounds::fa3_pingpong && plan.schedule.threads <= kWarpgroup)
    return refusal("fa3_pingpong: wants several warpgroups");
  if (kind.rounds == tile::Rounds::apart) return Unit{};
  auto rounds = overlap_rounds(kernel, b2b, *plan.loops, plan.layouts);
  if (!rounds) return rounds.error();
  plan.rounds = std::move(*rounds);
  return Unit{};
}

Status check_kind(const Kernel& kernel, const tile::WgmmaScaled& kind, CudaPlan& plan) {
  const B2bMatmul& b2b = *plan.dots.b2b;
  if (!b2b.scaled_accumulation())
    return refusal("wgmma_scaled: nothing that is computed of products is added up");
  if (Status s = check_b2b(plan); !s) return s;
  if (kind.cluster > 1)
    if (Status s = check_cluster(kernel, kind, b2b); !s) return s;
  if (!accumulates_in_turn(b2b) && result_frame(plan, *b2b.dots[0].op).row_steps() > kBlockRows)
    return refusal("wgmma: registers hold one block of 64 rows of a product");
  return Unit{};
}

Status place_blocks(const tile::WgmmaDot&, CudaPlan& plan) {
  return place_behind(place_operands(*plan.dots.dot, plan), plan);
}
Status place_blocks(const tile::WgmmaPingpong&, CudaPlan& plan) {
  return place_behind(place_operands(*plan.dots.dot, plan), plan);
}
Status place_blocks(const tile::WgmmaB2b&, CudaPlan& plan) { return place_b2b(plan); }
Status place_blocks(const tile::WgmmaScaled&, CudaPlan& plan) { return place_b2b(plan); }

}  // namespace tilewright::cuda
