#include "backends/cpu/text/amount.h"

namespace tilewright::cpu {

Sum& Sum::add(const Amount& term, const Amount& factor) {
  if (factor.is(0) || term.is(0)) return *this;
  const Amount product = factor.is(1) ? term
                         : term.is(1) ? factor
                                      : Amount::expression(term.factor() + " * " + factor.factor());
  total_ = total_.is(0) ? product : Amount::expression(total_.str() + " + " + product.str());
  return *this;
}

}  // namespace tilewright::cpu
