// Allocator: a program's own source of memory for the tensors of a Context (ContextOptions::allocator).
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)
namespace tilewright {

// Memory of one device. Both functions may be called from several threads at once, and must not call
// Tilewright.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // The address of `bytes` (at least 1), a multiple of `alignment` (a power of two), for work that will be
  // launched on `stream`: a CUstream, or 0 on the CPU. A null pointer or an exception: there is no memory,
  // which makes the call of Tilewright an OutOfMemory.
  virtual void* allocate(std::size_t bytes, std::size_t alignment, std::uintptr_t stream) = 0;
  // Takes back what allocate() gave. Work launched on `stream` so far may still use it: the memory is for
  // later work of that stream, or for others after a wait. Must not throw.
  virtual void release(void* address, std::size_t bytes, std::uintptr_t stream) noexcept = 0;
};

}  // namespace tilewright
#pragma GCC visibility pop
