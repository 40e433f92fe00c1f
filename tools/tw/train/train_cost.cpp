// FLOPs of a token, and the device's peak from what is known of the machine.
#include "tw/train/train_cost.h"

#include <tilewright/perf/hardware.h>

#include "runtime/measured_target.h"
#include "tensor/state.h"

namespace tilewright::tw {

const char* const kMfuFormula =
    "mfu: tokens/s x (6N + 6LCT) FLOPs over the device's peak in the precision of the products; N "
    "parameters without the positions' table, L layers, C wide, T tokens of context, of which attention "
    "reads "
    "half. The peak is the measured one of `tw devices --probe`, else a rule of thumb";

namespace {

bool rounds_f32(const tile::Target& target) {
  for (const tile::MatrixUnit& unit : target.matrix_units)
    for (const tile::MatrixOperands& row : unit.operands)
      if (row.dtype == DType::f32 && row.rounded) return true;
  return false;
}

double peak_flops_per_s(const perf::Hardware& machine, const tile::Target& target, Precision precision) {
  const auto of = [&](DType dtype) { return perf::rate(machine, perf::MathUnit::matrix, dtype).flops_per_s; };
  switch (precision) {
    case Precision::bf16:
      return of(DType::bf16);
    case Precision::f16:
      return of(DType::f16);
    case Precision::fp8:
    case Precision::fp8_block:
      return of(DType::f8e4m3);
    case Precision::tf32:  // half the rate of bf16 (perf::Cost::tf32)
      return rounds_f32(target) ? of(DType::bf16) / 2 : of(DType::f32);
    case Precision::f32:
      break;
  }
  return of(DType::f32);
}

}  // namespace

TrainCost train_cost(Context& ctx, const nn::GPT2& model, const nn::GPT2Config& config, Precision precision) {
  TrainCost cost;
  for (const Tensor& t : tensors_of(model)) cost.parameters += static_cast<double>(t.size());
  cost.parameters -= static_cast<double>(model.wpe.weight.size());
  cost.flops_per_token =
      6 * cost.parameters + 6 * static_cast<double>(config.layers * config.width * config.context);
  const detail::DeviceState& device = ctx.state()->device(ctx.options().device);
  const perf::Hardware machine = device.ceilings ? *device.ceilings : runtime::rules_of_thumb(device.target);
  cost.peak_flops_per_s = peak_flops_per_s(machine, device.target, precision);
  // Cores start two vector multiply-adds a cycle; the rule of thumb, which is for schedules, counts what most
  // kernels reach, one.
  if (!device.ceilings && device.target.kind == tile::TargetKind::cpu) cost.peak_flops_per_s *= 2;
  cost.peak_source = device.ceilings ? "measured by tw devices --probe" : "a rule of thumb";
  return cost;
}

}  // namespace tilewright::tw
