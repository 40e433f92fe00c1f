// One op as text, for messages.
#pragma once

#include <tilewright/tile/kernel.h>

#include <string>

namespace tilewright::tile {

// "%7 = dot %a, %b, %c : tile<f32,[64,64]>", without blocks. Takes malformed ops too.
std::string to_string(const Kernel& kernel, const Op& op);

// A literal of `dtype`: the shortest text that reads back as the same element.
std::string to_string(const Number& number, DType dtype);

}  // namespace tilewright::tile
