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
  // Past the last-level cache still, but no more than that needs.
  return {{.name = "quick",
           .doc = "every pair once, in at most 90 s on two cores",
           .entries = {{"copy"},
                       {"sum"},
                       {"transpose"},
                       {"embedding", {"rows=16384", "tokens=16384"}},
                       {"elu"},
                       {"sincos10"},
                       {"softmax", {"elements=2^24"}},
                       {"layernorm_gelu", {"rows=4096"}},
                       {"add_rmsnorm", {"rows=4096"}},
                       {"dropout_add_layernorm", {"rows=4096"}},
                       {"cross_entropy", {"rows=512"}},
                       {"gpt2_block", {"time=512"}}}}};
}

}  // namespace tilewright::lab
