// Expressions: one op on elements or scalars as C++ text with its type.
#include "backends/cuda/print/kernel_printer.h"
#include "backends/cuda/print/prim_text.h"
#include "backends/printer/powers_below.h"

#include <algorithm>
#include <utility>

namespace tilewright::cuda {

using printer::ValueRange;
using tile::Op;
using tile::OpKind;
using tile::Prim;

// i64 values that are known to fit are computed in 32 bits: a GPU has no other integer unit.
DType ExpressionPrinter::type_of(ValueId v) const {
  const DType dtype = kernel_.type(v).dtype;
  if (dtype == DType::i64) return range(v).fits_i32() ? DType::i32 : DType::i64;
  return compute_dtype(dtype);
}

TypedText ExpressionPrinter::converted(const TypedText& e, DType type) const {
  if (e.type == type) return e;
  return {fmt::format("{}({})", type, e.text), type, e.operations, Binding::call};
}

std::string ExpressionPrinter::as_type(const TypedText& e, DType type) const {
  return converted(e, type).text;
}

TypedText ExpressionPrinter::scalar(ValueId v) {
  auto it = scalars_.find(v);
  if (it == scalars_.end()) it = scalars_.find(loops_.storage(v));
  if (it != scalars_.end()) return it->second;
  // A carried value or a reduction's result: a variable of its own.
  return {names_.value(loops_.storage(v)), type_of(loops_.storage(v))};
}

bool ExpressionPrinter::only_stored(ValueId v) const {
  return facts_.only_stored[static_cast<std::size_t>(v)];
}

TypedText ExpressionPrinter::compute(const Op& op, const std::vector<TypedText>& operands) {
  TypedText e = op_expr(op, operands);
  e.operations = op.kind == OpKind::cast && is_the_same(op, operands[0]) ? 0 : 1;
  for (const TypedText& o : operands) e.operations += o.operations;
  return e;
}

TypedText ExpressionPrinter::op_expr(const Op& op, const std::vector<TypedText>& operands) {
  switch (op.kind) {
    case OpKind::cast:
      return cast_expr(op, operands[0]);
    case OpKind::apply:
      return apply_expr(op, operands);
    case OpKind::gather:
      return gather_expr(op, operands);
    case OpKind::random:
      need("philox");
      return {fmt::format("i64(philox_word(u64({}), u64({})))", as_type(operands[0], DType::i64),
                          as_type(operands[1], DType::i64)),
              DType::i64, 0, Binding::call};
    default:
      TW_CHECK(false, "an op that is no expression");
  }
  return {};
}

bool ExpressionPrinter::is_the_same(const Op& cast, const TypedText& from) const {
  const DType to = kernel_.type(cast.results[0]).dtype, source = kernel_.type(cast.operands[0]).dtype;
  if (!is_narrow_float(to)) return from.type == type_of(cast.results[0]);
  return source == to || (source == DType::f32 && only_stored(cast.results[0]));
}

// Narrow floats are held as the f32 of the same value; a store rounds by itself.
TypedText ExpressionPrinter::cast_expr(const Op& op, const TypedText& from) {
  if (is_the_same(op, from)) return from;
  const DType to = kernel_.type(op.results[0]).dtype, type = type_of(op.results[0]);
  if (is_narrow_float(to)) {
    need("convert");
    return {fmt::format("to_f32(cast<{}>({}))", to, from.text), DType::f32, 0, Binding::call};
  }
  if (is_bool(to))
    return {fmt::format("{} != {}", wrapped(from), from.type == DType::f32 ? "0.0f" : "0"), DType::boolean, 0,
            Binding::equality};
  if (is_bool(from.type) || (from.type == DType::f32 && to == DType::f64)) return converted(from, type);
  need("convert");
  // An i64 that fits saturates as i64 does: it never reaches the limits.
  return {fmt::format("cast<{}>({})", type, from.text), type, 0, Binding::prefix};
}

TypedText saturated(const TypedText& e) {
  return {fmt::format("saturate_i32({})", e.text), DType::i32, e.operations, Binding::call};
}

// A number strictly inside i32 compares with any i64 as with its saturation.
bool ExpressionPrinter::compares_in_32_bits(const Op& op, const std::vector<TypedText>& operands) const {
  if (operands.size() != 2 || (operands[0].type == DType::i64) == (operands[1].type == DType::i64))
    return false;
  const ValueRange& r = range(op.operands[operands[0].type == DType::i64 ? 1 : 0]);
  return r.low > -2147483647 - 1 && r.high < 2147483647;
}

TypedText ExpressionPrinter::apply_expr(const Op& op, const std::vector<TypedText>& operands) {
  const ValueId first = op.operands[op.prim == Prim::select ? 1 : 0];
  const DType dtype = kernel_.type(first).dtype;
  const DType result_dtype = kernel_.type(op.results[0]).dtype;
  PrimUse use{.prim = op.prim,
              .dtype = dtype,
              .accuracy = accuracy_[static_cast<std::size_t>(op.results[0])],
              .rounded = op.rounded};
  DType type = is_bool(result_dtype) ? DType::boolean : type_of(op.results[0]);
  std::vector<TypedText> texts;
  if (dtype == DType::i64) {
    const bool small = (is_bool(result_dtype) || range(op.results[0]).fits_i32()) &&
                       std::all_of(operands.begin(), operands.end(),
                                   [](const TypedText& e) { return e.type != DType::i64; });
    const DType operand_type = small ? DType::i32 : DType::i64;
    if (is_bool(result_dtype) && compares_in_32_bits(op, operands)) {
      need("edge");
      for (const TypedText& e : operands) texts.push_back(e.type == DType::i64 ? saturated(e) : e);
    } else {
      for (const TypedText& e : operands) texts.push_back(is_bool(e.type) ? e : converted(e, operand_type));
    }
    if (!is_bool(result_dtype)) type = operand_type;
  } else {
    texts = operands;
  }
  if (!is_float(dtype)) {
    const ValueRange& r = range(op.results[0]);
    const bool divides = op.prim == Prim::div || op.prim == Prim::rem;
    const bool safe_divisor = divides && range(op.operands[1]).low > 0;
    if (dtype == DType::i64 || dtype == DType::i32) {
      const bool bounded = dtype == DType::i64 ? r.bounded() : r.low > -2147483647 - 1 && r.high < 2147483647;
      use.wraps = divides ? !safe_divisor : !bounded;
    }
  }
  use.tests = is_bool(dtype) && std::all_of(op.operands.begin(), op.operands.end(), [&](ValueId v) {
                const Op* made = printer::behind(facts_.definitions, OpKind::broadcast, v);
                return made && made->kind == OpKind::apply;
              });
  if (const std::string_view header = prim_header(use); !header.empty()) need(std::string(header));
  return prim_expression(use, texts, type);
}

TypedText ExpressionPrinter::gather_expr(const Op& op, const std::vector<TypedText>& operands) {
  const auto view = static_cast<std::size_t>(op.param);
  const tile::ViewParam& p = kernel_.views[view];
  std::vector<TypedText> indices(operands.begin(), operands.begin() + p.rank());
  need("memory");
  TypedText e{fmt::format("load<1{}>({} + {}).v[0]", load_cache(op), names_.view(op.param),
                          view_offset(op.param, indices).str()),
              compute_dtype(p.dtype), 0, Binding::prefix};
  if (is_narrow_float(p.dtype)) {
    need("convert");
    e.text = fmt::format("to_f32({})", e.text);
    e.binds = Binding::call;
  }
  if (op.masked) {
    e.text = fmt::format("{} ? {} : {}", wrapped(operands.back()), e.text, literal(p.dtype, op.number));
    e.binds = Binding::choice;
  }
  return converted(e, type_of(op.results[0]));
}

// Between the type of a register array and that of the stage: the same, or a narrow float and f32.
std::string ExpressionPrinter::convert_text(DType from, DType to, const std::string& text) {
  if (from == to) return text;
  need("convert");
  return fmt::format("cast<{}>({})", to, text);
}

// The type a value has on the stage: as it is stored, so that it takes no more room than it must.
DType ExpressionPrinter::stage_type(ValueId v) const {
  const DType dtype = kernel_.type(v).dtype;
  return is_narrow_float(dtype) ? dtype : type_of(loops_.storage(v));
}

printer::IndexText ExpressionPrinter::dim_text(const tile::Dim& dim) {
  if (dim.is_constant()) return dim.value;
  return names_.scalar(dim.scalar);
}

printer::IndexText ExpressionPrinter::stride_text(const Access& access, int dim) {
  return dim_text(access.stride(dim));
}

// Elements from the view's origin to the block's first element, the same in every thread.
printer::IndexText ExpressionPrinter::base_offset(const Access& access) {
  bool wide = false;
  Index reach = 0;
  for (int d = 0; d < access.rank(); ++d) {
    const auto& s = range(access.start(d));
    const tile::Dim& stride = access.stride(d);
    Index part = 0;
    wide = wide || !stride.is_constant() || !s.fits_i32() ||
           __builtin_mul_overflow(std::max(s.high, -s.low), std::abs(stride.value), &part) ||
           part > (Index{1} << 30) || (reach += part) > (Index{1} << 30);
  }
  IndexText offset = 0;
  for (int d = 0; d < access.rank(); ++d) {
    const TypedText start = scalar(access.start(d));
    if (start.number == 0) continue;
    offset = offset + index_text(wide ? converted(start, DType::i64) : start) * stride_text(access, d);
  }
  return offset;
}

// What nobody writes while the kernel runs goes by the read-only path.
std::string ExpressionPrinter::load_cache(const Op& op) const {
  return facts_.is_written(op.param) ? "" : ", Cache::constant";
}

// Elements from the view's origin to one element.
printer::IndexText ExpressionPrinter::view_offset(int view, const std::vector<TypedText>& indices) {
  const tile::ViewParam& p = kernel_.views[static_cast<std::size_t>(view)];
  Index reach = 0;  // of a view of constant sizes: indices are inside it
  bool small = true;
  for (int d = 0; d < p.rank(); ++d) {
    const auto dim = static_cast<std::size_t>(d);
    small = small && p.extents[dim].is_constant() && p.strides[dim].is_constant();
    Index part = 0;
    small = small && !__builtin_mul_overflow(p.extents[dim].value, std::abs(p.strides[dim].value), &part) &&
            (reach += part) < (Index{1} << 31);
  }
  IndexText offset = 0;
  for (int d = 0; d < p.rank(); ++d) {
    const auto dim = static_cast<std::size_t>(d);
    offset = offset +
             index_text(converted(indices[dim], small ? DType::i32 : DType::i64)) * dim_text(p.strides[dim]);
  }
  return offset;
}

std::string ExpressionPrinter::inside(const Access& access, const std::vector<bool>& apart) {
  std::string condition;
  for (int dim = 0; dim < access.rank(); ++dim) {
    if (!apart.empty() && apart[static_cast<std::size_t>(dim)]) continue;
    const std::string start = wrapped(scalar(access.start(dim)));
    if (access.checked_below(dim)) condition = join_conditions({condition, fmt::format("{} >= 0", start)});
    if (access.checked_above(dim))
      condition =
          join_conditions({condition, fmt::format("{} < {}", start, dim_text(access.extent(dim)).str())});
  }
  return condition;
}

TypedText ExpressionPrinter::scalar_load(const Op& op) {
  need("memory");
  const Access access(kernel_, ranges_, op);
  const DType dtype = access.view().dtype;
  const std::string offset = base_offset(access).str();
  TypedText e{fmt::format("load<1{}>({} + {}).v[0]", load_cache(op), names_.view(access.op().param), offset),
              compute_dtype(dtype), 0, Binding::prefix};
  if (is_narrow_float(dtype)) e = {fmt::format("to_f32({})", e.text), e.type, 0, Binding::call};
  const std::string guard = inside(access);
  if (guard.empty()) return e;
  return {fmt::format("{} ? {} : {}", guard, e.text, literal(dtype, op.number)), e.type, 0, Binding::choice};
}

}  // namespace tilewright::cuda
