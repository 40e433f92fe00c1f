// Byte-pair merging of one piece of text, in time n log n.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/tokenizer_file.h"

namespace tilewright::nn {

// What two neighbouring tokens merge into: a hash table with the pairs side by side, as merging is a lookup
// of each pair of neighbours and little else.
class PairTable {
 public:
  struct Entry {
    std::uint32_t left = kEmpty, right = 0, rank = 0, result = 0;
  };
  // A pair that is named twice has the last rank, as in a map.
  explicit PairTable(const std::vector<formats::Merge>& merges);
  // Null where the two do not merge.
  const Entry* find(std::uint32_t left, std::uint32_t right) const;

 private:
  static constexpr std::uint32_t kEmpty = 0xFFFFFFFF;
  std::size_t place(std::uint32_t left, std::uint32_t right) const;
  std::vector<Entry> entries_;  // a power of two, at most half of them taken
  int shift_ = 0;
};

// Room for merging, kept between pieces; not for two threads at once.
class PairMerger {
 public:
  // Merges what is in `tokens`, from place `begin` on, where it stands.
  void merge(const PairTable& table, std::vector<std::int32_t>& tokens, std::size_t begin);

 private:
  struct Candidate {
    std::uint32_t rank, place, left, right;
  };
  void consider(const PairTable& table, const std::int32_t* tokens, std::uint32_t place);
  std::vector<std::uint32_t> next_, previous_;  // places of the neighbours
  std::vector<Candidate> heap_;                 // the lowest rank first, of equal ones the leftmost
};

}  // namespace tilewright::nn
