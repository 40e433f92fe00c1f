// What element loops load: addresses, bounds, and the registers that take it.
#include "backends/cuda/print/pipeline.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::IndexText;
using printer::range_of;
using tile::Op;
using tile::OpKind;

Address LoadPrinter::print_address(const PrintedLoop& loop, const Instr& in, const Access& access) {
  Address a;
  const std::string in_shared = k_.pipeline().tile_in_shared(access.op());
  IndexText layout = in_shared.empty() ? expressions_.base_offset(access) : IndexText(0);
  const TileFrame& f = loop.frame;
  for (int axis = 0; axis < static_cast<int>(in.axes.size()); ++axis) {
    const int loop_axis = in.axes[static_cast<std::size_t>(axis)];
    const int side = loop_axis < 0 ? -1 : role(loop, loop_axis);
    if (side < 0) continue;
    const tile::Dim& stride = access.stride(access.dim_of(axis));
    const IndexText each = expressions_.stride_text(access, access.dim_of(axis));
    const auto scaled = [&](Index n) { return IndexText(n) * each; };
    if (side == 0) {
      const Index run = f.map == RowMap::runs ? f.row_steps() : 1;
      const bool fits = stride.is_constant() && std::abs(stride.value) * run * f.row_groups() < (1 << 30);
      if (!loop.thread.one_group)
        layout = layout + IndexText(fits ? loop.thread.g : "i64(" + loop.thread.g + ")") * scaled(run);
      a.row_term = row_step_text(f, scaled);
    } else {
      layout = layout + IndexText(stride.is_constant() ? loop.thread.t : "i64(" + loop.thread.t + ")") *
                            scaled(f.vector);
      a.col_step = scaled(f.row_threads() * f.vector);
      if (f.shifted) {
        layout = layout - IndexText(loop.shift) * each;
        a.shifted = layouts_.shifted->aligned.count(in.op) == 0;
        continue;
      }
      // The vectors were chosen for the main tile: what lies otherwise is read element by element.
      if (!access.contiguous(axis) || !access.aligned(axis, f.vector)) a.element_step = each.str();
    }
  }
  const std::string view = in_shared.empty() ? names_.view(access.op().param) : in_shared;
  if (layout.is(0)) {
    a.base = view;
    return a;
  }
  a.base = out_.local(names_.stem(access.op().param) + "_at");
  const bool written = facts_.is_written(access.op().param);
  out_.line("{}{}* const {} = {} + {};", written ? "" : "const ", access.view().dtype, a.base, view,
            layout.added());
  return a;
}

Bounds LoadPrinter::print_bounds(const PrintedLoop& loop, const Instr& in, const Access& access) {
  Bounds b;
  const TileFrame& f = loop.frame;
  const bool spreads_cols = loop.layout.part == Part::cols || loop.layout.part == Part::all;
  b.cols = spreads_cols && f.ragged_cols();
  b.rows = (loop.layout.part == Part::rows || loop.layout.part == Part::all) && f.ragged_rows();
  b.whole = f.whole_vectors();
  b.end_col = integer(f.cols);
  b.end_row = integer(f.rows);
  if (b.cols && f.shifted) b.first_col = "0";
  std::vector<bool> walked(static_cast<std::size_t>(access.rank()), false);
  const std::string view = names_.stem(access.op().param);
  bool rows_used = false, cols_used = false;
  for (int axis = 0; axis < static_cast<int>(in.axes.size()); ++axis) {
    const int loop_axis = in.axes[static_cast<std::size_t>(axis)];
    const int side = loop_axis < 0 ? -1 : role(loop, loop_axis);
    const int dim = access.dim_of(axis);
    if (side < 0) continue;
    (side == 0 ? rows_used : cols_used) = true;
    walked[static_cast<std::size_t>(dim)] = true;
    const bool below = access.checked_below(dim), above = access.checked_above(dim);
    if (!below && !above) continue;
    const std::string start = expressions_.as_type(expressions_.scalar(access.start(dim)), DType::i64);
    const Index size = side == 0 ? f.rows : f.cols;
    std::string& end = side == 0 ? b.end_row : b.end_col;
    std::string& first = side == 0 ? b.first_row : b.first_col;
    if (above) {
      b.inner_end = b.inner_end || side == 1;
      end = out_.local(view + (side == 0 ? "_rows" : "_cols"));
      out_.line("const int {} = end_inside({}, {}, {});", end, start,
                expressions_.dim_text(access.extent(dim)).str(), size);
    }
    if (below) {
      first = out_.local(view + (side == 0 ? "_first_row" : "_first_col"));
      out_.line("const int {} = first_inside({}, {});", first, start, size);
    }
    (side == 0 ? b.rows : b.cols) = true;
    if (side == 1) b.whole = b.whole && access.whole_vectors(axis, f.vector);
    need("edge");
  }
  if (!rows_used) b.rows = false;
  if (!cols_used) b.cols = false;
  b.uniform = expressions_.inside(access, walked);
  return b;
}

