// Rows that move elements without computing: reshape, transpose, expand, slice, pad, concat.
#include "ops/row_parts.h"

#include <algorithm>
#include <limits>

namespace tilewright::ops {

namespace {

// --- types

Type infer_reshape(Types operands, const Attrs& attrs) {
  const Shape shape = shape_attr(attrs);
  if (shape.size() != operands[0].shape.size())
    throw Error(
        fmt::format("{} has another element count than {}", to_string(operands[0].shape), to_string(shape)));
  return {operands[0].dtype, shape};
}

Type infer_transpose(Types operands, const Attrs& attrs) {
  const std::vector<Index>& perm = attrs.integers("perm");
  const Shape& from = operands[0].shape;
  std::vector<Index> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool valid = static_cast<int>(perm.size()) == from.rank();
  for (std::size_t i = 0; valid && i < sorted.size(); ++i) valid = sorted[i] == static_cast<Index>(i);
  if (!valid)
    throw Error(
        fmt::format("perm {} is no permutation of the axes of {}", to_string(Shape(perm)), to_string(from)));
  Shape shape = from;
  for (int i = 0; i < from.rank(); ++i) shape[i] = from[static_cast<int>(perm[static_cast<std::size_t>(i)])];
  return {operands[0].dtype, shape};
}

Type infer_expand(Types operands, const Attrs& attrs) {
  const Shape shape = shape_attr(attrs);
  const Shape& from = operands[0].shape;
  bool valid = shape.rank() == from.rank();
  for (int i = 0; valid && i < shape.rank(); ++i) valid = from[i] == shape[i] || from[i] == 1;
  if (!valid) throw Error(fmt::format("{} does not stretch to {}", to_string(from), to_string(shape)));
  return {operands[0].dtype, shape};
}

Type infer_slice(Types operands, const Attrs& attrs) {
  const Shape shape = shape_attr(attrs);
  const Shape& from = operands[0].shape;
  const std::vector<Index>& start = attrs.integers("start");
  const std::vector<Index>& step = attrs.integers("step");
  const auto rank = static_cast<std::size_t>(from.rank());
  if (start.size() != rank || step.size() != rank || shape.extents().size() != rank)
    throw Error(fmt::format("start, step and shape must have one entry per axis of {}", to_string(from)));
  for (int i = 0; i < from.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Index bound = from[i] + 1;  // keeps start + (extent - 1) * step far from overflow
    bool valid = step[at] != 0 && step[at] >= -bound && step[at] <= bound;
    if (valid && shape[i] > 0) {
      valid = shape[i] <= from[i] && start[at] >= 0 && start[at] < from[i];
      const Index last = valid ? start[at] + (shape[i] - 1) * step[at] : -1;
      valid = valid && last >= 0 && last < from[i];
    }
    if (!valid)
      throw Error(fmt::format("{} elements from {} with step {} leave axis {} of {}", shape[i], start[at],
                              step[at], i, to_string(from)));
  }
  return {operands[0].dtype, shape};
}

Type infer_pad(Types operands, const Attrs& attrs) {
  Shape shape = operands[0].shape;
  const std::vector<Index>& low = attrs.integers("low");
  const std::vector<Index>& high = attrs.integers("high");
  const auto rank = static_cast<std::size_t>(shape.rank());
  if (low.size() != rank || high.size() != rank)
    throw Error(fmt::format("low and high must have one entry per axis of {}", to_string(shape)));
  for (const std::vector<Index>* widths : {&low, &high})
    for (const Index width : *widths)
      if (width < 0)
        throw Error(fmt::format("a width of {}: slice takes elements away, pad adds them", width));
  constexpr Index kMost = std::numeric_limits<Index>::max();
  for (int i = 0; i < shape.rank(); ++i) {
    const Index before = low[static_cast<std::size_t>(i)], behind = high[static_cast<std::size_t>(i)];
    if (before > kMost - shape[i] || behind > kMost - shape[i] - before)
      throw Error(fmt::format("axis {} of {} padded by {} and {} has more elements than an index can count",
                              i, to_string(operands[0].shape), before, behind));
    shape[i] += before + behind;
  }
  if (is_float(operands[0].dtype))
    attrs.real("value");
  else
    attrs.integer("value");
  return {operands[0].dtype, shape};
}

Type infer_concat(Types operands, const Attrs& attrs) {
  if (operands.empty()) throw Error("wants at least one operand");
  Type type = operands[0];
  const int axis = axis_attr(attrs, type.shape.rank());
  for (std::size_t i = 1; i < operands.size(); ++i) {
    Type other = operands[i];
    bool valid = other.shape.rank() == type.shape.rank();
    if (valid) {
      const Index extent = other.shape[axis];
      other.shape[axis] = type.shape[axis];
      valid = other == type;
      type.shape[axis] += extent;
    }
    if (!valid)
      throw Error(fmt::format("{} does not continue {} along axis {}", to_string(operands[i]),
                              to_string(operands[0]), axis));
  }
  return type;
}

// --- evaluation

HostTensor eval_reshape(HostTensors x, const Attrs&, const Type& type) {
  HostTensor out = *x[0];
  out.type = type;
  return out;
}

HostTensor eval_transpose(HostTensors x, const Attrs& attrs, const Type& type) {
  const Strides from = row_major_strides(x[0]->type.shape);
  Strides strides;
  for (Index axis : attrs.integers("perm")) strides.push_back(from[static_cast<std::size_t>(axis)]);
  return gather_view(*x[0], type, 0, strides);
}

HostTensor eval_expand(HostTensors x, const Attrs&, const Type& type) {
  Strides strides = row_major_strides(x[0]->type.shape);
  for (int i = 0; i < type.shape.rank(); ++i)
    if (x[0]->type.shape[i] == 1) strides[static_cast<std::size_t>(i)] = 0;
  return gather_view(*x[0], type, 0, strides);
}

HostTensor eval_slice(HostTensors x, const Attrs& attrs, const Type& type) {
  Strides strides = row_major_strides(x[0]->type.shape);
  Index offset = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    offset += attrs.integers("start")[i] * strides[i];
    strides[i] *= attrs.integers("step")[i];
  }
  return gather_view(*x[0], type, offset, strides);
}

HostTensor eval_pad(HostTensors x, const Attrs& attrs, const Type& type) {
  HostTensor out = filled_host(type, attrs);
  const Strides strides = row_major_strides(type.shape);
  Index offset = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) offset += attrs.integers("low")[i] * strides[i];
  place(*x[0], out, offset);
  return out;
}

