// Arrays that hold a value spread over the threads: how they are declared, named and walked.
#include "backends/cuda/print/kernel_printer.h"

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;

std::string RegisterPrinter::declarator(const Registers& r) const {
  if (r.layout.part == Part::one) return fmt::format("{} {}", r.element_type(), r.name);
  const TileFrame& f = layouts_.frame(r.layout);
  const Index steps = r.rows > 0 ? r.rows : f.row_steps();
  const std::string rows = steps > 1 ? fmt::format("[{}]", steps) : "";
  const std::string cols = f.col_steps() > 1 ? fmt::format("[{}]", f.col_steps()) : "";
  if (r.layout.part == Part::rows) return fmt::format("{} {}{}", r.element_type(), r.name, rows);
  return fmt::format("Vec<{}, {}> {}{}{}", r.element_type(), f.vector, r.name,
                     r.layout.part == Part::all ? rows : "", cols);
}

std::string RegisterPrinter::at(const Registers& r) const {
  if (r.staged) return staged_vector(r);
  if (r.layout.part == Part::one) return r.name;
  const TileFrame& f = layouts_.frame(r.layout);
  std::string rows = f.row_steps() > 1 && r.layout.part != Part::cols ? "[r]" : "";
  if (r.rows > 0) rows = r.rows > 1 ? fmt::format("[r % {}]", r.rows) : "";
  const std::string cols = f.col_steps() > 1 && r.layout.part != Part::rows ? "[c]" : "";
  return r.name + rows + cols;
}

// This thread's first slot of the vector that r and c name.
std::string RegisterPrinter::staged_slot(const Registers& r, const std::string& base) const {
  const TileFrame& f = layouts_.frame(r.layout);
  const Index each = f.vector * static_cast<Index>(size_bytes(r.dtype)) / kSlotBytes * schedule_.threads;
  std::string index;
  const bool rows = r.layout.part == Part::all && f.row_steps() > 1;
  if (rows && f.col_steps() > 1)
    index = fmt::format("(r * {} + c) * {}", f.col_steps(), each);
  else if (rows || f.col_steps() > 1)
    index = fmt::format("{} * {}", rows ? "r" : "c", each);
  return index.empty() ? base : base + " + " + index;
}

std::string RegisterPrinter::staged_vector(const Registers& r) const {
  return fmt::format("fetched<{}, {}, {}>({})", r.type, layouts_.frame(r.layout).vector, schedule_.threads,
                     staged_slot(r, r.name));
}

std::string RegisterPrinter::element(const Registers& r) const {
  if (r.layout.part == Part::one || r.layout.part == Part::rows) return at(r);
  return at(r) + (layouts_.frame(r.layout).vector > 1 ? ".v[v]" : ".v[0]");
}

std::string RegisterPrinter::pointer_to(const Registers& r) const {
  if (r.layout.part == Part::one) return "&" + r.name;
  const TileFrame& f = layouts_.frame(r.layout);
  const bool rows = f.row_steps() > 1 && r.rows != 1 && r.layout.part != Part::cols;
  const bool cols = f.col_steps() > 1 && r.layout.part != Part::rows;
  return rows && cols ? r.name + "[0]" : rows || cols ? r.name : "&" + r.name;
}

Registers RegisterPrinter::buffer(ValueId v) {
  const ValueId s = loops_.storage(v);
  auto it = buffers_.find(s);
  if (it != buffers_.end()) return it->second;
  const auto layout = layouts_.buffers.find(s);
  TW_CHECK(layout != layouts_.buffers.end(), "a buffer without a layout");
  const DType dtype = kernel_.type(s).dtype;
  const bool vectors = layout->second.part == Part::all || layout->second.part == Part::cols;
  const DType type = vectors && is_narrow_float(dtype) ? dtype : expressions_.type_of(s);
  buffers_[s] = {names_.value(s), layout->second, dtype, type};
  if (layouts_.folded.count(s) > 0) buffers_[s].rows = 1;
  return buffers_[s];
}

void RegisterPrinter::for_registers(const Registers& r, const std::function<void()>& body,
                                    const Pieces* piece) {
  if (r.layout.part == Part::one) return body();
  const TileFrame& f = layouts_.frame(r.layout);
  // A loop over `most` of all steps, which is the piece's number `before` of them.
  const auto open = [&](const char* name, Index steps, const char* in_piece, Index most, const char* before) {
    if (piece == nullptr) return out_.unrolled(name, steps);
    out_.unrolled(in_piece, most);
    out_.line("const int {} = {}{};", name, steps > most ? fmt::format("{} * {} + ", before, most) : "",
              in_piece);
  };
  // The row of a piece of one row is `r` already.
  const bool rows = f.row_steps() > 1 && r.rows != 1 && r.layout.part != Part::cols &&
                    !(piece != nullptr && piece->rows == 1);
  const bool cols = f.col_steps() > 1 && r.layout.part != Part::rows;
  if (rows) open("r", f.row_steps(), "half", kHalvesOfPiece, "block");
  if (cols) open("c", f.col_steps(), "part", piece != nullptr ? piece->vectors : 0, "panel");
  body();
  if (cols) out_.close();
  if (rows) out_.close();
}

}  // namespace tilewright::cuda
