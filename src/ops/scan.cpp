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

// What each element and those behind it come to.
Value sum_from_end(Value x, Index axis) { return flip(cumsum(flip(x, {axis}), axis), {axis}); }

Grads vjp_cumsum(Args, const Attrs& attrs, Value, Value g) {
  return {sum_from_end(g, attrs.integer("axis"))};
}

// Elements stand `by` places before where they stood along an axis; zeros follow the last one.
Value brought_forward(Value x, Index axis, Index by) {
  return slice_axis(pad_axis(x, axis, 0, by), axis, {.start = by});
}

// The gradient of cumprod as a polynomial of x and g, which may be differentiated wherever zeros stand: that
// of element j is the product before it times S_j = Σ_(i >= j) g_i Π_(j < k <= i) x_k = g_j + x_(j+1)
// S_(j+1). By doubling (Hillis and Steele, 1986): sums over w elements from j on, and the products of the w
// elements behind j, give those over 2 w.
Value cumprod_gradient(Value x, Value g, Index axis) {
  const Index count = x.shape()[static_cast<int>(axis)];
  Value sums = g, factors = brought_forward(x, axis, 1);
  for (Index width = 1; width < count; width *= 2) {
    sums = sums + factors * brought_forward(sums, axis, width);
    factors = factors * brought_forward(factors, axis, width);
  }
  return slice_axis(pad_axis(cumprod(x, axis), axis, 1, 0, 1), axis, {.stop = count}) * sums;
}

// An element's factor in a product is the product over the element. That divides by no zero: behind a line's
// first zero all products are 0, and so are the gradients there; the zero's own factor is the product that
// leaves it out. The same is done in PyTorch (cumprod_backward), and is the fastest way. Its own derivative
// would be right in lines with one zero at most, so that of cumprod_gradient() is taken.
Grads vjp_cumprod(Args x, const Attrs& attrs, Value product, Value g) {
  const Index axis = attrs.integer("axis");
  const DType wide = compute_dtype(x[0].dtype());
  const Value all = cast(x[0], wide), reached = cast(g, wide);
  const Value products = wide == x[0].dtype() ? product : cumprod(all, axis);
  const Value is_zero = eq(all, 0.0);
  const Value is_first = bit_and(is_zero, eq(cumsum(is_zero, axis), 1));
  const Value without = cumprod(where(is_first, 1.0, all), axis);
  const Value gradient = where(is_first, sum_from_end(reached * without, axis),
                               sum_from_end(reached * products, axis) / where(is_zero, 1.0, all));
  return {cast(with_gradient_of(gradient, cumprod_gradient(all, reached, axis)), x[0].dtype())};
}

// The gradient goes to the element that the running extreme is, the last of equal ones (as PyTorch); a NaN is
// an extreme.
Grads vjp_running_extreme(Args x, const Attrs& attrs, Value extreme, Value g) {
  const Index axis = attrs.integer("axis");
  const Shape& shape = x[0].shape();
  const Value is_extreme = logical_or(eq(x[0], extreme), ne(x[0], x[0]));
  const Value place = cummax(where(is_extreme, iota(*g.graph, shape, axis), 0), axis);
  return {scatter_add_along(place, g, axis, shape)};
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
                                     .doc = "Running product along `axis`, the element included.",
                                     .infer = infer_scan,
                                     .eval = scan_numbers(times),
                                     .vjp = vjp_cumprod,
                                     .lower = structural,
                                     .flops = 1,
                                     .monoid = Monoid::prod,
                                     .domain = {.low = 0.5, .high = 2}});

constexpr ir::Op kCummax = checked(
    {.name = "cummax",
     .arity = 1,
     .kind = OpClass::scan,
     .doc =
         "Largest so far along `axis`; NaN from the first one on. The last of equal ones has the gradient.",
     .infer = infer_scan,
     .eval = scan_numbers(larger),
     .vjp = vjp_running_extreme,
     .lower = structural,
     .flops = 1,
     .monoid = Monoid::max,
     .domain = {.smooth = false}});

constexpr ir::Op kCummin = checked(
    {.name = "cummin",
     .arity = 1,
     .kind = OpClass::scan,
     .doc =
         "Smallest so far along `axis`; NaN from the first one on. The last of equal ones has the gradient.",
     .infer = infer_scan,
     .eval = scan_numbers(smaller),
     .vjp = vjp_running_extreme,
     .lower = structural,
     .flops = 1,
     .monoid = Monoid::min,
     .domain = {.smooth = false}});

}  // namespace tilewright::ops
