// Numbers of the host language in functions of tensors. Where the next call may bring another number, it is
// an input of the program, so that one kernel serves all of them; where a function is traced once, it is a
// constant of the program.
#pragma once

#include "ops/functions.h"
#include "tensor/trace.h"

#include <tilewright/tensor/functions.h>

namespace tilewright::detail {

// The literals that may become inputs.
enum class Literals : std::uint8_t {
  any,       // those that no rewrite knows
  exponent,  // not the small ones, which become products
  none,      // kernels of one number are much faster: integer division by a constant
};

// Writes a graph from the values of `tensors` and from arguments in their order.
using MixedFunction = std::function<ir::Value(const std::vector<ir::Value>& tensors,
                                              const std::vector<ops::Operand>& arguments)>;
// Runs or records what `write` makes of tensors and arguments, some of which are literals.
Tensor apply_mixed(const char* name, const std::vector<Tensor>& tensors,
                   const std::vector<const Arg*>& arguments, Literals which, const MixedFunction& write,
                   const Location& where);

// Throws Error where an integer type does not hold `value`, a number that fills a tensor. Fractions are cut,
// and what rounded up to a double beyond the largest i64 is the largest.
void check_fill(const char* op, DType dtype, double value, const Location& where);

// A tensor of this type filled with `value`: memory, or a constant of what is recorded.
Tensor filled(const std::shared_ptr<ContextState>& context, DeviceState& device, const ir::Type& type,
              double value, const Location& where);

// A tensor of this type where x is, filled with `value`, which is memory and no program; nullopt where x is
// recorded, or has no value.
std::optional<Tensor> filled_beside(const char* name, const Tensor& x, const ir::Type& type, double value,
                                    const Location& where);

}  // namespace tilewright::detail
