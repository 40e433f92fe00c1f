// The time model's three forms: by FLOPs, by rounds, and as one wide product.
#include "backends/cuda/schedule/b2b_price.h"

#include "backends/cuda/analysis/b2b_plan.h"
#include "backends/cuda/machine/fitted.h"
#include "backends/cuda/schedule/estimate.h"

#include <tilewright/tile/cost.h>
#include <tilewright/tile/tensor_rate.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace tilewright::cuda {

using tile::DotUnit;
using tile::Kernel;
using tile::Op;
using tile::OpKind;

namespace {

constexpr double kManyRounds = 1e9;  // no bound is known

}  // namespace

double rounds_of(const Op& loop, const std::map<const Op*, double>& rounds) {
  const auto known = rounds.find(&loop);
  return known != rounds.end() ? known->second : static_cast<double>(kUnknownTrips);
}

B2bPrice::B2bPrice(const Kernel& kernel, const tile::Target& target, const Arch& arch,
                   const std::map<const Op*, double>& rounds)
    : kernel_(kernel), target_(target), arch_(arch), rounds_(rounds) {
  tile::for_each_op(kernel.body, [&](const Op& op) {
    for (const tile::ValueId r : op.results) made_by_[r] = &op;
  });
}

double B2bPrice::programs() const { return programs_of(kernel_); }

double B2bPrice::waves() const { return std::max(1.0, programs() / std::max(1, target_.units)); }

double B2bPrice::mean_rounds(const B2bMatmul& b2b) const {
  const OperandReader reader(kernel_, DotUnit::wgmma);
  std::set<tile::ValueId> seen;
  const std::function<bool(tile::ValueId)> loads = [&](tile::ValueId v) {
    const Op* op = seen.insert(v).second ? reader.maker(v) : nullptr;
    return op && (op->kind == OpKind::load || std::any_of(op->operands.begin(), op->operands.end(), loads));
  };
  double round = 0;
  for (const B2bDot& d : b2b.dots) {
    if (d.is_nested() || loads(d.loop->operands[0]) || loads(d.loop->operands[1])) return kManyRounds;
    if (d.loop == b2b.dots[0].loop) round += flops_of(kernel_, d);
  }
  if (!kernel_.scalars.empty()) return kManyRounds;
  for (const tile::GridAxis& axis : kernel_.grid) round *= programs_of(axis);
  return tile::cost(kernel_, {}).matrix.total() / round;
}

double B2bPrice::us(const B2bMatmul& b2b) const {
  if (b2b.multiplies_alone() && arch_.has_warpgroup_dots()) return sums_us(b2b);
  double flops = 0, nested_us = 0;
  for (const B2bDot& d : b2b.dots) {
    const double times = rounds(*d.loop) * (d.is_nested() ? rounds(*d.outermost) : 1);
    flops += flops_of(kernel_, d) * times;
    if (d.is_nested()) nested_us += times * kNestedRoundUs;
  }
  // The share of the multiprocessors that have a program.
  const double busy = std::min(1.0, programs() / std::max(1, target_.units));
  const double products_us = flops * programs() / (kB2bShare * busy * target_.matrix_flops_per_s) * 1e6;
  return std::max(products_us, nested_us * waves()) +
         loaded_in_rounds(kernel_.body, b2b, 1) * waves() * kRoundLoadUs + target_.launch_s * 1e6;
}

double B2bPrice::by_rounds_us(const B2bMatmul& b2b) const {
  const double unit_flops_per_us = kB2bPeak * target_.matrix_flops_per_s / std::max(1, target_.units) * 1e-6;
  std::map<const Op*, int> sums;        // that a loop's rounds add to
  std::map<const Op*, Index> computed;  // elements of the largest operand that they compute
  double program_us = 0, nested_us = 0;
  for (const B2bDot& d : b2b.dots) {
    const double times = rounds(*d.loop) * (d.is_nested() ? rounds(*d.outermost) : 1);
    program_us += times * flops_of(kernel_, d) / unit_flops_per_us;
    if (d.is_nested()) {
      nested_us += times * kNestedRoundUs;
      const auto elements = static_cast<double>(kernel_.type(d.op->results[0]).size());
      program_us += rounds(*d.outermost) * elements * kNestedElementUs;
    } else {
      sums[d.loop] += d.from_zero ? 0 : 1;
      if (d.a < 0) computed[d.loop] = std::max(computed[d.loop], kernel_.type(d.op->operands[0]).size());
    }
  }
  for (const auto& [loop, count] : sums) {
    const double element_us = kB2bElementUs + (chooses_elements(kernel_, *loop) ? kB2bMaskedUs : 0);
    program_us +=
        kB2bLoopUs + rounds(*loop) * (kB2bRoundUs + std::max(0, count - 1) * kB2bSumUs +
                                      static_cast<double>(computed[loop]) * element_us +
                                      static_cast<double>(drawn_elements(kernel_, *loop)) * kB2bRandomUs);
  }
  // Programs of equal length come and go in waves, one a multiprocessor; of others short ones fill the
  // gaps.
  const double most = waves(), taken = differs_by_row(b2b, kernel_) ? most : std::ceil(most);
  return std::max(program_us, nested_us) * taken +
         loaded_in_rounds(kernel_.body, b2b, 1) * taken * kRoundLoadUs + target_.launch_s * 1e6;
}

double B2bPrice::loaded_in_rounds(const tile::Block& block, const B2bMatmul& b2b, double times) const {
  double elements = 0;
  for (const Op& op : block.ops) {
    if (op.kind != OpKind::loop || !holds_dots(op)) continue;
    const double each = times * rounds(op);
    std::set<const Op*> loads, seen;
    for (const Op& step : op.blocks[0].ops) add_loads(step, loads, seen);
    for (const Op* load : loads) {
      const tile::ValueId made = load->results[0];
      const bool by_threads = b2b.in_place.count(made) == 0 && b2b.to_threads.count(load) == 0;
      const std::vector<Index>& shape = kernel_.type(made).shape;
      if (by_threads && shape.size() == 2 && std::min(shape[0], shape[1]) > 1)
        elements += each * static_cast<double>(shape[0] * shape[1]);
    }
    elements += loaded_in_rounds(op.blocks[0], b2b, each);
  }
  return elements;
}
void B2bPrice::add_loads(const Op& op, std::set<const Op*>& loads, std::set<const Op*>& seen) const {
  if (op.kind == OpKind::loop || !seen.insert(&op).second) return;
  if (op.kind == OpKind::load) loads.insert(&op);
  for (const tile::ValueId o : op.operands)
    if (const auto made_by = made_by_.find(o); made_by != made_by_.end())
      add_loads(*made_by->second, loads, seen);
}

double B2bPrice::sums_us(const B2bMatmul& b2b) const {
  const B2bDot& first = b2b.dots.front();
  const tile::TileType &result = kernel_.type(first.op->results[0]),
                       &left = kernel_.type(first.op->operands[0]);
  tile::TensorTiles tiles{.bm = result.shape[0],
                          .bn = 0,
                          .operand_bytes = static_cast<Index>(size_bytes(left.dtype)),
                          .programs = programs(),
                          .group_m = kB2bGroupM};
  for (const B2bDot& d : b2b.dots) tiles.bn += kernel_.type(d.op->results[0]).shape[1];
  tiles.k = std::max<Index>(1, std::llround(rounds(*first.loop))) * left.shape[1];
  return tile::tensor_tiles_us(tiles, kWarpgroupRate, target_);
}

}  // namespace tilewright::cuda
