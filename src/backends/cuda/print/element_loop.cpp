// What an element loop says of its rows, columns and instructions.
#include "backends/cuda/print/element_loop.h"

#include "backends/cuda/print/text.h"
#include "backends/printer/index_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::cuda {

using tile::OpKind;

std::string join_conditions(std::initializer_list<std::string> all) {
  std::string text;
  for (const std::string& c : all) {
    if (c.empty()) continue;
    text += (text.empty() ? "" : " && ") + c;
  }
  return text;
}

std::pair<std::string, std::string> Bounds::inside(const std::string& col, int vector,
                                                   const std::string& guard) const {
  const std::string end = cols ? fmt::format("{} - {}", end_col, col) : integer(vector);
  return {first_col.empty() ? "0" : fmt::format("{} - {}", first_col, col),
          guard.empty() ? end : fmt::format("{} ? {} : 0", guard, end)};
}

std::string Address::place(const TileFrame& frame, Part part) const {
  std::string text = base;
  if ((part == Part::all || part == Part::rows) && frame.row_steps() > 1) text += " + " + row_term;
  if ((part == Part::all || part == Part::cols) && frame.col_steps() > 1)
    text += " + " + (printer::IndexText("c") * col_step).str();
  return text;
}

std::string between(const std::string& index, const std::string& first, const std::string& end) {
  const std::string below = fmt::format("{} < {}", index, end);
  return first.empty() ? below : fmt::format("{} >= {} && {}", index, first, below);
}

bool is_array(const printer::Instr& in) {
  return in.kind == printer::Instr::Kind::reload ||
         (in.kind == printer::Instr::Kind::compute && in.op->kind == OpKind::load);
}

int role(const PrintedLoop& loop, int loop_axis) { return side_of_axis(*loop.plan, loop.layout, loop_axis); }

Part spread_of(const PrintedLoop& loop, const std::vector<int>& axes) {
  return cuda::spread_of(*loop.plan, loop.layout, axes);
}

TypedText row_of(const PrintedLoop& loop) {
  const TileFrame& f = loop.frame;
  const auto name = [](std::string text) { return TypedText{std::move(text), DType::i32}; };
  const auto sum = [](std::string text) { return TypedText{std::move(text), DType::i32, 1, Binding::sum}; };
  const std::string& g = loop.thread.g;
  if (f.rows == 1) return name("0");
  if (f.map == RowMap::mma)
    return sum(f.row_steps() == 2 ? fmt::format("r * 8 + {}", g)
                                  : fmt::format("r / 2 * {} + r % 2 * 8 + {}", 2 * Index{f.groups}, g));
  if (f.row_groups() == 1) return name(f.row_steps() == 1 ? "0" : "r");
  if (f.map == RowMap::runs && f.row_steps() > 1) return sum(fmt::format("{} * {} + r", g, f.row_steps()));
  return f.row_steps() == 1 ? name(g) : sum(fmt::format("r * {} + {}", f.row_groups(), g));
}

TypedText col_of(const PrintedLoop& loop) {
  const TileFrame& f = loop.frame;
  const std::string sum = fmt::format("c * {} + {}", f.row_threads(), loop.thread.t);
  if (f.shifted)
    return {fmt::format("{} * {} - {}", f.col_steps() == 1 ? loop.thread.t : fmt::format("({})", sum),
                        f.vector, loop.shift),
            DType::i32, 1, Binding::sum};
  if (f.vector > 1)
    return {fmt::format("{} * {}", f.col_steps() == 1 ? loop.thread.t : fmt::format("({})", sum), f.vector),
            DType::i32, 1, Binding::product};
  if (f.col_steps() == 1) return {loop.thread.t, DType::i32};
  return {sum, DType::i32, 1, Binding::sum};
}

std::string whole_steps(const PrintedLoop& loop) {
  const TileFrame& f = loop.frame;
  const Index whole = f.cols / (f.row_threads() * f.vector);
  if (f.col_steps() == 1 || whole <= (f.shifted ? 1 : 0)) return "";
  return f.shifted ? fmt::format("c > 0 && c < {}", whole) : fmt::format("c < {}", whole);
}

std::string holds_column(const PrintedLoop& loop) {
  const Index before = loop.frame.vector - 1;
  const std::string whole = whole_steps(loop);
  return fmt::format("{}u32({} + {}) < {}", whole.empty() ? "" : fmt::format("({}) || ", whole),
                     col_text(loop), before, loop.frame.cols + before);
}

std::string is_column(const PrintedLoop& loop) {
  const TileFrame& f = loop.frame;
  const std::string whole = whole_steps(loop), column = col_text(loop) + (f.vector > 1 ? " + v" : "");
  if (f.shifted)
    return fmt::format("{}u32({}) < {}", whole.empty() ? "" : fmt::format("({}) || ", whole), column, f.cols);
  return fmt::format("{}{} < {}", whole.empty() ? "" : whole + " || ", column, f.cols);
}

std::string row_text(const PrintedLoop& loop) { return row_of(loop).text; }
std::string col_text(const PrintedLoop& loop) { return col_of(loop).text; }

bool is_inner_sum(const PrintedLoop& loop, std::size_t i) {
  return std::any_of(loop.inner.begin(), loop.inner.end(), [&](const InnerProduct& p) {
    return p.first_sum == static_cast<int>(i) || p.second_sum == static_cast<int>(i);
  });
}

std::string row_step_text(const TileFrame& f, const std::function<printer::IndexText(Index)>& scaled) {
  const printer::IndexText r = "r";
  if (f.map == RowMap::strided) return (r * scaled(f.row_groups())).str();
  if (f.map == RowMap::runs) return (r * scaled(1)).str();
  const printer::IndexText half = scaled(8);
  if (f.row_steps() == 2) return (r * half).str();
  return (r / 2 * scaled(2 * Index{f.groups}) + r % 2 * half).str();
}

bool loaded_by_piece(const PrintedLoop& loop, Part part) {
  return (loop.pieces.loads && part == Part::cols) || (loop.pieces.rows > 0 && part == Part::all);
}

}  // namespace tilewright::cuda
