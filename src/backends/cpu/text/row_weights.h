// Exponentials whose smallest results nobody can tell from zero.
#pragma once

#include <tilewright/tile/kernel.h>

#include <set>

namespace tilewright::cpu {

// The results of exp(x - m) with m the largest x of a row (of all blocks until now), that are only added up
// and multiplied by dots, the largest among them: beside the largest of a row, which is 1 (or was, before the
// row was rescaled), what is subnormal changes no sum, and no product but with values past 1e37.
std::set<tile::ValueId> row_weights(const tile::Kernel& kernel);

}  // namespace tilewright::cpu
