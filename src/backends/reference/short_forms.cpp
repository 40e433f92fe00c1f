// Allowances go from stores back to what they store, until none changes.
#include "backends/reference/short_forms.h"

#include <algorithm>

namespace tilewright::reference {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::Prim;

namespace {

constexpr double kOfNarrow = 0x1p-16, kOfCoarse = 0x1p-10;

double of_store(DType stored) {
  switch (stored) {
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2:
      return kOfCoarse;
    case DType::f16:
      return kOfNarrow;
    default:
      return 0;
  }
}

double of_operand(const Op& op, std::size_t operand, double of_result) {
  switch (op.prim) {
    case Prim::mul:
    case Prim::div:
    case Prim::neg:
    case Prim::abs:
    case Prim::min:
    case Prim::max:
    case Prim::sqrt:
    case Prim::rsqrt:
    case Prim::reciprocal:
      return of_result;
    case Prim::select:
      return operand == 0 ? 0 : of_result;
    case Prim::floor:
    case Prim::ceil:
    case Prim::round:
    case Prim::trunc:
    case Prim::sign:
    case Prim::rem:
      return 0;
    default:
      return tile::info(op.prim).to_bool ? 0 : std::min(of_result, kOfNarrow);
  }
}

// What operand `i` may err by when `of_result` is what the op's result may.
double allowed(const Kernel& kernel, const Op& op, std::size_t i, double of_result) {
  switch (op.kind) {
    case OpKind::store:
    case OpKind::scatter:
      return i == 0 ? of_store(kernel.views[static_cast<std::size_t>(op.param)].dtype) : 0;
    case OpKind::atomic_add:
      return i == 0 ? std::min(of_store(kernel.views[static_cast<std::size_t>(op.param)].dtype), kOfNarrow)
                    : 0;
    case OpKind::broadcast:
    case OpKind::reshape:
    case OpKind::transpose:
      return of_result;
    case OpKind::cast: {
      const DType to = kernel.type(op.results[0]).dtype;
      return to == DType::f32 || is_narrow_float(to) ? of_result : 0;
    }
    case OpKind::apply:
      return of_operand(op, i, of_result);
    case OpKind::reduce:
      return tile::finds_place(op.monoid) ? 0 : std::min(of_result, kOfNarrow);
    case OpKind::scan:
    case OpKind::dot:
      return std::min(of_result, kOfNarrow);
    default:
      return 0;
  }
}

// The part of an allowed error that a primitive's short form makes use of.
double of_prim(Prim prim, double allowed) {
  if (prim == Prim::sin || prim == Prim::cos || prim == Prim::tanh) return allowed;
  const bool has_short_form = tile::info(prim).ulp >= 1;
  return has_short_form ? std::min(allowed, kOfNarrow) : 0;
}

}  // namespace

std::vector<double> short_form_errors(const Kernel& kernel) {
  std::vector<double> of_values(kernel.values.size(), kOfCoarse);
  const auto at = [&](tile::ValueId v) -> double& { return of_values[static_cast<std::size_t>(v)]; };
  for (bool changed = true; changed;) {
    changed = false;
    tile::for_each_op(kernel.body, [&](const Op& op) {
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const double now = allowed(kernel, op, i, op.results.empty() ? 0 : at(op.results[0]));
        if (now >= at(op.operands[i])) continue;
        at(op.operands[i]) = now;
        changed = true;
      }
    });
  }
  std::vector<double> out(kernel.values.size(), 0);
  tile::for_each_op(kernel.body, [&](const Op& op) {
    if (op.kind != OpKind::apply || kernel.type(op.results[0]).dtype != DType::f32) return;
    out[static_cast<std::size_t>(op.results[0])] = of_prim(op.prim, at(op.results[0]));
  });
  return out;
}

}  // namespace tilewright::reference
