// Size classes, huge pages, and the list of freed blocks.
#include "backends/cpu/host/memory_cache.h"

#include <fmt/format.h>

#include <sys/mman.h>

#include <bit>
#include <cstdint>
#include <cstdlib>

namespace tilewright::cpu {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Blocks from this size on are mapped on their own, in whole huge pages.
constexpr std::size_t kMapped = 2 * kHugePage;

std::size_t round_to(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

void* map_huge(std::size_t bytes) {
  // One huge page more than asked for, so that an aligned part can be cut out.
  const std::size_t total = bytes + kHugePage;
  void* mapped = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t aligned = round_to(begin, kHugePage);
  if (aligned > begin) munmap(mapped, aligned - begin);
  const std::size_t behind = begin + total - (aligned + bytes);
  if (behind > 0) munmap(reinterpret_cast<void*>(aligned + bytes), behind);
  void* block = reinterpret_cast<void*>(aligned);
  madvise(block, bytes, MADV_HUGEPAGE);  // a refusal costs speed, not correctness
  return block;
}

void* acquire(std::size_t bytes) {
  return bytes >= kMapped ? map_huge(bytes) : std::aligned_alloc(4096, bytes);
}

void give_back(void* block, std::size_t bytes) {
  if (bytes >= kMapped)
    munmap(block, bytes);
  else
    std::free(block);
}

}  // namespace

std::size_t MemoryCache::rounded(std::size_t bytes) {
  if (bytes <= 4096) return 4096;
  // Eight classes between powers of two: at most an eighth is wasted.
  const std::size_t step = std::bit_floor(bytes - 1) / 8;
  const std::size_t size = round_to(round_to(bytes, step), 4096);
  return size >= kMapped ? round_to(size, kHugePage) : size;
}

MemoryCache::~MemoryCache() {
  for (const auto& [bytes, blocks] : free_)
    for (void* block : blocks) give_back(block, bytes);
}

Result<void*> MemoryCache::allocate(std::size_t bytes) {
  const auto out_of_memory = [&] {
    return failure(Failure::Kind::out_of_memory, fmt::format("cpu: no memory for {} bytes", bytes));
  };
  if (bytes > (std::size_t{1} << 62)) return out_of_memory();
  const std::size_t size = rounded(bytes);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = free_.find(size); found != free_.end() && !found->second.empty()) {
      void* block = found->second.back();
      found->second.pop_back();
      kept_ -= size;
      return block;
    }
  }
  if (void* block = acquire(size)) return block;
  {
    // What is kept may be what is missing.
    const std::lock_guard lock(mutex_);
    for (auto& [each, blocks] : free_)
      for (void* block : std::exchange(blocks, {})) give_back(block, each);
    kept_ = 0;
  }
  if (void* block = acquire(size)) return block;
  return out_of_memory();
}

void MemoryCache::release(void* address, std::size_t bytes) {
  if (!address) return;
  const std::size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  free_[size].push_back(address);
  kept_ += size;
  trim();
}

// Largest first: they are the cheapest to get again, per byte.
void MemoryCache::trim() {
  for (auto it = free_.rbegin(); it != free_.rend() && kept_ > limit_; ++it)
    while (!it->second.empty() && kept_ > limit_) {
      give_back(it->second.back(), it->first);
      it->second.pop_back();
      kept_ -= it->first;
    }
}

std::size_t MemoryCache::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

}  // namespace tilewright::cpu
