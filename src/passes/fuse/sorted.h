// Sorted lists of numbers as sets: of a few dozen, which are read far more often than they change.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace tilewright::passes {

inline bool holds(const std::vector<int>& sorted, int number) {
  return std::binary_search(sorted.begin(), sorted.end(), number);
}

inline void insert(std::vector<int>& sorted, int number) {
  const auto place = std::lower_bound(sorted.begin(), sorted.end(), number);
  if (place == sorted.end() || *place != number) sorted.insert(place, number);
}

inline void erase(std::vector<int>& sorted, int number) {
  const auto place = std::lower_bound(sorted.begin(), sorted.end(), number);
  if (place != sorted.end() && *place == number) sorted.erase(place);
}

// Both as one, without repeats.
inline std::vector<int> joined(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> out;
  out.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

}  // namespace tilewright::passes