HostTensor eval_concat(HostTensors x, const Attrs& attrs, const Type& type) {
  HostTensor out = empty_host(type);
  const int axis = axis_attr(attrs, type.shape.rank());
  const Index step = row_major_strides(type.shape)[static_cast<std::size_t>(axis)];
  Index done = 0;
  for (const HostTensor* part : x) {
    place(*part, out, done * step);
    done += part->type.shape[axis];
  }
  return out;
}

// --- gradients

Grads vjp_transpose(Args, const Attrs& attrs, Value, Value g) {
  const std::vector<Index>& perm = attrs.integers("perm");
  std::vector<Index> inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<std::size_t>(perm[i])] = static_cast<Index>(i);
  return {transpose(g, inverse)};
}

Grads vjp_expand(Args x, const Attrs&, Value y, Value g) {
  std::vector<Index> stretched;
  for (int i = 0; i < y.shape().rank(); ++i)
    if (x[0].shape()[i] != y.shape()[i]) stretched.push_back(i);
  if (stretched.empty()) return {g};
  return {reshape(sum(g, stretched), x[0].shape())};
}

// Spreads `g` along `axis`: element i lands at start + i * step of an axis of `extent`, the rest is zero.
Value spread(Value g, int axis, Index start, Index step, Index extent) {
  const Index count = g.shape()[axis];
  if (step < 0) {
    start += (count - 1) * step;
    step = -step;
    g = flip(g, {axis});
  }
  if (step > 1) {  // a unit axis behind `axis`, padded to `step`, then folded into it
    std::vector<Index> split = g.shape().extents();
    split.insert(split.begin() + axis + 1, 1);
    g = pad_axis(reshape(g, Shape(split)), axis + 1, 0, step - 1);
    split.erase(split.begin() + axis + 1);
    split[static_cast<std::size_t>(axis)] = count * step;
    g = slice_axis(reshape(g, Shape(split)), axis, {.stop = count * step - (step - 1)});
  }
  return pad_axis(g, axis, start, extent - start - g.shape()[axis]);
}

