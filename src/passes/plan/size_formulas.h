// SizeFormulas: numbers of a program as functions of its sizes, found from the numbers at several sizes.
//
// A number is a polynomial of the sizes of degree two at most (extents, strides, offsets, elements), or made
// of one: blocks that cover it (ceil(u / 64)), steps that fit behind a start (ceil((u - 1) / 2), a slice's),
// its value or its reciprocal as a float (a mean's), or twice that, or less than 0 (its derivative's). Each
// formula gives what was lowered at every sample; where two that do so differ between the samples, there is
// none. Whether a formula that is found holds between them is the caller's to see to (tensor/size_range.h).
#pragma once

#include "passes/plan/plan_numbers.h"

#include <tilewright/base/error.h>
#include <tilewright/base/shape.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tilewright::passes {

struct SizeSample {
  std::vector<Index> sizes;
  std::vector<PlanNumber> numbers;  // of the same types at each sample
};

class SizeFormulas {
 public:
  // A Failure names the number that has none.
  static Result<SizeFormulas> found(const std::vector<SizeSample>& samples);

  // The numbers at these sizes.
  std::vector<std::int64_t> at(std::span<const Index> sizes) const;

 private:
  struct Polynomial {
    std::size_t number = 0;
    std::vector<std::int64_t> factors;  // of terms()
  };
  // What is made of a number that is a polynomial.
  struct Derived {
    enum class Kind : std::uint8_t { blocks, value, reciprocal };
    Kind kind = Kind::blocks;
    std::size_t number = 0, of = 0;
    std::int64_t block = 1, times = 1;
    std::int64_t start = 0;  // blocks: what of the number lies before the first
    DType dtype = DType::i64;
    DType rounded = DType::i64;  // what a float was of before it was one of `dtype`: f32, or `dtype`
    std::int64_t from(std::int64_t u) const;
    std::int64_t bits_of(double v) const;
  };
  class Search;

  std::vector<std::int64_t> terms(std::span<const Index> sizes, int degree) const;
  std::int64_t value(const Polynomial& p, std::span<const Index> sizes) const;

  std::vector<Index> origin_;            // sizes are counted from here, which keeps terms small
  std::vector<std::int64_t> constants_;  // every number at the first sample: most never differ
  std::vector<Polynomial> polynomials_;
  std::vector<Derived> derived_;
};

}  // namespace tilewright::passes
