// Finds inner sums by the structure of a loop's instructions.
#include "backends/cuda/analysis/inner_sums.h"

namespace tilewright::cuda {

using printer::ElementLoop;
using printer::Instr;
using tile::OpKind;
using tile::Prim;

std::set<const Instr*> find_inner_sums(const tile::Kernel& kernel, const ElementLoop& loop) {
  std::set<const Instr*> found;
  const auto computed = [&](const printer::Ref& ref, OpKind kind) -> const Instr* {
    if (ref.is_scalar()) return nullptr;
    const Instr& in = loop.body[static_cast<std::size_t>(ref.instr)];
    return in.kind == Instr::Kind::compute && in.op->kind == kind ? &in : nullptr;
  };
  for (const Instr& in : loop.body) {
    if (in.kind != Instr::Kind::reduce || in.op->monoid != tile::Monoid::sum) continue;
    const Instr* product = computed(in.operands[0], OpKind::apply);
    if (!product || product->op->prim != Prim::mul) continue;
    const Instr *a = computed(product->operands[0], OpKind::cast),
                *b = computed(product->operands[1], OpKind::cast);
    if (!a || !b) continue;
    const DType left = kernel.type(a->op->operands[0]).dtype, right = kernel.type(b->op->operands[0]).dtype;
    const auto is_narrow = [](DType d) { return d == DType::bf16 || d == DType::f16 || d == DType::i8; };
    if (!is_narrow(left) || !is_narrow(right)) continue;
    found.insert({&in, product, a, b});
  }
  return found;
}

}  // namespace tilewright::cuda
