// Σ e^(x - max x): what a softmax divides by, as tile ops.
#pragma once

#include <tilewright/tile/kernel.h>

#include <optional>
#include <vector>

namespace tilewright::printer {

// Who computes each value of the kernel; null: an argument of a block.
std::vector<const tile::Op*> definitions(const tile::Kernel& kernel);

struct PowersBelow {
  tile::ValueId x = -1;
  tile::ValueId max = -1;  // of x, along the axis of the sum
};
// Finds the parts of a reduction that sums powers of e of something less its own maximum.
std::optional<PowersBelow> powers_below(const std::vector<const tile::Op*>& definitions, const tile::Op& sum);
// The op of `kind` that `v` comes from, looking through ops that change the shape or the type alone.
const tile::Op* behind(const std::vector<const tile::Op*>& definitions, tile::OpKind kind, tile::ValueId v);

}  // namespace tilewright::printer
