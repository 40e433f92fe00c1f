// What an element loop computes once per row, or once at all: scalars.
#include "backends/cpu/loops/loop_uniform.h"
#include "backends/cpu/text/scalar_text.h"

#include <tilewright/base/error.h>

#include <fmt/ranges.h>

namespace tilewright::cpu {

using printer::Instr;
using tile::OpKind;

void LoopUniform::print_uniform(bool along_other) {
  for (int i : part_.instrs) {
    Node& n = node(i);
    if (n.along_vec || n.along_other != along_other || is_writing(i) || is_unused(i)) continue;
    const Instr& instr = this->instr(i);
    const DType dtype = k_.kernel.type(instr.value).dtype;
    if (instr.op && instr.kind == Instr::Kind::compute && instr.op->kind == OpKind::constant) {
      n.number = instr.op->number;
      n.text = literal(dtype, *n.number);
      continue;
    }
    if (instr.op && instr.kind == Instr::Kind::compute && instr.op->kind == OpKind::arange) {
      if (!along_other) n.number = tile::Number{};
      n.text = along_other ? row_ : literal(dtype, *n.number);
      continue;
    }
    const std::string text = uniform_text(i);
    if (n.text.empty()) n.text = k_.names.unique(k_.hints[instr.value]);
    k_.code.line("const {} {} = {};", scalar_type(dtype), n.text, text);
  }
}

std::string LoopUniform::uniform_text(int i) {
  const Instr& instr = this->instr(i);
  const Node& n = node(i);
  Pass none;
  if (instr.kind == Instr::Kind::reload) return read_element(n.access.dtype, n.base, row_element(n));
  if (is_known_choice(i)) return expressions_.term(instr.operands[1], 0, none).text;
  switch (instr.op->kind) {
    case OpKind::load: {
      std::string element = read_element(n.access.dtype, n.base, row_element(n));
      if (n.window.row_conditions.empty()) return element;
      return fmt::format("{} ? {} : {}", fmt::join(n.window.row_conditions, " && "), element,
                         literal(n.access.dtype, instr.op->number));
    }
    case OpKind::cast:
      return cast_text(k_, k_.kernel.type(instr.value).dtype, expressions_.term(instr.operands[0], 0, none))
          .text;
    case OpKind::random:
      k_.include("tw_cpu/philox.h");
      return fmt::format("i64(philox_word({}, vu64({}))[0])",
                         expressions_.term(instr.operands[0], 0, none).text,
                         expressions_.term(instr.operands[1], 0, none).text);
    case OpKind::gather: {
      const tile::Op& op = *instr.op;
      const tile::ViewParam& view = k_.kernel.views[static_cast<std::size_t>(op.param)];
      std::string element =
          read_element(view.dtype, k_.views[static_cast<std::size_t>(op.param)], indexed_offset(instr, 0));
      if (!op.masked) return element;
      return fmt::format("{} ? {} : {}", expressions_.term(instr.operands.back(), 0, none).text, element,
                         literal(view.dtype, op.number));
    }
    default: {
      TW_CHECK(instr.op->kind == OpKind::apply, "no text for this op in an element loop");
      std::vector<Term> operands;
      operands.reserve(instr.operands.size());
      for (const printer::Ref& r : instr.operands) operands.push_back(expressions_.term(r, 0, none));
      return apply_text(k_, *instr.op, operands).text;
    }
  }
}

// Where an access lies in its view whose indices are the operands from `first` on.
Amount LoopUniform::indexed_offset(const Instr& instr, std::size_t first) {
  const tile::ViewParam& view = k_.kernel.views[static_cast<std::size_t>(instr.op->param)];
  Pass none;
  std::vector<Amount> indices;
  indices.reserve(view.extents.size());
  for (std::size_t d = 0; d < view.extents.size(); ++d)
    indices.push_back(amount_of(expressions_.term(instr.operands[first + d], 0, none)));
  return element_offset(k_, view, indices);
}

void LoopUniform::print_uniform_effects() {
  for (int i : part_.instrs)
    if (is_writing(i) && !node(i).along_vec) print_uniform_effect(i);
}

void LoopUniform::print_uniform_effect(int i) {
  const Instr& instr = this->instr(i);
  const Node& n = node(i);
  Pass none;
  const Term value = expressions_.term(instr.operands[0], 0, none);
  if (instr.kind != Instr::Kind::effect) return reductions_.print_kept_scalar(i, value.text);
  const tile::Op& op = *instr.op;
  std::vector<std::string> conditions = n.window.row_conditions;
  std::string statement;
  if (op.kind == OpKind::store) {
    statement = write_element(n.access.dtype, n.base, row_element(n), value.text);
  } else {
    const tile::ViewParam& view = k_.kernel.views[static_cast<std::size_t>(op.param)];
    if (op.masked) conditions.push_back(expressions_.term(instr.operands.back(), 0, none).text);
    const std::string& base = k_.views[static_cast<std::size_t>(op.param)];
    const Amount offset = indexed_offset(instr, 1);
    if (op.kind == OpKind::atomic_add) k_.include("tw_cpu/strided.h");
    statement = op.kind == OpKind::scatter ? write_element(view.dtype, base, offset, value.text)
                                           : fmt::format("atomic_add({} + {}, {}({}));", base, offset.str(),
                                                         scalar_type(view.dtype), value.text);
  }
  if (conditions.empty())
    k_.code.add(statement);
  else
    k_.code.line("if ({}) {}", fmt::join(conditions, " && "), statement);
}

}  // namespace tilewright::cpu
