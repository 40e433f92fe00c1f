// The arguments of several launches of one kernel at once: a table of structs, as the kernel's text declares
// it (print/kernel_printer.cpp): addresses of views, scalars, and extents of the grid, each aligned to its
// size.
#pragma once

#include "backends/backend.h"

#include <cstddef>
#include <vector>

namespace tilewright::cuda {

class LaunchTable {
 public:
  LaunchTable() = default;
  // `grid_axes`: those whose extents the kernel takes.
  LaunchTable(const tile::Kernel& kernel, std::vector<int> grid_axes, int launches);

  // Puts the arguments of `count` launches, one behind another, at its beginning.
  void fill(void* const* views, const std::int64_t* scalars, const Index* grid, int count);
  void* data() { return bytes_.data(); }
  std::size_t size() const { return bytes_.size() * sizeof(std::uint64_t); }

 private:
  struct Member {
    std::size_t offset, bytes;
  };
  Member add(std::size_t bytes);

  std::size_t views_ = 0;
  std::vector<Member> scalars_, extents_;
  std::vector<int> grid_axes_;
  std::size_t launch_bytes_ = 0;
  std::vector<std::uint64_t> bytes_;  // of addresses' alignment
};

}  // namespace tilewright::cuda
