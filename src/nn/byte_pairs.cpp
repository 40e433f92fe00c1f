// Merging by a heap of candidates over a list of neighbours. A candidate that a merge beside it made
// untrue stays in the heap and is passed over when it comes up.
#include "nn/byte_pairs.h"

#include <algorithm>
#include <bit>

namespace tilewright::nn {

PairTable::PairTable(const std::vector<formats::Merge>& merges) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(2 * merges.size(), 2));
  shift_ = 64 - std::countr_zero(size);
  entries_.resize(size);
  for (const formats::Merge& merge : merges)
    entries_[place(merge.left, merge.right)] = {merge.left, merge.right, merge.rank, merge.result};
}

// The pair's place, or the free one where it would stand.
std::size_t PairTable::place(std::uint32_t left, std::uint32_t right) const {
  const std::uint64_t key = std::uint64_t{left} << 32 | right;
  std::size_t at = key * 0x9E3779B97F4A7C15ULL >> shift_;  // Fibonacci hashing: 2^64 / golden ratio
  while (entries_[at].left != kEmpty && (entries_[at].left != left || entries_[at].right != right))
    at = (at + 1) & (entries_.size() - 1);
  return at;
}

const PairTable::Entry* PairTable::find(std::uint32_t left, std::uint32_t right) const {
  const Entry& entry = entries_[place(left, right)];
  return entry.left == kEmpty ? nullptr : &entry;
}

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFF;
constexpr std::int32_t kMerged = -1;  // a token that its left neighbour took in

constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
};

}  // namespace

void PairMerger::consider(const PairTable& table, const std::int32_t* tokens, std::uint32_t place) {
  if (place == kNone || next_[place] == kNone) return;
  const auto left = static_cast<std::uint32_t>(tokens[place]),
             right = static_cast<std::uint32_t>(tokens[next_[place]]);
  if (const PairTable::Entry* entry = table.find(left, right))
    heap_.push_back({entry->rank, place, left, right});
}

void PairMerger::merge(const PairTable& table, std::vector<std::int32_t>& tokens, std::size_t begin) {
  const auto count = static_cast<std::uint32_t>(tokens.size() - begin);
  if (count < 2) return;
  std::int32_t* const own = tokens.data() + begin;
  next_.resize(count);
  previous_.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    next_[i] = i + 1 < count ? i + 1 : kNone;
    previous_[i] = i > 0 ? i - 1 : kNone;
  }
  heap_.clear();
  for (std::uint32_t i = 0; i + 1 < count; ++i) consider(table, own, i);
  std::make_heap(heap_.begin(), heap_.end(), kLater);
  while (!heap_.empty()) {
    const Candidate best = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), kLater);
    heap_.pop_back();
    const std::uint32_t right = next_[best.place];
    if (right == kNone || static_cast<std::uint32_t>(own[best.place]) != best.left ||
        static_cast<std::uint32_t>(own[right]) != best.right)
      continue;
    own[best.place] = static_cast<std::int32_t>(table.find(best.left, best.right)->result);
    own[right] = kMerged;
    next_[best.place] = next_[right];
    if (next_[right] != kNone) previous_[next_[right]] = best.place;
    for (const std::uint32_t place : {previous_[best.place], best.place}) {
      const std::size_t before = heap_.size();
      consider(table, own, place);
      if (heap_.size() > before) std::push_heap(heap_.begin(), heap_.end(), kLater);
    }
  }
  tokens.erase(std::remove(tokens.begin() + static_cast<std::ptrdiff_t>(begin), tokens.end(), kMerged),
               tokens.end());
}

}  // namespace tilewright::nn
