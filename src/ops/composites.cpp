// Statistics, activations, normalizations, losses, and random numbers out of rows.
#include "ops/composites.h"

#include "ops/append.h"
#include "ops/promote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tilewright::ops {

namespace {

Value as_float(Value x) { return cast(x, float_type(x.dtype())); }

// How many elements each result of a reduction over `axes` gathers.
Index gathered(const Shape& shape, const Axes& axes) {
  if (axes.empty()) return shape.size();
  Index n = 1;
  for (Index axis : axes) {
    const auto at = normalize_axis(axis, shape.rank());
    n *= at ? shape[*at] : 1;  // the reduction itself refuses a wrong axis
  }
  return n;
}

// What is computed of reductions is f32 at least, rounded to x's type at the end alone: a narrow type would
// be rounded wherever a kernel happens to end, and f16 has no room for a row's sum or for squares.
Value widened(Value x) { return x.dtype() == DType::f64 ? x : cast(x, DType::f32); }

// x minus its largest along the axes, which carries no gradient: the results do not depend on it.
Value shifted_by_max(Value x, const Axes& axes) { return x - stop_gradient(max(x, axes, Keep::yes)); }

}  // namespace

Value mean(Value x, const Axes& axes, Keep keep) {
  x = as_float(x);
  const double n = static_cast<double>(gathered(x.shape(), axes));
  return cast(sum(widened(x), axes, keep) * (1.0 / n), x.dtype());
}

Value var(Value x, const Axes& axes, const VarOptions& options) {
  const DType dtype = float_type(x.dtype());
  // The square of an i64 has room in f32, the sum of several has not.
  x = x.dtype() == DType::i64 ? cast(x, DType::f64) : widened(x);
  const Value centered = x - mean(x, axes, Keep::yes);
  const Value squares = sum(square(centered), axes, options.keep);
  const double count = static_cast<double>(gathered(x.shape(), axes)) - static_cast<double>(options.ddof);
  // No degrees of freedom are left: inf, or NaN of 0 / 0. Not times inf, which would enter the sum.
  return cast(count > 0 ? squares * (1.0 / count) : squares / 0.0, dtype);
}

Value logsumexp(Value x, const Axes& axes, Keep keep) {
  x = as_float(x);
  const DType dtype = x.dtype();
  x = widened(x);
  // inf - inf would be NaN: what is subtracted is finite.
  const double most = max_finite(x.dtype()), infinity = std::numeric_limits<double>::infinity();
  const Value highest = stop_gradient(max(x, axes, Keep::yes)),
              shift = minimum(maximum(highest, -most), most);
  // The sum of nothing but -inf is 0: 1 stands in for it, so that the gradient is 0 as well.
  const Value nothing = eq(highest, -infinity), of_all = sum(exp(x - shift), axes, Keep::yes);
  const Value total = cast(where(nothing, -infinity, log(where(nothing, 1.0, of_all)) + shift), dtype);
  if (keep == Keep::yes) return total;
  return reshape(total, max(x, axes, Keep::no).shape());
}

#define TW_COMPOSITE(f, ...) \
  Value f(Value x) { return __VA_ARGS__; }
#define TW_COMPOSITE_OF(f, parameter, usual, ...) \
  Value f(Value x, double parameter) { return __VA_ARGS__; }
#define TW_FUNCTION(f)
#include <tilewright/ops/unary.def>

Value clamp(Value x, const Operand& low, const Operand& high) {
  const auto is_nan = [](const Operand& bound) { return bound.is_literal() && std::isnan(bound.real); };
  if (is_nan(low) || is_nan(high)) return full_like(as_float(x), std::numeric_limits<double>::quiet_NaN());
  const Value raised = where(lt(x, low), low, x);  // min(max(x, low), high), also where the bounds cross
  return where(gt(raised, high), high, raised);
}

Value gelu(Value x, Gelu kind) {
  x = as_float(x);
  if (kind == Gelu::erf) return 0.5 * x * (erf(x * (1 / std::numbers::sqrt2)) + 1.0);
  const double scale = std::sqrt(2 / std::numbers::pi);
  // 0.044715: Hendrycks and Gimpel, "Gaussian error linear units", 2016.
  // 0.5 (1 + tanh u) = sigmoid(2 u), which does not cancel where u is far below 0.
  return x * sigmoid(x * (2 * scale + 2 * scale * 0.044715 * (x * x)));
}

Value softplus(Value x) {
  x = as_float(x);
  // Not relu and abs: at 0 both parts belong to the side above, so that derivatives of any order are right.
  const Value below = lt(x, 0.0);
  return where(below, 0.0, x) + log1p(exp(where(below, x, -x)));
}

Value softmax(Value x, Index axis) {
  x = as_float(x);
  const Value e = exp(shifted_by_max(widened(x), {axis}));
  return cast(e * reciprocal(sum(e, {axis}, Keep::yes)), x.dtype());
}

Value log_softmax(Value x, Index axis) {
  x = as_float(x);
  const Value shifted = shifted_by_max(widened(x), {axis});
  return cast(shifted - log(sum(exp(shifted), {axis}, Keep::yes)), x.dtype());
}

Value layer_norm(Value x, std::optional<Value> gamma, std::optional<Value> beta, double epsilon) {
  x = as_float(x);
  const DType dtype = x.dtype();
  x = widened(x);
  const Value centered = x - mean(x, {-1}, Keep::yes);
  Value y = centered * rsqrt(mean(square(centered), {-1}, Keep::yes) + epsilon);
  if (gamma) y = y * *gamma;
  if (beta) y = y + *beta;
  return cast(y, dtype);
}

