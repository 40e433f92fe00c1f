// Exponentials of what lies below a row's or a column's own number, e^(x·c - y), in kernels of back-to-back
// dots: as powers of 2, one multiply-add and one instruction of the special units for each element, where x
// is known to be no larger than dots are; else one multiplication more, so that equal x·c and y give 1. And a
// row's largest x·c, c > 0: the largest x, times c, which is the same number since rounding keeps order.
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

namespace tilewright::cuda {

using tile::OpKind;
using tile::Prim;

namespace {

bool applies(const printer::Instr& in, Prim prim) {
  return in.kind == printer::Instr::Kind::compute && in.op->kind == OpKind::apply && in.op->prim == prim;
}

// Uses of a value by the loop's instructions, those printed as part of another expression included.
int uses_of(const PrintedLoop& loop, int instr) {
  int uses = 0;
  for (const printer::Instr& in : loop.plan->body)
    for (const printer::Ref& ref : in.operands) uses += !ref.is_scalar() && ref.instr == instr ? 1 : 0;
  return uses;
}

}  // namespace

// A constant that an operand is.
std::optional<double> LoopAnalysis::constant_of(const PrintedLoop& loop, const printer::Ref& ref) const {
  const tile::Op* op = nullptr;
  if (!ref.is_scalar()) {
    const Instr& in = loop.plan->body[static_cast<std::size_t>(ref.instr)];
    op = in.kind == Instr::Kind::compute ? in.op : nullptr;
  } else {
    op = k_.scalars().scalar_definition(ref.scalar);
  }
  if (!op || op->kind != OpKind::constant || kernel_.type(op->results[0]).dtype != DType::f32)
    return std::nullopt;
  return op->number.f;
}

// x and c of x · c.
std::optional<LoopAnalysis::Scaled> LoopAnalysis::scaled(const PrintedLoop& loop,
                                                         const printer::Ref& ref) const {
  if (ref.is_scalar()) return std::nullopt;
  const Instr& in = loop.plan->body[static_cast<std::size_t>(ref.instr)];
  if (!applies(in, Prim::mul) || kernel_.type(in.value).dtype != DType::f32) return std::nullopt;
  for (std::size_t side : {0u, 1u})
    if (const auto c = constant_of(loop, in.operands[side]); c && !in.operands[1 - side].is_scalar())
      return Scaled{ref.instr, in.operands[1 - side], *c};
  return std::nullopt;
}

// x carries rounding errors of its own size, beside which those of x · log2 e and y · log2 e are as small: it
// is a sum of products, or computed from one.
bool LoopAnalysis::comes_from_dot(const PrintedLoop& loop, const printer::Ref& ref) const {
  if (ref.is_scalar()) return false;
  std::set<ValueId> seen;
  const std::function<bool(ValueId)> visit = [&](ValueId v) {
    if (!seen.insert(v).second) return false;
    if (std::any_of(b2b_->dots.begin(), b2b_->dots.end(),
                    [&](const B2bDot& d) { return loops_.storage(d.op->results[0]) == loops_.storage(v); }))
      return true;
    const tile::Op* op = facts_.definitions[static_cast<std::size_t>(v)];
    return op && op->kind == OpKind::apply && op->prim != Prim::exp && op->prim != Prim::exp2 &&
           std::any_of(op->operands.begin(), op->operands.end(), visit);
  };
  return visit(loop.plan->body[static_cast<std::size_t>(ref.instr)].value);
}

// A dot, or made of dots, infinities, and numbers that are small beside what dots may be: not of a tensor in
// memory, which may hold a mask's -1e30.
bool LoopAnalysis::is_dot_sized(ValueId value) const {
  constexpr double kSmall = 0x1p16;  // · log2 e is rounded by 2^-8 at most
  if (std::any_of(b2b_->dots.begin(), b2b_->dots.end(),
                  [&](const B2bDot& d) { return loops_.storage(d.op->results[0]) == loops_.storage(value); }))
    return true;
  const tile::Op* op = facts_.definitions[static_cast<std::size_t>(value)];
  const auto all = [&](std::size_t first) {
    return std::all_of(op->operands.begin() + static_cast<std::ptrdiff_t>(first), op->operands.end(),
                       [&](ValueId v) { return is_dot_sized(v); });
  };
  if (!op) return false;
  switch (op->kind) {
    case OpKind::constant:
      return !is_float(kernel_.type(value).dtype) || !std::isfinite(op->number.f) ||
             std::fabs(op->number.f) <= kSmall;
    case OpKind::program_id:
    case OpKind::arange:
      return true;
    case OpKind::broadcast:
    case OpKind::reshape:
    case OpKind::transpose:
    case OpKind::cast:
      return all(0);
    case OpKind::apply:
      return all(op->prim == Prim::select ? 1 : 0);
    default:
      return false;
  }
}

std::optional<LoopAnalysis::ExpBelow> LoopAnalysis::exp_below(const PrintedLoop& loop,
                                                              const Instr& in) const {
  if (!b2b_ || !applies(in, Prim::exp) || in.operands[0].is_scalar() ||
      kernel_.type(in.value).dtype != DType::f32 || level(loop, in) != Level::element ||
      loop.layout.part != Part::all)
    return std::nullopt;
  const Instr& sub = loop.plan->body[static_cast<std::size_t>(in.operands[0].instr)];
  if (!applies(sub, Prim::sub) || uses_of(loop, in.operands[0].instr) != 1) return std::nullopt;
  const printer::Ref x = sub.operands[0], y = sub.operands[1];
  const Instr* subtracted = y.is_scalar() ? nullptr : &loop.plan->body[static_cast<std::size_t>(y.instr)];
  const bool by_column = subtracted && spread_of(loop, subtracted->axes) == Part::cols;
  if (subtracted && !by_column && level(loop, *subtracted) != Level::row) return std::nullopt;
  if (!comes_from_dot(loop, x)) return std::nullopt;
  // y · log2 e is rounded in proportion to y, and overflows beside the largest numbers. That of a row is
  // looked after once; where a mask is a large number instead of -inf, x and y are subtracted first.
  const bool by_difference =
      by_column || !is_dot_sized(loop.plan->body[static_cast<std::size_t>(x.instr)].value);
  ExpBelow out{
      .sub = in.operands[0].instr, .x = x, .y = y, .by_column = by_column, .by_difference = by_difference};
  if (const auto product = scaled(loop, x); product && uses_of(loop, product->instr) == 1) {
    out.mul = product->instr;
    out.x = product->x;
    out.scale = product->by;
  }
  return out;
}

// What is the same along a row, before its elements.
void ElementPrinter::print_exp_offsets(PrintedLoop& loop) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const auto below = analysis_.exp_below(loop, loop.plan->body[i]);
    if (!below) continue;
    need("math_fast");
    if (below->by_difference) continue;
    loop.outputs[i] = out_.local(names_.hint(loop.plan->body[i].value) + "_offset");
    out_.line("const f32 {} = fast::exp_offset({});", loop.outputs[i], operand(loop, below->y).text);
  }
}

