// Element loops over an accumulator of tensor cores, piece by piece instead of row by row: 64 rows of a few
// columns at a time. So a result leaves by way of shared memory, one piece after another (device/tw_cuda/
// tile_store.cuh), and so what is loaded for the columns stands in registers for a piece alone.
#include "backends/cuda/print/kernel_printer.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace tilewright::cuda {

namespace {
constexpr int kHalves = 2;  // rows of a thread in a piece
// Of the registers that a multiplying thread has, those for the accumulator, what is loaded for its columns
// and what these are reduced to, which begins where the accumulator ends.
constexpr Index kRoom = 216;
}  // namespace

void KernelPrinter::choose_pieces(Loop& loop) {
  const Frame& f = loop.frame;
  if (schedule_.dot != tile::DotUnit::wgmma || (!dot_ && !result_) || loop.place.part != Part::all ||
      f.map != RowMap::mma)
    return;
  const bool scans = std::any_of(loop.plan->body.begin(), loop.plan->body.end(),
                                 [](const Instr& in) { return in.kind == Instr::Kind::scan; });
  Index registers = f.elements_per_thread(), reduced = 0;
  for (const Instr& in : loop.plan->body) {
    const auto i = static_cast<std::size_t>(&in - loop.plan->body.data());
    if (result_ && in.kind == Instr::Kind::effect && in.op == result_->op) {
      if (scans) refuse("store_places: rows are scanned where they are stored");
      if (role(loop, in.axes[0]) != 0 || role(loop, in.axes[1]) != 1)
        refuse("store_places: the tile is stored the other way round");
      loop.sent = static_cast<int>(i);
      loop.piece_vectors = result_->columns() / (Index{kQuad} * f.vector);
      result_sent_ = true;
    }
    if (in.kind == Instr::Kind::compute && in.op->kind == tile::OpKind::load &&
        spread_of(loop, in.axes) == Part::cols)
      registers += f.col_steps() * f.vector;
    if (in.kind == Instr::Kind::reduce && role(loop, in.op->axis) == 0) reduced += f.col_steps() * f.vector;
  }
  if (chain_) return;  // whose element loops stand between products
  registers += reduced;
  // Two warpgroups' tiles of 192 columns leave none: ptxas spilled 100 bytes.
  if (schedule_.ping_pong && reduced > 0 && f.elements_per_thread() + reduced > kRoom)
    refuse("ping_pong: no registers are left for what columns are reduced to");
  loop.loads_by_piece = !scans && registers > kRoom;
  if (loop.loads_by_piece && loop.piece_vectors == 0) loop.piece_vectors = kQuad;
}

bool KernelPrinter::loaded_by_piece(const Loop& loop, Part part) {
  return loop.loads_by_piece && part == Part::cols;
}

void KernelPrinter::print_pieces(Loop& loop) {
  const Frame& f = loop.frame;
  const Index blocks = f.row_steps() / kHalves, panels = f.col_steps() / loop.piece_vectors,
              quads = loop.piece_vectors / kQuad;
  print_row_starts(loop);
  if (panels > 1) out_.unrolled("panel", panels);
  if (loop.loads_by_piece) print_piece_loads(loop);
  if (blocks > 1) out_.unrolled("block", blocks);
  out_.unrolled("half", kHalves);
  out_.line("const int r = {}half;", blocks > 1 ? fmt::format("block * {} + ", kHalves) : "");
  print_at(loop, Level::row);
  if (quads > 1) out_.unrolled("quad", quads);
  const std::string quad = quads > 1 ? "quad" : "0",
                    index = panels > 1 ? fmt::format("panel * {} + {}", quads, quad) : quad;
  print_quad(loop, fmt::format("({}) * {} + ", index, kQuad), index);
  if (quads > 1) out_.close();
  out_.close();
  if (loop.sent >= 0) print_send(loop);
  if (blocks > 1) out_.close();
  if (panels > 1) out_.close();
  print_exchange(loop);
}

// A row's accumulators go from piece to piece.
void KernelPrinter::print_row_starts(Loop& loop) {
  const bool any = std::any_of(loop.plan->body.begin(), loop.plan->body.end(), [&](const Instr& in) {
    return in.kind == Instr::Kind::reduce && role(loop, in.op->axis) == 1;
  });
  if (!any) return;
  out_.unrolled("r", loop.frame.row_steps());
  print_reduction_starts_of_row(loop);
  out_.close();
}

// The piece that was written, to where it belongs.
void KernelPrinter::print_send(const Loop& loop) {
  const Frame& f = loop.frame;
  const Access access(kernel_, ranges_, *result_->op);
  std::vector<std::string> place;
  for (const int d : result_->block.dims) place.push_back(as_type(scalar(access.start(d)), "i32"));
  if (f.col_steps() > loop.piece_vectors) place[0] += fmt::format(" + panel * {}", result_->columns());
  if (f.row_steps() > kHalves) place[1] += fmt::format(" + block * {}", kHalves * f.groups);
  if (dot_warpgroups() > 1) place[1] += fmt::format(" + group * {}", kPieceRows);
  out_.line("send(outbox, {}, group, {});", map_names_.back(), fmt::join(place, ", "));
}

// Behind the operands' blocks.
void KernelPrinter::print_outbox() {
  if (!result_) return;
  need("tile_store");
  const ChainText* last = chain_ ? &chain_text_.back() : nullptr;
  const std::string end = last ? fmt::format("{} + {} * {}::bytes", last->stage, last->places, last->type)
                               : fmt::format("b_blocks + {} * B::bytes", schedule_.stages);
  out_.line("Outbox<{0}> outbox{{{1} + u32(group) * {0} * kPieceBytes, 0}};", schedule_.store_places, end);
  stage_bytes_ += sent_bytes();
}

Index KernelPrinter::sent_bytes() const {
  return schedule_.threads / kWarpgroup * schedule_.store_places * kPieceBytes;
}

}  // namespace tilewright::cuda
