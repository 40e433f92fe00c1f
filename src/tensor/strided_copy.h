// Elements of host memory with any strides, gathered in row-major order.
#pragma once

#include "ir/graph.h"

namespace tilewright::detail {

// `from` is the first element, `strides` count elements and may be negative or overlap. Neither side needs to
// be aligned.
void copy_strided(void* to, const void* from, const ir::Type& type, const Strides& strides);

}  // namespace tilewright::detail
