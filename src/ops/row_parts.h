// What the files of op rows share: type rules, evaluation loops, and one-primitive lowerings. Only for
// ops/*.cpp.
#pragma once

#include "ops/functions.h"
#include "ops/rows.h"

#include <fmt/format.h>

#include <cmath>

namespace tilewright::ops {

using ir::Attrs;
using ir::HostTensor;
using ir::no_gradient;
using ir::OpClass;
using ir::structural;
using ir::Type;
using ir::Value;
using tile::Prim;

using Types = std::span<const Type>;
using Args = std::span<const Value>;
using Grads = std::vector<std::optional<Value>>;
using HostTensors = std::span<const HostTensor* const>;

// --- type rules of pointwise rows: operands have one type (shape and dtype), which is also the result's
Type arithmetic_operands(Types operands, const Attrs& attrs);  // floats and integers
Type float_operands(Types operands, const Attrs& attrs);
Type integer_operands(Types operands, const Attrs& attrs);   // no bool
Type integral_operands(Types operands, const Attrs& attrs);  // integers and bool
// Comparisons, whose result is bool
Type compare_any(Types operands, const Attrs& attrs);
Type compare_arithmetic(Types operands, const Attrs& attrs);
Type float_predicate(Types operands, const Attrs& attrs);

// Attributes, checked: an axis within the rank, a shape with sane extents.
int axis_attr(const Attrs& attrs, int rank);
Shape shape_attr(const Attrs& attrs);

// --- evaluation
HostTensor empty_host(const Type& type);                       // zeros
HostTensor filled_host(const Type& type, const Attrs& attrs);  // of the attribute "value"
// `type`, row-major, read from the elements of x from `offset` on; strides in elements, 0 and negative
// allowed.
HostTensor gather_view(const HostTensor& x, const Type& type, Index offset, const Strides& strides);
// Puts all of x into `out`, from its element `offset` on.
void place(const HostTensor& x, HostTensor& out, Index offset);

// An op on one number of the oracle: double for floats, int64 for integers and bool.
template <class T>
const std::vector<T>& values(const HostTensor& tensor) {
  if constexpr (std::is_same_v<T, double>)
    return tensor.f;
  else
    return tensor.i;
}
template <class T>
std::vector<T>& values(HostTensor& tensor) {
  return const_cast<std::vector<T>&>(values<T>(static_cast<const HostTensor&>(tensor)));
}

template <class R, class T, class F>
void map_values(HostTensors x, HostTensor& out, F f) {
  R* to = values<R>(out).data();
  const std::size_t n = values<R>(out).size();
  const T* a = values<T>(*x[0]).data();
  if constexpr (std::is_invocable_v<F, T>) {
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<R>(f(a[i]));
  } else {
    const T* b = values<T>(*x[1]).data();
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<R>(f(a[i], b[i]));
  }
}

void wrap_values(HostTensor& tensor);  // integers modulo 2^bits of their type

// Floats and integers by one generic lambda.
template <class F>
constexpr ir::EvalFn map_numbers(F) {
  return [](HostTensors x, const Attrs&, const Type& type) {
    HostTensor out = empty_host(type);
    if (is_float(type.dtype)) {
      map_values<double, double>(x, out, F{});
    } else {
      map_values<std::int64_t, std::int64_t>(x, out, F{});
      wrap_values(out);
    }
    return out;
  };
}
template <class F>
constexpr ir::EvalFn map_floats(F) {
  return [](HostTensors x, const Attrs&, const Type& type) {
    HostTensor out = empty_host(type);
    map_values<double, double>(x, out, F{});
    return out;
  };
}
template <class F>
constexpr ir::EvalFn map_integers(F) {
  return [](HostTensors x, const Attrs&, const Type& type) {
    HostTensor out = empty_host(type);
    map_values<std::int64_t, std::int64_t>(x, out, F{});
    wrap_values(out);
    return out;
  };
}
// Comparisons: numbers to bool.
template <class F>
constexpr ir::EvalFn compare_numbers(F) {
  return [](HostTensors x, const Attrs&, const Type& type) {
    HostTensor out = empty_host(type);
    if (is_float(x[0]->type.dtype))
      map_values<std::int64_t, double>(x, out, F{});
    else
      map_values<std::int64_t, std::int64_t>(x, out, F{});
    return out;
  };
}
template <class F>
constexpr ir::EvalFn test_floats(F) {
  return [](HostTensors x, const Attrs&, const Type& type) {
    HostTensor out = empty_host(type);
    map_values<std::int64_t, double>(x, out, F{});
    return out;
  };
}

// Signed overflow is undefined in C++; the oracle wraps around.
inline double modular(double a) { return a; }
inline std::uint64_t modular(std::int64_t a) { return static_cast<std::uint64_t>(a); }

// --- lowering to one primitive
template <Prim prim>
tile::Value apply_prim(tile::Builder& builder, std::span<const tile::Value> x, const Attrs&) {
  return builder.apply(prim, std::vector<tile::Operand>(x.begin(), x.end()));
}
constexpr double flops_of(Prim prim) { return tile::info(prim).flops; }

}  // namespace tilewright::ops
