// The suites. The list of pairs stands in CMakeLists.txt.
#include "pairs/pairs.h"

namespace tilewright::lab {

std::vector<Suite> all_suites() {
  // Past the last-level cache still, but no more than that needs.
  return {{.name = "quick",
           .doc = "each kind of work once, in at most 90 s on two cores",
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
                       {"gemm", {"shape=1024x1024x1024"}},
                       {"attention", {"queries=512", "keys=512"}},
                       {"gpt2_block", {"time=512"}}}},
          {.name = "products",
           .doc = "every pair around matrix products, at sizes that suit any machine",
           .entries = {{"gemm", {"shape=512x512x512", "b_order=rows,columns"}},
                       {"gemm_batched", {"shape=12x256x256x64", "form=one_by_one,batched,strided"}},
                       {"gemm_bias_gelu", {"shape=512x512x512"}},
                       {"gemm_fp8", {"shape=512x512x512", "scaling=tensor,row,block"}},
                       {"gemm_int4", {"shape=1x512x512,64x512x512", "bits=4,8"}},
                       {"gemv", {"k=1024", "n=1024"}},
                       {"grouped_gemm", {"rows=512", "n=256", "k=128"}},
                       {"swiglu_mlp", {"rows=128", "width=256", "hidden=512"}},
                       {"linear_cross_entropy", {"rows=256", "classes=2048", "depth=320"}},
                       {"attention", {"heads=4", "queries=256", "causal=no,yes"}},
                       {"attention_window", {"length=1024", "window=128,0"}},
                       {"attention_documents", {"length=1024"}},
                       {"attention_decode", {"batch=2", "heads=8", "kv_heads=2", "keys=1024"}},
                       {"attention_gradient", {"length=256"}}}}};
}

}  // namespace tilewright::lab
