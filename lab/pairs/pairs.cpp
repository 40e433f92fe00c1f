// The lists.
#include "pairs/pairs.h"

namespace tilewright::lab {

std::vector<Pair> all_pairs() { return {elu_pair(), softmax_pair()}; }

std::vector<Suite> all_suites() {
  return {{.name = "quick",
           .doc = "every pair once, in at most 90 s on two cores",
           .entries = {{"elu"}, {"softmax"}}}};
}

}  // namespace tilewright::lab
