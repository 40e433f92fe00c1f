// Comparison of one whole output against its float64 reference, piece by piece as it is read.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "harness/run/workload.h"

namespace tilewright::lab {

struct OutputCheck {
  std::int64_t elements = 0;
  std::int64_t compared = 0;  // of these with the reference; the others were asked to be written and finite
  double max_rel_err = 0;     // infinity for a NaN, an infinity or a value in the wrong place
  double tolerance = 0;
  std::int64_t worst = 0;           // row-major index of the worst element
  double got = 0, want = 0;         // its values
  std::int64_t wrong = 0;           // elements beyond the tolerance
  std::int64_t unexpected_nan = 0;  // of these, NaN where the reference has none
  std::int64_t unwritten = 0;       // of these, elements that still hold the poison
  std::string vacuous;              // when not empty: why this comparison would accept a wrong output

  bool ok() const { return wrong == 0 && vacuous.empty(); }
};

// The rule: every element's |got − want| / max(|want|, magnitude, smallest normal of the stored type) is at
// most `tolerance(spec.rule)`. Beyond the stored type's largest value the reference is what a store makes of
// it (infinity, or the largest value where the type saturates). NaN matches NaN only, an infinity only
// itself. A comparison that an output of zeros would pass although the reference is not zero, or whose
// tolerance exceeds kVacuousTolerance, is vacuous and fails.
class OutputChecker {
 public:
  // `want` must stay. `poison`: the byte the output was filled with, to tell unwritten elements from
  // wrong ones.
  OutputChecker(const Reference& want, const OutputSpec& spec, std::optional<std::uint8_t> poison = {});
  // The next elements, on all cores. They are widened a few thousand at a time: the check has no copy of
  // them.
  void add(const StoredElements& elements);
  // The check of the elements so far. Where these are not as many as the output has, all are wrong.
  OutputCheck result() const;

  // What all elements share.
  struct Rule {
    double tolerance = 0;
    double normal = 0;   // smallest normal: below it the spacing of a float no longer shrinks with the value
    double largest = 0;  // that the stored type holds; of integers, which have no infinity, that of float64
    DType dtype = DType::f32;
    bool rounds = true;                 // a float type, whose largest value bounds what it can hold
    std::optional<double> poison = {};  // as it reads
  };
  // What is known of a range.
  struct Part {
    OutputCheck check;
    double zero_error = 0;  // the error that an output of zeros would show
    bool all_zero = true;   // whether the reference is, once stored
  };

 private:
  const Reference* want_;
  std::int64_t elements_;  // of the output
  Rule rule_;
  Part all_;
};

// The same of elements that are in memory at once.
OutputCheck check_output(std::span<const double> got, const Reference& want, const OutputSpec& spec,
                         std::optional<std::uint8_t> poison = {});

// "y[3,17]: got 0.5, want 0.25 (error 1, bound 4.8e-06); 1 of 4096 elements are wrong"; empty when ok.
std::string describe(const OutputCheck& check, const OutputSpec& spec);

// The value that memory filled with `byte` reads as.
double poison_value(DType dtype, std::uint8_t byte);

}  // namespace tilewright::lab
