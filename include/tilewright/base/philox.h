// Philox4x32-10: random numbers as a pure function of (seed, counter), the same on every device and thread.
// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the Random123 library.
#pragma once

#include <array>
#include <cstdint>

#pragma GCC visibility push(default)
namespace tilewright {

// The cipher itself: a 128-bit counter and a 64-bit key, words in Random123's order.
constexpr std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                                     std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};  // the Weyl sequence of the key schedule
  }
  return counter;
}

// Four words for one counter value: key = seed, counter words {low, high, 0, 0}.
constexpr std::array<std::uint32_t, 4> philox4x32(std::uint64_t seed, std::uint64_t counter) {
  return philox4x32_10({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
                       {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

// [0, 1) with the 24 bits that f32 holds exactly.
constexpr float uniform_f32(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

}  // namespace tilewright
#pragma GCC visibility pop
