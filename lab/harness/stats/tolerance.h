// How far a correct program may be from the float64 reference: derived from types, reduction length and
// operation count, never typed in by hand.
#pragma once

#include <tilewright/base/dtype.h>

#include <cstdint>
#include <optional>

namespace tilewright::lab {

// What the bound follows from. The pair states it once, for every contender alike.
struct ToleranceRule {
  DType storage = DType::f32;  // type the output is stored in
  std::int64_t reduction = 1;  // terms of the longest reduction behind one output element
  int operations = 1;         // rounded operations beside it on the longest path; a library function counts 4
  int storage_roundings = 1;  // values rounded to `storage` on that path: eager code stores each intermediate
  double operand_roundoff =
      0;  // of the factors of its products, where they lose more than `compute` does (tf32)
  std::optional<DType> compute{};  // type computed in, when it is not compute_dtype(storage)
  // For copies, gathers, comparisons and integers: every element equal. The fields above but `storage` do not
  // count.
  enum class Kind { rounded, exact } kind = Kind::rounded;
};

// Worst relative error of m rounded operations in unit roundoff u: γ_m = m u / (1 − m u).
// N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002, Lemma 3.1.
double gamma_bound(double m, double u);

// The same with probability at least 1 − 2 exp(−λ² (1−u)² / 2): exp(λ √m u + m u² / (1−u)) − 1.
// N. J. Higham and T. Mary, A New Approach to Probabilistic Rounding Error Analysis, SIAM J. Sci. Comput.
// 41(5), 2019, Theorem 2.4.
double gamma_probable(double m, double u, double lambda);

// The longest chain of additions a reduction of n terms may need: n − 1 for short ones; for long ones 2 √n,
// the best of blocked summation (P. Blanchard, N. J. Higham, T. Mary, A Class of Fast and Accurate Summation
// Algorithms, SIAM J. Sci. Comput. 42(3), 2020). Adding a million terms one by one in f32 is a loss of
// accuracy, not a licence.
double reduction_chain(std::int64_t n);

// The bound on |got − want| / max(|want|, magnitude, smallest normal) for an output of `elements` elements:
//   γ_k(u_storage) + min(γ_m, γ̃_m)(u_compute) + (1 + u_operand)² - 1,
//   k = storage_roundings,  m = operations + reduction_chain(reduction)
// with λ such that a correct program exceeds it anywhere in the output with probability below 10⁻⁶.
double tolerance(const ToleranceRule& rule, std::int64_t elements);

// Its two terms: for references that know that what is stored on the way is smaller than what is summed.
struct ToleranceParts {
  double storage = 0, compute = 0;
  // The probable bounds of both, which hold for a root of squares too: Σ cᵢ δᵢ of independent roundings δᵢ is
  // below λ u √(Σ cᵢ²) (Hoeffding's inequality, on which theirs rests).
  double probable_storage = 0, probable_compute = 0;
};
ToleranceParts tolerance_parts(const ToleranceRule& rule, std::int64_t elements);

// A bound above this accepts nearly anything; the harness refuses to verify with it.
inline constexpr double kVacuousTolerance = 0.5;

}  // namespace tilewright::lab
