// Rows of reductions.
#include "ops/combine.h"

#include <limits>

namespace tilewright::ops {

namespace {

using tile::Monoid;

Shape without_axes(const Shape& shape, const std::vector<Index>& axes) {
  std::vector<Index> kept;
  std::size_t next = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (next < axes.size() && axes[next] == axis)
      ++next;
    else
      kept.push_back(shape[axis]);
  }
  if (next != axes.size())
    throw Error(fmt::format("axes {} must be sorted, distinct and within {}", to_string(Shape(axes)),
                            to_string(shape)));
  return Shape(kept);
}

Type infer_reduce(Types operands, const Attrs& attrs) {
  return {operands[0].dtype, without_axes(operands[0].shape, attrs.integers("axes"))};
}
Type infer_number_reduce(Types operands, const Attrs& attrs) {
  arithmetic_operands(operands, attrs);
  return infer_reduce(operands, attrs);
}
Type infer_bool_reduce(Types operands, const Attrs& attrs) {
  if (!is_bool(operands[0].dtype)) throw Error(fmt::format("wants bools, got {}", to_string(operands[0])));
  return infer_reduce(operands, attrs);
}
Type infer_index_reduce(Types operands, const Attrs& attrs) {
  const Type type = infer_number_reduce(operands, attrs);
  const std::vector<Index>& axes = attrs.integers("axes");
  if (axes.size() != 1) throw Error("wants exactly one axis");
  if (operands[0].shape[static_cast<int>(axes[0])] == 0)
    throw Error(fmt::format("axis {} of {} is empty", axes[0], to_string(operands[0])));
  return {DType::i64, type.shape};
}
// For each operand element in row-major order: the row-major index of the result element it falls into. Calls
// body(result index, first element, count, stride of the result along the last axis).
template <class Body>
void for_each_row(const Shape& shape, const std::vector<Index>& axes, const Body& body) {
  const int rank = shape.rank();
  const Index count = rank == 0 ? 1 : shape[rank - 1];
  if (shape.size() == 0) return;
  Strides result(static_cast<std::size_t>(rank), 0);
  Index step = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    result[static_cast<std::size_t>(axis)] = step;
    step *= shape[axis];
  }
  std::vector<Index> at(static_cast<std::size_t>(rank), 0);
  const Index rows = shape.size() / count;
  const Index last_stride = rank == 0 ? 0 : result.back();
  Index to = 0;
  for (Index row = 0; row < rows; ++row) {
    body(to, row * count, count, last_stride);
    for (int axis = rank - 2; axis >= 0; --axis) {  // the odometer of the outer axes
      const auto i = static_cast<std::size_t>(axis);
      to += result[i];
      if (++at[i] < shape[axis]) break;
      to -= at[i] * result[i];
      at[i] = 0;
    }
  }
}

template <class T, class F>
void fold(const HostTensor& x, const std::vector<Index>& axes, HostTensor& out, T identity, F combine) {
  std::vector<T>& to = values<T>(out);
  std::fill(to.begin(), to.end(), identity);
  const T* from = values<T>(x).data();
  for_each_row(x.type.shape, axes, [&](Index target, Index first, Index count, Index stride) {
    if (stride == 0) {
      T total = to[static_cast<std::size_t>(target)];
      for (Index i = 0; i < count; ++i) total = static_cast<T>(combine(total, from[first + i]));
      to[static_cast<std::size_t>(target)] = total;
    } else {
      T* row = to.data() + target;
      for (Index i = 0; i < count; ++i) row[i] = static_cast<T>(combine(row[i], from[first + i]));
    }
  });
}

// What a combination starts from, by type.
struct Zero {
  static double of(double) { return 0; }
  static std::int64_t of(DType) { return 0; }
};
struct One {
  static double of(double) { return 1; }
  static std::int64_t of(DType) { return 1; }
};
struct Lowest {
  static double of(double) { return -std::numeric_limits<double>::infinity(); }
  static std::int64_t of(DType dtype) {
    return float_to_int(dtype, -std::numeric_limits<double>::infinity());
  }
};
struct Highest {
  static double of(double) { return std::numeric_limits<double>::infinity(); }
  static std::int64_t of(DType dtype) { return float_to_int(dtype, std::numeric_limits<double>::infinity()); }
};

