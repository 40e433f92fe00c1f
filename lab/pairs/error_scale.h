// The magnitude of an element whose roundings are of two sizes: values stored on the way are about as large
// as the result, while a sum of k products is formed from terms that are √k times as large. One magnitude for
// both would let a product in bf16 be wrong by √k roundings.
#pragma once

#include "harness/tolerance.h"

namespace tilewright::lab {

class ErrorScale {
 public:
  // `rule` states one rounding to storage: the pair counts them in what it passes as `stored`.
  ErrorScale(const ToleranceRule& rule, std::int64_t elements) {
    const ToleranceParts parts = tolerance_parts(rule, elements);
    storage_ = parts.storage / (parts.storage + parts.compute);
  }
  // `stored`: what roundings to storage are relative to, added up over these roundings. `computed`: the same
  // of the type computed in. Times tolerance(rule) it is the bound of both; linear, so that weights of a
  // further sum may be weighed instead of its result.
  double operator()(double stored, double computed) const {
    return storage_ * stored + (1 - storage_) * computed;
  }

 private:
  double storage_ = 0;  // share of the tolerance
};

}  // namespace tilewright::lab
