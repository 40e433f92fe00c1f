// What every file of named tensors asks of the names.
#pragma once

#include <tilewright/tensor/named_tensor.h>

namespace tilewright::formats {

// Throws Error where two tensors have one name.
void check_names(const NamedTensors& tensors);

}  // namespace tilewright::formats
