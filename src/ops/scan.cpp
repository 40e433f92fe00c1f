// Rows of scans: running combinations along an axis.
#include "ops/combine.h"

namespace tilewright::ops {

namespace {

using tile::Monoid;

Type infer_scan(Types operands, const Attrs& attrs) {
  axis_attr(attrs, operands[0].shape.rank());
  return arithmetic_operands(operands, attrs);
}

template <class T, class F>
void accumulate(const HostTensor& x, int axis, HostTensor& out, F combine) {
  const std::vector<T>& from = values<T>(x);
  std::vector<T>& to = values<T>(out);
  for_each_line(x.type.shape, axis, [&](Index first, Index stride) {
    auto at = static_cast<std::size_t>(first);
    T total = to[at] = from[at];
    for (Index i = 1; i < x.type.shape[axis]; ++i) {
      at += static_cast<std::size_t>(stride);
      to[at] = total = static_cast<T>(combine(total, from[at]));
    }
  });
}

template <class F>
constexpr ir::EvalFn scan_numbers(F) {
  return [](HostTensors x, const Attrs& attrs, const Type& type) {
    HostTensor out = empty_host(type);
    const int axis = axis_attr(attrs, type.shape.rank());
    if (is_float(type.dtype)) {
      accumulate<double>(*x[0], axis, out, F{});
    } else {
      accumulate<std::int64_t>(*x[0], axis, out, F{});
      wrap_values(out);
    }
    return out;
  };
}

Grads vjp_cumsum(Args, const Attrs& attrs, Value, Value g) {
  const Index axis = attrs.integer("axis");
  return {flip(cumsum(flip(g, {axis}), axis), {axis})};
}

}  // namespace

constexpr ir::Op kCumsum = checked({.name = "cumsum",
                                    .arity = 1,
                                    .kind = OpClass::scan,
                                    .doc = "Running sum along `axis`, the element included.",
                                    .infer = infer_scan,
                                    .eval = scan_numbers(plus),
                                    .vjp = vjp_cumsum,
                                    .lower = structural,
                                    .flops = 1,
                                    .monoid = Monoid::sum});

constexpr ir::Op kCumprod = checked({.name = "cumprod",
                                     .arity = 1,
                                     .kind = OpClass::scan,
                                     .doc = "Running product along `axis`.",
                                     .infer = infer_scan,
                                     .eval = scan_numbers(times),
                                     .vjp = no_gradient,
                                     .lower = structural,
                                     .flops = 1,
                                     .monoid = Monoid::prod,
                                     .domain = {.low = 0.5, .high = 2}});

constexpr ir::Op kCummax = checked({.name = "cummax",
                                    .arity = 1,
                                    .kind = OpClass::scan,
                                    .doc = "Running maximum along `axis`.",
                                    .infer = infer_scan,
                                    .eval = scan_numbers(larger),
                                    .vjp = no_gradient,
                                    .lower = structural,
                                    .flops = 1,
                                    .monoid = Monoid::max});

constexpr ir::Op kCummin = checked({.name = "cummin",
                                    .arity = 1,
                                    .kind = OpClass::scan,
                                    .doc = "Running minimum along `axis`.",
                                    .infer = infer_scan,
                                    .eval = scan_numbers(smaller),
                                    .vjp = no_gradient,
                                    .lower = structural,
                                    .flops = 1,
                                    .monoid = Monoid::min});

}  // namespace tilewright::ops
