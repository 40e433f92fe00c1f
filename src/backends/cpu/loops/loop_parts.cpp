// The state of a part of an element loop as it begins.
#include "backends/cpu/loops/loop_parts.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <utility>

namespace tilewright::cpu {

using tile::OpKind;

LoopState::LoopState(KernelText& kernel, LoopPart loop_part, RowWalk row_walk)
    : k(kernel),
      part(std::move(loop_part)),
      shape(choose_shape(kernel, part)),
      nodes(part.loop->body.size()),
      vec_count(shape.vec_count),
      other_count(shape.other_count),
      walk(std::move(row_walk)) {
  if (part.loop->shape.size() == 1 || shape.columns > 0) {
    vec = "i";
  } else {
    vec = shape.vec == 1 ? "c" : "r";
    row = shape.vec == 1 ? "r" : "c";
  }
}

DType LoopParts::dtype_of(const printer::Ref& ref) const {
  return k_.kernel.type(ref.is_scalar() ? ref.scalar : instr(ref.instr).value).dtype;
}

std::string LoopParts::copy_name(const std::string& name, int copy, const Pass& pass) const {
  return pass.copies == 1 ? name : fmt::format("{}{}", name, copy);
}

std::string LoopParts::at(const Pass& pass, int copy) const {
  return copy == 0 ? pass.index
                   : fmt::format("{} + {}", pass.index, copy * (pass.apart > 0 ? pass.apart : k_.lanes));
}

// The lanes that exist at all.
std::string LoopParts::count_mask(Pass& pass) {
  k_.include("tw_cpu/masked.h");
  std::string& variable = pass.masks[vec_count_.str()];
  if (variable.empty()) {
    variable = k_.names.unique("lanes");
    k_.code.line("const vmask {} = lanes_below({} - {});", variable, vec_count_.str(), pass.index);
  }
  return variable;
}

// The lanes at which an access has elements; empty: all.
std::string LoopParts::mask(const Node& n, Pass& pass) {
  if (!pass.masked) return "";
  if (!n.window.any()) return is_ragged() ? count_mask(pass) : "";
  k_.include("tw_cpu/masked.h");
  const std::string end = !n.row_end.empty()      ? n.row_end
                          : !n.window.end.empty() ? n.window.end
                                                  : vec_count_.str();
  std::string text = fmt::format("lanes_below({} - {})", end, pass.index);
  if (!n.window.begin.empty()) text += fmt::format(" & ~lanes_below({} - {})", n.window.begin, pass.index);
  std::string& variable = pass.masks[text];
  if (variable.empty()) {
    variable = k_.names.unique("lanes");
    k_.code.line("const vmask {} = {};", variable, text);
  }
  return variable;
}

bool LoopParts::is_accumulating(const Instr& i) {
  return (i.kind == Instr::Kind::reduce || i.kind == Instr::Kind::scan) && reduced_axis(i) >= 0;
}

// The offset of this row's element of an access that does not change along the vectors' axis.
Amount LoopParts::row_element(const Node& n) const {
  Sum sum;
  if (shape_.other >= 0) sum.add(Amount::named(row_), n.access.stride[shape_.other]);
  return sum.total();
}

bool LoopParts::is_in_blocks(int i) const {
  const Instr& in = instr(i);
  if (in.kind != Instr::Kind::reduce || in.op->kind != OpKind::reduce || in.op->monoid != tile::Monoid::sum)
    return false;
  if (!is_accumulating(in) || !is_float(dtype_of(in.operands[0]))) return false;
  const Index step = static_cast<Index>(shape_.copies) * k_.lanes;
  return (shape_.vec_outside ? shape_.other_count : ceil_div(shape_.vec_count, step)) > kLongestChain;
}

bool LoopParts::has_blocks() const {
  return std::any_of(part_.instrs.begin(), part_.instrs.end(), [&](int i) { return is_in_blocks(i); });
}

bool LoopParts::is_known_choice(int i) const {
  const Instr& in = instr(i);
  return applies(in, tile::Prim::select) && !in.operands[0].is_scalar() && node(in.operands[0].instr).always;
}

bool LoopParts::applies(const Instr& i, tile::Prim prim) {
  return i.kind == Instr::Kind::compute && i.op->kind == OpKind::apply && i.op->prim == prim;
}

}  // namespace tilewright::cpu
