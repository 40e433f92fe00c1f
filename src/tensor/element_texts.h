// Elements as text, as NumPy prints those of one array: aligned, and of one form.
#pragma once

#include <tilewright/base/dtype.h>
#include <tilewright/base/shape.h>

#include <span>
#include <string>
#include <vector>

namespace tilewright::detail {

// The texts of the elements that `shown` names, by their places in `data`: all of one width, which their
// longest digits decide (numpy/_core/arrayprint.py: FloatingFormat, IntegerFormat, BoolFormat).
std::vector<std::string> element_texts(const char* data, DType dtype, std::span<const Index> shown,
                                       int precision);

// The text of a number by itself, as NumPy prints a scalar: with all digits that tell it from its neighbours.
std::string scalar_text(const char* data, DType dtype);

}  // namespace tilewright::detail
