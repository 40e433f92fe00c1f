// The instructions of an element loop: vectors, and scalars for what does not change along them.
#include "backends/cpu/loops/loop_body.h"
#include "backends/cpu/text/scalar_text.h"

#include <tilewright/base/error.h>

#include <fmt/ranges.h>

namespace tilewright::cpu {

using printer::Instr;
using tile::OpKind;

void LoopBody::print_body(Pass& pass, Which which) {
  for (int i : part_.instrs) {
    const Node& n = node(i);
    if (!n.along_vec || n.in_place || is_passed_through(i) || (!n.needed && !is_writing(i))) continue;
    if (!is_of(i, which)) continue;
    if (is_accumulating(instr(i)))
      reductions_.accumulate(i, pass);
    else if (instr(i).kind == Instr::Kind::effect && instr(i).op->kind != OpKind::store)
      print_indexed_effect(i, pass);
    else if (is_writing(i))
      print_store(i, pass);
    else
      print_vector(i, pass);
  }
}

void LoopBody::print_vector(int i, Pass& pass) {
  Node& n = node(i);
  const Instr& instr = this->instr(i);
  if (n.text.empty()) n.text = k_.names.unique(k_.hints[instr.value]);
  std::vector<std::string> declarators;
  declarators.reserve(pass.copies);
  for (int copy = 0; copy < pass.copies; ++copy)
    declarators.push_back(fmt::format("{} = {}", copy_name(n.text, copy, pass), compute_text(i, copy, pass)));
  k_.code.declare(fmt::format("const {}", vector_type(k_.kernel.type(instr.value).dtype)), declarators);
}

std::string LoopBody::compute_text(int i, int copy, Pass& pass) {
  const Instr& instr = this->instr(i);
  if (instr.kind == Instr::Kind::reload) return load_text(i, copy, pass);
  switch (instr.op->kind) {
    case OpKind::load:
      return load_text(i, copy, pass);
    case OpKind::gather:
      return gather_text(i, copy, pass);
    case OpKind::arange:
      return fmt::format("convert<vi64>(iota()) + ({})", at(pass, copy));
    case OpKind::random: {
      if (lanes_.is_block_of_words(i)) return expressions_.words_text(i, copy, pass);
      k_.include("tw_cpu/philox.h");
      const Term counter = expressions_.term(instr.operands[1], copy, pass);
      return fmt::format("convert<vi64>(philox_word({}, bits_as<vu64>({})))",
                         expressions_.term(instr.operands[0], copy, pass).text, as_vector(k_, counter));
    }
    default: {
      TW_CHECK(instr.op->kind == OpKind::apply || instr.op->kind == OpKind::cast,
               "no text for this op in an element loop");
      return expressions_.operation(i, copy, pass).text;
    }
  }
}

std::string LoopBody::load_text(int i, int copy, Pass& pass) {
  const Node& n = node(i);
  const Amount& stride = n.access.stride[shape_.vec];
  // Buffers have room for whole vectors, so what is read beyond their end does no harm.
  const bool from_buffer = instr(i).kind == Instr::Kind::reload || is_repeated(n);
  const std::string lanes = from_buffer && stride.is(1) ? "" : mask(n, pass);
  const bool boolean = is_bool(n.access.dtype);
  std::string fill;
  if (!lanes.empty()) {
    const tile::Number number = from_buffer || !instr(i).op->bounded ? tile::Number{} : instr(i).op->number;
    Term literal_term{.text = literal(n.access.dtype, number), .dtype = n.access.dtype};
    fill = fmt::format(", {}, {}", lanes, as_vector(k_, literal_term));
  }
  if (stride.is(1)) {
    if (boolean) k_.include("tw_cpu/masked.h");
    std::string place = at(pass, copy);
    if (is_repeated(n) && n.lies == BesideRows::again)
      place = k_.lanes % shape_.columns == 0 ? "0" : fmt::format("u64({}) % {}", place, shape_.columns);
    return fmt::format("{}({} + {}{})", boolean ? "load_bool" : "load", n.pointer, place, fill);
  }
  k_.include("tw_cpu/strided.h");
  const std::string index = copy == 0 ? pass.index : "(" + at(pass, copy) + ")";
  return fmt::format("{}({} + {} * {}, {}{})", boolean ? "load_bool_strided" : "load_strided", n.pointer,
                     index, stride.str(), stride.str(), fill);
}

// Stores, and what is kept for a later loop.
void LoopBody::print_store(int i, Pass& pass) {
  const Node& n = node(i);
  const bool to_buffer = instr(i).kind != Instr::Kind::effect;
  // A buffer has room for the rest of a vector beyond its last element.
  Pass unmasked = pass;
  const bool whole = to_buffer && n.access.stride[shape_.vec].is(1);
  if (whole) unmasked.masked = false;
  std::vector<std::string> values;
  values.reserve(pass.copies);
  for (int copy = 0; copy < pass.copies; ++copy)
    values.push_back(as_vector(k_, expressions_.term(instr(i).operands[0], copy, pass)));
  if (instr(i).kind == Instr::Kind::reduce && tile::finds_place(instr(i).op->monoid))
    std::fill(values.begin(), values.end(), "vi64(0)");  // the only element is the extreme
  const auto print_all = [&] {
    for (int copy = 0; copy < pass.copies; ++copy)
      k_.code.add(
          expressions_.store_text(n, values[static_cast<std::size_t>(copy)], copy, whole ? unmasked : pass));
  };
  if (!n.streams || pass.masked) return print_all();
  k_.code.open("if ({})", n.stream_test);
  for (int copy = 0; copy < pass.copies; ++copy) {
    std::string value = values[static_cast<std::size_t>(copy)];
    if (is_bool(n.access.dtype)) {
      k_.include("tw_cpu/masked.h");
      value = fmt::format("bool_bytes({})", value);
    }
    k_.code.line("store_stream({} + {}, {});", n.pointer, at(pass, copy), value);
  }
  k_.code.close("} else {");
  k_.code.indent();
  print_all();
  k_.code.close();
}

// Offsets of a gather or scatter, whose indices begin at operand `first`: "row * 1024 + column". Where its
// lanes lie side by side it is the first one's.
std::string LoopBody::offsets_text(int i, std::size_t first, int copy, Pass& pass) {
  const tile::ViewParam& view = k_.kernel.views[static_cast<std::size_t>(instr(i).op->param)];
  const int walked = lanes_.walked_index(i);
  std::vector<Amount> indices;
  bool vector = walked >= 0;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const printer::Ref& index = instr(i).operands[first + d];
    if (static_cast<int>(first + d) == walked) {
      indices.push_back(Amount::named("(" + expressions_.first_text(index, copy, pass) + ")"));
      continue;
    }
    const Term t = expressions_.term(index, copy, pass);
    vector = vector || t.form == Form::vector;
    indices.push_back(amount_of(t));
  }
  const std::string sum = element_offset(k_, view, indices).str();
  return vector ? sum : fmt::format("vi64({})", sum);
}

