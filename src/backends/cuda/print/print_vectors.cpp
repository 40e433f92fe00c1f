// Extremes of 16-bit floats along a row, two elements at a time.
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::Monoid;
using tile::OpKind;

// The load or reload of 16-bit floats whose extreme along the row `in` takes, perhaps behind a cast to f32.
std::optional<int> LoopAnalysis::packed_extreme(const PrintedLoop& loop, const Instr& in) const {
  const TileFrame& f = loop.frame;
  if (in.kind != Instr::Kind::reduce || in.op->kind != OpKind::reduce ||
      (in.op->monoid != Monoid::max && in.op->monoid != Monoid::min) || role(loop, in.op->axis) != 1 ||
      f.vector % 2 != 0 || (f.ragged_cols() && !f.whole_vectors()))
    return std::nullopt;
  int source = in.operands[0].instr;
  if (source < 0) return std::nullopt;
  const Instr* from = &loop.plan->body[static_cast<std::size_t>(source)];
  if (from->kind == Instr::Kind::compute && from->op->kind == OpKind::cast &&
      !from->operands[0].is_scalar() && kernel_.type(from->value).dtype == DType::f32) {
    source = from->operands[0].instr;
    from = &loop.plan->body[static_cast<std::size_t>(source)];
  }
  const DType dtype = from->value < 0 ? DType::f32 : kernel_.type(from->value).dtype;
  const Registers& r = loop.arrays[static_cast<std::size_t>(source)];
  const bool packed = is_array(*from) && (dtype == DType::bf16 || dtype == DType::f16) && !r.staged &&
                      r.type == dtype && r.layout == loop.layout;
  return packed ? std::optional(source) : std::nullopt;
}

void ReductionPrinter::print_packed_extremes(PrintedLoop& loop) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    const auto source = analysis_.packed_extreme(loop, in);
    if (!source) continue;
    need("extreme");
    std::string state = loop.states[i];
    if (loop.layout.part == Part::all) {
      Registers rows = registers_.buffer(in.value);
      rows.name = state;
      state = registers_.element(rows);
    }
    const std::string_view name = in.op->monoid == Monoid::max ? "max" : "min";
    const Registers& r = loop.arrays[static_cast<std::size_t>(*source)];
    if (crowded_ && loop.plan->body[static_cast<std::size_t>(*source)].kind == Instr::Kind::reload)
      out_.line("opaque({});", registers_.at(r));
    out_.line("{0} = {1}({0}, {1}_of({2}));", state, name, registers_.at(r));
  }
}

}  // namespace tilewright::cuda
