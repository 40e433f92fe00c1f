// FloatFormula: a float of a program as a function of counts, which are integers that follow its sizes.
//
// What folding leaves of a mean, a variance and their gradients: a count or its reciprocal, multiplied with
// and divided by constants of the program, and rounded after each step as fold_constants() rounds. The count
// need not be a number of the program itself: of a sum that was fused away nothing tells how many elements
// there were, so it is looked for as `times * a * b + more` of integers that are.
#pragma once

#include <tilewright/base/dtype.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tilewright::passes {

struct FloatFormula {
  struct Step {
    double by = 1;
    bool divides = false;
  };
  std::size_t of = 0;                 // the number that the count is made of
  std::optional<std::size_t> and_of;  // where it is made of two
  std::int64_t times = 1, more = 0;
  bool reciprocal = false;
  double scale = 1;  // a power of two, which rounds nothing, and the sign
  std::vector<Step> steps;
  DType dtype = DType::f32;    // of the number
  DType rounded = DType::f32;  // of what was folded: f32, or `dtype`

  // The number's bits where the numbers it is made of are these; `b` is not read where it is made of one.
  std::int64_t bits_at(std::int64_t a, std::int64_t b) const;
};

// An integer of a program, at each sample.
struct Count {
  std::size_t of = 0;
  std::optional<std::size_t> and_of;
  std::vector<std::int64_t> values;
};

// All formulas that give a float its bits at each sample, those of fewer steps first. `counts` are the
// integers that follow the sizes, `constants` the program's floats that do not.
std::vector<FloatFormula> float_formulas(DType dtype, const std::vector<std::int64_t>& bits,
                                         const std::vector<Count>& counts,
                                         const std::vector<double>& constants);

}  // namespace tilewright::passes
