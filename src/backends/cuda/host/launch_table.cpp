// The layout of a C++ struct whose members are aligned to their sizes.
#include "backends/cuda/host/launch_table.h"

#include <cstring>

namespace tilewright::cuda {

LaunchTable::LaunchTable(const tile::Kernel& kernel, std::vector<int> grid_axes, int launches)
    : views_(kernel.views.size()), grid_axes_(std::move(grid_axes)) {
  for (std::size_t v = 0; v < views_; ++v) add(sizeof(void*));
  for (const tile::ScalarParam& s : kernel.scalars) scalars_.push_back(add(size_bytes(s.dtype)));
  for (std::size_t i = 0; i < grid_axes_.size(); ++i) extents_.push_back(add(sizeof(std::int32_t)));
  launch_bytes_ = static_cast<std::size_t>(round_up(static_cast<Index>(launch_bytes_), sizeof(void*)));
  bytes_.resize(launch_bytes_ / sizeof(std::uint64_t) * static_cast<std::size_t>(launches));
}

LaunchTable::Member LaunchTable::add(std::size_t bytes) {
  const std::size_t offset = (launch_bytes_ + bytes - 1) / bytes * bytes;
  launch_bytes_ = offset + bytes;
  return {offset, bytes};
}

void LaunchTable::fill(void* const* views, const std::int64_t* scalars, const Index* grid, int count) {
  auto* launch = reinterpret_cast<std::byte*>(bytes_.data());
  for (int i = 0; i < count; ++i, launch += launch_bytes_) {
    std::memcpy(launch, static_cast<const void*>(views), views_ * sizeof(void*));
    for (std::size_t s = 0; s < scalars_.size(); ++s)
      std::memcpy(launch + scalars_[s].offset, scalars + s, scalars_[s].bytes);
    for (std::size_t e = 0; e < extents_.size(); ++e) {
      const auto extent = static_cast<std::int32_t>(grid[grid_axes_[e]]);
      std::memcpy(launch + extents_[e].offset, &extent, sizeof(extent));
    }
    views += views_;
    scalars += scalars_.size();
  }
}

}  // namespace tilewright::cuda