// All loads of a loop come first: as many bytes in flight as there are registers for.
void LoadPrinter::print_loads(PrintedLoop& loop) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (in.kind == Instr::Kind::compute && in.op->kind == OpKind::load && !loop.pieces.fetches(i) &&
        !loaded_by_piece(loop, spread_of(loop, in.axes)))
      print_load(loop, i);
    if (in.kind == Instr::Kind::reload) {
      const Part part = spread_of(loop, in.axes);
      loop.arrays[i] = k_.exchanges().converted(
          in.value, part == Part::one ? ThreadLayout{} : ThreadLayout{loop.layout.frame, part});
    }
  }
}

// What stands along the columns of a piece, or in both of its axes.
void LoadPrinter::print_piece_loads(PrintedLoop& loop, Part part) {
  piece_ = &loop.pieces;
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (in.kind == Instr::Kind::compute && in.op->kind == OpKind::load && !loop.pieces.fetches(i) &&
        spread_of(loop, in.axes) == part)
      print_load(loop, i);
  }
  piece_ = nullptr;
}

void LoadPrinter::print_fetched_rows(PrintedLoop& loop) {
  const Index quads = loop.pieces.vectors / kQuad, panels = loop.frame.col_steps() / loop.pieces.vectors;
  const IndexText quad = quads > 1 ? IndexText("quad") : 0, panel = panels > 1 ? IndexText("panel") : 0;
  for (std::size_t place = 0; place < loop.pieces.fetched.size(); ++place) {
    const auto i = static_cast<std::size_t>(loop.pieces.fetched[place]);
    const int param = loop.plan->body[i].op->param;
    const DType dtype = kernel_.views[static_cast<std::size_t>(param)].dtype;
    Registers& r = loop.arrays[i];
    if (analysis_.keeps_load(loop, i)) {
      r = registers_.buffer(loop.plan->body[i].value);
    } else {
      r = {out_.local(names_.stem(param) + "_in"), loop.layout, dtype, dtype};
      out_.write(registers_.declaration(r));
    }
    out_.unrolled("quad", quads);
    out_.line("const int c = {};", ((panel * quads + quad) * Index{kQuad}).str());
    out_.line("get(store_stages.piece({}), half, {}, &{});", place, (quad * Index{kQuad}).str(),
              registers_.at(r));
    out_.close();
  }
}

void LoadPrinter::declare_ahead(PrintedLoop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  loop.arrays[i] = ahead_[in.op] = loaded(loop, in);
  out_.write(registers_.declaration(loop.arrays[i]));
}

// Registers of its own for what an instruction loads.
Registers LoadPrinter::loaded(const PrintedLoop& loop, const Instr& in) {
  const Part part = spread_of(loop, in.axes);
  const DType dtype = kernel_.views[static_cast<std::size_t>(in.op->param)].dtype;
  const bool vectors = part == Part::all || part == Part::cols;
  return {out_.local(names_.stem(in.op->param) + "_in"),
          part == Part::one ? ThreadLayout{} : ThreadLayout{loop.layout.frame, part}, dtype,
          vectors ? dtype : compute_dtype(dtype)};
}

void LoadPrinter::print_load(PrintedLoop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  Registers& r = loop.arrays[i];
  if (const auto filled = ahead_.find(in.op); filled != ahead_.end()) {
    r = filled->second;
    return;
  }
  if (k_.pipeline().bring_load(loop, i)) return;
  if (analysis_.keeps_load(loop, i)) {
    r = registers_.buffer(in.value);
    if (declared_.insert(loops_.storage(in.value)).second) out_.write(registers_.declaration(r));
  } else {
    r = loaded(loop, in);
    out_.write(registers_.declaration(r));
  }
  if (k_.pipeline().take_load(loop, *in.op, r)) return;
  const KnownMasks* masks = k_.elements().known_masks();
  const bool masked_alone = masks && masks->loads.count(in.op) > 0;
  if (masked_alone) out_.open_if_needed("if (masked)");
  print_filling(loop, i);
  if (masked_alone) out_.close();
}

void LoadPrinter::print_shift(const Access& access, const std::string& name) {
  // The bits of a negative place, in a view that is flipped, count from below as well; a remainder does not.
  out_.line("const int {} = int(({}) & {});", name, expressions_.base_offset(access).str(),
            layouts_.shifted->vector - 1);
}

