// Rewrites of pointwise ops and casts: identities, constants, and the order of broadcasting and computing.
#include "ops/stored_rows.h"
#include "passes/graph/simplify_parts.h"

#include <cmath>

namespace tilewright::passes {

namespace {

using ir::OpClass;
using ir::Value;
using Replacement = std::optional<Value>;

bool is_pointwise(const Candidate& n) {
  return n.op.kind == OpClass::pointwise || n.op.kind == OpClass::cast;
}

Replacement drop_stop_gradient(const Candidate& n) {
  if (n.is(ops::kStopGradient)) return n.x[0];
  return {};
}

Replacement drop_with_gradient_of(const Candidate& n) {
  if (n.is(ops::kWithGradientOf)) return n.x[0];
  return {};
}

// The node's value, computed in float64 (int64) and rounded to the type that values of n.type are computed
// with.
Replacement fold_constants(const Candidate& n) {
  if (!is_pointwise(n) || n.x.empty()) return {};
  std::vector<ir::HostTensor> held;
  for (const Value& v : n.x) {
    const auto number = constant_of(v);
    if (!number) return {};
    ir::HostTensor scalar{.type = {v.dtype(), {}}};
    if (is_float(v.dtype()))
      scalar.f = {number->real};
    else
      scalar.i = {number->integer};
    held.push_back(std::move(scalar));
  }
  std::vector<const ir::HostTensor*> operands;
  operands.reserve(held.size());
  for (const ir::HostTensor& t : held) operands.push_back(&t);
  const ir::HostTensor folded = n.op.eval(operands, n.attrs, {n.type.dtype, {}});
  ir::Graph& graph = *n.x[0].graph;
  if (is_float(n.type.dtype)) return ops::constant(graph, n.type.dtype, n.type.shape, folded.f[0]);
  return ops::constant_int(graph, n.type.dtype, n.type.shape, folded.i[0]);
}

bool is_commutative(const ir::Op& op) {
  for (const ir::Op* row : {&ops::kAdd, &ops::kMul, &ops::kMinimum, &ops::kMaximum, &ops::kEq, &ops::kNe,
                            &ops::kBitAnd, &ops::kBitOr, &ops::kBitXor})
    if (row == &op) return true;
  return false;
}

Replacement order_operands(const Candidate& n) {
  if (!is_commutative(n.op)) return {};
  const bool first_constant = constant_of(n.x[0]).has_value();
  const bool second_constant = constant_of(n.x[1]).has_value();
  const bool swap = first_constant != second_constant ? first_constant : n.x[0].id > n.x[1].id;
  if (!swap) return {};
  return Value{n.x[0].graph, n.x[0].graph->add(n.op, {n.x[1].id, n.x[0].id}, n.attrs)};
}

Replacement add_nothing(const Candidate& n) {
  const bool is_float_type = is_float(n.type.dtype);
  if (n.is(ops::kAdd) && is_number(n.x[1], is_float_type ? -0.0 : 0.0)) return n.x[0];
  if (n.is(ops::kSub) && is_number(n.x[1], 0.0)) return n.x[0];
  return {};
}

Replacement multiply_by_one(const Candidate& n) {
  if ((n.is(ops::kMul) || n.is(ops::kDiv)) && is_number(n.x[1], 1.0)) return n.x[0];
  return {};
}

Replacement multiply_by_minus_one(const Candidate& n) {
  if ((n.is(ops::kMul) || n.is(ops::kDiv)) && is_number(n.x[1], -1.0)) return ops::neg(n.x[0]);
  return {};
}

// x * 0 is 0 for integers. Floats keep it: infinity and NaN times 0 are NaN.
Replacement integer_zero(const Candidate& n) {
  if (is_float(n.type.dtype)) return {};
  if ((n.is(ops::kMul) || n.is(ops::kBitAnd)) && is_number(n.x[1], 0)) return n.x[1];
  const bool cancels = n.is(ops::kSub) || n.is(ops::kBitXor);
  if (cancels && same(n.x[0], n.x[1])) return ops::constant_int(*n.x[0].graph, n.type.dtype, n.type.shape, 0);
  return {};
}

Replacement divide_by_power_of_two(const Candidate& n) {
  if (!n.is(ops::kDiv) || !is_float(n.type.dtype)) return {};
  const auto divisor = constant_of(n.x[1]);
  if (!divisor || !std::isfinite(divisor->real) || divisor->real == 0) return {};
  int exponent = 0;
  const bool power = std::fabs(std::frexp(divisor->real, &exponent)) == 0.5;
  if (!power || exponent < -100 || exponent > 100) return {};  // the reciprocal stays a normal f32
  return ops::mul(n.x[0], 1 / divisor->real);
}

Replacement negations(const Candidate& n) {
  if (n.is(ops::kNeg) && is_a(n.x[0], ops::kNeg)) return operand_of(n.x[0]);
  if (n.is(ops::kNeg) && is_a(n.x[0], ops::kSub) && !is_float(n.type.dtype))
    return ops::sub(operand_of(n.x[0], 1), operand_of(n.x[0], 0));
  if (n.is(ops::kAdd) && is_a(n.x[1], ops::kNeg)) return ops::sub(n.x[0], operand_of(n.x[1]));
  if (n.is(ops::kAdd) && is_a(n.x[0], ops::kNeg)) return ops::sub(n.x[1], operand_of(n.x[0]));
  if (n.is(ops::kSub) && is_a(n.x[1], ops::kNeg)) return ops::add(n.x[0], operand_of(n.x[1]));
  if (n.is(ops::kMul) && is_a(n.x[0], ops::kNeg) && is_a(n.x[1], ops::kNeg))
    return ops::mul(operand_of(n.x[0]), operand_of(n.x[1]));
  if (n.is(ops::kBitNot) && is_a(n.x[0], ops::kBitNot)) return operand_of(n.x[0]);
  return {};
}

Replacement small_powers(const Candidate& n) {
  if (!n.is(ops::kPow)) return {};
  const Value x = n.x[0];
  if (is_number(n.x[1], 1)) return x;
  if (is_number(n.x[1], 2)) return ops::mul(x, x);
  if (is_number(n.x[1], 3)) return ops::mul(ops::mul(x, x), x);
  if (is_number(n.x[1], -1)) return ops::reciprocal(x);
  if (is_number(n.x[1], 0)) return ops::full_like(x, 1.0);  // also of NaN, as C's pow
  return {};
}

Replacement where_decided(const Candidate& n) {
  if (!n.is(ops::kWhere)) return {};
  if (same(n.x[1], n.x[2])) return n.x[1];
  if (const auto condition = constant_of(n.x[0])) return condition->integer != 0 ? n.x[1] : n.x[2];
  if (is_a(n.x[0], ops::kBitNot)) return ops::where(operand_of(n.x[0]), n.x[2], n.x[1]);
  if (is_a(n.x[1], ops::kWhere) && same(operand_of(n.x[1]), n.x[0]))
    return ops::where(n.x[0], operand_of(n.x[1], 1), n.x[2]);
  if (is_a(n.x[2], ops::kWhere) && same(operand_of(n.x[2]), n.x[0]))
    return ops::where(n.x[0], n.x[1], operand_of(n.x[2], 2));
  return {};
}

// Masked scores are scaled behind the mask: backends that compute exponentials as powers of two multiply
// there anyway, and a row's largest is scaled once.
Replacement scale_what_is_chosen(const Candidate& n) {
  if (!n.is(ops::kWhere) || !is_float(n.type.dtype)) return {};
  const auto other = constant_of(n.x[2]);
  if (!other || !std::isinf(other->real) || !is_a(n.x[1], ops::kMul) || !n.is_read_once(n.x[1])) return {};
  const Value factor = operand_of(n.x[1], 1);
  const auto by = constant_of(factor);
  const double rounded = by ? round_to(compute_dtype(n.type.dtype), by->real) : 0;
  if (!(rounded > 0) || std::isinf(rounded)) return {};
  return ops::mul(ops::where(n.x[0], operand_of(n.x[1]), n.x[2]), factor);
}

Replacement idempotent(const Candidate& n) {
  const bool keeps = n.is(ops::kMinimum) || n.is(ops::kMaximum) || n.is(ops::kBitAnd) || n.is(ops::kBitOr);
  if (keeps && same(n.x[0], n.x[1])) return n.x[0];
  return {};
}

Replacement bool_identities(const Candidate& n) {
  if (!is_bool(n.type.dtype) || n.x.size() != 2 || !is_bool(n.x[0].dtype())) return {};
  if (n.is(ops::kBitAnd) && is_number(n.x[1], 1)) return n.x[0];
  if ((n.is(ops::kBitOr) || n.is(ops::kBitXor)) && is_number(n.x[1], 0)) return n.x[0];
  if (n.is(ops::kBitOr) && is_number(n.x[1], 1)) return n.x[1];
  return {};
}

// Every value of `narrow` is one of `wide`.
bool holds_exactly(DType wide, DType narrow) {
  if (wide == narrow || is_bool(narrow)) return true;
  if (!is_float(wide) && !is_float(narrow))
    return wide == DType::i64 || (wide == DType::i32 && size_bytes(narrow) == 1);
  if (is_float(wide) && is_float(narrow))
    return size_bytes(wide) > size_bytes(narrow) && size_bytes(wide) >= 4;
  if (!is_float(wide)) return false;
  return size_bytes(narrow) < size_bytes(wide) && size_bytes(wide) >= 4;
}

// The middle type of two casts goes when it holds the first one's values exactly. A narrow float is not
// assumed to hold its own type's values: between a load and a store it is computed in f32, and the cast is
// what rounds.
Replacement cast_chain(const Candidate& n) {
  if (!n.is(ops::kCast) || n.attrs.has(ops::kPitch)) return {};
  const Value x = n.x[0];
  if (x.dtype() == n.type.dtype && !is_narrow_float(x.dtype())) return x;
  if (!is_a(x, ops::kCast)) return {};
  const Value origin = operand_of(x);
  if (!holds_exactly(x.dtype(), compute_dtype(origin.dtype()))) return {};
  // Floats saturate where integers wrap around, so an integer's way through a float stays unless nothing is
  // lost.
  const bool wraps = is_float(x.dtype()) && !is_float(origin.dtype()) && !is_float(n.type.dtype);
  if (wraps && !holds_exactly(n.type.dtype, origin.dtype())) return {};
  if (origin.dtype() == n.type.dtype) {
    const bool rounded =
        !is_narrow_float(origin.dtype()) || is_a(origin, ir::input_op) || is_a(origin, ops::kCast);
    return rounded ? Replacement(origin) : std::nullopt;
  }
  return ops::cast(origin, n.type.dtype);
}

// f(expand(a), expand(b), constant) = expand(f(a, b, constant)): compute before broadcasting.
Replacement compute_before_expand(const Candidate& n) {
  if (!is_pointwise(n) || n.x.empty()) return {};
  std::optional<Shape> small;
  for (const Value& v : n.x) {
    if (constant_of(v)) continue;
    if (!is_a(v, ops::kExpand)) return {};
    const Shape& from = operand_of(v).shape();
    if (small && *small != from) return {};
    small = from;
  }
  if (!small) return {};
  ir::Graph& graph = *n.x[0].graph;
  std::vector<ir::NodeId> operands;
  operands.reserve(n.x.size());
  for (const Value& v : n.x)
    operands.push_back(constant_of(v) ? constant_at(v, *small).id : operand_of(v).id);
  return ops::broadcast_to({&graph, graph.add(n.op, operands, n.attrs)}, n.type.shape);
}

constexpr Rewrite kPointwiseRewrites[] = {
    {"drop_stop_gradient", "stop_gradient(x) = x", drop_stop_gradient},
    {"drop_with_gradient_of", "with_gradient_of(x, y) = x", drop_with_gradient_of},
    {"fold_constants", "f(constants) = constant, f pointwise or cast", fold_constants},
    {"order_operands", "a + b = b + a for commutative ops: constants last, else by age", order_operands},
    {"add_nothing", "x + -0 = x, x - 0 = x; of integers x + 0 = x", add_nothing},
    {"multiply_by_one", "x * 1 = x, x / 1 = x", multiply_by_one},
    {"multiply_by_minus_one", "x * -1 = -x, x / -1 = -x", multiply_by_minus_one},
    {"integer_zero", "of integers: x * 0 = 0, x & 0 = 0, x - x = 0, x ^ x = 0", integer_zero},
    {"divide_by_power_of_two", "x / 2^n = x * 2^-n", divide_by_power_of_two},
    {"negations",
     "--x = x, a + -b = a - b, a - -b = a + b, -a * -b = a * b, !!x = x; of integers -(a - b) = b - a",
     negations},
    {"small_powers", "pow(x, n) = x, x * x, x * x * x, 1 / x, 1 for n = 1, 2, 3, -1, 0", small_powers},
    {"where_decided", "where(c, x, x) = x; a constant, negated or repeated condition is resolved",
     where_decided},
    {"scale_what_is_chosen", "where(c, x * s, inf) = where(c, x, inf) * s, also -inf, for s > 0",
     scale_what_is_chosen},
    {"idempotent", "min(x, x) = x, also max, and, or", idempotent},
    {"bool_identities", "x and true = x, x or false = x, x xor false = x, x or true = true", bool_identities},
    {"cast_chain", "cast to the same type; cast(cast(x, wide), t) = cast(x, t)", cast_chain},
    {"compute_before_expand", "f(expand(a), expand(b), constant) = expand(f(a, b, constant))",
     compute_before_expand},
};

}  // namespace

std::span<const Rewrite> pointwise_rewrites() { return kPointwiseRewrites; }

}  // namespace tilewright::passes
