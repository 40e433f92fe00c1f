// HostArray: elements in the host's memory, on their way from a file to a tensor or back.
#pragma once

#include "formats/bytes.h"

#include <tilewright/tensor/tensor.h>

#include <memory>

namespace tilewright::formats {

enum class Order : std::uint8_t { row_major, column_major };

struct HostArray {
  DType dtype = DType::f32;
  Shape shape;
  Bytes elements;  // as many as the shape says, at any address
  Order order = Order::row_major;
};

// Bytes that so many elements take; throws Error where no memory has them, or an extent is negative.
std::uint64_t size_of(const Shape& shape, DType dtype);

// A tensor of its own on the Context's device. Throws Error where a bool is neither 0 nor 1.
Tensor copy_of(Context& context, const HostArray& array, const Location& where);
// The same without a copy where the device can read the memory as it lies: `owner` then keeps it, and the
// tensor is read-only. Row-major.
Tensor borrowed(Context& context, const HostArray& array, const std::shared_ptr<const void>& owner,
                const Location& where);

// A tensor's elements, row-major: its own memory where that is the host's, else a copy.
KeptBytes host_elements(const Tensor& tensor, const Location& where);

}  // namespace tilewright::formats
