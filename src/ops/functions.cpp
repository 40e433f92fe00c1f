// Pointwise building functions: promotion and broadcasting, then one row. Views, reductions and the rest are
// in view_functions.cpp.
#include "ops/append.h"

#include "ops/integer_power.h"
#include "ops/promote.h"

#include <fmt/format.h>

#include <cmath>

namespace tilewright::ops {

namespace {

struct Pair {
  Value a;
  Value b;
};

Value literal_as(const Operand& literal, Value beside, DType dtype) {
  if (is_float(dtype)) return constant(*beside.graph, dtype, beside.shape(), literal.real);
  return constant_int(*beside.graph, dtype, beside.shape(), literal.integer);
}

// Two operands of one shape and one type; `adjust` is applied to the promoted type.
Pair promote_operands(std::string_view op, const Operand& a, const Operand& b, DType (*adjust)(DType)) {
  if (a.is_literal() && b.is_literal())
    throw Error(fmt::format("{}: at least one operand must be a tensor", op));
  if (a.is_literal() || b.is_literal()) {
    const Operand& literal = a.is_literal() ? a : b;
    const Value tensor = a.is_literal() ? b.value : a.value;
    const bool keeps_bool = is_bool(tensor.dtype()) && !literal.is_real && (literal.integer & ~Index{1}) == 0;
    const DType promoted = keeps_bool ? tensor.dtype() : weak_type(tensor.dtype(), literal.is_real);
    const Value cast_tensor = cast(tensor, adjust(promoted));
    const Value number = literal_as(literal, tensor, adjust(promoted));
    return a.is_literal() ? Pair{number, cast_tensor} : Pair{cast_tensor, number};
  }
  const DType dtype = adjust(promote(a.value.dtype(), b.value.dtype()));
  const auto shape = broadcast(a.value.shape(), b.value.shape());
  if (!shape)
    fail(a.value, fmt::format("{}: shapes do not broadcast, {} and {}", op, to_string(a.value.type()),
                              to_string(b.value.type())));
  return {broadcast_to(cast(a.value, dtype), *shape), broadcast_to(cast(b.value, dtype), *shape)};
}

DType keep(DType dtype) { return dtype; }

Value binary(const ir::Op& op, const Operand& a, const Operand& b, DType (*adjust)(DType)) {
  const Pair pair = promote_operands(op.name, a, b, adjust);
  return append(op, {pair.a, pair.b});
}

Value float_unary(const ir::Op& op, Value a) { return append(op, {cast(a, float_type(a.dtype()))}); }
// Rounding leaves integers and bools as they are.
Value rounding(const ir::Op& op, Value a) { return is_float(a.dtype()) ? append(op, {a}) : a; }
// Integers need no test: all give the same.
Value test(const ir::Op& op, Value a, Index of_integers) {
  if (is_float(a.dtype())) return append(op, {a});
  return constant_int(*a.graph, DType::boolean, a.shape(), of_integers);
}

Operand truth(const Operand& a) {
  if (a.is_literal()) return {a.is_real ? a.real != 0 : a.integer != 0};
  return is_bool(a.value.dtype()) ? a.value : ne(a.value, 0);
}

}  // namespace

Value constant(ir::Graph& graph, DType dtype, const Shape& shape, double value) {
  if (!is_float(dtype)) return constant_int(graph, dtype, shape, float_to_int(dtype, value));
  const double rounded = round_to(compute_dtype(dtype), value);
  return {&graph,
          graph.add(kConstant, {},
                    {{"dtype", std::string(name(dtype))}, {"shape", shape.extents()}, {"value", rounded}})};
}

Value constant_int(ir::Graph& graph, DType dtype, const Shape& shape, Index value) {
  if (is_float(dtype)) return constant(graph, dtype, shape, static_cast<double>(value));
  const Index wrapped = wrap_to(dtype, value);
  return {&graph,
          graph.add(kConstant, {},
                    {{"dtype", std::string(name(dtype))}, {"shape", shape.extents()}, {"value", wrapped}})};
}

Value full_like(Value x, double value) { return constant(*x.graph, x.dtype(), x.shape(), value); }

Value cast(Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return append(kCast, {x}, {{"dtype", std::string(name(dtype))}});
}

Value stop_gradient(Value x) { return append(kStopGradient, {x}); }
Value with_gradient_of(Value x, Value gradient) { return append(kWithGradientOf, {x, gradient}); }

#define TW_ROW(f, Row, type, literals) \
  Value f(const Operand& a, const Operand& b) { return binary(k##Row, a, b, type); }
#define TW_ARITHMETIC TW_ROW
#define TW_COMPARISON TW_ROW
#define TW_BITS TW_ROW
#define TW_SHIFT TW_ROW
#define TW_FUNCTION(f, literals)
#include <tilewright/ops/binary.def>
#undef TW_ROW

Value trunc_div(const Operand& a, const Operand& b) {
  return rounding(kTrunc, binary(kDiv, a, b, arithmetic_type));
}
Value pow(const Operand& a, const Operand& b) {
  const auto whole = [](const Operand& o) {
    return o.is_literal() ? !o.is_real : !is_float(o.value.dtype());
  };
  if (whole(a) && whole(b) && !a.is_literal() && b.is_literal()) return integer_power(a.value, b.integer);
  if (!whole(a) || !whole(b)) return binary(kPow, a, b, float_type);
  const Pair pair = promote_operands("pow", a, b, arithmetic_type);
  return integer_power(pair.a, pair.b);
}

Value minimum(const Operand& a, const Operand& b) {
  const Pair pair = promote_operands("minimum", a, b, keep);
  return append(is_bool(pair.a.dtype()) ? kBitAnd : kMinimum, {pair.a, pair.b});
}
Value maximum(const Operand& a, const Operand& b) {
  const Pair pair = promote_operands("maximum", a, b, keep);
  return append(is_bool(pair.a.dtype()) ? kBitOr : kMaximum, {pair.a, pair.b});
}

Value neg(Value a) { return append(kNeg, {cast(a, arithmetic_type(a.dtype()))}); }
Value abs(Value a) { return is_bool(a.dtype()) ? a : append(kAbs, {a}); }
Value sign(Value a) { return is_bool(a.dtype()) ? a : append(kSign, {a}); }

#define TW_ROUNDING(f, Row) \
  Value f(Value a) { return rounding(k##Row, a); }
#define TW_FLOAT(f, Row) \
  Value f(Value a) { return float_unary(k##Row, a); }
#define TW_TEST(f, Row, whole) \
  Value f(Value a) { return test(k##Row, a, whole); }
#define TW_BIT(f, Row) \
  Value f(Value a) { return append(k##Row, {a}); }
#define TW_FUNCTION(f)
#include <tilewright/ops/unary.def>

Value logical_and(const Operand& a, const Operand& b) { return bit_and(truth(a), truth(b)); }
Value logical_or(const Operand& a, const Operand& b) { return bit_or(truth(a), truth(b)); }
Value logical_xor(const Operand& a, const Operand& b) { return bit_xor(truth(a), truth(b)); }
Value logical_not(Value a) { return bit_not(truth(a).value); }

Value where(Value condition, const Operand& a, const Operand& b) {
  if (a.is_literal() && b.is_literal()) {
    const auto fits = [](const Operand& o) { return wrap_to(DType::i32, o.integer) == o.integer; };
    const auto fits_f32 = [](const Operand& o) {
      return !std::isfinite(o.real) || std::fabs(o.real) <= max_finite(DType::f32);
    };
    const DType whole = fits(a) && fits(b) ? DType::i32 : DType::i64,
                real = fits_f32(a) && fits_f32(b) ? DType::f32 : DType::f64;
    const DType dtype = a.is_real || b.is_real ? real : whole;
    return append(kWhere, {condition, literal_as(a, condition, dtype), literal_as(b, condition, dtype)});
  }
  const Pair pair = promote_operands("where", a, b, keep);
  const auto shape = broadcast(condition.shape(), pair.a.shape());
  if (!shape)
    fail(condition, fmt::format("where: shapes do not broadcast, {} and {}", to_string(condition.type()),
                                to_string(pair.a.type())));
  return append(
      kWhere, {broadcast_to(condition, *shape), broadcast_to(pair.a, *shape), broadcast_to(pair.b, *shape)});
}

}  // namespace tilewright::ops

namespace tilewright::ir {
Value operator+(const ops::Operand& a, const ops::Operand& b) { return ops::add(a, b); }
Value operator-(const ops::Operand& a, const ops::Operand& b) { return ops::sub(a, b); }
Value operator*(const ops::Operand& a, const ops::Operand& b) { return ops::mul(a, b); }
Value operator/(const ops::Operand& a, const ops::Operand& b) { return ops::div(a, b); }
Value operator-(Value a) { return ops::neg(a); }
}  // namespace tilewright::ir