TypedText ElementPrinter::exp_expr(PrintedLoop& loop, std::size_t i, const ExpBelow& below) {
  const TypedText x = operand(loop, below.x);
  const auto of_f32 = [](std::string text, int operations) {
    return TypedText{std::move(text), DType::f32, operations, Binding::call};
  };
  if (below.by_difference) {
    const TypedText y = operand(loop, below.y);
    const int both = x.operations + y.operations + 2;
    if (below.scale == 1.0) return of_f32(fmt::format("fast::exp({} - {})", wrapped(x), wrapped(y)), both);
    return of_f32(fmt::format("fast::exp(fmaf({}, {}, -{}))", x.text, literal(DType::f32, {below.scale, 0}),
                              wrapped(y)),
                  both);
  }
  const std::string by =
      below.scale == 1.0 ? "fast::kLog2E" : literal(DType::f32, {below.scale * std::numbers::log2e, 0});
  return of_f32(fmt::format("fast::exp2(fmaf({}, {}, {}))", x.text, by, loop.outputs[i]), x.operations + 2);
}

// The row's largest of x · c, c > 0, in an accumulator that this loop owns.
std::optional<LoopAnalysis::Scaled> LoopAnalysis::scaled_extreme(const PrintedLoop& loop,
                                                                 const Instr& in) const {
  const bool extreme = in.kind == Instr::Kind::reduce && in.op->kind == OpKind::reduce &&
                       (in.op->monoid == tile::Monoid::max || in.op->monoid == tile::Monoid::min);
  if (!b2b_ || !extreme || loop.layout.part != Part::all || role(loop, in.op->axis) != 1) return std::nullopt;
  auto product = scaled(loop, in.operands[0]);
  if (!product || !(product->by > 0) || !std::isfinite(product->by)) return std::nullopt;
  return product;
}

}  // namespace tilewright::cuda
