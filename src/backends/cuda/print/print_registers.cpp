// Arrays that hold a value spread over the threads: how they are declared, named and walked.
#include "backends/cuda/print/kernel_printer.h"

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;

std::string KernelPrinter::declaration(const Registers& r) const {
  if (r.place.part == Part::one) return fmt::format("{} {};", r.type, r.name);
  const Frame& f = layouts_.frame(r.place);
  const Index steps = r.rows > 0 ? r.rows : f.row_steps();
  const std::string rows = steps > 1 ? fmt::format("[{}]", steps) : "";
  const std::string cols = f.col_steps() > 1 ? fmt::format("[{}]", f.col_steps()) : "";
  if (r.place.part == Part::rows) return fmt::format("{} {}{};", r.type, r.name, rows);
  return fmt::format("Vec<{}, {}> {}{}{};", r.type, f.vector, r.name, r.place.part == Part::all ? rows : "",
                     cols);
}

std::string KernelPrinter::at(const Registers& r) const {
  if (r.staged) return staged_vector(r);
  if (r.place.part == Part::one) return r.name;
  const Frame& f = layouts_.frame(r.place);
  std::string rows = f.row_steps() > 1 && r.place.part != Part::cols ? "[r]" : "";
  if (r.rows > 0) rows = r.rows > 1 ? fmt::format("[r % {}]", r.rows) : "";
  const std::string cols = f.col_steps() > 1 && r.place.part != Part::rows ? "[c]" : "";
  return r.name + rows + cols;
}

// This thread's first slot of the vector that r and c name.
std::string KernelPrinter::staged_slot(const Registers& r, const std::string& base) const {
  const Frame& f = layouts_.frame(r.place);
  const Index each = f.vector * static_cast<Index>(size_bytes(r.dtype)) / kSlotBytes * schedule_.threads;
  std::string index;
  const bool rows = r.place.part == Part::all && f.row_steps() > 1;
  if (rows && f.col_steps() > 1)
    index = fmt::format("(r * {} + c) * {}", f.col_steps(), each);
  else if (rows || f.col_steps() > 1)
    index = fmt::format("{} * {}", rows ? "r" : "c", each);
  return index.empty() ? base : base + " + " + index;
}

std::string KernelPrinter::staged_vector(const Registers& r) const {
  return fmt::format("fetched<{}, {}, {}>({})", r.type, layouts_.frame(r.place).vector, schedule_.threads,
                     staged_slot(r, r.name));
}

std::string KernelPrinter::element(const Registers& r) const {
  if (r.place.part == Part::one || r.place.part == Part::rows) return at(r);
  return at(r) + (layouts_.frame(r.place).vector > 1 ? ".v[v]" : ".v[0]");
}

std::string KernelPrinter::pointer_to(const Registers& r) const {
  if (r.place.part == Part::one) return "&" + r.name;
  const Frame& f = layouts_.frame(r.place);
  const bool rows = f.row_steps() > 1 && r.rows != 1 && r.place.part != Part::cols;
  const bool cols = f.col_steps() > 1 && r.place.part != Part::rows;
  return rows && cols ? r.name + "[0]" : rows || cols ? r.name : "&" + r.name;
}

KernelPrinter::Registers KernelPrinter::buffer(ValueId v) {
  const ValueId s = loops_.storage(v);
  auto it = buffers_.find(s);
  if (it != buffers_.end()) return it->second;
  const auto place = layouts_.buffers.find(s);
  TW_CHECK(place != layouts_.buffers.end(), "a buffer without a place");
  const DType dtype = kernel_.type(s).dtype;
  const bool vectors = place->second.part == Part::all || place->second.part == Part::cols;
  const std::string type = vectors && is_narrow_float(dtype) ? element_type(dtype) : type_of(s);
  buffers_[s] = {value_name(s), place->second, dtype, type};
  if (layouts_.folded.count(s) > 0) buffers_[s].rows = 1;
  return buffers_[s];
}

// Loops over the vectors (or rows) of an array.
void KernelPrinter::for_registers(const Registers& r, const std::function<void()>& body) {
  if (r.place.part == Part::one) return body();
  const Frame& f = layouts_.frame(r.place);
  const bool rows = f.row_steps() > 1 && r.rows != 1 && r.place.part != Part::cols;
  const bool cols = f.col_steps() > 1 && r.place.part != Part::rows;
  if (rows) out_.unrolled("r", f.row_steps());
  if (cols && piece_vectors_ > 0) {
    out_.unrolled("part", piece_vectors_);
    out_.line("const int c = {}part;",
              f.col_steps() > piece_vectors_ ? fmt::format("panel * {} + ", piece_vectors_) : "");
  } else if (cols) {
    out_.unrolled("c", f.col_steps());
  }
  body();
  if (cols) out_.close();
  if (rows) out_.close();
}

}  // namespace tilewright::cuda
