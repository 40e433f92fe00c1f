// Comparison of one whole output against its float64 reference.
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
// itself. `poison`: the byte the output was filled with, to tell unwritten elements from wrong ones. A
// comparison that an output of zeros would pass although the reference is not zero, or whose tolerance
// exceeds kVacuousTolerance, is vacuous and fails.
OutputCheck check_output(std::span<const double> got, const Reference& want, const OutputSpec& spec,
                         std::optional<std::uint8_t> poison = {});

// "y[3,17]: got 0.5, want 0.25 (error 1, bound 4.8e-06); 1 of 4096 elements are wrong"; empty when ok.
std::string describe(const OutputCheck& check, const OutputSpec& spec);

// The value that memory filled with `byte` reads as.
double poison_value(DType dtype, std::uint8_t byte);

}  // namespace tilewright::lab
