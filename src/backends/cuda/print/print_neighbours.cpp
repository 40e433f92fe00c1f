// Indexed accesses whose neighbouring columns are neighbours in memory: gathers and additions of a vector at
// once.
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

#include <algorithm>
#include <numeric>

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;
using tile::Prim;

namespace {

constexpr Index kWidestAccess = 16;

// Elements of the widest access that divides a vector.
Index at_once(const TileFrame& f, DType dtype) {
  return std::gcd(Index{f.vector}, kWidestAccess / static_cast<Index>(size_bytes(dtype)));
}

bool by_columns(const PrintedLoop& loop) {
  return loop.frame.vector % 2 == 0 && loop.frame.whole_vectors() &&
         (loop.layout.part == Part::all || loop.layout.part == Part::cols);
}

}  // namespace

// Whether a vector's columns lie together in a view, at places where its widest access may stand. Indices
// begin with operand `first`.
bool LoopAnalysis::lies_together(const PrintedLoop& loop, const Instr& in, std::size_t first) const {
  const tile::ViewParam& view = kernel_.views[static_cast<std::size_t>(in.op->param)];
  const Index n = at_once(loop.frame, view.dtype);
  if (n < 2 || view.align_bytes % (n * static_cast<Index>(size_bytes(view.dtype))) != 0) return false;
  bool together = false;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const auto form = index_form(loop, in.operands[first + d]);
    const tile::Dim& stride = view.strides[d];
    if (!form || !stride.is_constant()) return false;
    if (form->col != 0 && (together || form->col * stride.value != 1)) return false;
    together = together || form->col != 0;
    if (form->row * stride.value % n != 0 || std::gcd(form->divisor, n) * std::gcd(stride.value, n) % n != 0)
      return false;
  }
  return together;
}

// Whether a value is the same for all columns of a vector: so is what compares a column with a multiple of
// its length, where the vector begins at one.
bool LoopAnalysis::same_in_vector(const PrintedLoop& loop, const printer::Ref& ref) const {
  if (ref.is_scalar()) return true;
  const Instr& in = loop.plan->body[static_cast<std::size_t>(ref.instr)];
  const Part part = spread_of(loop, in.axes);
  if (part == Part::rows || part == Part::one) return true;
  if (in.kind != Instr::Kind::compute) return false;
  if (in.op->kind == OpKind::constant) return true;
  if (in.op->kind != OpKind::apply && in.op->kind != OpKind::cast) return false;
  if (std::all_of(in.operands.begin(), in.operands.end(),
                  [&](const printer::Ref& operand) { return same_in_vector(loop, operand); }))
    return true;
  const Index n = loop.frame.vector;
  const auto begins = [&](const printer::Ref& index, Index columns) {
    const auto form = index_form(loop, index);
    return form && form->col == columns && form->row % n == 0 && form->divisor % n == 0;
  };
  const bool below = in.op->kind == OpKind::apply && (in.op->prim == Prim::lt || in.op->prim == Prim::ge),
             above = in.op->kind == OpKind::apply && (in.op->prim == Prim::gt || in.op->prim == Prim::le);
  return (below && begins(in.operands[0], 1) && begins(in.operands[1], 0)) ||
         (above && begins(in.operands[0], 0) && begins(in.operands[1], 1));
}

// One load for a vector of floats.
bool LoopAnalysis::gathers_vector(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::gather || !by_columns(loop) ||
      level(loop, in) != Level::element)
    return false;
  const DType dtype = kernel_.views[static_cast<std::size_t>(in.op->param)].dtype;
  return is_float(dtype) && size_bytes(dtype) <= 4 && lies_together(loop, in, 0) &&
         (!in.op->masked || same_in_vector(loop, in.operands.back()));
}

// A condition of such gathers that others read, too: computed once a vector.
bool LoopAnalysis::masks_vector(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::apply || loop.uses[i] < 2) return false;
  for (std::size_t g = 0; g < loop.plan->body.size(); ++g) {
    const Instr& user = loop.plan->body[g];
    if (user.op && user.op->kind == OpKind::gather && user.op->masked && !user.operands.back().is_scalar() &&
        static_cast<std::size_t>(user.operands.back().instr) == i && gathers_vector(loop, g))
      return level(loop, in) == Level::element;
  }
  return false;
}

// One addition for 16 bytes.
bool LoopAnalysis::adds_vector(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  if (!plan_.options.arch.has_vector_adds() || in.kind != Instr::Kind::effect ||
      in.op->kind != OpKind::atomic_add || !by_columns(loop))
    return false;
  return kernel_.views[static_cast<std::size_t>(in.op->param)].dtype == DType::f32 &&
         lies_together(loop, in, 1) && (!in.op->masked || same_in_vector(loop, in.operands.back()));
}

// Before a vector's elements: where what they share is kept.
void ElementPrinter::print_neighbour_heads(PrintedLoop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  const int n = loop.frame.vector;
  if (analysis_.masks_vector(loop, i)) {
    loop.outputs[i] = out_.local(names_.hint(in.value));
    out_.line("bool {} = false;", loop.outputs[i]);
    return;
  }
  const DType dtype = kernel_.views[static_cast<std::size_t>(in.op->param)].dtype;
  if (in.op->kind == OpKind::gather) {
    loop.outputs[i] = out_.local(names_.hint(in.value));
    out_.line("Vec<{}, {}> {};", compute_type(dtype), n, loop.outputs[i]);
    return;
  }
  loop.outputs[i] = out_.local(names_.stem(in.op->param) + "_sum");
  out_.line("Vec<{}, {}> {};", element_type(dtype), n, loop.outputs[i]);
  out_.line("{0}* {1}_to = nullptr;", element_type(dtype), loop.outputs[i]);
}

// With the first of them, all are loaded.
TypedText ElementPrinter::gathered_vector(PrintedLoop& loop, std::size_t i,
                                          const std::vector<TypedText>& operands) {
  const Op& op = *loop.plan->body[i].op;
  const tile::ViewParam& view = kernel_.views[static_cast<std::size_t>(op.param)];
  const std::vector<TypedText> indices(operands.begin(), operands.begin() + view.rank());
  const std::string cache = facts_.is_written(op.param) ? "" : ", Cache::constant";
  const std::string at =
      fmt::format("{} + {}", names_.view(op.param), expressions_.view_offset(op.param, indices));
  need("memory");
  std::string text = op.masked ? fmt::format("load_if<{}{}>({}, {}, {})", loop.frame.vector, cache,
                                             operands.back().text, at, stored_literal(view.dtype, op.number))
                               : fmt::format("load<{}{}>({})", loop.frame.vector, cache, at);
  if (is_narrow_float(view.dtype)) {
    need("convert");
    text = fmt::format("to_f32({})", text);
  }
  out_.line("if (v == 0) {} = {};", loop.outputs[i], text);
  return {loop.outputs[i] + ".v[v]", compute_type(view.dtype)};
}

}  // namespace tilewright::cuda
