// Numbers of programs along an axis of a grid, and the axes whose numbers only a launch knows.
#include "backends/cuda/plan/grid.h"

namespace tilewright::cuda {

std::optional<Index> programs_along(const tile::Kernel& kernel, int axis) {
  Index n = 1;
  for (const tile::GridFactor& f : kernel.grid[static_cast<std::size_t>(axis)]) {
    if (!f.extent.is_constant()) return std::nullopt;
    n *= ceil_div(f.extent.value, f.block);
  }
  return n;
}

std::vector<int> grid_parameters(const tile::Kernel& kernel) {
  std::vector<int> axes;
  for (int i = 0; i < static_cast<int>(kernel.grid.size()); ++i)
    if (!programs_along(kernel, i)) axes.push_back(i);
  return axes;
}

}  // namespace tilewright::cuda
