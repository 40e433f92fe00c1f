// The magnitude of an element whose roundings are of two sizes: values stored on the way are about as large
// as the result, while a sum of k products is formed from terms that are √k times as large. One magnitude for
// both would let a product in bf16 be wrong by √k roundings.
#pragma once

#include <cmath>

#include "harness/stats/tolerance.h"

namespace tilewright::lab {

class ErrorScale {
 public:
  // `rule` states one rounding to storage: the pair counts them in what it passes as `stored`.
  ErrorScale(const ToleranceRule& rule, std::int64_t elements)
      : parts_(tolerance_parts(rule, elements)), tolerance_(parts_.storage + parts_.compute) {}

  // `stored`: what roundings to storage are relative to, added up over these roundings. `computed`: the same
  // of the type computed in. Times the tolerance it is the bound of both.
  double operator()(double stored, double computed) const {
    return (parts_.storage * stored + parts_.compute * computed) / tolerance_;
  }
  // An error that is known as such.
  double of(double error) const { return error / tolerance_; }
  // The other way round: what such a scale stands for.
  double error(double scale) const { return scale * tolerance_; }
  // The same for one term of a further sum, whose terms err independently: the scale of the sum's error is
  // the root of Σ (term(…) · factor)².
  double term(double stored, double computed) const {
    return std::hypot(parts_.probable_storage * stored, parts_.probable_compute * computed) / tolerance_;
  }

 private:
  ToleranceParts parts_;
  double tolerance_;
};

}  // namespace tilewright::lab
