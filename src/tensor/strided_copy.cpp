// Rows by rows: the last axis in a loop of its own, the others counted like digits.
#include "tensor/strided_copy.h"

#include <cstring>
#include <vector>

namespace tilewright::detail {

namespace {

template <std::size_t kBytes>
void copy_row(char* to, const char* from, Index count, std::ptrdiff_t step_bytes) {
  for (Index i = 0; i < count; ++i)
    std::memcpy(to + i * static_cast<Index>(kBytes), from + i * step_bytes, kBytes);
}

void copy_row_of(std::size_t element, char* to, const char* from, Index count, std::ptrdiff_t step_bytes) {
  if (step_bytes == static_cast<std::ptrdiff_t>(element)) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * element);
    return;
  }
  switch (element) {
    case 1:
      return copy_row<1>(to, from, count, step_bytes);
    case 2:
      return copy_row<2>(to, from, count, step_bytes);
    case 4:
      return copy_row<4>(to, from, count, step_bytes);
    default:
      return copy_row<8>(to, from, count, step_bytes);
  }
}

}  // namespace

void copy_strided(void* to, const void* from, const ir::Type& type, const Strides& strides) {
  if (type.shape.size() == 0) return;
  const std::size_t element = size_bytes(type.dtype);
  const auto size = static_cast<std::ptrdiff_t>(element);
  const int last = type.shape.rank() - 1;
  const Index row = last < 0 ? 1 : type.shape[last];
  const std::ptrdiff_t step = last < 0 ? size : strides[static_cast<std::size_t>(last)] * size;
  auto* out = static_cast<char*>(to);
  const auto* at = static_cast<const char*>(from);
  std::vector<Index> digits(static_cast<std::size_t>(std::max(last, 0)), 0);
  for (;;) {
    copy_row_of(element, out, at, row, step);
    out += row * size;
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      at += strides[a] * size;
      if (++digits[a] < type.shape[axis]) break;
      at -= digits[a] * strides[a] * size;
      digits[a] = 0;
    }
    if (axis < 0) return;
  }
}

}  // namespace tilewright::detail
