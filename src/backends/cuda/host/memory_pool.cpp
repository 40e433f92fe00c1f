// The caching pool; see memory_pool.h.
#include "backends/cuda/host/memory_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tilewright::cuda {

namespace detail {
// A piece of a segment. Neighbours within the segment are linked, so that freed ones can merge.
struct MemoryBlock {
  api::CUdeviceptr address = 0;
  std::size_t bytes = 0;
  api::CUstream stream = nullptr;
  MemoryBlock* previous = nullptr;
  MemoryBlock* next = nullptr;
  bool free = false;
  bool small = false;
};
}  // namespace detail

namespace {

using detail::MemoryBlock;

// 512 B: TMA wants 128, and whole 512-byte rows keep every buffer's first warp access in one DRAM page.
constexpr std::size_t kAlignment = 512;
// Small requests live in segments of their own, so that they cannot pin down a large one.
constexpr std::size_t kSmallBytes = std::size_t{1} << 20;
constexpr std::size_t kSmallSegmentBytes = std::size_t{2} << 20;
// A large block is split only when the rest is worth a large request itself.
constexpr std::size_t kLeastLargeRest = kSmallBytes;

constexpr std::size_t round_up_to(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::string readable(std::size_t bytes) {
  if (bytes >= std::size_t{1} << 30)
    return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1ull << 30));
  if (bytes >= std::size_t{1} << 20)
    return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1ull << 20));
  return fmt::format("{} bytes", bytes);
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      block_(std::exchange(other.block_, nullptr)),
      address_(std::exchange(other.address_, 0)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    pool_ = std::exchange(other.pool_, nullptr);
    block_ = std::exchange(other.block_, nullptr);
    address_ = std::exchange(other.address_, 0);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
  }
  return *this;
}

void Buffer::reset() {
  if (block_ != nullptr) pool_->release(block_);
  pool_ = nullptr;
  block_ = nullptr;
  address_ = 0;
  size_bytes_ = 0;
}

bool MemoryPool::BySize::operator()(const MemoryBlock* a, const MemoryBlock* b) const {
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
}
bool MemoryPool::BySize::operator()(const MemoryBlock* a, std::size_t bytes) const {
  return a->bytes < bytes;
}

MemoryPool::MemoryPool(const Context& context, const PoolOptions& options)
    : context_(context), options_(options) {}

MemoryPool::~MemoryPool() {
  const std::lock_guard lock(mutex_);
  (void)trim_locked();  // at process exit the driver may be gone already
}

Result<Buffer> MemoryPool::allocate(std::size_t size_bytes, api::CUstream stream) {
  Buffer buffer;
  if (size_bytes == 0) return buffer;
  const std::size_t bytes = round_up_to(size_bytes, kAlignment);
  const std::lock_guard lock(mutex_);
  ++stats_.requests;
  Arena& from = arena(stream);
  MemoryBlock* block = take_free(from, bytes);
  if (block == nullptr) {
    auto grown = grow(from, bytes);
    if (!grown) return grown.error();
    block = *grown;
  }
  split(from, *block, bytes);
  block->free = false;
  stats_.in_use_bytes += block->bytes;
  stats_.peak_in_use_bytes = std::max(stats_.peak_in_use_bytes, stats_.in_use_bytes);
  buffer.pool_ = this;
  buffer.block_ = block;
  buffer.address_ = block->address;
  buffer.size_bytes_ = size_bytes;
  return buffer;
}

MemoryPool::Arena& MemoryPool::arena(api::CUstream stream) {
  for (const auto& known : arenas_) {
    if (known->stream == stream) return *known;
  }
  arenas_.push_back(std::make_unique<Arena>());
  arenas_.back()->stream = stream;
  return *arenas_.back();
}

MemoryBlock* MemoryPool::take_free(Arena& arena, std::size_t bytes) {
  FreeList& list = bytes <= kSmallBytes ? arena.small : arena.large;
  const auto best = list.lower_bound(bytes);
  if (best == list.end()) return nullptr;
  MemoryBlock* block = *best;
  list.erase(best);
  return block;
}

// A new segment of at least `bytes`. When the driver has none, everything cached goes back to it and it is
// asked once more.
Result<MemoryBlock*> MemoryPool::grow(Arena& arena, std::size_t bytes) {
  const bool small = bytes <= kSmallBytes;
  const std::size_t exact = round_up_to(bytes, kSmallSegmentBytes);
  const std::size_t sizes[] = {small ? kSmallSegmentBytes : std::max(exact, options_.segment_bytes), exact};
  const Driver& driver = context_.driver();
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (const std::size_t size : sizes) {
      if (size > options_.limit_bytes || stats_.reserved_bytes > options_.limit_bytes - size) continue;
      api::CUdeviceptr address = 0;
      const auto result = driver.mem_alloc(&address, size);
      if (result == api::kErrorOutOfMemory) continue;
      if (auto status = check(driver, result, "cuMemAlloc"); !status) return status.error();
      ++stats_.driver_allocations;
      stats_.reserved_bytes += size;
      MemoryBlock* block = new_block();
      *block = {.address = address, .bytes = size, .stream = arena.stream, .small = small};
      return block;
    }
    if (attempt == 0) {
      if (auto status = trim_locked(); !status) return status.error();
    }
  }
  return out_of_memory(bytes);
}

Failure MemoryPool::out_of_memory(std::size_t wanted) const {
  const auto info = context_.memory_info();
  std::string text = fmt::format("out of device memory on {}: wanted {}, {} in use, {} cached by the pool",
                                 context_.limits().name, readable(wanted), readable(stats_.in_use_bytes),
                                 readable(stats_.reserved_bytes - stats_.in_use_bytes));
  if (info)
    text +=
        fmt::format(", {} of {} free on the device", readable(info->free_bytes), readable(info->total_bytes));
  if (options_.limit_bytes != ~std::size_t{0})
    text += fmt::format("; the pool's limit is {}", readable(options_.limit_bytes));
  return failure(Failure::Kind::out_of_memory, std::move(text));
}

// Cuts `block`, which is in no list, down to `bytes`; the rest becomes a free block.
void MemoryPool::split(Arena& arena, MemoryBlock& block, std::size_t bytes) {
  const std::size_t rest = block.bytes - bytes;
  if (rest < (block.small ? kAlignment : kLeastLargeRest)) return;
  MemoryBlock* tail = new_block();
  *tail = {.address = block.address + bytes,
           .bytes = rest,
           .stream = block.stream,
           .previous = &block,
           .next = block.next,
           .free = true,
           .small = block.small};
  if (block.next != nullptr) block.next->previous = tail;
  block.next = tail;
  block.bytes = bytes;
  (block.small ? arena.small : arena.large).insert(tail);
}

void MemoryPool::release(MemoryBlock* block) {
  const std::lock_guard lock(mutex_);
  stats_.in_use_bytes -= block->bytes;
  Arena& to = arena(block->stream);
  FreeList& list = block->small ? to.small : to.large;
  absorb_next(list, *block);
  if (MemoryBlock* before = block->previous; before != nullptr && before->free) {
    list.erase(before);
    block->free = true;
    absorb_next(list, *before);
    block = before;
  }
  block->free = true;
  list.insert(block);
}

// Merges the free neighbour after `block`, which itself is in no list, into it.
void MemoryPool::absorb_next(FreeList& list, MemoryBlock& block) {
  MemoryBlock* after = block.next;
  if (after == nullptr || !after->free) return;
  list.erase(after);
  block.bytes += after->bytes;
  block.next = after->next;
  if (after->next != nullptr) after->next->previous = &block;
  recycle(after);
}

Status MemoryPool::trim() {
  const std::lock_guard lock(mutex_);
  return trim_locked();
}

Status MemoryPool::trim_locked() {
  if (auto status = context_.synchronize(); !status) return status;
  const Driver& driver = context_.driver();
  Status outcome = Unit{};
  for (const auto& arena : arenas_) {
    for (FreeList* list : {&arena->small, &arena->large}) {
      std::erase_if(*list, [&](MemoryBlock* block) {
        const bool whole_segment = block->previous == nullptr && block->next == nullptr;
        if (!whole_segment || !outcome) return false;
        outcome = check(driver, driver.mem_free(block->address), "cuMemFree");
        stats_.reserved_bytes -= block->bytes;
        recycle(block);
        return true;
      });
    }
  }
  return outcome;
}

PoolStats MemoryPool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

MemoryBlock* MemoryPool::new_block() {
  if (spare_.empty()) {
    blocks_.push_back(std::make_unique<MemoryBlock>());
    return blocks_.back().get();
  }
  MemoryBlock* block = spare_.back();
  spare_.pop_back();
  return block;
}

void MemoryPool::recycle(MemoryBlock* block) { spare_.push_back(block); }

}  // namespace tilewright::cuda
