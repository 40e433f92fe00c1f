// Which operations are written inside another's expression, and how expressions are put together.
#include "backends/cpu/loops/loop_expressions.h"
#include "backends/printer/expressions.h"

#include <tilewright/base/error.h>

#include <algorithm>

namespace tilewright::cpu {

using printer::Instr;
using tile::OpKind;
using tile::Prim;

namespace {

// The comparison that holds for exchanged operands.
Prim mirrored(Prim p) {
  return p == Prim::lt   ? Prim::gt
         : p == Prim::le ? Prim::ge
         : p == Prim::gt ? Prim::lt
         : p == Prim::ge ? Prim::le
                         : p;
}

}  // namespace

Term LoopExpressions::term(const printer::Ref& ref, int copy, Pass& pass) {
  Term t{.dtype = dtype_of(ref)};
  if (ref.is_scalar()) {
    t.text = k_.scalar(ref.scalar);
    t.number = k_.read(ref.scalar).number;
  } else {
    const Node& n = node(ref.instr);
    t.form = n.along_vec ? Form::vector : Form::scalar;
    if (n.in_place || is_passed_through(ref.instr)) return operation(ref.instr, copy, pass);
    t.text = n.along_vec ? copy_name(n.text, copy, pass) : n.text;
    t.number = n.number;
    t.is_simple = !n.number || !has_sign(t.dtype, *n.number);
  }
  return t;
}

// An apply or cast on its operands' terms.
Term LoopExpressions::operation(int i, int copy, Pass& pass) {
  const Instr& instr = this->instr(i);
  if (is_known_choice(i)) return term(instr.operands[1], copy, pass);
  if (const int side = lanes_.counting_side(i); side >= 0)
    return {.text = lane_mask_text(i, side, copy, pass), .dtype = DType::boolean, .form = Form::vector};
  if (instr.op->kind == OpKind::cast)
    return cast_text(k_, k_.kernel.type(instr.value).dtype, term(instr.operands[0], copy, pass));
  if (std::optional<Term> sigmoid = one_plus_tanh(i, copy, pass)) return *sigmoid;
  for (const int side : {0, 1}) {
    if (!applies(instr, Prim::add) && !applies(instr, Prim::sub)) break;
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
  if (!applies(sum, Prim::add) || dtype_of(sum.operands[0]) != DType::f32) return std::nullopt;
  for (const std::size_t side : {0, 1}) {
    const printer::Ref& tanh = sum.operands[side];
    if (tanh.is_scalar() || !node(tanh.instr).in_place || !applies(instr(tanh.instr), Prim::tanh)) continue;
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
  const bool subtracts = applies(sum, Prim::sub);
  return {.text = fmt::format("mad({}, {}, {})", text(a, subtracts && side == 1), text(b, false),
                              text(c, subtracts && side == 0)),
          .dtype = dtype_of(sum.operands[0]),
          .form = Form::vector};
}

std::string LoopExpressions::store_text(const Node& n, const std::string& value, int copy, Pass& pass) {
  const Amount& stride = n.access.stride[shape_.vec];
  const std::string lanes = mask(n, pass);
  const std::string suffix = lanes.empty() ? "" : ", " + lanes;
  const std::string boolean = is_bool(n.access.dtype) ? "_bool" : "";
  if (!boolean.empty()) k_.include("tw_cpu/masked.h");
  if (stride.is(1))
    return fmt::format("store{}({} + {}, {}{});", boolean, n.pointer, at(pass, copy), value, suffix);
  k_.include("tw_cpu/strided.h");
  const std::string index = copy == 0 ? pass.index : "(" + at(pass, copy) + ")";
  return fmt::format("store{}_strided({} + {} * {}, {}, {}{});", boolean, n.pointer, index, stride.str(),
                     stride.str(), value, suffix);
}

// Adds what a value that counts along the row is at its element 0: a sum of values that all lanes share.
void LoopExpressions::add_first(const printer::Ref& ref, Sum& sum, Pass& pass) {
  const Instr& i = instr(ref.instr);
  if (i.op->kind == OpKind::arange) return;
  const bool right = !lanes_.is_uniform(i.operands[1]);
  const printer::Ref& counting = i.operands[right ? 1 : 0];
  const Term base = term(i.operands[right ? 0 : 1], 0, pass);
  add_first(counting, sum, pass);
  sum.add(base.number ? amount_of(base) : Amount::named(amount_of(base).factor()),
          applies(i, Prim::sub) ? -1 : 1);
}

std::string LoopExpressions::first_text(const printer::Ref& ref, int copy, Pass& pass) {
  Sum sum;
  add_first(ref, sum, pass);
  return sum.add(Amount::expression(at(pass, copy))).total().str();
}

// The mask that a comparison of lane counts is.
std::string LoopExpressions::lane_mask_text(int i, int side, int copy, Pass& pass) {
  k_.include("tw_cpu/masked.h");
  const Instr& in = instr(i);
  const Prim prim = side == 0 ? in.op->prim : mirrored(in.op->prim);
  const std::string first = first_text(in.operands[static_cast<std::size_t>(side)], copy, pass);
  const std::string limit = term(in.operands[static_cast<std::size_t>(1 - side)], 0, pass).text;
  if (prim == Prim::eq || prim == Prim::ne)
    return fmt::format("{}lane_at({}, {})", prim == Prim::ne ? "~" : "", limit, first);
  const bool inclusive = prim == Prim::le || prim == Prim::gt, negated = prim == Prim::gt || prim == Prim::ge;
  return fmt::format("{}lanes_{}({}, {})", negated ? "~" : "", inclusive ? "up_to" : "before", limit, first);
}

// Four vectors of words at a time; the block is computed with the first of them.
std::string LoopExpressions::words_text(int i, int copy, Pass& pass) {
  k_.include("tw_cpu/philox.h");
  if (copy % 4 == 0) {
    pass.words = k_.names.unique("words");
    k_.code.line("const PhiloxBlock {} = philox_consecutive({}, {});", pass.words,
                 term(instr(i).operands[0], 0, pass).text, first_text(instr(i).operands[1], copy, pass));
  }
  return fmt::format("convert<vi64>({}.word[{}])", pass.words, copy % 4);
}

}  // namespace tilewright::cpu
