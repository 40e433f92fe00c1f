#include "backends/printer/powers_below.h"

namespace tilewright::printer {

using tile::Monoid;
using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::ValueId;

std::vector<const Op*> definitions(const tile::Kernel& kernel) {
  std::vector<const Op*> out(kernel.values.size(), nullptr);
  tile::for_each_op(kernel.body, [&](const Op& op) {
    for (ValueId v : op.results) out[static_cast<std::size_t>(v)] = &op;
  });
  return out;
}

const Op* behind(const std::vector<const Op*>& definitions, OpKind kind, ValueId v) {
  const auto of = [&](ValueId value) { return definitions[static_cast<std::size_t>(value)]; };
  while (of(v) && of(v)->kind == kind) v = of(v)->operands[0];
  return of(v);
}

std::optional<PowersBelow> powers_below(const std::vector<const Op*>& definitions, const Op& sum) {
  const auto of = [&](ValueId v) { return definitions[static_cast<std::size_t>(v)]; };
  const auto is = [](const Op* op, Prim prim) { return op && op->kind == OpKind::apply && op->prim == prim; };
  if (sum.kind != OpKind::reduce || sum.monoid != Monoid::sum) return std::nullopt;
  const Op* exp = of(sum.operands[0]);
  if (!is(exp, Prim::exp) || !is(of(exp->operands[0]), Prim::sub)) return std::nullopt;
  const Op& sub = *of(exp->operands[0]);
  const Op* max = behind(definitions, OpKind::broadcast, sub.operands[1]);
  if (!max || max->kind != OpKind::reduce || max->monoid != Monoid::max ||
      max->operands[0] != sub.operands[0] || max->axis != sum.axis)
    return std::nullopt;
  return PowersBelow{sub.operands[0], max->results[0]};
}

}  // namespace tilewright::printer
