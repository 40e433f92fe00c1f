// The header of an .npy file: a magic word, a version, and a dict of Python's as text.
#pragma once

#include "formats/host_array.h"

#include <string>

namespace tilewright::formats {

struct NpyHeader {
  DType dtype = DType::f32;
  std::endian endian = std::endian::little;  // of the elements
  Order order = Order::row_major;
  Shape shape;
  std::size_t bytes = 0;  // of the header: elements begin there
};

// Throws Error: what is wrong with it, which may be its end.
NpyHeader parse_npy_header(Bytes file);
// Version 1, little-endian, row-major; a multiple of 64 bytes. Throws Error for a type without a name.
std::string npy_header(DType dtype, const Shape& shape);

}  // namespace tilewright::formats
