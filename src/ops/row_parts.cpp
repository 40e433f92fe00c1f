// Type rules and small helpers of the op rows.
#include "ops/row_parts.h"

#include <sys/mman.h>

#include <bit>

namespace tilewright::ops {

namespace {

Type same_type(Types operands) {
  for (const Type& type : operands)
    if (type != operands[0])
      throw Error(fmt::format("operand types differ, {} and {}", to_string(operands[0]), to_string(type)));
  return operands[0];
}

Type require(Type type, bool taken, const char* wanted) {
  if (!taken) throw Error(fmt::format("wants {}, got {}", wanted, to_string(type)));
  return type;
}

Type boolean(const Type& type) { return {DType::boolean, type.shape}; }

}  // namespace

Grads zero_gradient(Args operands, const Attrs&, Value, Value) { return Grads(operands.size()); }

Type arithmetic_operands(Types operands, const Attrs&) {
  const Type type = same_type(operands);
  return require(type, !is_bool(type.dtype), "floats or integers");
}
Type float_operands(Types operands, const Attrs&) {
  const Type type = same_type(operands);
  return require(type, is_float(type.dtype), "floats");
}
Type integer_operands(Types operands, const Attrs&) {
  const Type type = same_type(operands);
  return require(type, is_integer(type.dtype), "integers");
}
Type integral_operands(Types operands, const Attrs&) {
  const Type type = same_type(operands);
  return require(type, !is_float(type.dtype), "integers or bools");
}
Type compare_any(Types operands, const Attrs&) { return boolean(same_type(operands)); }
Type compare_arithmetic(Types operands, const Attrs& attrs) {
  return boolean(arithmetic_operands(operands, attrs));
}
Type float_predicate(Types operands, const Attrs& attrs) { return boolean(float_operands(operands, attrs)); }

int axis_attr(const Attrs& attrs, int rank) {
  const Index axis = attrs.integer("axis");
  if (axis < 0 || axis >= rank) throw Error(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return static_cast<int>(axis);
}

Shape shape_attr(const Attrs& attrs) {
  Shape shape(attrs.integers("shape"));
  ir::check_shape(shape);
  return shape;
}

namespace {

// Memory for `n` zeros in huge pages: a fault for each 4 KiB page takes longer than the arithmetic on it.
template <class T>
void allocate(std::vector<T>& out, std::size_t n) {
  constexpr std::uintptr_t kHugePage = 2 << 20;
  out.reserve(n);
  const auto begin = std::bit_cast<std::uintptr_t>(out.data());
  const std::uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t last = (begin + n * sizeof(T)) / kHugePage * kHugePage;
  if (first < last) madvise(std::bit_cast<void*>(first), last - first, MADV_HUGEPAGE);  // a hint; may fail
  out.resize(n);
}

// Copies a block of `shape`; strides in elements, 0 and negative allowed.
template <class T>
void copy_block(const T* from, const Strides& from_strides, T* to, const Strides& to_strides,
                const Shape& shape, int axis = 0) {
  if (axis == shape.rank()) {
    *to = *from;
    return;
  }
  const Index from_step = from_strides[static_cast<std::size_t>(axis)];
  const Index to_step = to_strides[static_cast<std::size_t>(axis)];
  if (axis + 1 == shape.rank()) {
    for (Index i = 0; i < shape[axis]; ++i) to[i * to_step] = from[i * from_step];
    return;
  }
  for (Index i = 0; i < shape[axis]; ++i)
    copy_block(from + i * from_step, from_strides, to + i * to_step, to_strides, shape, axis + 1);
}

}  // namespace

HostTensor empty_host(const Type& type) {
  HostTensor out{.type = type};
  const auto n = static_cast<std::size_t>(type.shape.size());
  if (is_float(type.dtype))
    allocate(out.f, n);
  else
    allocate(out.i, n);
  return out;
}

HostTensor filled_host(const Type& type, const Attrs& attrs) {
  HostTensor out = empty_host(type);
  if (is_float(type.dtype))
    std::fill(out.f.begin(), out.f.end(), attrs.real("value"));
  else
    std::fill(out.i.begin(), out.i.end(), wrap_to(type.dtype, attrs.integer("value")));
  return out;
}

HostTensor gather_view(const HostTensor& x, const Type& type, Index offset, const Strides& strides) {
  HostTensor out = empty_host(type);
  if (type.shape.size() == 0) return out;
  const Strides to = row_major_strides(type.shape);
  if (is_float(type.dtype))
    copy_block(x.f.data() + offset, strides, out.f.data(), to, type.shape);
  else
    copy_block(x.i.data() + offset, strides, out.i.data(), to, type.shape);
  return out;
}

void place(const HostTensor& x, HostTensor& out, Index offset) {
  const Shape& shape = x.type.shape;
  if (shape.size() == 0) return;
  const Strides from = row_major_strides(shape);
  const Strides to = row_major_strides(out.type.shape);
  if (is_float(x.type.dtype))
    copy_block(x.f.data(), from, out.f.data() + offset, to, shape);
  else
    copy_block(x.i.data(), from, out.i.data() + offset, to, shape);
}

void wrap_values(HostTensor& tensor) {
  if (tensor.type.dtype == DType::i64) return;
  for (std::int64_t& v : tensor.i) v = wrap_to(tensor.type.dtype, v);
}

}  // namespace tilewright::ops
