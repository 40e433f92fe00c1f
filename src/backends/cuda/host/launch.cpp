// Preparing launches; see launch.h.
#include "backends/cuda/host/launch.h"

#include <fmt/format.h>

namespace tilewright::cuda {
namespace {

// Above this much dynamic shared memory a block, a kernel must opt in.
constexpr unsigned kSharedBytesWithoutOptIn = 48 * 1024;
// Clusters up to this size run on every device that has clusters.
constexpr unsigned kPortableClusterBlocks = 8;

unsigned volume(const std::array<unsigned, 3>& extents) { return extents[0] * extents[1] * extents[2]; }

Status check_shape(const LaunchShape& shape, const FunctionAttributes& function) {
  const auto refuse = [&](std::string why) {
    return failure(Failure::Kind::invalid, fmt::format("launch {}: {}", to_string(shape), why));
  };
  if (volume(shape.block) == 0 || shape.grid[0] == 0 || shape.grid[1] == 0 || shape.grid[2] == 0) {
    return refuse("empty grid or block");
  }
  if (static_cast<int>(volume(shape.block)) > function.max_threads) {
    return refuse(fmt::format("the kernel allows {} threads a block ({} registers a thread)",
                              function.max_threads, function.registers));
  }
  if (shape.grid[1] > 65535 || shape.grid[2] > 65535) return refuse("y and z of a grid end at 65535");
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (shape.cluster[axis] == 0 || shape.grid[axis] % shape.cluster[axis] != 0) {
      return refuse("the cluster does not divide the grid");
    }
  }
  return Unit{};
}

}  // namespace

std::string to_string(const LaunchShape& s) {
  std::string text = fmt::format("grid {}x{}x{} block {}x{}x{}", s.grid[0], s.grid[1], s.grid[2], s.block[0],
                                 s.block[1], s.block[2]);
  if (volume(s.cluster) > 1)
    text += fmt::format(" cluster {}x{}x{}", s.cluster[0], s.cluster[1], s.cluster[2]);
  if (s.shared_bytes > 0) text += fmt::format(" shared {} B", s.shared_bytes);
  if (s.overlap_previous) text += " overlap_previous";
  if (s.cooperative) text += " cooperative";
  return text;
}

Arguments& Arguments::add_bytes(const void* bytes, std::size_t size, std::size_t alignment) {
  TW_CHECK(alignment <= alignof(Chunk), "a kernel argument asks for more than 128-byte alignment");
  const std::size_t offset = (used_ + alignment - 1) / alignment * alignment;
  used_ = offset + size;
  storage_.resize((used_ + sizeof(Chunk) - 1) / sizeof(Chunk));
  offsets_.push_back(offset);
  std::memcpy(address(offsets_.size() - 1), bytes, size);
  return *this;
}

PreparedLaunch::PreparedLaunch(const Function& function, const LaunchShape& shape, Arguments arguments)
    : function_(function), shape_(shape), arguments_(std::move(arguments)) {
  for (std::size_t i = 0; i < arguments_.count(); ++i) pointers_.push_back(arguments_.address(i));
  const auto add = [&](api::LaunchAttributeId id, const api::LaunchAttributeValue& value) {
    attributes_.push_back({.id = id, .pad = {}, .value = value});
  };
  if (volume(shape.cluster) > 1) {
    add(api::kLaunchClusterDimension,
        {.cluster_dim = {shape.cluster[0], shape.cluster[1], shape.cluster[2]}});
  }
  if (shape.overlap_previous) {
    add(api::kLaunchProgrammaticStreamSerialization, {.programmatic_stream_serialization_allowed = 1});
  }
  if (shape.cooperative) add(api::kLaunchCooperative, {.cooperative = 1});
  config_ = {.grid_x = shape.grid[0],
             .grid_y = shape.grid[1],
             .grid_z = shape.grid[2],
             .block_x = shape.block[0],
             .block_y = shape.block[1],
             .block_z = shape.block[2],
             .shared_bytes = shape.shared_bytes,
             .attribute_count = static_cast<unsigned>(attributes_.size())};
}

Result<PreparedLaunch> PreparedLaunch::make(const Function& function, const LaunchShape& shape,
                                            Arguments arguments) {
  auto attributes = function.attributes();
  if (!attributes) return attributes.error();
  if (auto status = check_shape(shape, *attributes); !status) return status.error();
  if (shape.shared_bytes > kSharedBytesWithoutOptIn) {
    if (auto status = function.allow_shared_bytes(static_cast<int>(shape.shared_bytes)); !status)
      return status.error();
  }
  if (volume(shape.cluster) > kPortableClusterBlocks) {
    if (auto status = function.allow_large_clusters(); !status) return status.error();
  }
  return PreparedLaunch(function, shape, std::move(arguments));
}

Failure PreparedLaunch::launch_failure(api::CUresult result) const {
  return driver_failure(function_.driver(), result, fmt::format("launch {}", to_string(shape_)));
}

}  // namespace tilewright::cuda
