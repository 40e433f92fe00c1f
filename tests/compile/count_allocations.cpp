// A file of its own: where a compiler sees these beside calls of new and delete, it takes them for mistakes.
#include "count_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t>& counter() {
  static constinit std::atomic<std::size_t> count = 0;
  return count;
}

}  // namespace

namespace tilewright::test {

std::size_t allocations() { return counter().load(); }

}  // namespace tilewright::test

// The thread sanitizer brings its own.
#ifndef TW_THREAD_SANITIZER
void* operator new(std::size_t bytes) {
  counter().fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif
