// Which function multiplies two tiles, and where their elements stand in memory.
#include "backends/cpu/print/dot_text.h"

#include "backends/cpu/machine/fitted.h"
#include "backends/cpu/text/access.h"

#include <algorithm>

namespace tilewright::cpu {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::TileType;
using tile::ValueId;

namespace {

// A tile of fewer rows or columns than a block of sums in registers (kRegisterRows) is multiplied without
// packing the other operand, which would take longer than to read it where it stands.
enum class DotForm : unsigned char { packed, few_rows, few_columns };

DotForm form_of(const Kernel& kernel, const Op& op) {
  const TileType& c = kernel.type(op.results[0]);
  if (c.shape[1] == 1) return DotForm::few_columns;
  return c.shape[0] < kRegisterRows ? DotForm::few_rows : DotForm::packed;
}

std::string_view element_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "DotF64";
    case DType::i32:
      return "DotI32";
    case DType::i64:
      return "DotI64";
    case DType::f16:
      return "DotF16";
    case DType::bf16:
      return "DotBf16";
    case DType::f8e4m3:
      return "DotF8e4m3";
    case DType::f8e5m2:
      return "DotF8e5m2";
    case DType::i8:
      return "DotI8";
    case DType::u8:
      return "DotU8";
    default:
      return "DotF32";
  }
}

// At least DotRoom::kBytes of tw_cpu/dot.h, which the printed kernel asserts: bytes may go in pairs or in
// quads.
Index room_bytes(const Kernel& kernel, const Op& op, int lanes) {
  const TileType& b = kernel.type(op.operands[1]);
  const DType sum = kernel.type(op.results[0]).dtype;
  const Index word = memory_bytes(sum), width = (lanes == 16 ? 16 : 8) / word * lanes;
  const bool bytes = b.dtype == DType::i8 || b.dtype == DType::u8;
  const Index words = bytes ? ceil_div(b.shape[0], Index{2}) : b.shape[0];
  return round_up(b.shape[1], width) * (round_up(words, Index{lanes}) + 1) * word;
}

// One operand as a DotOperand, or the block that is written: `outer` is the axis of a's rows or b's columns.
struct OperandText {
  std::string at, name;        // where it begins; of the buffer or view
  Amount stride[2], count[2];  // by axis of the tile
  // Its type, with what of its block is a number here.
  std::string type(std::string_view element, int outer) const {
    const Amount &inner_stride = stride[1 - outer], &rows = count[outer];
    const bool counted = rows.number() && !rows.is(0);
    if (!inner_stride.number() && !counted) return fmt::format("DotOperand<{}>", element);
    return fmt::format("DotOperand<{}, Neighbours::{}{}>", element,
                       inner_stride.is(1)      ? "together"
                       : inner_stride.number() ? "apart"
                                               : "asked",
                       counted ? ", " + rows.str() : "");
  }
  std::string braces(int outer) const {
    const int inner = 1 - outer;
    return fmt::format("{{{}, {}, {}, {}, {}}}", at, stride[outer].str(), stride[inner].str(),
                       count[outer].str(), count[inner].str());
  }
};

OperandText from_buffer(const KernelText& k, ValueId v) {
  const Buffer& buffer = k.buffer(v);
  const TileType& type = k.kernel.type(v);
  OperandText text{.at = buffer.name, .name = buffer.name};
  for (const int axis : {0, 1}) {
    const auto i = static_cast<std::size_t>(axis);
    text.stride[axis] = buffer.strides[i] == 0 ? 1 : buffer.strides[i];
    text.count[axis] = type.shape[i];
  }
  return text;
}

// The block of a view that a load reads or a store writes.
OperandText from_view(const KernelText& k, const Op& op, const TileType& type) {
  const Access access = view_access(k, op, {0, 1}, type.shape, type.shape);
  OperandText text{.at = access.pointer(), .name = access.name};
  for (const int axis : {0, 1}) {
    text.stride[axis] = access.stride[axis];
    text.count[axis] = type.shape[static_cast<std::size_t>(axis)];
  }
  for (const AccessBound& bound : access.bounds) {
    if (!bound.may_end_early) continue;
    // A coordinate that the block does not walk may lie outside with all of the block.
    const std::string start = bound.start.str(), extent = bound.extent.str();
    Amount& count = text.count[std::max(bound.loop_axis, 0)];
    count = bound.loop_axis < 0
                ? Amount::expression(fmt::format("{} < {} ? {} : 0", start, extent, count.str()))
                : Amount::named(fmt::format("at_most<i64>({}, {} - {})", count.str(), extent, start));
  }
  return text;
}
OperandText from_load(const KernelText& k, const Op& load) {
  return from_view(k, load, k.kernel.type(load.results[0]));
}

OperandText operand(const KernelText& k, ValueId v) {
  if (!k.in_place.count(v)) return from_buffer(k, v);
  const Op& op = *k.definition(v);
  if (op.kind == OpKind::load) return from_load(k, op);
  OperandText text = from_load(k, *k.definition(op.operands[0]));
  std::swap(text.stride[0], text.stride[1]);
  std::swap(text.count[0], text.count[1]);
  return text;
}

}  // namespace

