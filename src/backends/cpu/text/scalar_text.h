// Ops on rank-0 values: one C++ statement each.
#pragma once

#include "backends/cpu/text/prims.h"

namespace tilewright::cpu {

void print_scalar(KernelText& k, const tile::Op& op);

// An element read as a scalar: "x[i]", bool as a comparison.
std::string read_element(DType dtype, const std::string& pointer, const Amount& offset);
// "x[i] = value;"
std::string write_element(DType dtype, const std::string& pointer, const Amount& offset,
                          const std::string& value);
// "0 <= i && i < n", without what the bound says cannot fail; empty when nothing is left.
std::string inside_text(const std::string& coordinate, const std::string& extent, bool may_be_negative,
                        bool may_end_early);

}  // namespace tilewright::cpu
