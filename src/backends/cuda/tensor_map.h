// TensorMaps: the copy engine's descriptions of a kernel's views, made on the host when a launch first uses
// an address and kept for the next one.
#pragma once

#include "backends/cuda/analysis/dot_use.h"
#include "backends/cuda/host/driver.h"

#include <cstdint>
#include <map>
#include <vector>

namespace tilewright::cuda {

class TensorMaps {
 public:
  TensorMaps() = default;
  TensorMaps(const tile::Kernel& kernel, const tile::Schedule& schedule);

  std::size_t count() const { return blocks_.size(); }
  // Map `i` of the kernel's parameters (tensor_blocks) for these arguments. The pointer holds until the maps
  // of many other addresses were asked for.
  Result<const api::TensorMap*> get(const Driver& driver, std::size_t i, void* const* views,
                                    const std::int64_t* scalars);

 private:
  struct Block {
    TensorBlock block;
    tile::ViewParam view;
  };
  static Status encode(const Driver& driver, const Block& block, const std::vector<std::int64_t>& key,
                       api::TensorMap* map);

  std::vector<Block> blocks_;
  // The maps of each block, by address and extents.
  std::vector<std::map<std::vector<std::int64_t>, api::TensorMap>> made_;
};

}  // namespace tilewright::cuda