template <class Identity, class F>
constexpr ir::EvalFn fold_numbers(Identity, F) {
  return [](HostTensors x, const Attrs& attrs, const Type& type) {
    HostTensor out = empty_host(type);
    if (is_float(type.dtype)) {
      fold<double>(*x[0], attrs.integers("axes"), out, Identity::of(0.0), F{});
    } else {
      fold<std::int64_t>(*x[0], attrs.integers("axes"), out, Identity::of(type.dtype), F{});
      wrap_values(out);
    }
    return out;
  };
}

template <class T, class Beats>
void find_extreme(const HostTensor& x, int axis, HostTensor& out, Beats beats) {
  const std::vector<T>& from = values<T>(x);
  std::size_t to = 0;
  for_each_line(x.type.shape, axis, [&](Index first, Index stride) {
    Index best = 0;
    T extreme = from[static_cast<std::size_t>(first)];
    for (Index i = 1; i < x.type.shape[axis]; ++i) {
      const T v = from[static_cast<std::size_t>(first + i * stride)];
      // The first NaN wins over everything.
      if (extreme == extreme && (beats(v, extreme) || v != v)) {
        best = i;
        extreme = v;
      }
    }
    out.i[to++] = best;
  });
}

template <class Beats>
constexpr ir::EvalFn index_of(Beats) {
  return [](HostTensors x, const Attrs& attrs, const Type& type) {
    HostTensor out = empty_host(type);
    const int axis = static_cast<int>(attrs.integers("axes")[0]);
    if (is_float(x[0]->type.dtype))
      find_extreme<double>(*x[0], axis, out, Beats{});
    else
      find_extreme<std::int64_t>(*x[0], axis, out, Beats{});
    return out;
  };
}

// --- gradients

// A reduced value back at the operand's shape.
Value spread(Value reduced, Value x, const Attrs& attrs) {
  Shape kept = x.shape();
  for (Index axis : attrs.integers("axes")) kept[static_cast<int>(axis)] = 1;
  return broadcast_to(reshape(reduced, kept), x.shape());
}

// The row's axes as they stand: for it an empty list means no axis, for the functions all of them.
Value over_axes(Value (*reduce)(Value, const Axes&, Keep), Value x, const Attrs& attrs) {
  const std::vector<Index>& axes = attrs.integers("axes");
  return axes.empty() ? x : reduce(x, axes, Keep::no);
}

// Equal extremes share the gradient, and so do NaNs; of the others it is 0, however large the extremes' is.
Grads vjp_extreme(Args x, const Attrs& attrs, Value y, Value g) {
  const Value is_extreme = logical_or(eq(x[0], spread(y, x[0], attrs)), isnan(x[0]));
  const Value count = over_axes(sum, cast(is_extreme, g.dtype()), attrs);
  return {where(is_extreme, spread(g / count, x[0], attrs), 0.0)};
}

// The product of the other elements. With one zero only that element has a gradient; with two none, but
// theirs are each other, which the second derivative sees. Of narrow types the product is taken again in f32:
// rounded to f16, that of two small elements is 0, and so would be the other element that it is divided by
// the first to give.
Grads vjp_prod(Args x, const Attrs& attrs, Value y, Value g) {
  const DType wide = compute_dtype(x[0].dtype());
  const Value all = cast(x[0], wide), product = wide == x[0].dtype() ? y : over_axes(prod, all, attrs);
  const Value is_zero = eq(x[0], 0.0), others = where(is_zero, 1.0, all), reached = cast(g, wide);
  const Value zeros = over_axes(sum, cast(is_zero, DType::i64), attrs);
  const Value lone = spread(reached * over_axes(prod, others, attrs), x[0], attrs);
  const Value among_zeros = where(is_zero, all, 0.0);
  const Value the_other = spread(over_axes(sum, among_zeros, attrs), x[0], attrs) - among_zeros;
  const auto are = [&](Index count) { return spread(eq(zeros, count), x[0], attrs); };
  const Value of_zero = where(are(1), lone, where(are(2), lone * the_other, 0.0));
  const Value gradient = where(is_zero, of_zero, spread(reached * product, x[0], attrs) / others);
  return {cast(gradient, x[0].dtype())};
}

}  // namespace

