// The grid of a kernel, as numbers where these are known.
#pragma once

#include <tilewright/tile/kernel.h>

#include <optional>
#include <vector>

namespace tilewright::cuda {

// Programs along a grid axis; none where arguments decide.
std::optional<Index> programs_along(const tile::Kernel& kernel, int axis);

// The parameters of the printed kernel after views and scalars: program counts of the grid axes that the
// kernel's scalars decide, each an i32.
std::vector<int> grid_parameters(const tile::Kernel& kernel);

}  // namespace tilewright::cuda
