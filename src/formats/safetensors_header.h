// The header of a safetensors file: its length in 8 bytes, then JSON.
#pragma once

#include "formats/bytes.h"

#include <tilewright/base/dtype.h>
#include <tilewright/formats/safetensors.h>

#include <optional>

namespace tilewright::formats {

struct SafetensorsEntry {
  Safetensors::Info info;
  std::optional<DType> dtype;          // none: tensors have no such type
  std::uint64_t begin = 0, bytes = 0;  // in the file
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by where they lie
  Metadata metadata;
};

// Throws Error: what is wrong with the file.
SafetensorsHeader parse_safetensors(Bytes file);

// What a file begins with whose tensors' elements follow in this order, each behind the one before; a
// multiple of 256 bytes. Throws Error.
struct Described {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};
std::string safetensors_header(const std::vector<Described>& tensors, const Metadata& metadata);

}  // namespace tilewright::formats
