// Integers of 8 bits, and numbers of 4 bits in them, that become floats: whole vectors at once (bytes.cuh).
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

namespace tilewright::cuda {

using tile::OpKind;
using tile::Prim;

namespace {

constexpr Index kNibble = 4;

}  // namespace

// A cast of loaded bytes to f32 or bf16, as they are or after (byte << count) >> 4.
std::optional<LoopAnalysis::WidenedBytes> LoopAnalysis::widened_bytes(const PrintedLoop& loop,
                                                                      const Instr& in) const {
  if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::cast || in.operands[0].is_scalar())
    return std::nullopt;
  const DType to = kernel_.type(in.value).dtype;
  if (kernel_.type(in.op->operands[0]).dtype != DType::i8 || (to != DType::f32 && to != DType::bf16))
    return std::nullopt;
  const auto instr = [&](int i) -> const Instr& { return loop.plan->body[static_cast<std::size_t>(i)]; };
  const auto shift = [&](const printer::Ref& ref, Prim prim) -> const Instr* {
    if (ref.is_scalar()) return nullptr;
    const Instr& by = instr(ref.instr);
    const bool found = by.kind == Instr::Kind::compute && by.op->kind == OpKind::apply && by.op->prim == prim;
    return found ? &by : nullptr;
  };
  WidenedBytes out{.array = in.operands[0].instr};
  if (const Instr* down = shift(in.operands[0], Prim::shr)) {
    const Instr* up = shift(down->operands[0], Prim::shl);
    if (!up || constant_integer(loop, down->operands[1]) != kNibble || up->operands[0].is_scalar())
      return std::nullopt;
    // The same for all elements: a scalar, or a number.
    if (!up->operands[1].is_scalar() && !constant_integer(loop, up->operands[1])) return std::nullopt;
    out = {up->operands[0].instr, up->operands[1], {in.operands[0].instr, down->operands[0].instr}};
  }
  const Instr& from = instr(out.array);
  const Part part = spread_of(loop, from.axes);
  if (!is_array(from) || spread_of(loop, in.axes) != part || (part != Part::all && part != Part::cols))
    return std::nullopt;
  return loop.frame.vector > 1 ? std::optional(out) : std::nullopt;
}

std::optional<Index> LoopAnalysis::constant_integer(const PrintedLoop& loop, const printer::Ref& ref) const {
  if (ref.is_scalar()) {
    const printer::ValueRange& r = expressions_.range(ref.scalar);
    return r.low == r.high ? std::optional(r.low) : std::nullopt;
  }
  const Instr& in = loop.plan->body[static_cast<std::size_t>(ref.instr)];
  if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::constant) return std::nullopt;
  return in.op->number.i;
}

// Whether all that reads a widened value keeps it as it is, in bf16.
bool LoopAnalysis::only_kept(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  if (kernel_.type(in.value).dtype != DType::bf16) return false;
  bool kept = false;
  for (const Instr& user : loop.plan->body)
    for (const printer::Ref& ref : user.operands) {
      if (ref.is_scalar() || static_cast<std::size_t>(ref.instr) != i) continue;
      if (user.kind != Instr::Kind::keep || kernel_.type(user.value).dtype != DType::bf16) return false;
      kept = true;
    }
  return kept;
}

bool LoopAnalysis::keeps_widened(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  if (in.kind != Instr::Kind::keep || in.operands[0].is_scalar()) return false;
  const auto from = static_cast<std::size_t>(in.operands[0].instr);
  return widened_bytes(loop, loop.plan->body[from]) && only_kept(loop, from);
}

std::string ElementPrinter::widened_text(PrintedLoop& loop, const WidenedBytes& bytes, DType to) {
  need("bytes");
  const std::string array = registers_.at(loop.arrays[static_cast<std::size_t>(bytes.array)]);
  if (!bytes.count) return fmt::format("bytes_to_{}({})", to, array);
  // A tile of one number is written where its elements are, which come later.
  const std::string count = bytes.count->is_scalar()
                                ? operand(loop, *bytes.count).text
                                : fmt::format("i8({})", *analysis_.constant_integer(loop, *bytes.count));
  return fmt::format("nibbles_to_{}({}, {})", to, array, count);
}

// The vector, before the loop over its elements.
void ElementPrinter::print_widened(PrintedLoop& loop, std::size_t i, const WidenedBytes& bytes) {
  const Instr& in = loop.plan->body[i];
  const bool narrow = analysis_.only_kept(loop, i);
  const DType to = narrow ? DType::bf16 : DType::f32;
  const std::string name = out_.local(names_.hint(in.value));
  out_.line("const Vec<{}, {}> {} = {};", to, loop.frame.vector, name, widened_text(loop, bytes, to));
  loop.values[i] = TypedText{narrow ? name : name + ".v[v]", to};
}

}  // namespace tilewright::cuda
