// Loads of later element loops that are asked for while an earlier one sums and exchanges.
#include "backends/cuda/kernel_printer.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::OpKind;

// What the loops behind a sum along rows load of one value a row arrives while that is summed and exchanged.
void KernelPrinter::print_early_loads(const Loop& loop) {
  const auto sums_rows = [&](const Instr& in) {
    return in.kind == Instr::Kind::reduce && loop.place.part == Part::all && role(loop, in.op->axis) == 1;
  };
  if (schedule_.dot != tile::DotUnit::fma ||
      std::none_of(loop.plan->body.begin(), loop.plan->body.end(), sums_rows))
    return;
  for (const Step& step : following_) {
    if (step.kind == Step::Kind::scalar && step.op->kind == OpKind::constant) print_scalar(*step.op);
    if (step.kind == Step::Kind::scalar) continue;
    if (step.kind != Step::Kind::elements) return;
    Loop later = begin_elements(step.loop);
    for (std::size_t i = 0; i < step.loop.body.size(); ++i) {
      const Instr& in = step.loop.body[i];
      if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::load ||
          spread_of(later, in.axes) != Part::rows || keeps_load(later, i) || staged_.count(in.op) > 0)
        continue;
      const auto& use = view_uses_[static_cast<std::size_t>(in.op->param)];
      const auto is_known = [&](ValueId v) { return scalars_.count(v) > 0; };
      if (use.written || use.accumulated ||
          !std::all_of(in.op->operands.begin(), in.op->operands.end(), is_known))
        continue;
      print_load(later, i);
      early_loads_[&in] = later.arrays[i];
    }
  }
}

}  // namespace tilewright::cuda
