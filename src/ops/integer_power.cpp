// Square and multiply, written as plain nodes: multiplications wrap around, so that every step is exact in
// its type.
#include "ops/integer_power.h"

#include "ops/promote.h"

#include <tilewright/base/dtype.h>

namespace tilewright::ops {

namespace {

Value filled(Value like, Index value) { return constant_int(*like.graph, like.dtype(), like.shape(), value); }

// What a negative exponent gives; `odd` says which sign powers of -1 have.
Value inverse_power(Value base, Value odd) {
  const Value of_minus_one = where(odd, filled(base, -1), filled(base, 1));
  return where(eq(base, 1), filled(base, 1), where(eq(base, -1), of_minus_one, filled(base, 0)));
}

}  // namespace

Value integer_power(Value base, Index exponent) {
  base = cast(base, arithmetic_type(base.dtype()));
  if (exponent < 0)
    return inverse_power(base, constant_int(*base.graph, DType::boolean, base.shape(), exponent & 1));
  std::optional<Value> power;
  for (Value square = base; exponent != 0; square = mul(square, square)) {
    if ((exponent & 1) != 0) power = power ? mul(*power, square) : square;
    exponent >>= 1;
    if (exponent == 0) break;
  }
  return power ? *power : filled(base, 1);
}

Value integer_power(Value base, Value exponent) {
  const bool is_unsigned = exponent.dtype() == DType::u8;
  const int bits = 8 * size_bytes(exponent.dtype()) - (is_unsigned ? 0 : 1);
  const auto bit = [&](int at) { return ne(bit_and(shr(exponent, at), 1), 0); };
  Value power = where(bit(0), base, filled(base, 1)), square = base;
  for (int at = 1; at < bits; ++at) {
    square = mul(square, square);
    power = where(bit(at), mul(power, square), power);
  }
  return is_unsigned ? power : where(lt(exponent, 0), inverse_power(base, bit(0)), power);
}

}  // namespace tilewright::ops
