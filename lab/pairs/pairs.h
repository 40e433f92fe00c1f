// Every pair of the lab. To add one: a folder with its file, a line here, a line in pairs.cpp.
#pragma once

#include "harness/workload.h"

namespace tilewright::lab {

Pair copy_pair();
Pair sum_pair();
Pair transpose_pair();
Pair embedding_pair();
Pair elu_pair();
Pair sincos10_pair();
Pair softmax_pair();
Pair layernorm_gelu_pair();
Pair add_rmsnorm_pair();
Pair dropout_add_layernorm_pair();
Pair cross_entropy_pair();
Pair gpt2_block_pair();

std::vector<Pair> all_pairs();

// quick: everything once, small enough for a minute and a half on two cores.
std::vector<Suite> all_suites();

}  // namespace tilewright::lab
