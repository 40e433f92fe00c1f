// The lists.
#include "pairs/pairs.h"

namespace tilewright::lab {

std::vector<Pair> all_pairs() {
  return {copy_pair(),          sum_pair(),
          transpose_pair(),     embedding_pair(),
          elu_pair(),           sincos10_pair(),
          softmax_pair(),       layernorm_gelu_pair(),
          add_rmsnorm_pair(),   dropout_add_layernorm_pair(),
          cross_entropy_pair(), gpt2_block_pair()};
}

std::vector<Suite> all_suites() {
  return {{.name = "quick",
           .doc = "every pair once, in at most 90 s on two cores",
           .entries = {{"elu"}, {"softmax"}}}};
}

}  // namespace tilewright::lab
