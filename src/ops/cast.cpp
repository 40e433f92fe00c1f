// Rows that keep the numbers: cast, stop_gradient and with_gradient_of.
#include "ops/row_parts.h"
#include "ops/stored_rows.h"

namespace tilewright::ops {

namespace {

Type infer_cast(Types operands, const Attrs& attrs) {
  const Shape& shape = operands[0].shape;
  if (attrs.has(kPitch) && (shape.rank() == 0 || attrs.integer(kPitch) < shape[shape.rank() - 1]))
    throw Error("cast: rows do not fit the pitch between them");
  return {attrs.dtype("dtype"), shape};
}

HostTensor eval_cast(HostTensors x, const Attrs&, const Type& type) {
  const DType from = x[0]->type.dtype;
  const DType to = type.dtype;
  HostTensor out = empty_host(type);
  if (is_float(from) && is_float(to)) {
    for (std::size_t i = 0; i < out.f.size(); ++i) out.f[i] = round_to(to, x[0]->f[i]);
  } else if (is_float(from)) {
    for (std::size_t i = 0; i < out.i.size(); ++i) out.i[i] = float_to_int(to, x[0]->f[i]);
  } else if (is_float(to)) {
    for (std::size_t i = 0; i < out.f.size(); ++i) out.f[i] = round_to(to, static_cast<double>(x[0]->i[i]));
  } else {
    for (std::size_t i = 0; i < out.i.size(); ++i) out.i[i] = wrap_to(to, x[0]->i[i]);
  }
  return out;
}

Grads vjp_cast(Args x, const Attrs&, Value, Value g) {
  if (!is_float(x[0].dtype())) return {std::nullopt};
  return {cast(g, x[0].dtype())};
}

Type infer_with_gradient_of(Types operands, const Attrs&) {
  if (!(operands[0] == operands[1]))
    throw Error(fmt::format("with_gradient_of: operands are {} and {}", to_string(operands[0]),
                            to_string(operands[1])));
  return operands[0];
}

HostTensor eval_same(HostTensors x, const Attrs&, const Type&) { return *x[0]; }

}  // namespace

constexpr ir::Op kCast = checked({.name = "cast",
                                  .arity = 1,
                                  .kind = OpClass::cast,
                                  .doc = "a in the element type `dtype`, rounded as base/dtype.h says.",
                                  .infer = infer_cast,
                                  .eval = eval_cast,
                                  .vjp = vjp_cast,
                                  .lower = structural,
                                  .flops = 1});

constexpr ir::Op kStopGradient =
    checked({.name = "stop_gradient",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "a, as a constant for gradients.",
             .infer = [](Types operands, const Attrs&) { return operands[0]; },
             .eval = eval_same,
             .vjp = zero_gradient,
             .lower = [](tile::Builder&, std::span<const tile::Value> x, const Attrs&) { return x[0]; }});

// A gradient whose fast formula, a, cannot be differentiated: b can, and is dead code unless it is.
constexpr ir::Op kWithGradientOf =
    checked({.name = "with_gradient_of",
             .arity = 2,
             .kind = OpClass::pointwise,
             .doc = "a, with the gradient of b, which is the same number by another formula.",
             .infer = infer_with_gradient_of,
             .eval = eval_same,
             .vjp = [](Args, const Attrs&, Value, Value g) -> Grads { return {std::nullopt, g}; },
             .lower = [](tile::Builder&, std::span<const tile::Value> x, const Attrs&) { return x[0]; }});

}  // namespace tilewright::ops
