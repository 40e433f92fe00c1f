// Sizes, before anything is printed.
#include "backends/cuda/layout/cluster_exchange.h"

#include "backends/cuda/analysis/schedule_fields.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::ElementLoop;
using printer::Instr;
using printer::Step;

Index reduction_state_bytes(DType dtype, tile::Monoid monoid) {
  return std::max<Index>(4, static_cast<Index>(size_bytes(dtype))) * (tile::finds_place(monoid) ? 2 : 1);
}

Index cluster_column_bytes(const TileFrame& frame, Part part, bool repeated, Index state_bytes) {
  const Index columns =
      part == Part::rows ? frame.threads_per_row : frame.threads_per_row * frame.col_steps() * frame.vector;
  return (repeated ? 2 : 1) * frame.row_blocks * columns * state_bytes;
}

namespace {

Index bytes_of_loop(const LayoutInput& input, const Layouts& layouts, const ElementLoop& loop,
                    bool repeated) {
  const auto layout = layouts.loops.find(&loop);
  if (layout == layouts.loops.end() || layout->second.part == Part::one) return 0;
  const TileFrame& frame = layouts.frame(layout->second);
  if (frame.row_blocks == 1) return 0;
  Index bytes = 0;
  for (const Instr& in : loop.body) {
    if (in.kind != Instr::Kind::reduce || side_of_axis(loop, layout->second, in.op->axis) != 0) continue;
    bytes += cluster_column_bytes(
        frame, layout->second.part, repeated,
        reduction_state_bytes(input.kernel.type(in.op->operands[0]).dtype, in.op->monoid));
  }
  return bytes;
}

Index bytes_of_steps(const LayoutInput& input, const Layouts& layouts, const std::vector<Step>& steps,
                     bool repeated) {
  Index bytes = 0;
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::elements) bytes += bytes_of_loop(input, layouts, step.loop, repeated);
    for (const auto& body : step.body) bytes += bytes_of_steps(input, layouts, body, /*repeated=*/true);
  }
  return bytes;
}

}  // namespace

Index cluster_exchange_bytes(const LayoutInput& input, const Layouts& layouts) {
  return shares_rows(input.schedule)
             ? bytes_of_steps(input, layouts, input.plan.steps, walks_programs(input.schedule))
             : 0;
}

}  // namespace tilewright::cuda
