// Rows of comparisons, predicates, bitwise and logical operations, and where.
#include "ops/row_parts.h"

#include <limits>

namespace tilewright::ops {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Shift counts are taken modulo the width of the type.
template <class F>
constexpr ir::EvalFn map_shift(F) {
  return [](HostTensors x, const Attrs&, const Type& type) {
    HostTensor out = empty_host(type);
    const auto mask = static_cast<std::int64_t>(8 * size_bytes(type.dtype)) - 1;
    for (std::size_t i = 0; i < out.i.size(); ++i) out.i[i] = F{}(x[0]->i[i], x[1]->i[i] & mask);
    wrap_values(out);
    return out;
  };
}

HostTensor eval_not(HostTensors x, const Attrs&, const Type& type) {
  HostTensor out = empty_host(type);
  const std::int64_t ones = is_bool(type.dtype) ? 1 : -1;
  for (std::size_t i = 0; i < out.i.size(); ++i) out.i[i] = x[0]->i[i] ^ ones;
  wrap_values(out);
  return out;
}

Type infer_where(Types operands, const Attrs&) {
  if (!is_bool(operands[0].dtype))
    throw Error(
        fmt::format("the condition is {}, not bool: compare it with something", to_string(operands[0])));
  if (operands[0].shape != operands[1].shape || operands[1] != operands[2])
    throw Error(fmt::format(
        "a condition and what it chooses between have one shape, and these one type, got {}, {}, {}",
        to_string(operands[0]), to_string(operands[1]), to_string(operands[2])));
  return operands[1];
}

template <class T>
void choose(HostTensors x, HostTensor& out) {
  const std::int64_t* condition = x[0]->i.data();
  const T* a = values<T>(*x[1]).data();
  const T* b = values<T>(*x[2]).data();
  T* to = values<T>(out).data();
  for (std::size_t i = 0; i < values<T>(out).size(); ++i) to[i] = condition[i] != 0 ? a[i] : b[i];
}

HostTensor eval_where(HostTensors x, const Attrs&, const Type& type) {
  HostTensor out = empty_host(type);
  if (is_float(type.dtype))
    choose<double>(x, out);
  else
    choose<std::int64_t>(x, out);
  return out;
}

}  // namespace

constexpr ir::Op kEq = checked({.name = "eq",
                                .arity = 2,
                                .kind = OpClass::pointwise,
                                .doc = "a equals b.",
                                .infer = compare_any,
                                .eval = compare_numbers([](auto a, auto b) { return a == b; }),
                                .vjp = zero_gradient,
                                .lower = apply_prim<Prim::eq>,
                                .flops = flops_of(Prim::eq)});

constexpr ir::Op kNe = checked({.name = "ne",
                                .arity = 2,
                                .kind = OpClass::pointwise,
                                .doc = "a differs from b; true when either is NaN.",
                                .infer = compare_any,
                                .eval = compare_numbers([](auto a, auto b) { return a != b; }),
                                .vjp = zero_gradient,
                                .lower = apply_prim<Prim::ne>,
                                .flops = flops_of(Prim::ne)});

constexpr ir::Op kLt = checked({.name = "lt",
                                .arity = 2,
                                .kind = OpClass::pointwise,
                                .doc = "a below b.",
                                .infer = compare_arithmetic,
                                .eval = compare_numbers([](auto a, auto b) { return a < b; }),
                                .vjp = zero_gradient,
                                .lower = apply_prim<Prim::lt>,
                                .flops = flops_of(Prim::lt)});

constexpr ir::Op kLe = checked({.name = "le",
                                .arity = 2,
                                .kind = OpClass::pointwise,
                                .doc = "a at most b.",
                                .infer = compare_arithmetic,
                                .eval = compare_numbers([](auto a, auto b) { return a <= b; }),
                                .vjp = zero_gradient,
                                .lower = apply_prim<Prim::le>,
                                .flops = flops_of(Prim::le)});

constexpr ir::Op kGt = checked({.name = "gt",
                                .arity = 2,
                                .kind = OpClass::pointwise,
                                .doc = "a above b.",
                                .infer = compare_arithmetic,
                                .eval = compare_numbers([](auto a, auto b) { return a > b; }),
                                .vjp = zero_gradient,
                                .lower = apply_prim<Prim::gt>,
                                .flops = flops_of(Prim::gt)});

constexpr ir::Op kGe = checked({.name = "ge",
                                .arity = 2,
                                .kind = OpClass::pointwise,
                                .doc = "a at least b.",
                                .infer = compare_arithmetic,
                                .eval = compare_numbers([](auto a, auto b) { return a >= b; }),
                                .vjp = zero_gradient,
                                .lower = apply_prim<Prim::ge>,
                                .flops = flops_of(Prim::ge)});

