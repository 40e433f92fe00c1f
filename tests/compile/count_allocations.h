// How often this test program has asked for memory so far, in all threads: a measure of work that is the same
// on a busy machine. The passes walk trees and maps: what they do, they allocate for.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TW_THREAD_SANITIZER 1
#endif
#endif

namespace tilewright::test {

// Whether allocations are counted at all: under the thread sanitizer they are not.
#ifdef TW_THREAD_SANITIZER
inline constexpr bool kCountsAllocations = false;
#else
inline constexpr bool kCountsAllocations = true;
#endif

std::size_t allocations();

}  // namespace tilewright::test
