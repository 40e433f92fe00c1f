// What a generator of random things asks, and who answers: a generator of random numbers, or a list of
// numbers. What was answered can be written down as such a list, and shorter lists and smaller numbers are
// simpler things: so a failing case is made small (shrink.h) by no knowledge of what is generated, and
// whatever list it is, the generator makes something well formed of it.
//
// D. MacIver and A. Donaldson, Test-Case Reduction via Test-Case Generation, ECOOP 2020.
#pragma once

#include <tilewright/base/shape.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::test {

class Choices {
 public:
  virtual ~Choices() = default;
  // In [0, n). 0 is what should be simplest.
  virtual Index below(Index n) = 0;
  // In [0, 1), in steps of 2^-53.
  virtual double fraction() = 0;
  virtual bool chance(double p) = 0;
  // i with the probability from shares[i - 1] to shares[i], which ascend; after the last, what is left to 1.
  virtual std::size_t category(std::span<const double> shares) = 0;
  // Whether a loop that is to make `wanted` rounds makes another after `done`.
  virtual bool another(Index done, Index wanted) = 0;

  Index between(Index low, Index high) { return low + below(high - low + 1); }  // both included
  double real(double low, double high) { return low + (high - low) * fraction(); }
};

// SplitMix64: the same numbers with every standard library. Loops make all of their rounds.
class Random final : public Choices {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  Index below(Index n) override { return static_cast<Index>(next() % static_cast<std::uint64_t>(n)); }
  double fraction() override { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double p) override { return fraction() < p; }
  std::size_t category(std::span<const double> shares) override;
  bool another(Index done, Index wanted) override { return done < wanted; }

 private:
  std::uint64_t state_;
};

// Answers written down, a number each; 0 is no, the first of several, the middle of an interval.
using Numbers = std::vector<std::uint64_t>;

// Answers by a list of any numbers, and after its end by zeros.
class ListedChoices final : public Choices {
 public:
  explicit ListedChoices(std::span<const std::uint64_t> numbers) : numbers_(numbers) {}
  Index below(Index n) override { return static_cast<Index>(next() % static_cast<std::uint64_t>(n)); }
  double fraction() override;
  bool chance(double p) override;
  std::size_t category(std::span<const double> shares) override { return next() % (shares.size() + 1); }
  bool another(Index done, Index wanted) override;

 private:
  std::uint64_t next() { return at_ < numbers_.size() ? numbers_[at_++] : 0; }
  std::span<const std::uint64_t> numbers_;
  std::size_t at_ = 0;
};

// Passes on what `source` answers, and writes it down: a ListedChoices of numbers() answers the same.
class RecordedChoices final : public Choices {
 public:
  explicit RecordedChoices(Choices& source) : source_(source) {}
  Index below(Index n) override;
  double fraction() override;
  bool chance(double p) override { return record(source_.chance(p)) != 0; }
  std::size_t category(std::span<const double> shares) override { return record(source_.category(shares)); }
  bool another(Index done, Index wanted) override { return record(source_.another(done, wanted)) != 0; }
  // The numbers without zeros at the end, which say nothing.
  Numbers numbers() const;

 private:
  std::uint64_t record(std::uint64_t answer) {
    numbers_.push_back(answer);
    return answer;
  }
  Choices& source_;
  Numbers numbers_;
};

}  // namespace tilewright::test