Value rms_norm(Value x, std::optional<Value> gamma, double epsilon) {
  x = as_float(x);
  const DType dtype = x.dtype();
  x = widened(x);
  Value y = x * rsqrt(mean(square(x), {-1}, Keep::yes) + epsilon);
  if (gamma) y = y * *gamma;
  return cast(y, dtype);
}

Value cross_entropy(Value logits, Value labels, const CrossEntropyOptions& options) {
  const int rank = logits.shape().rank();
  std::vector<Index> rows = logits.shape().extents();
  if (rank > 0) rows.pop_back();
  if (rank == 0 || Shape(rows) != labels.shape() || !is_integer(labels.dtype()))
    fail(logits, fmt::format("cross_entropy: wants logits (.., C) and integer labels (..), got {} and {}",
                             to_string(logits.type()), to_string(labels.type())));
  const Value x = cast(logits, logits.dtype() == DType::f64 ? DType::f64 : DType::f32);
  const Value largest = stop_gradient(max(x, {-1}, Keep::yes));
  // The label is picked by comparison, not by a gather: the gradient stays pointwise. What is picked waits
  // for no maximum, so that one loop over the logits gives all three.
  const Value is_label = eq(iota(*x.graph, x.shape(), -1), unsqueeze(labels, -1));
  const Value picked = sum(where(is_label, x, 0.0), {-1});
  Value loss = log(sum(exp(x - largest), {-1})) + (reshape(largest, labels.shape()) - picked);
  std::optional<Value> counts;
  if (options.ignore_index) {
    counts = ne(labels, *options.ignore_index);
    loss = where(*counts, loss, 0.0);
  }
  if (options.reduction == Reduction::none) return loss;
  if (options.reduction == Reduction::sum) return sum(loss);
  return counts ? sum(loss) / cast(sum(*counts), x.dtype()) : mean(loss);
}

Value linear_cross_entropy(Value x, Value w, Value labels, const CrossEntropyOptions& options) {
  const Shape &rows = x.shape(), &classes = w.shape();
  if (rows.rank() == 0 || classes.rank() != 2 || rows[rows.rank() - 1] != classes[1])
    fail(x, fmt::format("linear_cross_entropy: wants x (.., D) and w (classes, D), got {} and {}",
                        to_string(x.type()), to_string(w.type())));
  std::vector<Index> kept = rows.extents();
  kept.pop_back();
  if (Shape(kept) != labels.shape() || !is_integer(labels.dtype()))
    fail(x, fmt::format("linear_cross_entropy: wants an integer label for each row of {}, got {}",
                        to_string(x.type()), to_string(labels.type())));
  const DType dtype = promote(x.dtype(), w.dtype()) == DType::f64 ? DType::f64 : DType::f32;
  const Value logits = matmul(reshape(x, {labels.shape().size(), classes[1]}), swap_axes(w, 0, 1), dtype);
  const Value loss = cross_entropy(logits, reshape(labels, {labels.shape().size()}), options);
  return options.reduction == Reduction::none ? reshape(loss, labels.shape()) : loss;
}

Value one_hot(Value index, Index classes, DType dtype) {
  if (!is_integer(index.dtype()))
    throw Error(fmt::format("one_hot: the index must be integers, got {}", to_string(index.type())));
  if (classes < 0) throw Error(fmt::format("one_hot: {} classes", classes));
  std::vector<Index> shape = index.shape().extents();
  shape.push_back(classes);
  return cast(eq(iota(*index.graph, Shape(shape), -1), unsqueeze(index, -1)), dtype);
}

Value embedding(Value table, Value index) { return take(table, index, 0); }

namespace {
constexpr int kUniformBits = 24;  // f32 holds them exactly
// The upper `digits` of 32 random bits, plus `add`, times 2^-digits.
Value uniform(Value bits, Index add, int digits = kUniformBits) {
  return cast(ops::add(shr(bits, 32 - digits), add), DType::f32) * std::ldexp(1.0, -digits);
}
}  // namespace

Value rand(Value seed, const Shape& shape, Index offset, DType dtype) {
  // The bits of a draw, as many as the type has digits: more would be rounded, the largest draws to 1.
  const int digits = is_float(dtype) ? -std::ilogb(unit_roundoff(dtype)) : kUniformBits;
  return cast(uniform(random_bits(seed, shape, offset), 0, std::min(digits, kUniformBits)), dtype);
}

Value randn(Value seed, const Shape& shape, Index offset, DType dtype) {
  const Value radius_bits = random_bits(seed, shape, offset);
  const Value angle_bits = random_bits(seed, shape, offset + shape.size());
  const Value radius = sqrt(-2.0 * log(uniform(radius_bits, 1)));  // (0, 1]: no log of 0
  return cast(radius * cos(2 * std::numbers::pi * uniform(angle_bits, 0)), dtype);
}

Value dropout(Value x, Value seed, const DropoutOptions& options) {
  if (!(options.p >= 0 && options.p < 1))
    fail(x, fmt::format("dropout: p is {}, it must be in [0, 1)", options.p));
  if (options.p == 0) return x;
  if (seed.dtype() != DType::i64 || seed.shape().rank() != 0)
    fail(x, fmt::format("dropout: the seed must be i64[], got {}", to_string(seed.type())));
  x = as_float(x);
  const auto threshold = static_cast<Index>(std::llround(options.p * 0x1p32));
  const Value keeps = ge(random_bits(seed, x.shape(), options.offset), threshold);
  return where(keeps, x * (1 / (1 - options.p)), 0.0);
}

}  // namespace tilewright::ops
