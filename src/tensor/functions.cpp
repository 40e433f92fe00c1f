// The user's functions: each writes its graph with ops/ and is run or recorded.
#include "ops/composites.h"
#include "tensor/index_check.h"
#include "tensor/literals.h"

#include <tilewright/tensor/functions.h>

#include <fmt/format.h>

#include <cmath>

namespace tilewright {

using detail::apply;
using detail::apply_mixed;
using detail::check_fill;
using detail::check_index;
using detail::Literals;
using detail::shape_of;
using ir::Value;
using Values = std::vector<Value>;

namespace {

Tensor one(const char* name, const std::vector<Tensor>& operands, const Location& where,
           const std::function<Value(const Values&)>& write) {
  return apply(name, operands, [&](ir::Graph&, const Values& in) { return Values{write(in)}; }, where).at(0);
}

using Unary = Value (*)(Value);
Tensor unary(const char* name, const Tensor& x, Unary write, const Location& where) {
  return one(name, {x}, where, [&](const Values& in) { return write(in[0]); });
}

using Binary = Value (*)(const ops::Operand&, const ops::Operand&);
Tensor binary(const char* name, const Arg& a, const Arg& b, Binary write, Literals which,
              const Location& where) {
  if (!a.is_tensor && !b.is_tensor)
    throw Error(fmt::format("{}: at least one operand must be a tensor", name), where);
  return apply_mixed(
      name, {}, {&a, &b}, which, [&](const Values&, const auto& x) { return write(x[0], x[1]); }, where);
}
// Integers are divided and shifted by constants much faster.
Literals of_division(const Arg& a, const Arg& b) {
  const Tensor& t = a.is_tensor ? a.tensor : b.tensor;
  return t.defined() && is_float(t.dtype()) ? Literals::any : Literals::none;
}

// Floats have no bits: what is said names the tensor's type, not one that an input would widen it to.
Literals of_bits(const Arg& a, const Arg& b) {
  return of_division(a, b) == Literals::any ? Literals::none : Literals::any;
}

ops::Keep to_ops(Keep keep) { return keep == Keep::yes ? ops::Keep::yes : ops::Keep::no; }

using Reduction = Value (*)(Value, const ops::Axes&, ops::Keep);
Tensor reduction(const char* name, const Tensor& x, const Axes& axes, Keep keep, Reduction write,
                 const Location& where) {
  return one(name, {x}, where, [&](const Values& in) { return write(in[0], axes, to_ops(keep)); });
}

}  // namespace

#define TW_FUNCTION(f, literals)                                \
  Tensor f(const Arg& a, const Arg& b, const Location& where) { \
    return binary(#f, a, b, ops::f, literals, where);           \
  }
#include <tilewright/ops/binary.def>

#define TW_OPERATOR(symbol, function) \
  Tensor operator symbol(const Arg& a, const Arg& b) { return function(a, b, a.where); }
TW_OPERATOR(+, add)
TW_OPERATOR(-, sub)
TW_OPERATOR(*, mul)
TW_OPERATOR(/, div)
TW_OPERATOR(%, rem)
TW_OPERATOR(<, lt)
TW_OPERATOR(<=, le)
TW_OPERATOR(>, gt)
TW_OPERATOR(>=, ge)
TW_OPERATOR(==, eq)
TW_OPERATOR(!=, ne)
TW_OPERATOR(&, bit_and)
TW_OPERATOR(|, bit_or)
TW_OPERATOR(^, bit_xor)
TW_OPERATOR(<<, shl)
TW_OPERATOR(>>, shr)
TW_OPERATOR(&&, logical_and)
TW_OPERATOR(||, logical_or)
#undef TW_OPERATOR
Tensor operator-(const Arg& a) { return neg(a.tensor, a.where); }
Tensor operator~(const Arg& a) { return bit_not(a.tensor, a.where); }
Tensor operator!(const Arg& a) { return logical_not(a.tensor, a.where); }

#define TW_ASSIGNMENT(symbol, function) \
  Tensor& operator symbol(Tensor & a, const Arg & b) { return a = function(a, b, b.where); }
TW_ASSIGNMENT(+=, add)
TW_ASSIGNMENT(-=, sub)
TW_ASSIGNMENT(*=, mul)
TW_ASSIGNMENT(/=, div)
TW_ASSIGNMENT(%=, rem)
TW_ASSIGNMENT(&=, bit_and)
TW_ASSIGNMENT(|=, bit_or)
TW_ASSIGNMENT(^=, bit_xor)
TW_ASSIGNMENT(<<=, shl)
TW_ASSIGNMENT(>>=, shr)
#undef TW_ASSIGNMENT

#define TW_FUNCTION(f) \
  Tensor f(const Tensor& x, const Location& where) { return unary(#f, x, ops::f, where); }
#define TW_COMPOSITE_OF(f, parameter, usual, ...)                                           \
  Tensor f(const Tensor& x, double parameter, const Location& where) {                      \
    return one(#f, {x}, where, [&](const Values& in) { return ops::f(in[0], parameter); }); \
  }
#include <tilewright/ops/unary.def>

Tensor where(const Tensor& condition, const Arg& a, const Arg& b, const Location& at) {
  return apply_mixed(
      "where", {condition}, {&a, &b}, Literals::any,
      [](const Values& in, const auto& x) { return ops::where(in[0], x[0], x[1]); }, at);
}

Tensor clamp(const Tensor& x, double low, double high, const Location& where) {
  const bool whole = x.defined() && is_integer(x.dtype()) && holds(x.dtype(), low) && holds(x.dtype(), high);
  const auto bound = [&](double b) { return whole ? Arg(static_cast<Index>(b)) : Arg(b); };
  const Arg of(x), from = bound(low), to = bound(high);
  return apply_mixed(
      "clamp", {}, {&of, &from, &to}, Literals::any,
      [](const Values&, const auto& in) { return ops::clamp(in[0].value, in[1], in[2]); }, where);
}
Tensor gelu(const Tensor& x, const Location& where) {
  return one("gelu", {x}, where, [](const Values& in) { return ops::gelu(in[0], ops::Gelu::erf); });
}
Tensor gelu_tanh(const Tensor& x, const Location& where) {
  return one("gelu_tanh", {x}, where, [](const Values& in) { return ops::gelu(in[0], ops::Gelu::tanh); });
}
Tensor cast(const Tensor& x, DType dtype, const Location& where) {
  return one("cast", {x}, where, [&](const Values& in) { return ops::cast(in[0], dtype); });
}
namespace {
Tensor filled_like(const char* name, const Tensor& x, double value, const Location& where) {
  if (x.defined()) {
    check_fill(name, x.dtype(), value, where);
    if (const auto memory = detail::filled_beside(name, x, x.impl()->type, value, where)) return *memory;
  }
  const Arg of(x), number(value);
  const bool real =
      x.defined() && is_float(x.dtype());  // a literal beside integers is f32, which is narrower
  return apply_mixed(
      name, {}, {&of, &number}, real ? Literals::any : Literals::none,
      [](const Values&, const auto& in) {
        const Value& like = in[0].value;
        return in[1].is_literal() ? ops::full_like(like, in[1].real)
                                  : ops::broadcast_to(in[1].value, like.shape());
      },
      where);
}
}  // namespace
Tensor full_like(const Tensor& x, double value, const Location& where) {
  return filled_like("full_like", x, value, where);
}
Tensor zeros_like(const Tensor& x, const Location& where) { return filled_like("zeros_like", x, 0, where); }

Tensor reshape(const Tensor& x, const Shape& shape, const Location& where) {
  return one("reshape", {x}, where, [&](const Values& in) { return ops::reshape(in[0], shape); });
}
Tensor transpose(const Tensor& x, const std::vector<Index>& perm, const Location& where) {
  return one("transpose", {x}, where, [&](const Values& in) { return ops::transpose(in[0], perm); });
}
Tensor swap_axes(const Tensor& x, Index a, Index b, const Location& where) {
  return one("swap_axes", {x}, where, [&](const Values& in) { return ops::swap_axes(in[0], a, b); });
}
Tensor broadcast_to(const Tensor& x, const Shape& shape, const Location& where) {
  return one("broadcast_to", {x}, where, [&](const Values& in) { return ops::broadcast_to(in[0], shape); });
}
Tensor unsqueeze(const Tensor& x, Index axis, const Location& where) {
  return one("unsqueeze", {x}, where, [&](const Values& in) { return ops::unsqueeze(in[0], axis); });
}
Tensor squeeze(const Tensor& x, Index axis, const Location& where) {
  return one("squeeze", {x}, where, [&](const Values& in) { return ops::squeeze(in[0], axis); });
}
Tensor slice(const Tensor& x, Index axis, const SliceRange& range, const Location& where) {
  return one("slice", {x}, where, [&](const Values& in) {
    return ops::slice_axis(in[0], axis, {range.start, range.stop, range.step});
  });
}
Tensor select(const Tensor& x, Index axis, Index position, const Location& where) {
  return one("select", {x}, where, [&](const Values& in) { return ops::select(in[0], axis, position); });
}
Tensor pad(const Tensor& x, Index axis, Index low, Index high, double value, const Location& where) {
  if (x.defined()) check_fill("pad", x.dtype(), value, where);
  return one("pad", {x}, where,
             [&](const Values& in) { return ops::pad_axis(in[0], axis, low, high, value); });
}
Tensor concat(const std::vector<Tensor>& parts, Index axis, const Location& where) {
  if (parts.empty()) throw Error("concat: no tensors given", where);
  return one("concat", parts, where, [&](const Values& in) { return ops::concat(in, axis); });
}
Tensor stack(const std::vector<Tensor>& parts, Index axis, const Location& where) {
  if (parts.empty()) throw Error("stack: no tensors given", where);
  return one("stack", parts, where, [&](const Values& in) { return ops::stack(in, axis); });
}
std::vector<Tensor> split(const Tensor& x, Index axis, const std::vector<Index>& extents,
                          const Location& where) {
  return apply(
      "split", {x}, [&](ir::Graph&, const Values& in) { return ops::split(in[0], axis, extents); }, where);
}
Tensor flip(const Tensor& x, const Axes& axes, const Location& where) {
  return one("flip", {x}, where, [&](const Values& in) { return ops::flip(in[0], axes); });
}
Tensor flatten(const Tensor& x, Index first, Index last, const Location& where) {
  return one("flatten", {x}, where, [&](const Values& in) { return ops::flatten(in[0], first, last); });
}
Tensor moveaxis(const Tensor& x, Index from, Index to, const Location& where) {
  return one("moveaxis", {x}, where, [&](const Values& in) { return ops::moveaxis(in[0], from, to); });
}
Tensor roll(const Tensor& x, Index shift, Index axis, const Location& where) {
  return one("roll", {x}, where, [&](const Values& in) { return ops::roll(in[0], shift, axis); });
}
Tensor repeat(const Tensor& x, Index count, Index axis, const Location& where) {
  return one("repeat", {x}, where, [&](const Values& in) { return ops::repeat(in[0], count, axis); });
}
Tensor repmat(const Tensor& x, const std::vector<Index>& counts, const Location& where) {
  return one("repmat", {x}, where, [&](const Values& in) { return ops::repmat(in[0], counts); });
}
std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, const Location& where) {
  if (vectors.empty()) throw Error("meshgrid: no tensors given", where);
  return apply("meshgrid", vectors, [](ir::Graph&, const Values& in) { return ops::meshgrid(in); }, where);
}
Tensor tril(const Tensor& x, Index diagonal, const Location& where) {
  return one("tril", {x}, where, [&](const Values& in) { return ops::tril(in[0], diagonal); });
}
Tensor triu(const Tensor& x, Index diagonal, const Location& where) {
  return one("triu", {x}, where, [&](const Values& in) { return ops::triu(in[0], diagonal); });
}

#define TW_REDUCTION(f)                                                           \
  Tensor f(const Tensor& x, const Axes& axes, Keep keep, const Location& where) { \
    return reduction(#f, x, axes, keep, ops::f, where);                           \
  }
#include <tilewright/tensor/reductions.def>

Tensor var(const Tensor& x, const Axes& axes, Index ddof, Keep keep, const Location& where) {
  return one("var", {x}, where,
             [&](const Values& in) { return ops::var(in[0], axes, {ddof, to_ops(keep)}); });
}
Tensor argmax(const Tensor& x, Index axis, Keep keep, const Location& where) {
  return one("argmax", {x}, where, [&](const Values& in) { return ops::argmax(in[0], axis, to_ops(keep)); });
}
Tensor argmin(const Tensor& x, Index axis, Keep keep, const Location& where) {
  return one("argmin", {x}, where, [&](const Values& in) { return ops::argmin(in[0], axis, to_ops(keep)); });
}
#define TW_SCAN(f)                                                                     \
  Tensor f(const Tensor& x, Index axis, const Location& where) {                       \
    return one(#f, {x}, where, [&](const Values& in) { return ops::f(in[0], axis); }); \
  }
#include <tilewright/tensor/scans.def>

Tensor sort(const Tensor& x, Index axis, Order order, const Location& where) {
  return one("sort", {x}, where, [&](const Values& in) { return ops::sort(in[0], axis, order); });
}
Tensor argsort(const Tensor& x, Index axis, Order order, const Location& where) {
  return one("argsort", {x}, where, [&](const Values& in) { return ops::argsort(in[0], axis, order); });
}
std::pair<Tensor, Tensor> topk(const Tensor& x, Index k, Index axis, const Location& where) {
  std::vector<Tensor> found = apply(
      "topk", {x},
      [&](ir::Graph&, const Values& in) {
        auto [largest, places] = ops::topk(in[0], k, axis);
        return Values{largest, places};
      },
      where);
  return {std::move(found[0]), std::move(found[1])};
}

namespace {
double element_bytes(const Tensor& t) { return static_cast<double>(size_bytes(t.dtype())); }

// Indices along an axis of `shape`, of which each moves `elements`, once in and once out. Looked at when the
// op is recorded: that tells of wrong shapes, which come before wrong values.
void check_axis(const char* op, const Tensor& index, const Tensor& moved, const Shape& shape, Index axis,
                double elements, const Location& where) {
  if (!index.defined() || !moved.defined()) return;
  const std::optional<int> at = normalize_axis(axis, shape.rank());
  if (at)
    check_index({op, "index", shape[*at], 2 * elements * element_bytes(moved)}, index, {&index, &moved},
                where);
}

// Elements for each index of a gather from `shape` along `axis`.
double row_elements(const Shape& shape, Index axis) {
  const std::optional<int> at = normalize_axis(axis, shape.rank());
  return at && shape[*at] > 0 ? static_cast<double>(shape.size()) / static_cast<double>(shape[*at]) : 0;
}

void check_labels(const char* op, const Tensor& labels, const Tensor& x, const Tensor& scores, int axis,
                  const Location& where) {
  if (!labels.defined() || !x.defined() || !scores.defined() || scores.rank() <= axis || scores.rank() == 0)
    return;
  const Index classes = shape_of(scores)[axis < 0 ? scores.rank() - 1 : axis];
  check_index({op, "label", classes, static_cast<double>(classes) * element_bytes(scores)}, labels,
              {&labels, &x, &scores}, where);
}
}  // namespace

Tensor take(const Tensor& x, const Tensor& index, Index axis, const Location& where) {
  const Tensor out =
      one("take", {x, index}, where, [&](const Values& in) { return ops::take(in[0], in[1], axis); });
  if (x.defined()) check_axis("take", index, x, shape_of(x), axis, row_elements(shape_of(x), axis), where);
  return out;
}
Tensor take_along(const Tensor& x, const Tensor& index, Index axis, const Location& where) {
  const Tensor out = one("take_along", {x, index}, where,
                         [&](const Values& in) { return ops::take_along(in[0], in[1], axis); });
  if (x.defined()) check_axis("take_along", index, x, shape_of(x), axis, 1, where);
  return out;
}
Tensor scatter_add(const Tensor& index, const Tensor& update, Index axis, const Shape& shape,
                   const Location& where) {
  const Tensor out = one("scatter_add", {index, update}, where,
                         [&](const Values& in) { return ops::scatter_add(in[0], in[1], axis, shape); });
  check_axis("scatter_add", index, update, shape, axis, row_elements(shape, axis), where);
  return out;
}
Tensor embedding(const Tensor& table, const Tensor& index, const Location& where) {
  const Tensor out =
      one("embedding", {table, index}, where, [](const Values& in) { return ops::embedding(in[0], in[1]); });
  if (table.defined())
    check_axis("embedding", index, table, shape_of(table), 0, row_elements(shape_of(table), 0), where);
  return out;
}
Tensor one_hot(const Tensor& index, Index classes, DType dtype, const Location& where) {
  return one("one_hot", {index}, where,
             [&](const Values& in) { return ops::one_hot(in[0], classes, dtype); });
}

Tensor einsum(std::string_view spec, const std::vector<Tensor>& operands, const Location& where) {
  return one("einsum", operands, where, [&](const Values& in) { return ops::einsum(spec, in); });
}
Tensor einsum(std::string_view spec, const Tensor& a, const Tensor& b, const Location& where) {
  return einsum(spec, {a, b}, where);
}
Tensor matmul(const Tensor& a, const Tensor& b, const Location& where) {
  return one("matmul", {a, b}, where, [](const Values& in) { return ops::matmul(in[0], in[1]); });
}
Tensor grouped_matmul(const Tensor& x, const Tensor& w, const Tensor& group_of_block, const Location& where) {
  return one("grouped_matmul", {x, w, group_of_block}, where,
             [](const Values& in) { return ops::grouped_matmul(in[0], in[1], in[2]); });
}
Tensor ragged_matmul(const Tensor& x, const Tensor& w, const Tensor& ends, const Location& where) {
  const Tensor out = one("ragged_matmul", {x, w, ends}, where,
                         [](const Values& in) { return ops::ragged_matmul(in[0], in[1], in[2]); });
  check_index({.op = "ragged_matmul",
               .what = "end",
               .extent = shape_of(x)[0] + 1,
               .row_bytes = static_cast<double>(shape_of(w)[1] * shape_of(w)[2]) * element_bytes(w),
               .ascending = true},
              ends, {&x, &w, &ends}, where);
  return out;
}
Tensor masked_matmul(const Tensor& x, const Tensor& w, const Tensor& counts, const Location& where) {
  return one("masked_matmul", {x, w, counts}, where,
             [](const Values& in) { return ops::masked_matmul(in[0], in[1], in[2]); });
}
Tensor scaled_matmul(const Tensor& a, const Tensor& scale_a, const Tensor& b, const Tensor& scale_b,
                     const Location& where) {
  return one("scaled_matmul", {a, scale_a, b, scale_b}, where,
             [](const Values& in) { return ops::scaled_matmul(in[0], in[1], in[2], in[3]); });
}
Tensor pack_int4(const Tensor& values, const Location& where) {
  return one("pack_int4", {values}, where, [](const Values& in) { return ops::pack_int4(in[0]); });
}
Tensor unpack_int4(const Tensor& packed, const Location& where) {
  return one("unpack_int4", {packed}, where, [](const Values& in) { return ops::unpack_int4(in[0]); });
}
Tensor quantized_matmul(const Tensor& x, const Tensor& weights, const Tensor& scales, const Location& where) {
  return one("quantized_matmul", {x, weights, scales}, where,
             [](const Values& in) { return ops::quantized_matmul(in[0], in[1], in[2]); });
}
Tensor softmax(const Tensor& x, Index axis, const Location& where) {
  return one("softmax", {x}, where, [&](const Values& in) { return ops::softmax(in[0], axis); });
}
Tensor log_softmax(const Tensor& x, Index axis, const Location& where) {
  return one("log_softmax", {x}, where, [&](const Values& in) { return ops::log_softmax(in[0], axis); });
}

namespace {
// Optional operands follow the first, in order.
std::optional<Value> next_value(const std::optional<Tensor>& given, const Values& in, std::size_t& next) {
  return given ? std::optional(in[next++]) : std::nullopt;
}
}  // namespace

Tensor layer_norm(const Tensor& x, const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta,
                  double epsilon, const Location& where) {
  std::vector<Tensor> operands{x};
  if (gamma) operands.push_back(*gamma);
  if (beta) operands.push_back(*beta);
  return one("layer_norm", operands, where, [&](const Values& in) {
    std::size_t next = 1;
    const std::optional<Value> g = next_value(gamma, in, next);
    return ops::layer_norm(in[0], g, next_value(beta, in, next), epsilon);
  });
}
Tensor rms_norm(const Tensor& x, const std::optional<Tensor>& gamma, double epsilon, const Location& where) {
  std::vector<Tensor> operands{x};
  if (gamma) operands.push_back(*gamma);
  return one("rms_norm", operands, where, [&](const Values& in) {
    std::size_t next = 1;
    return ops::rms_norm(in[0], next_value(gamma, in, next), epsilon);
  });
}
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const Location& where) {
  const Tensor out = one("cross_entropy", {logits, labels}, where,
                         [](const Values& in) { return ops::cross_entropy(in[0], in[1]); });
  check_labels("cross_entropy", labels, logits, logits, -1, where);
  return out;
}
Tensor linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& labels, const Location& where) {
  const Tensor out = one("linear_cross_entropy", {x, w, labels}, where,
                         [](const Values& in) { return ops::linear_cross_entropy(in[0], in[1], in[2]); });
  check_labels("linear_cross_entropy", labels, x, w, 0, where);
  return out;
}
Tensor dropout(const Tensor& x, const Tensor& seed, double p, const Location& where) {
  return one("dropout", {x, seed}, where,
             [&](const Values& in) { return ops::dropout(in[0], in[1], {.p = p}); });
}
Tensor uniform(const Tensor& seed, const Shape& shape, const Location& where) {
  return one("uniform", {seed}, where, [&](const Values& in) {
    if (in[0].dtype() != DType::i64 || in[0].shape().rank() != 0)
      throw Error(fmt::format("uniform: the seed must be i64[], got {}", to_string(in[0].type())), where);
    return ops::rand(in[0], shape, 0, DType::f32);
  });
}

}  // namespace tilewright
