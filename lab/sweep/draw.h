// Random choices that are the same on every machine: Philox by a text and a seed, and no distribution of the
// standard library, whose results differ between libraries.
#pragma once

#include <tilewright/base/shape.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::sweep {

class Draw {
 public:
  // Streams of other names are independent.
  Draw(std::string_view stream, std::uint64_t seed);

  std::uint32_t word();
  double unit();                           // [0, 1)
  Index integer(Index least, Index most);  // both may come
  bool chance(double probability) { return unit() < probability; }
  // Log-uniform in [least, most): each octave is as likely as the next, and inside one it is uniform.
  double log_uniform(double least, double most);
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(integer(0, static_cast<Index>(choices.size()) - 1))];
  }
  // One by its weight.
  template <class T>
  T weighted(const std::vector<std::pair<T, double>>& choices) {
    double all = 0;
    for (const auto& [choice, weight] : choices) all += weight;
    double left = unit() * all;
    for (const auto& [choice, weight] : choices) {
      if (left < weight) return choice;
      left -= weight;
    }
    return choices.back().first;
  }

  // A size near `about`: a power of two, a multiple of 8 or 64, any number, or an odd prime, as they come in
  // programs.
  Index extent(double about);
  // `rank` sizes whose product is near `elements`, none by far the largest or smallest as a rule.
  Shape shape(double elements, int rank);

 private:
  std::uint64_t key_, counter_ = 0;
  int used_ = 4;
  std::uint32_t words_[4] = {};
};

}  // namespace tilewright::sweep
