// What is known of an element's indices when a loop is printed: which values follow the columns, and what
// that saves.
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;

namespace {

// The first column of a vector less that of the thread's first one.
std::string vector_place(const TileFrame& f) {
  return f.col_steps() > 1 ? fmt::format("c * {}", f.row_threads() * f.vector) : "0";
}

}  // namespace

// What a column's number has besides the element's place in the row, as text: of arange 0, of n + arange n.
std::optional<printer::IndexText> ElementPrinter::column_offset(PrintedLoop& loop, const printer::Ref& ref) {
  if (ref.is_scalar()) return std::nullopt;
  const Instr& in = loop.plan->body[static_cast<std::size_t>(ref.instr)];
  if (in.kind != Instr::Kind::compute) return std::nullopt;
  if (in.op->kind == OpKind::arange) {
    const bool walks_columns = !in.axes.empty() && in.axes[0] >= 0 && role(loop, in.axes[0]) == 1;
    return walks_columns ? std::optional<IndexText>(0) : std::nullopt;
  }
  if (in.op->kind != OpKind::apply || in.op->prim != tile::Prim::add) return std::nullopt;
  for (std::size_t side : {0u, 1u}) {
    const printer::Ref& other = in.operands[1 - side];
    const auto offset = column_offset(loop, in.operands[side]);
    if (!offset || !other.is_scalar()) continue;
    return *offset + index_text(expressions_.scalar(other.scalar));
  }
  return std::nullopt;
}

// A test for a column's number: c · T + v = number - t · V. The right side is the same throughout a thread,
// and the left one is known in unrolled loops, which leaves one comparison an element. All of it is modulo
// 2^32, where both sides fit.
std::optional<ElementPrinter::ColumnTest> ElementPrinter::column_test(PrintedLoop& loop, const Instr& in) {
  if (in.kind != Instr::Kind::compute) return std::nullopt;
  const Op& op = *in.op;
  const bool tests = op.kind == OpKind::apply && (op.prim == tile::Prim::eq || op.prim == tile::Prim::ne);
  if (!tests || analysis_.level(loop, in) != Level::element ||
      kernel_.type(op.operands[0]).dtype != DType::i64)
    return std::nullopt;
  for (std::size_t side : {0u, 1u}) {
    const printer::Ref& number = in.operands[1 - side];
    const printer::ValueRange& columns = expressions_.range(op.operands[side]);
    if (!number.is_scalar() || columns.low <= -2147483647 || columns.high >= 2147483647) continue;
    const auto offset = column_offset(loop, in.operands[side]);
    if (!offset) continue;
    TypedText n = expressions_.scalar(number.scalar);
    if (n.type == DType::i64) {
      need("edge");
      n = saturated(n);
    }
    return ColumnTest{op.prim == tile::Prim::eq,
                      fmt::format("u32({}) - u32({}) - u32({} * {}{})", n.text, offset->str(), loop.thread.t,
                                  loop.frame.vector, loop.frame.shifted ? " - " + loop.shift : "")};
  }
  return std::nullopt;
}

TypedText ElementPrinter::column_test_text(const PrintedLoop& loop, const ColumnTest& test) const {
  if (outside_) return {test.equal ? "false" : "true", DType::boolean};
  const std::string layout = vector_place(loop.frame) + (loop.frame.vector > 1 ? " + v" : "");
  return {fmt::format("u32({}) {} {}", layout, test.equal ? "==" : "!=", test.number), DType::boolean, 1,
          Binding::equality};
}

// A test for vectors that hold the column which all tests of the loop look for: all but one of a row fail it.
// None if they look for several columns.
std::optional<std::string> ElementPrinter::vector_test(PrintedLoop& loop) {
  const TileFrame& f = loop.frame;
  const bool columns = loop.layout.part == Part::all || loop.layout.part == Part::cols;
  if (!columns || f.vector < 4) return std::nullopt;
  std::optional<std::string> number;
  for (const Instr& in : loop.plan->body) {
    const auto test = column_test(loop, in);
    if (!test) continue;
    if (number && *number != test->number) return std::nullopt;
    number = test->number;
  }
  if (!number) return std::nullopt;
  return fmt::format("{} - u32({}) < {}", *number, vector_place(f), f.vector);
}

// The tanh in an addition of 1 + tanh x. That cancels where x is far below 0; as 2 / (1 + e^-2x) it does not,
// and costs less than the tanh alone: for values that end in narrow floats.
std::optional<std::size_t> LoopAnalysis::tanh_beside_one(const PrintedLoop& loop, const Instr& in) const {
  if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::apply || in.op->prim != tile::Prim::add)
    return std::nullopt;
  if (kernel_.type(in.value).dtype != DType::f32 ||
      accuracy_[static_cast<std::size_t>(in.value)] == printer::Accuracy::exact)
    return std::nullopt;
  for (std::size_t side : {0u, 1u}) {
    if (in.operands[0].is_scalar() || in.operands[1].is_scalar()) continue;
    const Instr& one = loop.plan->body[static_cast<std::size_t>(in.operands[side].instr)];
    const auto other = static_cast<std::size_t>(in.operands[1 - side].instr);
    const Instr& tanh = loop.plan->body[other];
    if (one.kind != Instr::Kind::compute || one.op->kind != OpKind::constant || one.op->number.f != 1.0)
      continue;
    if (tanh.kind == Instr::Kind::compute && tanh.op->kind == OpKind::apply &&
        tanh.op->prim == tile::Prim::tanh)
      return other;
  }
  return std::nullopt;
}

}  // namespace tilewright::cuda