constexpr ir::Op kIsnan = checked({.name = "isnan",
                                   .arity = 1,
                                   .kind = OpClass::pointwise,
                                   .doc = "a is not a number.",
                                   .infer = float_predicate,
                                   .eval = test_floats([](double a) { return std::isnan(a); }),
                                   .vjp = zero_gradient,
                                   .lower = apply_prim<Prim::isnan>,
                                   .flops = flops_of(Prim::isnan)});

constexpr ir::Op kIsinf = checked({.name = "isinf",
                                   .arity = 1,
                                   .kind = OpClass::pointwise,
                                   .doc = "a is +inf or -inf.",
                                   .infer = float_predicate,
                                   .eval = test_floats([](double a) { return std::isinf(a); }),
                                   .vjp = zero_gradient,
                                   .lower = [](tile::Builder&, std::span<const tile::Value> x,
                                               const Attrs&) { return tile::abs(x[0]) == kInfinity; },
                                   .flops = 2});

constexpr ir::Op kIsfinite = checked({.name = "isfinite",
                                      .arity = 1,
                                      .kind = OpClass::pointwise,
                                      .doc = "a is neither infinite nor NaN.",
                                      .infer = float_predicate,
                                      .eval = test_floats([](double a) { return std::isfinite(a); }),
                                      .vjp = zero_gradient,
                                      .lower = [](tile::Builder&, std::span<const tile::Value> x,
                                                  const Attrs&) { return tile::abs(x[0]) < kInfinity; },
                                      .flops = 2});

constexpr ir::Op kBitAnd =
    checked({.name = "bit_and",
             .arity = 2,
             .kind = OpClass::pointwise,
             .doc = "Bitwise and; of bools: logical.",
             .infer = integral_operands,
             .eval = map_integers([](std::int64_t a, std::int64_t b) { return a & b; }),
             .vjp = no_gradient,
             .lower = apply_prim<Prim::bit_and>,
             .flops = flops_of(Prim::bit_and)});

constexpr ir::Op kBitOr = checked({.name = "bit_or",
                                   .arity = 2,
                                   .kind = OpClass::pointwise,
                                   .doc = "Bitwise or; of bools: logical.",
                                   .infer = integral_operands,
                                   .eval = map_integers([](std::int64_t a, std::int64_t b) { return a | b; }),
                                   .vjp = no_gradient,
                                   .lower = apply_prim<Prim::bit_or>,
                                   .flops = flops_of(Prim::bit_or)});

constexpr ir::Op kBitXor =
    checked({.name = "bit_xor",
             .arity = 2,
             .kind = OpClass::pointwise,
             .doc = "Bitwise exclusive or; of bools: logical.",
             .infer = integral_operands,
             .eval = map_integers([](std::int64_t a, std::int64_t b) { return a ^ b; }),
             .vjp = no_gradient,
             .lower = apply_prim<Prim::bit_xor>,
             .flops = flops_of(Prim::bit_xor)});

constexpr ir::Op kBitNot = checked({.name = "bit_not",
                                    .arity = 1,
                                    .kind = OpClass::pointwise,
                                    .doc = "Bitwise complement; of bools: logical not.",
                                    .infer = integral_operands,
                                    .eval = eval_not,
                                    .vjp = no_gradient,
                                    .lower = apply_prim<Prim::bit_not>,
                                    .flops = flops_of(Prim::bit_not)});

constexpr ir::Op kShl = checked({.name = "shl",
                                 .arity = 2,
                                 .kind = OpClass::pointwise,
                                 .doc = "a shifted left by b bits, b modulo the width.",
                                 .infer = integer_operands,
                                 .eval = map_shift([](std::int64_t a, std::int64_t b) {
                                   return static_cast<std::int64_t>(modular(a) << b);
                                 }),
                                 .vjp = no_gradient,
                                 .lower = apply_prim<Prim::shl>,
                                 .flops = flops_of(Prim::shl)});

constexpr ir::Op kShr = checked({.name = "shr",
                                 .arity = 2,
                                 .kind = OpClass::pointwise,
                                 .doc = "a shifted right by b bits, b modulo the width; the sign is kept.",
                                 .infer = integer_operands,
                                 .eval = map_shift([](std::int64_t a, std::int64_t b) { return a >> b; }),
                                 .vjp = no_gradient,
                                 .lower = apply_prim<Prim::shr>,
                                 .flops = flops_of(Prim::shr)});

constexpr ir::Op kWhere = checked({.name = "where",
                                   .arity = 3,
                                   .kind = OpClass::pointwise,
                                   .doc = "a where the condition holds, else b.",
                                   .infer = infer_where,
                                   .eval = eval_where,
                                   .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads {
                                     return {std::nullopt, where(x[0], g, 0.0), where(x[0], 0.0, g)};
                                   },
                                   .lower = apply_prim<Prim::select>,
                                   .flops = flops_of(Prim::select)});

}  // namespace tilewright::ops
