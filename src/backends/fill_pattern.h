// FillPattern: what memory is filled with, a number over and over. Creating a tensor of one value needs no
// kernel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tilewright::backends {

struct FillPattern {
  std::uint64_t bits = 0;  // the low `width` bytes, in memory's order
  int width = 1;           // 1, 2, 4 or 8
};

// The same memory by the narrowest pattern: two equal halves are one of them.
constexpr FillPattern narrowest(FillPattern p) {
  for (; p.width > 1; p.width /= 2) {
    const int half = p.width * 4;
    const std::uint64_t low = p.bits & ((std::uint64_t{1} << half) - 1);
    if (((p.bits >> half) & ((std::uint64_t{1} << half) - 1)) != low) return p;
    p.bits = low;
  }
  return p;
}

// `to` is aligned for one pattern, and `bytes` are whole ones.
inline void fill_on_host(void* to, FillPattern pattern, std::size_t bytes) {
  const FillPattern p = narrowest(pattern);
  const std::size_t count = bytes / static_cast<std::size_t>(p.width);
  if (p.width == 1)
    std::memset(to, static_cast<int>(p.bits & 0xff), bytes);
  else if (p.width == 2)
    std::fill_n(static_cast<std::uint16_t*>(to), count, static_cast<std::uint16_t>(p.bits));
  else if (p.width == 4)
    std::fill_n(static_cast<std::uint32_t*>(to), count, static_cast<std::uint32_t>(p.bits));
  else
    std::fill_n(static_cast<std::uint64_t*>(to), count, p.bits);
}

}  // namespace tilewright::backends
