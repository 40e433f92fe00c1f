// The tokens of pieces that were met before: words come again.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace tilewright::nn {

// A fixed number of places, a cache line each; a piece that falls on another's place takes it over. 32,768
// places are 2 MB, which the second-level cache of today's cores holds.
class PieceCache {
 public:
  static constexpr std::size_t kMostBytes = 24, kMostTokens = 9;

  struct Place {
    char bytes[kMostBytes];
    std::int32_t tokens[kMostTokens];
    std::uint8_t size = 0, count = 0;  // of bytes, of tokens; no bytes: free
    bool is(std::string_view piece) const {
      return size == piece.size() && std::memcmp(bytes, piece.data(), size) == 0;
    }
  };

  PieceCache() : places_(kPlaces) {}
  // The place of a piece of 1 to kMostBytes bytes; is(piece) says whether it is there.
  Place& at(std::string_view piece) { return places_[hash(piece) & (kPlaces - 1)]; }
  static void put(Place& place, std::string_view piece, const std::int32_t* tokens, std::size_t count) {
    if (count > kMostTokens) return;
    std::memcpy(place.bytes, piece.data(), piece.size());
    std::memcpy(place.tokens, tokens, count * sizeof *tokens);
    place.size = static_cast<std::uint8_t>(piece.size());
    place.count = static_cast<std::uint8_t>(count);
  }

 private:
  static constexpr std::size_t kPlaces = std::size_t{1} << 15;

  static std::uint64_t hash(std::string_view piece) {
    std::uint64_t sum = piece.size();
    for (std::size_t at = 0; at < piece.size(); at += 8) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, piece.data() + at, piece.size() - at < 8 ? piece.size() - at : 8);
      sum = (sum ^ eight) * 0x9E3779B97F4A7C15ULL;
      sum ^= sum >> 32;
    }
    return sum;
  }

  std::vector<Place> places_;
};

}  // namespace tilewright::nn
