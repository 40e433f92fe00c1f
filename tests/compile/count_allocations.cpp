// A file of its own: where a compiler sees these beside calls of new and delete, it takes them for mistakes.
#include "count_allocations.h"

#include <cstdlib>
#include <new>

namespace {

std::size_t count = 0;

}  // namespace

namespace tilewright::test {

std::size_t allocations() { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

}  // namespace tilewright::test

// The thread sanitizer brings its own.
#ifndef TW_THREAD_SANITIZER
void* operator new(std::size_t bytes) {
  __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);  // one instruction, without optimisation as well
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif
