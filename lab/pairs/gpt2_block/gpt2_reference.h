// The float64 reference of gpt2_block: plain loops and a plain matrix product.
#pragma once

#include "harness/run/workload.h"
#include "pairs/error_scale.h"
#include "pairs/host_rows.h"

namespace tilewright::lab {

struct GptSizes {
  Index batch, time, channels, heads, vocabulary;
};

// How the outputs' errors are measured: each by its own rule.
struct GptScales {
  ErrorScale loss, logits;
};

// `in` as the pair lists its inputs; loss, then logits (B, T, V).
std::vector<Reference> gpt2_reference(const HostArrays& in, const GptSizes& sizes, const GptScales& scales,
                                      ThreadPool& pool);

}  // namespace tilewright::lab