constexpr ir::Op kSum = checked(
    {.name = "sum",
     .arity = 1,
     .kind = OpClass::reduce,
     .doc = "Sum over `axes`, which disappear; integers wrap around.",
     .infer = infer_number_reduce,
     .eval = fold_numbers(Zero{}, plus),
     .vjp = [](Args x, const Attrs& attrs, Value, Value g) -> Grads { return {spread(g, x[0], attrs)}; },
     .lower = structural,
     .flops = 1,
     .monoid = Monoid::sum});

constexpr ir::Op kProd = checked({.name = "prod",
                                  .arity = 1,
                                  .kind = OpClass::reduce,
                                  .doc = "Product over `axes`.",
                                  .infer = infer_number_reduce,
                                  .eval = fold_numbers(One{}, times),
                                  .vjp = vjp_prod,
                                  .lower = structural,
                                  .flops = 1,
                                  .monoid = Monoid::prod,
                                  .domain = {.low = 0.5, .high = 2}});

constexpr ir::Op kMax = checked({.name = "max",
                                 .arity = 1,
                                 .kind = OpClass::reduce,
                                 .doc = "Largest over `axes`; NaN if any is; -inf or the lowest integer of "
                                        "nothing. Ties share the gradient.",
                                 .infer = infer_number_reduce,
                                 .eval = fold_numbers(Lowest{}, larger),
                                 .vjp = vjp_extreme,
                                 .lower = structural,
                                 .flops = 1,
                                 .monoid = Monoid::max,
                                 .domain = {.smooth = false}});

constexpr ir::Op kMin = checked({.name = "min",
                                 .arity = 1,
                                 .kind = OpClass::reduce,
                                 .doc = "Smallest over `axes`; NaN if any is; inf or the highest integer of "
                                        "nothing. Ties share the gradient.",
                                 .infer = infer_number_reduce,
                                 .eval = fold_numbers(Highest{}, smaller),
                                 .vjp = vjp_extreme,
                                 .lower = structural,
                                 .flops = 1,
                                 .monoid = Monoid::min,
                                 .domain = {.smooth = false}});

constexpr ir::Op kAny =
    checked({.name = "any",
             .arity = 1,
             .kind = OpClass::reduce,
             .doc = "True if any over `axes` is.",
             .infer = infer_bool_reduce,
             .eval = fold_numbers(Zero{}, [](auto a, auto b) { return a != 0 || b != 0; }),
             .vjp = zero_gradient,
             .lower = structural,
             .flops = 1,
             .monoid = Monoid::logical_or});

constexpr ir::Op kAll = checked({.name = "all",
                                 .arity = 1,
                                 .kind = OpClass::reduce,
                                 .doc = "True if all over `axes` are.",
                                 .infer = infer_bool_reduce,
                                 .eval = fold_numbers(One{}, [](auto a, auto b) { return a != 0 && b != 0; }),
                                 .vjp = zero_gradient,
                                 .lower = structural,
                                 .flops = 1,
                                 .monoid = Monoid::logical_and});

constexpr ir::Op kArgmax =
    checked({.name = "argmax",
             .arity = 1,
             .kind = OpClass::reduce,
             .doc = "Index of the first largest along the one axis in `axes`; a NaN counts as the largest.",
             .infer = infer_index_reduce,
             .eval = index_of([](auto a, auto b) { return a > b; }),
             .vjp = zero_gradient,
             .lower = structural,
             .flops = 1,
             .monoid = Monoid::argmax});

constexpr ir::Op kArgmin =
    checked({.name = "argmin",
             .arity = 1,
             .kind = OpClass::reduce,
             .doc = "Index of the first smallest along the one axis in `axes`; a NaN counts as the smallest.",
             .infer = infer_index_reduce,
             .eval = index_of([](auto a, auto b) { return a < b; }),
             .vjp = zero_gradient,
             .lower = structural,
             .flops = 1,
             .monoid = Monoid::argmin});

}  // namespace tilewright::ops
