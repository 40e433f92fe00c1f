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
  if (!loop.pieces.fetched.empty()) out_.write("store_stages.wait();");
  if (loop.pieces.rows > 1) loads_.print_piece_loads(loop, Part::all);
  out_.unrolled("half", kHalvesOfPiece);
  out_.line("const int r = {}half;", blocks > 1 ? fmt::format("block * {} + ", kHalvesOfPiece) : "");
  if (loop.pieces.rows == 1) loads_.print_piece_loads(loop, Part::all);
  loads_.print_fetched_rows(loop);
  print_at(loop, Level::row);
  print_words_of_row(loop);
  if (quads > 1) out_.unrolled("quad", quads);
  const IndexText quad = quads > 1 ? IndexText("quad") : 0,
                  index = panels > 1 ? IndexText("panel") * quads + quad : quad;
  print_quad(loop, index.is(0) ? "" : fmt::format("{} + ", (index * Index{kQuad}).str()), index.str());
  if (quads > 1) out_.close();
  out_.close();
  if (!loop.pieces.staged_stores.empty()) print_staged_pieces(loop);
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

// The coordinates of a piece in a view, from the contiguous dimension outwards.
std::string ElementPrinter::piece_place(const Op& op, const TensorBlock& block, const PieceIndex& piece) {
  const Access access(kernel_, ranges_, op);
  std::vector<std::string> at;
  at.reserve(block.dims.size());
  for (const int d : block.dims)
    at.push_back(expressions_.as_type(expressions_.scalar(access.start(d)), DType::i32));
  const auto add = [](std::string& to, const IndexText& more) {
    if (!more.is(0)) to += " + " + more.str();
  };
  add(at[0], piece.panel * plan_.dots.results[0].columns());
  add(at[1], piece.block * piece.rows);
  if (dot_warpgroups(schedule_) > 1) at[1] += fmt::format(" + group * {}", kPieceRows);
  return fmt::format("{}", fmt::join(at, ", "));
}

// Prints the place of the tile whose pieces the threads store, and the ends of the view.
void ElementPrinter::print_tile_of_rows(PrintedLoop& loop, std::size_t i, const Access& access) {
  loop.bounds[i] = loads_.print_bounds(loop, loop.plan->body[i], access);
  const int param = access.op().param;
  loop.addresses[i].base = out_.local(names_.stem(param) + "_tile");
  const Index blocks = loop.frame.row_steps() / kHalvesOfPiece;
  loop.addresses[i].waiting = out_.local(names_.stem(param) + "_waiting");
  out_.line("u32 {}[{}] = {{}};", loop.addresses[i].waiting, blocks);
  out_.line("{}* const {} = {} + {};", access.view().dtype, loop.addresses[i].base, names_.view(param),
            expressions_.base_offset(access).str());
}

// A piece that was written, by the threads: no row of it needs to be aligned.
void ElementPrinter::print_staged_rows(const PrintedLoop& loop, std::size_t i, const PieceIndex& piece) {
  const Op& op = *loop.plan->body[i].op;
  const Access access(kernel_, ranges_, op);
  const Bounds& b = loop.bounds[i];
  IndexText row = piece.block * piece.rows;
  if (dot_warpgroups(schedule_) > 1) row = row + IndexText("group") * kPieceRows;
  const IndexText column = piece.panel * plan_.dots.results[0].columns();
  const std::string rows = row.is(0) ? b.end_row : fmt::format("{} - ({})", b.end_row, row.str()),
                    columns = column.is(0) ? b.end_col : fmt::format("{} - {}", b.end_col, column.str());
  std::string at = loop.addresses[i].base;
  if (!row.is(0))
    at += fmt::format(" + i64({}) * {}", row.str(), expressions_.stride_text(access, access.dim_of(0)).str());
  if (!column.is(0)) at += " + " + column.str();
  const Index panels = loop.frame.col_steps() / loop.pieces.vectors;
  // A warpgroup that has a tile of its own has registers for two rows beside it, else for four.
  out_.line("send_rows<{}>(store_stages, {}[{}], {}, {}, {}, {}, {}, {});",
            is_pingpong(plan_.schedule) ? 2 : 4, loop.addresses[i].waiting, piece.block.is(0) ? "0" : "block",
            panels > 1 ? "panel > 0" : "false", panels > 1 ? fmt::format("panel < {}", panels - 1) : "false",
            at, expressions_.stride_text(access, access.dim_of(0)).str(),
            b.uniform.empty() ? rows : fmt::format("{} ? {} : 0", b.uniform, rows), columns);
}

// The pieces that were written, to where they belong; and in its turn that of the tile that is loaded.
void ElementPrinter::print_staged_pieces(const PrintedLoop& loop) {
  const TileFrame& f = loop.frame;
  const Index panels = f.col_steps() / loop.pieces.vectors, blocks = f.row_steps() / kHalvesOfPiece,
              rows = kHalvesOfPiece * f.groups;
  const IndexText panel = panels > 1 ? IndexText("panel") : 0, block = blocks > 1 ? IndexText("block") : 0;
  const auto& results = plan_.dots.results;
  out_.write(results[0].by_engine ? "end_of_pieces(store_stages, group);" : "warpgroup_sync(group);");
  for (const int i : loop.pieces.staged_stores) {
    if (!results[0].by_engine) {
      print_staged_rows(loop, static_cast<std::size_t>(i), {panel, block, rows});
      continue;
    }
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (results[k].op != loop.plan->body[static_cast<std::size_t>(i)].op) continue;
      out_.line("send(store_stages, {}, {});", k_.map_name(k_.map_names().size() - results.size() + k),
                piece_place(*results[k].op, results[k].block, {panel, block, rows}));
    }
  }
  if (loop.pieces.fetched.size() > results.size())
    out_.line("store_stages.skip({});", loop.pieces.fetched.size() - results.size());
  if (loop.pieces.fetched.empty() || panels * blocks <= kFetchedPieces) return;
  const IndexText next = panel * blocks + block + kFetchedPieces;
  out_.open_if_needed("if ({} < {})", next.str(), panels * blocks);
  print_fetch(kFetchedPieces - 1, {next / blocks, next % blocks, rows});
  out_.close();
}

// The pieces of all loaded tiles that are `ahead` of the next ones.
void ElementPrinter::print_fetch(Index ahead, const PieceIndex& piece) {
  for (std::size_t i = 0; i < plan_.elements.fetched.size(); ++i) {
    const auto load = static_cast<std::size_t>(plan_.elements.fetched[i]);
    const TileLoad& l = plan_.dots.loads[load];
    out_.line("fetch<{}>(store_stages, {}, {}, {});", i, ahead, k_.map_name(kOperandMaps + load),
              piece_place(*l.op, l.block, piece));
  }
}

void ElementPrinter::print_first_pieces() {
  for (const auto& [loop, pieces] : plan_.elements.pieces) {
    if (pieces.fetched.empty()) continue;
    const TileFrame& f = layouts_.frame(layouts_.loops.at(loop));
    const Index panels = f.col_steps() / pieces.vectors, blocks = f.row_steps() / kHalvesOfPiece;
    for (Index i = 0; i < std::min(kFetchedPieces, panels * blocks); ++i)
      print_fetch(i, {i / blocks, i % blocks, kHalvesOfPiece * f.groups});
  }
}

}  // namespace tilewright::cuda