Grads vjp_slice(Args x, const Attrs& attrs, Value y, Value g) {
  if (y.shape().size() == 0) return {full_like(x[0], 0.0)};
  for (int axis = 0; axis < y.shape().rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    g = spread(g, axis, attrs.integers("start")[i], attrs.integers("step")[i], x[0].shape()[axis]);
  }
  return {g};
}

Grads vjp_pad(Args x, const Attrs& attrs, Value, Value g) {
  const std::vector<Index> ones(attrs.integers("low").size(), 1);
  return {slice(g, attrs.integers("low"), ones, x[0].shape())};
}

Grads vjp_concat(Args x, const Attrs& attrs, Value, Value g) {
  const int axis = static_cast<int>(attrs.integer("axis"));
  Grads grads;
  Index done = 0;
  for (const Value& part : x) {
    const Index extent = part.shape()[axis];
    grads.push_back(slice_axis(g, axis, {.start = done, .stop = done + extent}));
    done += extent;
  }
  return grads;
}

}  // namespace

constexpr ir::Op kReshape =
    checked({.name = "reshape",
             .arity = 1,
             .kind = OpClass::reshape,
             .doc = "The elements in row-major order under `shape`.",
             .infer = infer_reshape,
             .eval = eval_reshape,
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {reshape(g, x[0].shape())}; },
             .lower = structural});

constexpr ir::Op kTranspose = checked({.name = "transpose",
                                       .arity = 1,
                                       .kind = OpClass::transpose,
                                       .doc = "Result axis i is operand axis perm[i].",
                                       .infer = infer_transpose,
                                       .eval = eval_transpose,
                                       .vjp = vjp_transpose,
                                       .lower = structural});

constexpr ir::Op kExpand = checked({.name = "expand",
                                    .arity = 1,
                                    .kind = OpClass::expand,
                                    .doc = "Unit axes stretch to `shape`.",
                                    .infer = infer_expand,
                                    .eval = eval_expand,
                                    .vjp = vjp_expand,
                                    .lower = structural});

constexpr ir::Op kSlice = checked({.name = "slice",
                                   .arity = 1,
                                   .kind = OpClass::slice,
                                   .doc = "result[i] = a[start + i * step] per axis; steps may be negative.",
                                   .infer = infer_slice,
                                   .eval = eval_slice,
                                   .vjp = vjp_slice,
                                   .lower = structural});

constexpr ir::Op kPad = checked({.name = "pad",
                                 .arity = 1,
                                 .kind = OpClass::pad,
                                 .doc = "`low` and `high` elements of `value` before and after each axis.",
                                 .infer = infer_pad,
                                 .eval = eval_pad,
                                 .vjp = vjp_pad,
                                 .lower = structural});

constexpr ir::Op kConcat = checked({.name = "concat",
                                    .arity = -1,
                                    .kind = OpClass::concat,
                                    .doc = "The operands one after another along `axis`.",
                                    .infer = infer_concat,
                                    .eval = eval_concat,
                                    .vjp = vjp_concat,
                                    .lower = structural});

}  // namespace tilewright::ops
