// Device memory from a caching pool, ordered by streams: a block that is freed serves later work of the same
// stream at once, without the driver and without waiting. The method is that of PyTorch's allocator: segments
// from the driver are split, freed neighbours merge, the best fit is taken.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "backends/cuda/host/context.h"

namespace tilewright::cuda {

class MemoryPool;

namespace detail {
struct MemoryBlock;
}

// Device memory owned by its holder; returns to its pool when destroyed. The pool must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }

  api::CUdeviceptr address() const { return address_; }   // 512-byte aligned; 0 when the size is 0
  std::size_t size_bytes() const { return size_bytes_; }  // as asked for
  // Back to the pool now: work queued later on its stream may get this memory.
  void reset();

 private:
  friend class MemoryPool;
  MemoryPool* pool_ = nullptr;
  detail::MemoryBlock* block_ = nullptr;
  api::CUdeviceptr address_ = 0;
  std::size_t size_bytes_ = 0;
};

struct PoolOptions {
  std::size_t limit_bytes = ~std::size_t{0};  // of all segments; a growth past it fails as out of memory
  std::size_t segment_bytes = std::size_t{64} << 20;  // least growth for requests above kSmallBytes
};

struct PoolStats {
  std::size_t in_use_bytes = 0;    // handed out, rounded up to blocks
  std::size_t reserved_bytes = 0;  // taken from the driver
  std::size_t peak_in_use_bytes = 0;
  std::size_t driver_allocations = 0;  // since the start: a steady program stops adding to it
  std::size_t requests = 0;
};

// Safe to use from several threads; each must have the context current.
class MemoryPool {
 public:
  explicit MemoryPool(const Context& context, const PoolOptions& options = {});
  ~MemoryPool();  // every Buffer must be gone
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Memory for work on `stream`. Fails with out_of_memory, after giving back everything cached; the message
  // names the bytes wanted, in use, cached and free on the device.
  Result<Buffer> allocate(std::size_t size_bytes, api::CUstream stream);
  // Waits for the device and gives every unused segment back to the driver.
  Status trim();
  PoolStats stats() const;

 private:
  friend class Buffer;
  struct BySize {
    using is_transparent = void;
    bool operator()(const detail::MemoryBlock* a, const detail::MemoryBlock* b) const;
    bool operator()(const detail::MemoryBlock* a, std::size_t bytes) const;
  };
  using FreeList = std::set<detail::MemoryBlock*, BySize>;
  struct Arena {
    api::CUstream stream = nullptr;
    FreeList small, large;
  };

  Arena& arena(api::CUstream stream);
  detail::MemoryBlock* take_free(Arena& arena, std::size_t bytes);
  Result<detail::MemoryBlock*> grow(Arena& arena, std::size_t bytes);
  Failure out_of_memory(std::size_t wanted) const;
  void split(Arena& arena, detail::MemoryBlock& block, std::size_t bytes);
  void release(detail::MemoryBlock* block);
  void absorb_next(FreeList& list, detail::MemoryBlock& block);
  Status trim_locked();
  detail::MemoryBlock* new_block();
  void recycle(detail::MemoryBlock* block);

  const Context& context_;
  PoolOptions options_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> arenas_;  // few: one a stream
  std::vector<std::unique_ptr<detail::MemoryBlock>> blocks_;
  std::vector<detail::MemoryBlock*> spare_;
  PoolStats stats_;
};

}  // namespace tilewright::cuda
