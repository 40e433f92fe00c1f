// What every file of named tensors asks of the names.
#pragma once

#include <tilewright/tensor/named_tensor.h>

#include <string_view>
#include <vector>

namespace tilewright::formats {

// Throws Error where two tensors have one name.
void check_names(std::vector<std::string_view> names);
void check_names(const NamedTensors& tensors);

}  // namespace tilewright::formats
