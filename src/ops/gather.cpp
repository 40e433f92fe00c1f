// Rows that read and add at index tensors. An index outside [0, extent) reads zero and adds nothing.
#include "ops/row_parts.h"

namespace tilewright::ops {

namespace {

void require_index(const Type& index) {
  if (!is_integer(index.dtype))
    throw Error(fmt::format("the index must be integers, got {}", to_string(index)));
}

// x.shape with `axis` replaced by the axes of `index`.
Shape taken_shape(const Shape& x, int axis, const Shape& index) {
  std::vector<Index> extents(x.begin(), x.begin() + axis);
  extents.insert(extents.end(), index.begin(), index.end());
  extents.insert(extents.end(), x.begin() + axis + 1, x.end());
  return Shape(extents);
}

Type infer_take(Types operands, const Attrs& attrs) {
  const Shape& x = operands[0].shape;
  require_index(operands[1]);
  return {operands[0].dtype, taken_shape(x, axis_attr(attrs, x.rank()), operands[1].shape)};
}

void require_along(const Shape& x, const Shape& index, int axis) {
  bool valid = x.rank() == index.rank();
  for (int i = 0; valid && i < x.rank(); ++i) valid = i == axis || x[i] == index[i];
  if (!valid)
    throw Error(
        fmt::format("index {} must match {} on every axis but {}", to_string(index), to_string(x), axis));
}

Type infer_take_along(Types operands, const Attrs& attrs) {
  const Shape& x = operands[0].shape;
  require_index(operands[1]);
  require_along(x, operands[1].shape, axis_attr(attrs, x.rank()));
  return {operands[0].dtype, operands[1].shape};
}

void require_number(const Type& update) {
  if (is_bool(update.dtype)) throw Error("bools cannot be added");
}

Type infer_scatter_add(Types operands, const Attrs& attrs) {
  require_index(operands[0]);
  require_number(operands[1]);
  const Shape shape = shape_attr(attrs);
  const Shape wanted = taken_shape(shape, axis_attr(attrs, shape.rank()), operands[0].shape);
  if (operands[1].shape != wanted)
    throw Error(
        fmt::format("the update must be {}, got {}", to_string(wanted), to_string(operands[1].shape)));
  return {operands[1].dtype, shape};
}

Type infer_scatter_add_along(Types operands, const Attrs& attrs) {
  require_index(operands[0]);
  require_number(operands[1]);
  const Shape shape = shape_attr(attrs);
  require_along(shape, operands[0].shape, axis_attr(attrs, shape.rank()));
  if (operands[1].shape != operands[0].shape)
    throw Error(fmt::format("index {} and update {} must have one shape", to_string(operands[0].shape),
                            to_string(operands[1].shape)));
  return {operands[1].dtype, shape};
}

Index product(const Shape& shape, int begin, int end) {
  Index n = 1;
  for (int i = begin; i < end; ++i) n *= shape[i];
  return n;
}

// Both directions walk [outer, index, inner]: `whole` is the tensor with the axis, `part` the one without.
template <class Move>
void for_each_indexed(const Shape& whole, int axis, const HostTensor& index, const Move& move) {
  const Index outer = product(whole, 0, axis);
  const Index inner = product(whole, axis + 1, whole.rank());
  const auto count = static_cast<Index>(index.i.size());
  for (Index o = 0; o < outer; ++o)
    for (Index k = 0; k < count; ++k) {
      const Index at = index.i[static_cast<std::size_t>(k)];
      if (at >= 0 && at < whole[axis]) move((o * whole[axis] + at) * inner, (o * count + k) * inner, inner);
    }
}

template <class Move>
void for_each_along(const Shape& whole, int axis, const HostTensor& index, const Move& move) {
  const Index outer = product(whole, 0, axis);
  const Index inner = product(whole, axis + 1, whole.rank());
  const Index count = index.type.shape[axis];
  for (Index o = 0; o < outer; ++o)
    for (Index k = 0; k < count; ++k)
      for (Index n = 0; n < inner; ++n) {
        const Index part = (o * count + k) * inner + n;
        const Index at = index.i[static_cast<std::size_t>(part)];
        if (at >= 0 && at < whole[axis]) move((o * whole[axis] + at) * inner + n, part, 1);
      }
}

template <class T>
void copy_runs(const T* from, T* to, Index count) {
  for (Index i = 0; i < count; ++i) to[i] = from[i];
}
void add_runs(const double* from, double* to, Index count) {
  for (Index i = 0; i < count; ++i) to[i] += from[i];
}
void add_runs(const std::int64_t* from, std::int64_t* to, Index count) {
  for (Index i = 0; i < count; ++i) to[i] = static_cast<std::int64_t>(modular(to[i]) + modular(from[i]));
}

template <class Walk>
HostTensor read_at(HostTensors x, const Attrs& attrs, const Type& type, const Walk& walk) {
  HostTensor out = empty_host(type);
  const Shape& whole = x[0]->type.shape;
  walk(whole, axis_attr(attrs, whole.rank()), *x[1], [&](Index from, Index to, Index count) {
    if (is_float(type.dtype))
      copy_runs(x[0]->f.data() + from, out.f.data() + to, count);
    else
      copy_runs(x[0]->i.data() + from, out.i.data() + to, count);
  });
  return out;
}

template <class Walk>
HostTensor add_at(HostTensors x, const Attrs& attrs, const Type& type, const Walk& walk) {
  HostTensor out = empty_host(type);
  walk(type.shape, axis_attr(attrs, type.shape.rank()), *x[0], [&](Index to, Index from, Index count) {
    if (is_float(type.dtype))
      add_runs(x[1]->f.data() + from, out.f.data() + to, count);
    else
      add_runs(x[1]->i.data() + from, out.i.data() + to, count);
  });
  wrap_values(out);
  return out;
}

constexpr auto walk_indexed = [](const Shape& whole, int axis, const HostTensor& index, const auto& move) {
  for_each_indexed(whole, axis, index, move);
};
constexpr auto walk_along = [](const Shape& whole, int axis, const HostTensor& index, const auto& move) {
  for_each_along(whole, axis, index, move);
};

}  // namespace

constexpr ir::Op kTake = checked(
    {.name = "take",
     .arity = 2,
     .kind = OpClass::take,
     .doc = "Operands x, index: the slices of x at each index along `axis`; an index outside reads zero.",
     .infer = infer_take,
     .eval = [](HostTensors x, const Attrs& attrs,
                const Type& type) { return read_at(x, attrs, type, walk_indexed); },
     .vjp = [](Args x, const Attrs& attrs, Value, Value g) -> Grads {
       return {scatter_add(x[1], g, attrs.integer("axis"), x[0].shape()), std::nullopt};
     },
     .lower = structural,
     .flops = 0});

constexpr ir::Op kTakeAlong = checked(
    {.name = "take_along",
     .arity = 2,
     .kind = OpClass::take_along,
     .doc = "Operands x, index: x[.., index[.., i, ..], ..] along `axis`; an index outside reads zero.",
     .infer = infer_take_along,
     .eval = [](HostTensors x, const Attrs& attrs,
                const Type& type) { return read_at(x, attrs, type, walk_along); },
     .vjp = [](Args x, const Attrs& attrs, Value, Value g) -> Grads {
       return {scatter_add_along(x[1], g, attrs.integer("axis"), x[0].shape()), std::nullopt};
     },
     .lower = structural,
     .flops = 0});

constexpr ir::Op kScatterAdd =
    checked({.name = "scatter_add",
             .arity = 2,
             .kind = OpClass::scatter_add,
             .doc = "Operands index, update: zeros of `shape` with the slices of the update added at each "
                    "index along `axis`; outside nothing is added. The transpose of take.",
             .infer = infer_scatter_add,
             .eval = [](HostTensors x, const Attrs& attrs,
                        const Type& type) { return add_at(x, attrs, type, walk_indexed); },
             .vjp = [](Args x, const Attrs& attrs, Value, Value g) -> Grads {
               return {std::nullopt, take(g, x[0], attrs.integer("axis"))};
             },
             .lower = structural,
             .flops = 1});

constexpr ir::Op kScatterAddAlong =
    checked({.name = "scatter_add_along",
             .arity = 2,
             .kind = OpClass::scatter_add_along,
             .doc = "Operands index, update: zeros of `shape` with the update added at the index along "
                    "`axis`; outside nothing is added. The transpose of take_along.",
             .infer = infer_scatter_add_along,
             .eval = [](HostTensors x, const Attrs& attrs,
                        const Type& type) { return add_at(x, attrs, type, walk_along); },
             .vjp = [](Args x, const Attrs& attrs, Value, Value g) -> Grads {
               return {std::nullopt, take_along(g, x[0], attrs.integer("axis"))};
             },
             .lower = structural,
             .flops = 1});

}  // namespace tilewright::ops
