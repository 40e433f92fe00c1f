// Powers of integers: exact, modulo 2^bits of the type. Of negative exponents the exact quotient truncated
// toward zero, as PyTorch has it: 1 stays 1, -1 alternates, every other number, 0 too, gives 0.
#pragma once

#include "ops/functions.h"

namespace tilewright::ops {

Value integer_power(Value base, Index exponent);
// Operands have one shape and one integer type, the result's.
Value integer_power(Value base, Value exponent);

}  // namespace tilewright::ops