std::string LoopBody::gather_text(int i, int copy, Pass& pass) {
  k_.include("tw_cpu/strided.h");  // with masked.h
  const tile::Op& op = *instr(i).op;
  std::string lanes = pass.masked && is_ragged() ? count_mask(pass) : "";
  if (op.masked) {
    const std::string own = as_vector(k_, expressions_.term(instr(i).operands.back(), copy, pass));
    lanes = lanes.empty() ? own : own + " & " + lanes;
  }
  const DType dtype = k_.kernel.type(instr(i).value).dtype;
  if (!lanes.empty()) {
    Term fill{.text = literal(dtype, op.number), .dtype = dtype};
    lanes = fmt::format(", {}, {}", lanes, as_vector(k_, fill));
  }
  const bool side_by_side = lanes_.walked_index(i) >= 0;
  return fmt::format("{}{}({}{}{}{})", side_by_side ? "load" : "gather", is_bool(dtype) ? "_bool" : "",
                     k_.views[static_cast<std::size_t>(op.param)], side_by_side ? " + " : ", ",
                     offsets_text(i, 0, copy, pass), lanes);
}

void LoopBody::print_indexed_effect(int i, Pass& pass) {
  k_.include("tw_cpu/strided.h");
  const tile::Op& op = *instr(i).op;
  const std::string exist = pass.masked && is_ragged() ? count_mask(pass) : "";
  for (int copy = 0; copy < pass.copies; ++copy) {
    std::string lanes = exist.empty() ? "vmask(-1)" : exist;
    if (op.masked) {
      const std::string own = as_vector(k_, expressions_.term(instr(i).operands.back(), copy, pass));
      lanes = exist.empty() ? own : fmt::format("{} & {}", own, exist);
    }
    const Term value = expressions_.term(instr(i).operands[0], copy, pass);
    const bool side_by_side = lanes_.walked_index(i) >= 0;
    const bool adds = op.kind == OpKind::atomic_add;
    k_.code.line(
        "{}{}({}{}{}, {}, {});",
        adds ? (side_by_side ? "add_side_by_side" : "atomic_add") : (side_by_side ? "store" : "scatter"),
        is_bool(value.dtype) ? "_bool" : "", k_.views[static_cast<std::size_t>(op.param)],
        side_by_side ? " + " : ", ", offsets_text(i, 1, copy, pass), as_vector(k_, value), lanes);
  }
}

}  // namespace tilewright::cpu
