// Indexed accesses whose neighbouring columns are neighbours in memory: gathers and additions of a vector at
// once.
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;

namespace {

bool by_columns(const PrintedLoop& loop) {
  return loop.frame.vector % 2 == 0 && loop.frame.whole_vectors() &&
         (loop.layout.part == Part::all || loop.layout.part == Part::cols);
}

}  // namespace

Neighbours LoopAnalysis::neighbours(const PrintedLoop& loop) const {
  const auto side_of = [&loop](int axis) { return role(loop, axis); };
  return {kernel_, ranges_, *loop.plan, side_of, loop.frame.vector};
}

bool LoopAnalysis::gathers_vector(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  return by_columns(loop) && level(loop, in) == Level::element && neighbours(loop).gathers(in);
}

// A condition of such gathers that others read, too: computed once a vector.
bool LoopAnalysis::masks_vector(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::apply || loop.uses[i] < 2) return false;
  for (std::size_t g = 0; g < loop.plan->body.size(); ++g) {
    const Instr& user = loop.plan->body[g];
    if (user.op && user.op->kind == OpKind::gather && user.op->masked && !user.operands.empty() &&
        !user.operands.back().is_scalar() && static_cast<std::size_t>(user.operands.back().instr) == i &&
        gathers_vector(loop, g))
      return level(loop, in) == Level::element;
  }
  return false;
}

bool LoopAnalysis::adds_vector(const PrintedLoop& loop, std::size_t i) const {
  return plan_.options.arch.has_vector_adds() && by_columns(loop) &&
         neighbours(loop).adds(loop.plan->body[i]);
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
    out_.line("Vec<{}, {}> {};", compute_dtype(dtype), n, loop.outputs[i]);
    return;
  }
  loop.outputs[i] = out_.local(names_.stem(in.op->param) + "_sum");
  out_.line("Vec<{}, {}> {};", dtype, n, loop.outputs[i]);
  out_.line("{0}* {1}_to = nullptr;", dtype, loop.outputs[i]);
}

// A vector of gathered elements that lie together: all are loaded with the first of them.
TypedText ElementPrinter::gathered_vector(PrintedLoop& loop, std::size_t i,
                                          const std::vector<TypedText>& operands) {
  const Op& op = *loop.plan->body[i].op;
  const tile::ViewParam& view = kernel_.views[static_cast<std::size_t>(op.param)];
  const std::vector<TypedText> indices(operands.begin(), operands.begin() + view.rank());
  const std::string cache = expressions_.load_cache(op);
  const std::string at =
      fmt::format("{} + {}", names_.view(op.param), expressions_.view_offset(op.param, indices).str());
  need("memory");
  std::string text = op.masked ? fmt::format("load_if<{}{}>({}, {}, {})", loop.frame.vector, cache,
                                             operands.back().text, at, stored_literal(view.dtype, op.number))
                               : fmt::format("load<{}{}>({})", loop.frame.vector, cache, at);
  if (is_narrow_float(view.dtype)) {
    need("convert");
    text = fmt::format("to_f32({})", text);
  }
  out_.line("if (v == 0) {} = {};", loop.outputs[i], text);
  return {loop.outputs[i] + ".v[v]", compute_dtype(view.dtype)};
}

}  // namespace tilewright::cuda
