// Which operations are written inside another's expression, and how expressions are put together.
#include "backends/cpu/loops/loop_text.h"
#include "backends/printer/expressions.h"

#include <tilewright/base/error.h>

#include <algorithm>

namespace tilewright::cpu {

using printer::Instr;
using tile::OpKind;
using tile::Prim;

namespace {

// Functions that are worth this many operations are not put inside each other: with a statement for each the
// copies' work alternates, so that they overlap.
constexpr double kHeavyFlops = 8;

bool is_operation(const Instr& i) {
  return i.kind == Instr::Kind::compute && (i.op->kind == OpKind::apply || i.op->kind == OpKind::cast);
}
bool is_prim(const Instr& i, Prim prim) {
  return i.kind == Instr::Kind::compute && i.op->kind == OpKind::apply && i.op->prim == prim;
}
bool is_heavy(const Instr& i) {
  return is_operation(i) && i.op->kind == OpKind::apply && info(i.op->prim).flops >= kHeavyFlops;
}

}  // namespace

void LoopAnalysis::choose_in_place() {
  for (int i : part_.instrs)
    for (const printer::Ref& r : instr(i).operands)
      if (!r.is_scalar()) {
        ++node(r.instr).uses;
        node(r.instr).consumer = i;
      }
  for (int i : part_.instrs) {
    Node& n = node(i);
    if (!is_operation(instr(i)) || !n.along_vec) continue;
    for (const printer::Ref& r : instr(i).operands)
      if (!r.is_scalar() && node(r.instr).in_place) n.operations += node(r.instr).operations;
    n.in_mad = is_product_of_mad(i);
    n.in_place = n.in_mad || fits_in_place(i);
  }
}

bool LoopAnalysis::fits_in_place(int i) const {
  const Node& n = node(i);
  if (n.uses != 1 || n.operations > printer::kExpressionOperations) return false;
  const Instr& user = instr(n.consumer);
  if (!is_operation(user) || is_prim(user, Prim::isnan)) return false;
  if (shape_.vec_outside && is_inner(i) != is_inner(n.consumer)) return false;
  if (!is_heavy(user)) return true;
  const auto has_heavy = [&](const auto& self, int at) -> bool {
    if (is_heavy(instr(at))) return true;
    return std::any_of(instr(at).operands.begin(), instr(at).operands.end(), [&](const printer::Ref& r) {
      return !r.is_scalar() && node(r.instr).in_place && self(self, r.instr);
    });
  };
  return !has_heavy(has_heavy, i);
}

// A product is contracted only with a term that is no such product itself: x*x - y*y stays 0 for x = y.
bool LoopAnalysis::is_product_of_mad(int i) const {
  const Node& n = node(i);
  if (!is_prim(instr(i), Prim::mul) || n.uses != 1) return false;
  const DType dtype = k_.kernel.type(instr(i).value).dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return false;
  const Instr& user = instr(n.consumer);
  if (!is_prim(user, Prim::add) && !is_prim(user, Prim::sub)) return false;
  if (shape_.vec_outside && is_inner(i) != is_inner(n.consumer)) return false;
  return std::all_of(user.operands.begin(), user.operands.end(), [&](const printer::Ref& r) {
    return r.is_scalar() || r.instr == i || !is_prim(instr(r.instr), Prim::mul);
  });
}

Term LoopExpressions::term(const printer::Ref& ref, int copy, Pass& pass) {
  Term t{.dtype = dtype_of(ref)};
  if (ref.is_scalar()) {
    t.text = k_.scalar(ref.scalar);
  } else {
    const Node& n = node(ref.instr);
    t.form = n.along_vec ? Form::vector : Form::scalar;
    if (n.in_place) return operation(ref.instr, copy, pass);
    t.text = n.along_vec ? copy_name(n.text, copy, pass) : n.text;
  }
  t.is_simple = t.text[0] != '-';
  return t;
}

// An apply or cast on its operands' terms.
Term LoopExpressions::operation(int i, int copy, Pass& pass) {
  const Instr& instr = this->instr(i);
  if (const int side = lanes_.counting_side(i); side >= 0)
    return {.text = lane_mask_text(i, side, copy, pass), .dtype = DType::boolean, .form = Form::vector};
  if (instr.op->kind == OpKind::cast)
    return cast_text(k_, k_.kernel.type(instr.value).dtype, term(instr.operands[0], copy, pass));
  if (std::optional<Term> sigmoid = one_plus_tanh(i, copy, pass)) return *sigmoid;
  for (const int side : {0, 1}) {
    if (!is_prim(instr, Prim::add) && !is_prim(instr, Prim::sub)) break;
    const printer::Ref& product = instr.operands[static_cast<std::size_t>(side)];
    if (product.is_scalar() || !node(product.instr).in_mad) continue;
    return multiply_add(i, side, copy, pass);
  }
  std::vector<Term> operands;
  operands.reserve(instr.operands.size());
  for (const printer::Ref& r : instr.operands) operands.push_back(term(r, copy, pass));
  return apply_text(k_, *instr.op, operands);
}

bool LoopExpressions::is_constant(const printer::Ref& ref, double value) const {
  const tile::Op* op = ref.is_scalar() ? k_.definition(ref.scalar) : instr(ref.instr).op;
  return op && op->kind == OpKind::constant && op->number.f == value;
}

// tanh(x) + 1, where nobody else reads the tanh.
std::optional<Term> LoopExpressions::one_plus_tanh(int i, int copy, Pass& pass) {
  const Instr& sum = instr(i);
  if (!is_prim(sum, Prim::add) || dtype_of(sum.operands[0]) != DType::f32) return std::nullopt;
  for (const std::size_t side : {0, 1}) {
    const printer::Ref& tanh = sum.operands[side];
    if (tanh.is_scalar() || !node(tanh.instr).in_place || !is_prim(instr(tanh.instr), Prim::tanh)) continue;
    if (!is_constant(sum.operands[1 - side], 1)) continue;
    k_.include("tw_cpu/sigmoid.h");
    const std::string x = as_vector(k_, term(instr(tanh.instr).operands[0], copy, pass));
    return Term{.text = fmt::format("one_plus_tanh({})", x), .dtype = DType::f32, .form = Form::vector};
  }
  return std::nullopt;
}

// a*b + c, a*b - c or c - a*b, whose product is operand `side`.
Term LoopExpressions::multiply_add(int i, int side, int copy, Pass& pass) {
  const Instr& sum = instr(i);
  const Instr& product = instr(sum.operands[static_cast<std::size_t>(side)].instr);
  const Term a = term(product.operands[0], copy, pass), b = term(product.operands[1], copy, pass);
  const Term c = term(sum.operands[static_cast<std::size_t>(1 - side)], copy, pass);
  const auto text = [&](const Term& t, bool negate) {
    std::string vector = as_vector(k_, t);
    if (!negate) return vector;
    return t.form == Form::scalar || t.is_simple ? "-" + vector : "-(" + vector + ")";
  };
  const bool subtracts = is_prim(sum, Prim::sub);
  return {.text = fmt::format("mad({}, {}, {})", text(a, subtracts && side == 1), text(b, false),
                              text(c, subtracts && side == 0)),
          .dtype = dtype_of(sum.operands[0]),
          .form = Form::vector};
}

}  // namespace tilewright::cpu
