// Every pair of the lab. To add one: a folder with its file, a line here, a line in pairs.cpp.
#pragma once

#include "harness/run/workload.h"

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
Pair linear_cross_entropy_pair();
Pair gemm_pair();
Pair gemm_batched_pair();
Pair gemm_bias_gelu_pair();
Pair gemm_fp8_pair();
Pair gemm_int4_pair();
Pair grouped_gemm_pair();
Pair gemv_pair();
Pair swiglu_mlp_pair();
Pair attention_pair();
Pair attention_window_pair();
Pair attention_documents_pair();
Pair attention_decode_pair();
Pair attention_gradient_pair();
Pair gpt2_block_pair();

std::vector<Pair> all_pairs();

// quick: each kind of work once, small enough for a minute and a half on two cores. products: every pair
// around matrix products, smaller still.
std::vector<Suite> all_suites();

}  // namespace tilewright::lab
