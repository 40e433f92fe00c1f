// The schedule dot=wgmma: a persistent kernel whose last warpgroup fetches blocks by TMA into a ring in
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
constexpr int kMaxWarpgroups = 2, kMaxChainWarpgroups = 3;
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
  if (a.shared == b.shared || s.raster % s.cluster != 0 || s.raster == 0 || below == 0 ||
      below % s.cluster != 0)
    return refusal(
        fmt::format("cluster={}: no operand that neighbours along the second grid axis share", s.cluster));
  const TensorOperand& shared = a.shared ? a : b;
  if (shared.rows % (s.cluster * (shared.k_major ? 8 : 64)) != 0)
    return refusal(fmt::format("cluster={}: cannot share {} rows out", s.cluster, shared.rows));
  return Unit{};
}

// A warpgroup passes over the blocks of the others' programs: it must know how many they are.
Status check_ping_pong(const Kernel& kernel, const CudaPlan& plan, const Frame& f) {
  if (plan.schedule.threads <= kWarpgroup) return refusal("ping_pong: wants several warpgroups");
  if (plan.schedule.descending) return refusal("ping_pong: the programs are taken as they are counted");
  if (!tile::fits_ping_pong(kWarpgroupRate, f.rows, f.cols))
    return refusal("ping_pong: a warpgroup's tile has at most 128 by 192 elements");
  if (differ_in_length(kernel, *plan.dots.dot->loop))
    return refusal("ping_pong: the loops of programs differ in length");
  return Unit{};
}

Status check_dot(const Kernel& kernel, const CudaPlan& plan) {
  const tile::Schedule& s = plan.schedule;
  const TensorDot& dot = *plan.dots.dot;
  if (s.ahead) return refusal("ahead: the loop is no chain of dots");
  const Frame& f = result_frame(plan, *dot.dot);
  if (f.cols % 32 != 0 || f.cols > kMostColumns) return refusal("dot=wgmma: tiles of 32, 64 … 256 columns");
  // Products of 8-bit floats have two accumulators in a thread's 232 registers.
  constexpr Index kMostPromoted = 64 * 192;
  if (dot.promoted && f.rows * f.cols > dot_warpgroups(s) * kMostPromoted)
    return refusal("dot=wgmma: tiles of 8-bit floats have at most 192 columns for a warpgroup's 64 rows");
  if (s.ping_pong)
    if (Status why = check_ping_pong(kernel, plan, f); !why) return why;
  return s.cluster > 1 ? check_multicast(kernel, s, dot.a, dot.b) : Unit{};
}

// Blocks of a cluster share one operand of a product that is added up, and so walk through equally many
// rounds.
Status check_chain_cluster(const Kernel& kernel, const CudaPlan& plan) {
  const DotChain& chain = *plan.dots.chain;
  const auto& blocks = chain.blocks;
  if (!adds_in_turn(chain) || blocks.size() != 2 || blocks[0].resident() || blocks[1].resident())
    return refusal("dot=wgmma: chains of dots stay within one block");
  if (differ_in_length(kernel, *chain.dots[0].loop))
    return refusal("cluster: the loops of programs differ in length");
  return check_multicast(kernel, plan.schedule, blocks[0].operand, blocks[1].operand);
}

Status check_chain(const Kernel& kernel, CudaPlan& plan) {
  const DotChain& chain = *plan.dots.chain;
  if (plan.schedule.ping_pong) return refusal("ping_pong: the loop is no single dot");
  if (plan.schedule.cluster > 1)
    if (Status s = check_chain_cluster(kernel, plan); !s) return s;
  for (const ChainDot& d : chain.dots) {
    const Frame& f = result_frame(plan, *d.op);
    if (f.map != RowMap::mma || f.cols % 32 != 0 || f.cols > kMostColumns)
      return refusal("dot=wgmma: tiles of 32, 64 … 256 columns");
    if (d.a < 0 && !stands_as_accumulator(plan, d.op->operands[0]))
      return refusal("dot: operand a does not stand in registers as an accumulator");
  }
  if (chain.adds_up() && !adds_in_turn(chain) &&
      result_frame(plan, *chain.dots[0].op).row_steps() > kBlockRows)
    return refusal("dot=wgmma: registers hold one block of 64 rows of a product");
  if (!plan.schedule.ahead || chain.adds_up()) return Unit{};
  auto rounds = overlap_rounds(kernel, chain, plan.loops, plan.layouts);
  if (!rounds) return rounds.error();
  plan.rounds = std::move(*rounds);
  return Unit{};
}

Index sent_bytes(const tile::Schedule& s) { return s.threads / kWarpgroup * s.store_places * kPieceBytes; }

// What is fetched once a program has two places where there is room: the next program's is under way while
// this one's loops run.
Index place_chain(CudaPlan& plan) {
  Index once = 0, each = 0;
  for (const ChainBlock& b : plan.dots.chain->blocks) (b.resident() ? once : each) += b.operand.bytes();
  each *= plan.schedule.stages;
  const Index twice = 2 * once + each + kSwizzleBytes + sent_bytes(plan.schedule);
  const int resident = twice <= plan.options.max_shared_bytes - kStaticSharedBytes ? 2 : 1;
  for (const ChainBlock& b : plan.dots.chain->blocks)
    plan.places.push_back(b.resident() ? resident : plan.schedule.stages);
  return resident * once + each + kSwizzleBytes;
}

}  // namespace

Status check_wgmma(const Kernel& kernel, CudaPlan& plan) {
  const tile::Schedule& s = plan.schedule;
  const int warpgroups = s.threads / kWarpgroup;
  const bool chain = plan.pipeline == PipelineKind::wgmma_chain;
  if (!plan.options.arch.has_warpgroup_dots())
    return refusal(fmt::format("dot=wgmma: {} has none", plan.options.arch.text()));
  if (s.threads % kWarpgroup != 0 || warpgroups > (chain ? kMaxChainWarpgroups : kMaxWarpgroups))
    return refusal("dot=wgmma: threads are one or two warpgroups of 128");
  if (s.stages < 2) return refusal("dot=wgmma: wants two stages at least");
  if (s.take_turns && (!(s.ahead || (chain && adds_in_turn(*plan.dots.chain))) || warpgroups < 2))
    return refusal("take_turns: wants ahead and several warpgroups");
  if (s.store_places == 1) return refusal("store_places: two at least");
  return chain ? check_chain(kernel, plan) : check_dot(kernel, plan);
}

// The operands' blocks, results that wait to be stored, and what warps that multiply exchange of each tile
// that is under way.
Status place_wgmma(CudaPlan& plan) {
  const tile::Schedule& s = plan.schedule;
  const Index exchanged = plan.shared.exchanged;
  if (plan.elements.warps_meet) return refusal("dot=wgmma: threads exchange values");
  if (exchanged > 0 && plan.dots.chain && !plan.dots.chain->multiplies_alone())
    return refusal("dot=wgmma: threads exchange values in the loop of a chain");
  if (plan.dots.result && !plan.elements.sends_result)
    return refusal("store_places: the tile is not stored as the product stands in registers");
  const Index blocks = plan.dots.chain
                           ? place_chain(plan)
                           : s.stages * (plan.dots.dot->a.bytes() + plan.dots.dot->b.bytes()) + kSwizzleBytes;
  plan.shared.exchange_at = blocks + sent_bytes(s);
  plan.shared.dynamic = round_up(plan.shared.exchange_at + s.threads / program_threads(s) * exchanged, 16);
  return Unit{};
}

}  // namespace tilewright::cuda
