// Scales from the largest values, and values rounded behind them.
#include "passes/graph/scaled_operands.h"

#include "ops/composites.h"
#include "ops/functions.h"

namespace tilewright::passes {

using ir::Value;

namespace {

// A largest value below this counts as this: its reciprocal is finite, and zeros have a scale.
constexpr double kLeastAmax = 0x1p-100;

Value magnitude(Value x) { return ops::abs(ops::cast(x, DType::f32)); }

Value scale_of(Value amax, DType type) {
  return ops::mul(ops::maximum(amax, ops::full_like(amax, kLeastAmax)),
                  ops::full_like(amax, 1 / max_finite(type)));
}

// x over scales that are spread to its shape.
Value codes_of(Value x, Value scale, DType type) {
  const Value inverse = ops::broadcast_to(ops::reciprocal(scale), x.shape());
  return ops::cast(ops::mul(ops::cast(x, DType::f32), inverse), type);
}

Value filled(Value x, Index axis) {
  const Index length = x.shape()[static_cast<int>(axis)], fill = round_up(length, ops::kScaleBlock) - length;
  return fill == 0 ? x : ops::pad_axis(x, axis, 0, fill);
}

}  // namespace

ScaledOperand scaled_by_tensor(Value x, DType type) {
  const Value scale = scale_of(ops::max(magnitude(x)), type);
  return {codes_of(x, scale, type), ops::reshape(scale, {1, 1})};
}

ScaledOperand scaled_by_rows(Value x, DType type) {
  x = filled(x, 1);
  const Index rows = x.shape()[0], depth = x.shape()[1], blocks = depth / ops::kScaleBlock;
  const Value apart = ops::reshape(x, {rows, blocks, ops::kScaleBlock});
  const Value scale = scale_of(ops::max(magnitude(apart), {2}), type);
  const Value codes = codes_of(apart, ops::reshape(scale, {rows, blocks, 1}), type);
  return {ops::reshape(codes, {rows, depth}), scale};
}

ScaledOperand scaled_by_squares(Value x, DType type) {
  x = filled(filled(x, 0), 1);
  const Index down = x.shape()[0] / ops::kScaleBlock, across = x.shape()[1] / ops::kScaleBlock;
  const Value apart = ops::reshape(x, {down, ops::kScaleBlock, across, ops::kScaleBlock});
  const Value scale = scale_of(ops::max(magnitude(apart), {1, 3}), type);
  const Value codes = codes_of(apart, ops::reshape(scale, {down, 1, across, 1}), type);
  return {ops::reshape(codes, x.shape()), scale};
}

}  // namespace tilewright::passes
