// The rules as tables and one-line predicates.
#include "tile/rules.h"

#include <cmath>
#include <numeric>

namespace tilewright::tile {

namespace {
bool is_computed_float(DType d) { return d == DType::f32 || d == DType::f64; }
}  // namespace

bool accepts(Prim prim, DType dtype) {
  switch (info(prim).operands) {
    case PrimClass::arithmetic:
      return is_computed_float(dtype) || is_integer(dtype);
    case PrimClass::floating:
      return is_computed_float(dtype);
    case PrimClass::integral:
      return is_integer(dtype) || (is_bool(dtype) && prim != Prim::shl && prim != Prim::shr);
    case PrimClass::any:
      return true;
  }
  return false;
}

bool reduces(Monoid monoid, DType dtype) {
  const bool logical = monoid == Monoid::logical_and || monoid == Monoid::logical_or;
  return logical ? is_bool(dtype) : is_computed_float(dtype) || is_integer(dtype);
}

bool scans(Monoid monoid, DType dtype) {
  return reduces(monoid, dtype) && !finds_place(monoid) && !is_bool(dtype);
}

bool sorts(DType dtype) { return is_computed_float(dtype) || is_integer(dtype); }

DType reduce_dtype(Monoid monoid, DType dtype) { return finds_place(monoid) ? DType::i64 : dtype; }

bool dot_types_meet(DType a, DType b) { return a == b || (is_f8(a) && is_f8(b)); }

std::optional<DType> dot_accumulator(DType dtype) {
  if (is_bool(dtype)) return std::nullopt;
  if (is_float(dtype)) return compute_dtype(dtype);
  return dtype == DType::i64 ? DType::i64 : DType::i32;
}

bool adds_atomically(DType dtype) {
  return is_computed_float(dtype) || dtype == DType::i32 || dtype == DType::i64;
}

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || !letter(text[0])) return false;
  for (char c : text)
    if (!letter(c) && !digit(c) && c != '.') return false;
  return true;
}

bool is_product(const Op& op, DType dtype) {
  return op.kind == OpKind::apply && op.prim == Prim::mul && is_float(dtype);
}

bool is_sum(const Op& op) {
  return op.kind == OpKind::apply && (op.prim == Prim::add || op.prim == Prim::sub);
}

std::optional<Number> float_literal(DType dtype, double value) {
  const double rounded = round_to(dtype, value);
  // A saturating type turns infinity into its largest value, the others a large value into infinity.
  if (std::isinf(value) != std::isinf(rounded)) return std::nullopt;
  if (std::isfinite(value) && std::abs(value) > max_finite(dtype) * (1 + unit_roundoff(dtype)))
    return std::nullopt;
  return Number{rounded, 0};
}

Number int_literal(DType dtype, Index value) { return {0, wrap_to(dtype, value)}; }

bool is_canonical(const Number& number, DType dtype) {
  if (is_float(dtype)) return number == Number{round_to(dtype, number.f), 0};
  return number == int_literal(dtype, number.i);
}

std::vector<int> default_tile_dims(int view_rank, int tile_rank) {
  std::vector<int> dims(static_cast<std::size_t>(tile_rank));
  std::iota(dims.begin(), dims.end(), view_rank - tile_rank);
  return dims;
}

FieldUse field_use(OpKind kind) {
  switch (kind) {
    case OpKind::scalar_param:
    case OpKind::program_id:
      return {.param = true};
    case OpKind::apply:
      return {.prim = true};
    case OpKind::load:
    case OpKind::store:
      return {.param = true, .tile_dims = true, .bounded = true};
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::atomic_add:
      return {.param = true, .masked = true};
    case OpKind::reduce:
    case OpKind::scan:
      return {.monoid = true, .axis = true};
    case OpKind::argsort:
      return {.axis = true, .order = true};
    case OpKind::loop:
      return {.blocks = 1};
    case OpKind::branch:
      return {.blocks = 2};
    default:
      return {};
  }
}

bool uses_number(const Op& op) {
  return op.kind == OpKind::constant || (op.kind == OpKind::load && op.bounded) ||
         (op.kind == OpKind::gather && op.masked);
}

}  // namespace tilewright::tile
