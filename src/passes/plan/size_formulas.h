// SizeFormulas: numbers of a program as functions of its sizes, found from the numbers at several sizes.
//
// A number is a polynomial of the sizes of degree two at most (extents, strides, offsets, elements), or made
// of one: blocks that cover it (ceil(u / 64)), steps that fit behind a start (ceil((u - 1) / 2), a slice's),
// or a float, such as a mean's reciprocal and what its derivative and a step make of it (float_formula.h).
// Each formula gives what was lowered at every sample; where two that do so differ between the samples, one
// more sample decides. Whether a formula that is found holds between them is the caller's to see to
// (tensor/size_range.h).
#pragma once

#include "passes/plan/float_formula.h"
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
  struct Found;
  static Found found(const std::vector<SizeSample>& samples);

  // The numbers at these sizes.
  std::vector<std::int64_t> at(std::span<const Index> sizes) const;

 private:
  struct Polynomial {
    std::size_t number = 0;
    std::vector<std::int64_t> factors;  // of terms()
  };
  // Blocks or steps that cover a number that is a polynomial.
  struct Blocks {
    std::size_t number = 0, of = 0;
    std::int64_t block = 1, times = 1;
    std::int64_t start = 0;  // what of the number lies before the first
    std::int64_t from(std::int64_t u) const;
  };
  struct Float {
    std::size_t number = 0;
    FloatFormula formula;
  };
  class Search;

  std::vector<std::int64_t> terms(std::span<const Index> sizes, int degree) const;
  std::int64_t value(const Polynomial& p, std::span<const Index> sizes) const;

  std::vector<Index> origin_;            // sizes are counted from here, which keeps terms small
  std::vector<std::int64_t> constants_;  // every number at the first sample: most never differ
  std::vector<Polynomial> polynomials_;
  std::vector<Blocks> blocks_;
  std::vector<Float> floats_;
};

struct SizeFormulas::Found {
  Result<SizeFormulas> formulas;  // a Failure names the number that has none
  std::vector<Index> apart;       // where two formulas are right so far: sizes at which they differ
};

}  // namespace tilewright::passes
