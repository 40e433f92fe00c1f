#include "tile/sampled_programs.h"

#include <cmath>
#include <functional>
#include <numeric>

namespace tilewright::tile {

std::vector<std::vector<Index>> sampled_programs(const std::vector<Index>& grid, Index count) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  const Index programs = std::accumulate(grid.begin(), grid.end(), Index{1}, std::multiplies<>());
  std::vector<std::vector<Index>> out;
  for (Index i = 0; i < count; ++i) {
    const Index begin = i * programs / count, length = (i + 1) * programs / count - begin;
    const double turns = static_cast<double>(i) * kGoldenRatio, share = turns - std::floor(turns);
    Index linear = begin + static_cast<Index>(share * static_cast<double>(length));
    std::vector<Index>& program = out.emplace_back();
    for (const Index extent : grid) {
      program.push_back(linear % extent);
      linear /= extent;
    }
  }
  return out;
}

}  // namespace tilewright::tile
