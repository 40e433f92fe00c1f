// Softmax with a maximum that stays finite: rows with nothing to attend give 0 and -inf, never NaN.
#include "ops/attention.h"

#include "ops/append.h"
#include "ops/composites.h"
#include "ops/promote.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace tilewright::ops {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A view that repeats each head of x for the query heads that share it.
Value share_heads(Value x, Index heads) {
  const Shape& s = x.shape();
  if (s[1] == heads) return x;
  const Value apart = reshape(x, {s[0], s[1], 1, s[2], s[3]});
  return reshape(broadcast_to(apart, {s[0], s[1], heads / s[1], s[2], s[3]}), {s[0], heads, s[2], s[3]});
}

// Weights lie in [0, 1 / (1 - p)], of which 8-bit floats hold little: a power of 2 below their largest number
// uses their range. It belongs to the sum of weights as well, and so to no result.
double log_weight_scale(DType dtype, double dropout) {
  if (!is_f8(dtype)) return 0;
  return std::floor(std::log2(max_finite(dtype) * (1 - dropout))) * std::numbers::ln2;
}

DType score_type(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace

void check_attention(Value q, Value k, Value v) {
  const Shape &a = q.shape(), &b = k.shape(), &c = v.shape();
  const auto given = [&] {
    return fmt::format("q {}, k {}, v {}", to_string(q.type()), to_string(k.type()), to_string(v.type()));
  };
  const auto refuse = [&](const char* why) { fail(q, fmt::format("attention: {}: {}", why, given())); };
  if (a.rank() != 4 || b.rank() != 4 || c.rank() != 4) refuse("wants (batch, heads, length, head dim) each");
  if (a[0] != b[0] || a[0] != c[0]) refuse("batches differ");
  if (b[1] != c[1]) refuse("k and v differ in heads");
  if (b[2] != c[2]) refuse("k and v differ in length");
  if (a[3] != b[3]) refuse("q and k differ in head dim");
  if (b[1] == 0 ? a[1] != 0 : a[1] % b[1] != 0) refuse("the heads of q are no multiple of those of k and v");
  if (!is_float(q.dtype()) || q.dtype() != k.dtype() || q.dtype() != v.dtype())
    refuse("wants one float type");
}

Value attention_scores(Value q, Value k, double scale) {
  const Value keys = swap_axes(share_heads(k, q.shape()[1]), 2, 3);
  return matmul(q, keys, score_type(q.dtype())) * scale;
}

Attended attend(Value scores, Value v, const AttendOptions& options) {
  const DType dtype = scores.dtype();
  if (options.mask) scores = where(broadcast_to(*options.mask, scores.shape()), scores, -kInfinity);
  // -inf - -inf would be NaN: what is subtracted is finite. The results do not depend on it.
  const Value highest = stop_gradient(max(scores, {-1}, Keep::yes)),
              shift = maximum(highest, -max_finite(dtype)) - log_weight_scale(v.dtype(), options.dropout);
  const Value weights = exp(scores - shift), total = sum(weights, {-1}, Keep::yes);
  Value kept = weights;
  if (options.dropout != 0) kept = dropout(weights, *options.seed, {.p = options.dropout});
  // Weights of v's type, as matrix units take them.
  const Value product = matmul(cast(kept, v.dtype()), share_heads(v, scores.shape()[1]), dtype);
  // The sum is divided by after the product, where there are fewer elements; 1 stands in for that of nothing,
  // so that gradients stay finite, too.
  // The maximum tells a row of nothing: a comparison of the sum would want its exponentials exact.
  const Value nothing = eq(highest, -kInfinity), divisor = where(nothing, 1.0, total);
  const Value lse = where(nothing, -kInfinity, log(divisor) + shift);
  return {cast(product * reciprocal(divisor), options.result), squeeze(lse, -1)};
}

}  // namespace tilewright::ops
