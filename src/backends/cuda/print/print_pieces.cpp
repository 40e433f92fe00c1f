// Element loops over an accumulator of tensor cores, piece by piece instead of row by row: 64 rows of a few
// columns at a time. So a result leaves by way of shared memory, one piece after another (device/tw_cuda/
// tile_store.cuh), and so what is loaded for the columns stands in registers for a piece alone.
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace tilewright::cuda {

void ElementPrinter::print_pieces(PrintedLoop& loop) {
  const TileFrame& f = loop.frame;
  const Index blocks = f.row_steps() / kHalvesOfPiece, panels = f.col_steps() / loop.pieces.vectors,
              quads = loop.pieces.vectors / kQuad;
  print_row_starts(loop);
  if (panels > 1) out_.unrolled("panel", panels);
  if (loop.pieces.loads) loads_.print_piece_loads(loop, Part::cols);
  if (blocks > 1) out_.unrolled("block", blocks);
  if (loop.pieces.rows > 1) loads_.print_piece_loads(loop, Part::all);
  out_.unrolled("half", kHalvesOfPiece);
  out_.line("const int r = {}half;", blocks > 1 ? fmt::format("block * {} + ", kHalvesOfPiece) : "");
  if (loop.pieces.rows == 1) loads_.print_piece_loads(loop, Part::all);
  print_at(loop, Level::row);
  if (quads > 1) out_.unrolled("quad", quads);
  const IndexText quad = quads > 1 ? "quad" : "0",
                  index = panels > 1 ? IndexText("panel") * quads + quad : quad;
  print_quad(loop, index.is(0) ? "" : fmt::format("{} + ", (index * Index{kQuad}).str()), index.str());
  if (quads > 1) out_.close();
  out_.close();
  if (loop.pieces.tma_store >= 0) print_tma_store(loop);
  if (blocks > 1) out_.close();
  if (panels > 1) out_.close();
  reductions_.print_exchange(loop);
}

// A row's accumulators go from piece to piece.
void ElementPrinter::print_row_starts(PrintedLoop& loop) {
  const bool any = std::any_of(loop.plan->body.begin(), loop.plan->body.end(), [&](const Instr& in) {
    return in.kind == Instr::Kind::reduce && role(loop, in.op->axis) == 1;
  });
  if (!any) return;
  out_.unrolled("r", loop.frame.row_steps());
  reductions_.print_reduction_starts_of_row(loop);
  out_.close();
}

// The piece that was written, to where it belongs.
void ElementPrinter::print_tma_store(const PrintedLoop& loop) {
  const TileFrame& f = loop.frame;
  const Access access(kernel_, ranges_, *plan_.dots.result->op);
  std::vector<std::string> layout;
  for (const int d : plan_.dots.result->block.dims)
    layout.push_back(expressions_.as_type(expressions_.scalar(access.start(d)), "i32"));
  if (f.col_steps() > loop.pieces.vectors)
    layout[0] += fmt::format(" + panel * {}", plan_.dots.result->columns());
  if (f.row_steps() > kHalvesOfPiece) layout[1] += fmt::format(" + block * {}", kHalvesOfPiece * f.groups);
  if (dot_warpgroups(schedule_) > 1) layout[1] += fmt::format(" + group * {}", kPieceRows);
  out_.line("send(store_stages, {}, group, {});", k_.map_names().back(), fmt::join(layout, ", "));
}

}  // namespace tilewright::cuda
