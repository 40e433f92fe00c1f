// Forms of indices, from the values up.
#include "backends/cuda/analysis/neighbours.h"

#include "backends/cuda/machine/arch.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace tilewright::cuda {

using printer::Instr;
using printer::Ref;
using tile::Op;
using tile::OpKind;
using tile::Prim;

bool Neighbours::walks_columns(const std::vector<int>& axes) const {
  return std::any_of(axes.begin(), axes.end(), [&](int a) { return a >= 0 && side_of_(a) == 1; });
}

std::optional<IndexForm> Neighbours::form(const Ref& ref) const {
  if (ref.is_scalar()) return IndexForm{0, 0, range(ref.scalar).divisor};
  const Instr& in = instr(ref);
  const bool computes = in.kind == Instr::Kind::compute || in.kind == Instr::Kind::reload;
  if (!computes || kernel_.type(in.value).dtype != DType::i64) return std::nullopt;
  // Whatever a row's is, as one that is read, or converted from a narrower type.
  const auto of_row = [&]() -> std::optional<IndexForm> {
    if (walks_columns(in.axes)) return std::nullopt;
    return IndexForm{0, 0, range(in.value).divisor};
  };
  if (in.kind == Instr::Kind::reload) return of_row();
  const Op& op = *in.op;
  if (op.kind == OpKind::constant) return IndexForm{0, 0, printer::range_of_number(op.number.i).divisor};
  if (op.kind == OpKind::arange) {
    const int side = in.axes.empty() || in.axes[0] < 0 ? -1 : side_of_(in.axes[0]);
    return IndexForm{side == 0 ? 1 : 0, side == 1 ? 1 : 0, 0};
  }
  const bool known = op.kind == OpKind::apply && (op.prim == Prim::add || op.prim == Prim::mul);
  if (!known) return of_row();
  const auto a = form(in.operands[0]), b = form(in.operands[1]);
  if (!a || !b) return of_row();
  if (op.prim == Prim::add)
    return IndexForm{a->row + b->row, a->col + b->col, std::gcd(a->divisor, b->divisor)};
  const std::optional<IndexForm> scaled = product(in, *a, *b);
  return scaled ? scaled : of_row();
}

// One factor is a number: a constant tile or scalar is the only form without row and column that is looked
// at.
std::optional<IndexForm> Neighbours::product(const Instr& in, const IndexForm& a, const IndexForm& b) const {
  for (int side : {0, 1}) {
    const Ref& factor = in.operands[static_cast<std::size_t>(side)];
    const IndexForm& other = side == 0 ? b : a;
    const Op* number = factor.is_scalar() ? nullptr : instr(factor).op;
    Index k = 0;
    if (number != nullptr && number->kind == OpKind::constant) {
      k = number->number.i;
    } else if (factor.is_scalar() && range(factor.scalar).low == range(factor.scalar).high) {
      k = range(factor.scalar).low;
    } else {
      continue;
    }
    if (std::abs(k) > (Index{1} << 31)) return std::nullopt;
    return IndexForm{other.row * k, other.col * k, std::gcd(other.divisor, Index{1} << 20) * std::abs(k)};
  }
  return std::nullopt;
}

bool Neighbours::same_in_vector(const Ref& ref) const {
  if (ref.is_scalar()) return true;
  const Instr& in = instr(ref);
  if (!walks_columns(in.axes)) return true;
  if (in.kind != Instr::Kind::compute) return false;
  if (in.op->kind == OpKind::constant) return true;
  if (in.op->kind != OpKind::apply && in.op->kind != OpKind::cast) return false;
  if (std::all_of(in.operands.begin(), in.operands.end(), [&](const Ref& r) { return same_in_vector(r); }))
    return true;
  const auto begins = [&](const Ref& index, Index columns) {
    const auto f = form(index);
    return f && f->col == columns && f->row % vector_ == 0 && f->divisor % vector_ == 0;
  };
  const bool below = in.op->kind == OpKind::apply && (in.op->prim == Prim::lt || in.op->prim == Prim::ge),
             above = in.op->kind == OpKind::apply && (in.op->prim == Prim::gt || in.op->prim == Prim::le);
  return (below && begins(in.operands[0], 1) && begins(in.operands[1], 0)) ||
         (above && begins(in.operands[0], 0) && begins(in.operands[1], 1));
}

// Whether a vector's columns lie together in a view, at places where its widest access may stand.
bool Neighbours::lies_together(const Instr& in, std::size_t first_index) const {
  const tile::ViewParam& view = kernel_.views[static_cast<std::size_t>(in.op->param)];
  const auto size = static_cast<Index>(size_bytes(view.dtype));
  const Index n = std::gcd(vector_, kWidestAccess / size);
  if (n < 2 || view.align_bytes % (n * size) != 0) return false;
  bool together = false;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const auto f = form(in.operands[first_index + d]);
    const tile::Dim& stride = view.strides[d];
    if (!f || !stride.is_constant()) return false;
    if (f->col != 0 && (together || f->col * stride.value != 1)) return false;
    together = together || f->col != 0;
    if (f->row * stride.value % n != 0 || std::gcd(f->divisor, n) * std::gcd(stride.value, n) % n != 0)
      return false;
  }
  return together;
}

bool Neighbours::gathers(const Instr& in) const {
  if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::gather) return false;
  const DType dtype = kernel_.views[static_cast<std::size_t>(in.op->param)].dtype;
  return is_float(dtype) && size_bytes(dtype) <= 4 && lies_together(in, 0) &&
         (!in.op->masked || same_in_vector(in.operands.back()));
}

bool Neighbours::adds(const Instr& in) const {
  return in.kind == Instr::Kind::effect && in.op->kind == OpKind::atomic_add &&
         kernel_.views[static_cast<std::size_t>(in.op->param)].dtype == DType::f32 && lies_together(in, 1) &&
         (!in.op->masked || same_in_vector(in.operands.back()));
}

}  // namespace tilewright::cuda
