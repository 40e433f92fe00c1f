// Streams of random numbers of a training's one seed: each use has its own.
#pragma once

#include <tilewright/base/philox.h>

#include <cstdint>

namespace tilewright::tw {

enum class Stream : std::uint64_t { batches = 1, validation, dropout, writing };

inline std::uint64_t seed_of(std::uint64_t seed, Stream stream) {
  const auto words = philox4x32(seed, static_cast<std::uint64_t>(stream) << 32);
  return std::uint64_t{words[0]} << 32 | words[1];
}

}  // namespace tilewright::tw
