// One op at a time, in the order of the program.
#include "tile/scalar_values.h"

#include "tile/prim_eval.h"

namespace tilewright::tile {

void ScalarValues::evaluate(const Op& op) {
  if (op.results.empty()) return;
  std::optional<std::int64_t>& result = of(op.results[0]);
  result = std::nullopt;
  const TileType& type = kernel_.type(op.results[0]);
  if (type.rank() != 0 || is_float(type.dtype)) return;
  if (op.kind == OpKind::constant) result = op.number.i;
  if (op.kind == OpKind::scalar_param && static_cast<std::size_t>(op.param) < scalars_.size())
    result = scalars_[static_cast<std::size_t>(op.param)];
  if (op.kind == OpKind::program_id) result = program_[static_cast<std::size_t>(op.param)];
  if (op.kind == OpKind::apply) result = apply(op);
}

std::optional<std::int64_t> ScalarValues::apply(const Op& op) {
  std::int64_t operands[3] = {};
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const auto& operand = of(op.operands[i]);
    if (!operand || is_float(kernel_.type(op.operands[i]).dtype)) return std::nullopt;
    operands[i] = *operand;
  }
  if (op.prim == Prim::select) return operands[0] != 0 ? operands[1] : operands[2];
  return eval_i64(op.prim, kernel_.type(op.operands[0]).dtype, operands[0], operands[1]);
}

}  // namespace tilewright::tile
