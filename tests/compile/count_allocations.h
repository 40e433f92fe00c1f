// How often this test program has asked for memory so far, in all threads: a measure of work that is the same
// on a busy machine. The passes walk trees and maps: what they do, they allocate for.
#pragma once

#include <cstddef>

namespace tilewright::test {

std::size_t allocations();

}  // namespace tilewright::test
