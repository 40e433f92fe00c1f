// The share of its random draws, or of the combinations it walks through, that a test tries: one of as many
// as TILEWRIGHT_DRAWS says. `make test` says so (TW_DRAWS, cmake/tilewright.cmake), `make test-long` says 1,
// and a program by itself tries all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace tilewright::test {

// What the caller of ctest says stands before what CMake does: "1:4".
inline std::uint64_t one_of_draws() {
  const char* given = std::getenv("TILEWRIGHT_DRAWS");
  return given == nullptr ? 1 : std::max<std::uint64_t>(1, std::strtoull(given, nullptr, 10));
}

// The number of `all` cases that are tried: one at least.
inline std::uint64_t draws(std::uint64_t all) { return (all + one_of_draws() - 1) / one_of_draws(); }

// Whether the case of this number is tried, where cases differ in kind: every n-th one is.
inline bool is_drawn(std::uint64_t number) { return number % one_of_draws() == 0; }

}  // namespace tilewright::test
