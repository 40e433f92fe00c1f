// A kernel launch made ready once and repeated for the price of one driver call.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/cuda/host/module.h"

namespace tilewright::cuda {

struct LaunchShape {
  std::array<unsigned, 3> grid{1, 1, 1};     // blocks
  std::array<unsigned, 3> block{1, 1, 1};    // threads
  std::array<unsigned, 3> cluster{1, 1, 1};  // blocks; divides the grid
  unsigned shared_bytes = 0;                 // dynamic, a block
  // Programmatic dependent launch: the kernel may start while its predecessor ends, and itself waits for it
  // (griddepcontrol.wait) before it touches the predecessor's results.
  bool overlap_previous = false;
  bool cooperative = false;  // all blocks resident at once, for grid-wide barriers
  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};
std::string to_string(const LaunchShape& shape);

// Kernel arguments by value, in order; each is copied, with the alignment the kernel's parameter needs (up to
// 128 B).
class Arguments {
 public:
  template <class T>
  Arguments& add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>, "kernel arguments are plain bytes");
    return add_bytes(static_cast<const void*>(&value), sizeof(T), alignof(T));
  }
  Arguments& add_bytes(const void* bytes, std::size_t size, std::size_t alignment);
  std::size_t count() const { return offsets_.size(); }
  void* address(std::size_t index) { return reinterpret_cast<std::byte*>(storage_.data()) + offsets_[index]; }

 private:
  struct alignas(128) Chunk {  // the alignment of a TMA descriptor, the strictest argument
    std::byte bytes[128];
  };
  std::vector<Chunk> storage_;
  std::vector<std::size_t> offsets_;
  std::size_t used_ = 0;
};

class PreparedLaunch {
 public:
  // Checks the shape against the kernel and opts in to its shared memory and cluster size.
  static Result<PreparedLaunch> make(const Function& function, const LaunchShape& shape, Arguments arguments);

  PreparedLaunch(PreparedLaunch&&) noexcept = default;
  PreparedLaunch& operator=(PreparedLaunch&&) noexcept = default;

  // One driver call. The arguments are copied by the driver before it returns.
  Status launch(api::CUstream stream) {
    config_.stream = stream;
    config_.attributes = attributes_.data();
    const auto result =
        function_.driver().launch_kernel_ex(&config_, function_.get(), pointers_.data(), nullptr);
    return result == api::kSuccess ? Status(Unit{}) : launch_failure(result);
  }

  const LaunchShape& shape() const { return shape_; }
  const Function& function() const { return function_; }

 private:
  PreparedLaunch(const Function& function, const LaunchShape& shape, Arguments arguments);
  Failure launch_failure(api::CUresult result) const;

  Function function_;
  LaunchShape shape_;
  Arguments arguments_;
  std::vector<void*> pointers_;
  std::vector<api::LaunchAttribute> attributes_;
  api::LaunchConfig config_{};
};

}  // namespace tilewright::cuda
