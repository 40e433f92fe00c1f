// Bound: an integer that one program knows before its loop: constants, the starts of its loop variables and
// scalars it loads, under sums, quotients, minimum and maximum. Written into the kernel by the emitter,
// computed on the host by the cost model and by tests.
#pragma once

#include "passes/nest/index_expr.h"

#include <functional>
#include <memory>
#include <optional>

namespace tilewright::passes {

class Bound {
 public:
  enum class Kind : std::uint8_t {
    constant,   // `number`
    start,      // of variable `place`
    value,      // of expr `place`, an integer that is the same in the whole program
    sum,        // parts[0] + parts[1]
    scaled,     // parts[0] * number
    floor_div,  // parts[0] / number, rounded down; number > 0
    min,
    max,
    choose,  // parts[0] >= 0 ? parts[1] : parts[2]
  };
  Bound(Index constant = 0) : number_(constant), range_{constant, constant} {}
  static Bound start(int variable, Index last);  // from 0 to `last`
  static Bound value(int expr);

  Kind kind() const { return kind_; }
  int place() const { return place_; }
  Index number() const { return number_; }
  const std::vector<Bound>& parts() const { return *parts_; }
  IndexRange range() const { return range_; }  // what is known of it without a program
  bool is_constant() const { return range_.low == range_.high; }

  friend Bound operator+(const Bound& a, const Bound& b);
  friend Bound operator*(const Bound& a, Index factor);
  friend Bound operator-(const Bound& a, const Bound& b) { return a + b * -1; }
  friend Bound floor_div(const Bound& a, Index divisor);
  friend Bound min(const Bound& a, const Bound& b);
  friend Bound max(const Bound& a, const Bound& b);
  // a where test >= 0, else b.
  friend Bound choose(const Bound& test, const Bound& a, const Bound& b);
  friend bool operator==(const Bound& a, const Bound& b);

  // The bound's value at these starts; nothing where a loaded value is part of it.
  std::optional<Index> evaluate(const std::vector<Index>& starts) const;

 private:
  static Bound make(Kind kind, IndexRange range, std::vector<Bound> parts, Index number = 0);
  Kind kind_ = Kind::constant;
  int place_ = -1;
  Index number_ = 0;
  IndexRange range_;
  std::shared_ptr<const std::vector<Bound>> parts_;
};

// Loaded values count as at most this: larger than any index, and far from where arithmetic wraps around.
inline constexpr Index kMostValue = Index{1} << 42;

}  // namespace tilewright::passes
