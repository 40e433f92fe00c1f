// The bounds of rounding error analysis.
#include "harness/stats/tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::lab {

double gamma_bound(double m, double u) {
  return m * u < 1 ? m * u / (1 - m * u) : std::numeric_limits<double>::infinity();
}

double gamma_probable(double m, double u, double lambda) {
  return std::expm1(lambda * std::sqrt(m) * u + m * u * u / (1 - u));
}

double reduction_chain(std::int64_t n) {
  if (n <= 1) return 0;
  const double terms = static_cast<double>(n);
  return std::min(terms - 1, std::ceil(2 * std::sqrt(terms)));
}

ToleranceParts tolerance_parts(const ToleranceRule& rule, std::int64_t elements) {
  if (rule.kind == ToleranceRule::Kind::exact || !is_float(rule.storage)) return {};
  constexpr double kFailure = 1e-6;  // of the whole output, shared among its elements
  const double u = unit_roundoff(rule.compute.value_or(compute_dtype(rule.storage)));
  const double lambda =
      std::sqrt(2 * std::log(2 * static_cast<double>(std::max<std::int64_t>(elements, 1)) / kFailure));
  const double m = rule.operations + reduction_chain(rule.reduction);
  const double k = rule.storage_roundings, u_storage = unit_roundoff(rule.storage);
  // Cut off or rounded, always to one side or not: the worst of each product.
  const double operands = (2 + rule.operand_roundoff) * rule.operand_roundoff;
  const double probable = gamma_probable(m, u, lambda) + operands;
  return {.storage = gamma_bound(k, u_storage),
          .compute = std::min(gamma_bound(m, u) + operands, probable),
          .probable_storage = gamma_probable(k, u_storage, lambda),
          .probable_compute = probable};
}

double tolerance(const ToleranceRule& rule, std::int64_t elements) {
  const ToleranceParts parts = tolerance_parts(rule, elements);
  return parts.storage + parts.compute;
}

}  // namespace tilewright::lab
