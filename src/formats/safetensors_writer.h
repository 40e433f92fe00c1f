// Writing safetensors files from elements wherever they lie: tensors, and copies of them in the host's
// memory.
#pragma once

#include "formats/bytes.h"

#include <tilewright/formats/safetensors.h>

#include <functional>

namespace tilewright::formats {

// A tensor of a file to be written.
struct Written {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::function<KeptBytes()> elements;  // row-major; asked for once, when its turn comes
};

// save_safetensors() of these. Throws Error without the file's name.
void write_safetensors(const std::string& path, const std::vector<Written>& tensors,
                       const SafetensorsOptions& options);

}  // namespace tilewright::formats
