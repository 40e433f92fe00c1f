// Rows that read and write a block of a tensor at a start that is data. A start is brought to where the block
// lies inside, as JAX does.
#include "ops/row_parts.h"

#include <algorithm>

namespace tilewright::ops {

namespace {

void require_start(const Type& start, const Shape& whole) {
  if (!is_integer(start.dtype) || start.shape != Shape{Index{whole.rank()}})
    throw Error(fmt::format("the start must be integers [{}], one for each axis of {}, got {}", whole.rank(),
                            to_string(whole), to_string(start)));
}

void require_inside(const Shape& part, const Shape& whole) {
  bool fits = part.rank() == whole.rank();
  for (int i = 0; fits && i < whole.rank(); ++i) fits = part[i] <= whole[i];
  if (!fits) throw Error(fmt::format("a block of {} is no part of {}", to_string(part), to_string(whole)));
}

Type infer_update_slice(Types operands, const Attrs&) {
  const auto& [x, value, start] = std::tie(operands[0], operands[1], operands[2]);
  if (x.dtype != value.dtype)
    throw Error(fmt::format("the value must be of {}, got {}", to_string(x), to_string(value)));
  require_inside(value.shape, x.shape);
  require_start(start, x.shape);
  return x;
}

Type infer_dynamic_slice(Types operands, const Attrs& attrs) {
  const Shape shape = shape_attr(attrs);
  require_inside(shape, operands[0].shape);
  require_start(operands[1], operands[0].shape);
  return {operands[0].dtype, shape};
}

// The element of the whole at which a part begins, its start brought inside.
Index first_element(const Shape& whole, const Shape& part, const HostTensor& start) {
  const Strides strides = row_major_strides(whole);
  Index first = 0;
  for (int i = 0; i < whole.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    first += std::clamp<Index>(start.i[at], 0, whole[i] - part[i]) * strides[at];
  }
  return first;
}

HostTensor eval_update_slice(HostTensors x, const Attrs&, const Type& type) {
  HostTensor out = *x[0];
  out.type = type;
  place(*x[1], out, first_element(type.shape, x[1]->type.shape, *x[2]));
  return out;
}

HostTensor eval_dynamic_slice(HostTensors x, const Attrs&, const Type& type) {
  const Shape& whole = x[0]->type.shape;
  return gather_view(*x[0], type, first_element(whole, type.shape, *x[1]), row_major_strides(whole));
}

}  // namespace

constexpr ir::Op kUpdateSlice = checked(
    {.name = "update_slice",
     .arity = 3,
     .kind = OpClass::update_slice,
     .doc = "Operands x, value, start: x with the block from `start` on replaced by the value; a start "
            "is brought to where the block lies inside.",
     .infer = infer_update_slice,
     .eval = eval_update_slice,
     .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads {
       return {update_slice(g, full_like(x[1], 0.0), x[2]), dynamic_slice(g, x[2], x[1].shape()),
               std::nullopt};
     },
     .lower = structural});

constexpr ir::Op kDynamicSlice =
    checked({.name = "dynamic_slice",
             .arity = 2,
             .kind = OpClass::dynamic_slice,
             .doc = "Operands x, start: the block of `shape` from `start` on, which is brought to where the "
                    "block lies inside.",
             .infer = infer_dynamic_slice,
             .eval = eval_dynamic_slice,
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads {
               return {update_slice(full_like(x[0], 0.0), g, x[1]), std::nullopt};
             },
             .lower = structural});

}  // namespace tilewright::ops
