// Which operands of dots need no buffer of their own: the dot reads them from the view.
#pragma once

#include <tilewright/tile/kernel.h>

#include <set>

namespace tilewright::cpu {

// Blocks of views, and transposes of such, that are used by dots alone.
std::set<tile::ValueId> dot_operands_in_place(const tile::Kernel& kernel);

}  // namespace tilewright::cpu