// A vector of a row that begins anywhere. What stands beside the row in its first and its last vector is
// loaded with it, and nobody looks at it.
std::string LoadPrinter::load_of_shifted_row(const PrintedLoop& loop, const Address& a,
                                             const LoadText& load) {
  const int n = loop.frame.vector;
  const std::string whole = whole_steps(loop), col = wrapped(col_of(loop));
  if (a.shifted) {
    need("shifted");
    const auto inside = [&](const std::string& in_whole, const std::string& text) {
      return whole.empty() ? text : fmt::format("{} ? {} : {}", whole, in_whole, text);
    };
    std::string end = inside(integer(n), fmt::format("{} - {}", loop.frame.cols, col));
    if (!load.guard.empty()) end = fmt::format("!({}) ? 0 : {}", load.guard, end);
    return fmt::format("load_shifted<{}{}>({}, {}, {}, {})", n, load.cache,
                       inside("0", fmt::format("-{}", col)), end, load.place, load.fill);
  }
  std::string columns = holds_column(loop);
  if (!load.guard.empty()) columns = fmt::format("{} && ({})", load.guard, columns);
  return fmt::format("load_if<{}{}>({}, {}, {})", n, load.cache, columns, load.place, load.fill);
}

void LoadPrinter::print_filling(PrintedLoop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  const Registers& r = loop.arrays[i];
  need("memory");
  const Access access(kernel_, ranges_, *in.op);
  const DType dtype = access.view().dtype;
  const Part part = spread_of(loop, in.axes);
  const Bounds b = print_bounds(loop, in, access);
  const Address a = print_address(loop, in, access);
  const std::string fill = stored_literal(dtype, in.op->number);
  // Pieces of a tile come in turn since registers hold no more of them: ptxas moves loads of memory that
  // nobody writes from piece to piece, and spills what they load.
  const bool in_turn = piece_ && part == Part::all;
  const std::string cache = !k_.pipeline().tile_in_shared(*in.op).empty() ? ""
                            : in_turn                                     ? ", Cache::in_turn"
                                                                          : expressions_.load_cache(*in.op);
  const bool vectors = part == Part::all || part == Part::cols;
  const std::string row_condition = b.rows && (part == Part::all || part == Part::rows)
                                        ? between(row_text(loop), b.first_row, b.end_row)
                                        : "";
  const std::string guard = join_conditions({b.uniform, row_condition});
  const auto place = [&] { return a.place(loop.frame, part); };
  const auto inside = [&] { return b.inside(wrapped(col_of(loop)), loop.frame.vector, guard); };
  const bool shifted = vectors && loop.frame.shifted;
  const bool cut = vectors && a.element_step.empty() && b.cols && !b.whole && !shifted;
  registers_.for_registers(
      r,
      [&] {
        const std::string p = place();
        if (!vectors) {
          std::string one = fmt::format("load<1{}>({}).v[0]", cache, p);
          if (is_narrow_float(dtype)) one = fmt::format("to_f32({})", one);
          out_.line(
              "{} = {};", registers_.at(r),
              guard.empty() ? one : fmt::format("{} ? {} : {}", guard, one, literal(dtype, in.op->number)));
          return;
        }
        const int n = loop.frame.vector;
        const std::string col = col_text(loop);
        if (shifted) {
          out_.line("{} = {};", registers_.at(r), load_of_shifted_row(loop, a, {p, cache, fill, guard}));
          return;
        }
        if (!a.element_step.empty()) {
          const auto [first, end] = inside();
          out_.line("{} = load_strided<{}{}>({}, {}, {}, {}, {});", registers_.at(r), n, cache, first, end, p,
                    a.element_step, fill);
          return;
        }
        std::string columns = b.cols ? between(col, b.first_col, b.end_col) : "";
        if (cut) columns = between(col, b.first_col, fmt::format("{} - {}", b.end_col, n - 1));
        const std::string all = join_conditions({guard, columns});
        if (all.empty())
          out_.line("{} = load<{}{}>({});", registers_.at(r), n, cache, p);
        else
          out_.line("{} = load_if<{}{}>({}, {}, {});", registers_.at(r), n, cache, all, p, fill);
      },
      piece_);
  if (!cut) return;
  const std::string edges =
      b.first_col.empty() ? b.end_col : fmt::format("({} | {})", b.first_col, b.end_col);
  out_.open_if_needed("if ({} % {} != 0)", edges, loop.frame.vector);
  registers_.for_registers(
      r,
      [&] {
        const auto [first, end] = inside();
        out_.line("load_cut<{}{}>({}, {}, {}, {});", loop.frame.vector, cache, registers_.at(r), first, end,
                  place());
      },
      piece_);
  out_.close();
}

}  // namespace tilewright::cuda