bool uses_tile_registers(const Kernel& kernel) {
  bool uses = false;
  tile::for_each_op(kernel.body, [&](const Op& op) {
    if (op.kind != OpKind::dot || form_of(kernel, op) != DotForm::packed) return;
    const DType dtype = kernel.type(op.operands[1]).dtype;
    uses = uses || std::find(std::begin(kTileTypes), std::end(kTileTypes), dtype) != std::end(kTileTypes);
  });
  return uses;
}

Index dot_room_bytes(const Kernel& kernel, int lanes) {
  Index most = 0;
  tile::for_each_op(kernel.body, [&](const Op& op) {
    if (op.kind == OpKind::dot && form_of(kernel, op) == DotForm::packed)
      most = std::max(most, room_bytes(kernel, op, lanes));
  });
  return most;
}

namespace {

// The distance of operand a's rows if a is read in place: a buffer of rows whose elements are multiplied as
// they are stored. Otherwise 0.
Index stride_in_place(const KernelText& k, const Op& op) {
  const ValueId a = op.operands[0];
  const DType dtype = k.kernel.type(a).dtype;
  const bool singles =
      dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64;
  if (!singles || k.in_place.count(a) || k.buffer(a).strides[1] != 1) return 0;
  return k.buffer(a).strides[0];
}

}  // namespace

void print_dot(KernelText& k, const Op& op) {
  const TileType &a = k.kernel.type(op.operands[0]), &b = k.kernel.type(op.operands[1]),
                 &c = k.kernel.type(op.results[0]);
  const std::string_view of_a = element_of(a.dtype), of_b = element_of(b.dtype);
  if (is_narrow_float(a.dtype)) k.include("tw_cpu/dot_narrow.h");
  if (a.dtype == DType::i8 || a.dtype == DType::u8) k.include("tw_cpu/dot_bytes.h");
  const std::string left = k.names.unique(k.hints[op.operands[0]]),
                    right = k.names.unique(k.hints[op.operands[1]]);
  OperandText text_a = operand(k, op.operands[0]), text_b = operand(k, op.operands[1]);
  const auto stored = k.stored_by_dots.find(op.results[0]);
  const bool direct = stored != k.stored_by_dots.end();
  const OperandText sums = direct ? from_view(k, *stored->second, c) : from_buffer(k, op.results[0]);
  if (direct) {  // what is behind the view's end is neither computed nor written
    text_a.count[0] = sums.count[0];
    text_b.count[1] = sums.count[1];
  }
  const std::string row = sums.stride[0].str();
  k.code.line("const {} {} = {};", text_a.type(of_a, 0), left, text_a.braces(0));
  k.code.line("const {} {} = {};", text_b.type(of_b, 1), right, text_b.braces(1));
  const Index depth = a.shape[1];
  const bool zeros = printer::is_zeros(k.definition(op.operands[2]));
  const bool whole = text_a.count[0].is(c.shape[0]) && text_b.count[1].is(c.shape[1]);
  const bool starts = zeros && form_of(k.kernel, op) == DotForm::packed;
  const Index stride = stride_in_place(k, op);
  if (zeros && !starts) {
    const Buffer& buffer = k.buffer(op.results[0]);
    k.code.line("__builtin_memset({}, 0, {});", sums.at, buffer.elements * memory_bytes(buffer.dtype));
  }
  // A buffer has room for whole vectors, a view has not.
  const bool ends = direct && !(sums.count[1].number() && *sums.count[1].number() % k.lanes == 0);
  switch (form_of(k.kernel, op)) {
    case DotForm::packed:
      k.include("tw_cpu/dot.h");
      k.code.line("static_assert(DotRoom<{}, {}, {}>::kBytes <= {});", of_b, c.shape[1], depth,
                  room_bytes(k.kernel, op, k.lanes));
      k.code.line("{}{}, {}{}{}{}>({}, {}, {}, {}, {});  // {} {} {} · {}",
                  stride > 0 ? "dot_of_rows<" : "dot<", c.shape[1], depth,
                  stride > 0 ? fmt::format(", {}", stride) : "", starts ? ", DotStart::zeros" : "",
                  ends ? ", DotEnd::within" : "", left, right, sums.at, row, k.room, sums.name,
                  starts ? "=" : "+=", left, right);
      if (starts && !whole && !direct)  // rows and columns that do not exist are zeros too
        k.code.line("dot_clear_rest<{}, {}>({}, {}, {}.outer, {}.outer);", c.shape[0], c.shape[1], sums.at,
                    row, left, right);
      return;
    case DotForm::few_rows:
      k.include("tw_cpu/dot_few.h");
      k.code.line("dot_few<{}, {}, {}, 1>({}, {}, {});  // {} += {} · {}", c.shape[0], depth, row, left,
                  right, sums.at, sums.name, left, right);
      return;
    case DotForm::few_columns:
      k.include("tw_cpu/dot_few.h");
      k.code.line("dot_few<{}, {}, 1, {}>({}, {}, {});  // {} += {} · {}", c.shape[1], depth, row, right,
                  left, sums.at, sums.name, left, right);
      return;
  }
}

}  // namespace tilewright::cpu
