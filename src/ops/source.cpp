// Rows without data operands: constant, iota, random.
#include "ops/row_parts.h"

#include <tilewright/base/philox.h>

namespace tilewright::ops {

namespace {

Type infer_constant(Types, const Attrs& attrs) {
  const Type type{attrs.dtype("dtype"), shape_attr(attrs)};
  if (is_float(type.dtype))
    attrs.real("value");
  else
    attrs.integer("value");
  return type;
}

HostTensor eval_constant(HostTensors, const Attrs& attrs, const Type& type) {
  return filled_host(type, attrs);
}

Type infer_iota(Types, const Attrs& attrs) {
  const Shape shape = shape_attr(attrs);
  axis_attr(attrs, shape.rank());
  return {DType::i64, shape};
}

HostTensor eval_iota(HostTensors, const Attrs& attrs, const Type& type) {
  HostTensor out = empty_host(type);
  const int axis = axis_attr(attrs, type.shape.rank());
  const Index step = row_major_strides(type.shape)[static_cast<std::size_t>(axis)];
  for (std::size_t i = 0; i < out.i.size(); ++i) out.i[i] = static_cast<Index>(i) / step % type.shape[axis];
  return out;
}

Type infer_random(Types operands, const Attrs& attrs) {
  attrs.integer("offset");
  if (operands[0] != Type{DType::i64, {}})
    throw Error(fmt::format("the seed must be i64[], got {}", to_string(operands[0])));
  return {DType::i64, shape_attr(attrs)};
}

HostTensor eval_random(HostTensors x, const Attrs& attrs, const Type& type) {
  HostTensor out = empty_host(type);
  const auto seed = static_cast<std::uint64_t>(x[0]->i[0]);
  const auto offset = static_cast<std::uint64_t>(attrs.integer("offset"));
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < out.i.size(); ++i) {
    const std::uint64_t counter = offset + i;
    // Four elements share a counter of the cipher. An arithmetic shift, as tile IR's counters are signed.
    if (i == 0 || (counter & 3) == 0)
      words = philox4x32(seed, static_cast<std::uint64_t>(static_cast<std::int64_t>(counter) >> 2));
    out.i[i] = words[counter & 3];
  }
  return out;
}

}  // namespace

constexpr ir::Op kConstant = checked(
    {.name = "constant",
     .arity = 0,
     .kind = OpClass::constant,
     .doc = "The number `value` in every element of `shape`; of a narrow float type it keeps f32 precision.",
     .infer = infer_constant,
     .eval = eval_constant,
     .vjp = no_gradient,
     .lower = structural});

constexpr ir::Op kIota = checked({.name = "iota",
                                  .arity = 0,
                                  .kind = OpClass::iota,
                                  .doc = "The i64 coordinate along `axis` of each element of `shape`.",
                                  .infer = infer_iota,
                                  .eval = eval_iota,
                                  .vjp = no_gradient,
                                  .lower = structural});

constexpr ir::Op kRandom = checked({.name = "random",
                                    .arity = 1,
                                    .kind = OpClass::random,
                                    .doc = "Words of Philox4x32-10 keyed by the seed: element n is word c "
                                           "mod 4 of counter c / 4, c = `offset` + n.",
                                    .infer = infer_random,
                                    .eval = eval_random,
                                    .vjp = no_gradient,
                                    .lower = structural,
                                    .flops = 15});

}  // namespace tilewright::ops
