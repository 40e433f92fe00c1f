// The float64 reference of gpt2_block: plain loops and a plain matrix product.
#pragma once

#include "harness/workload.h"
#include "pairs/host_rows.h"

namespace tilewright::lab {

struct GptSizes {
  Index batch, time, channels, heads, vocabulary;
};

// `in` as the pair lists its inputs; loss, then logits (B, T, V).
std::vector<Reference> gpt2_reference(const HostArrays& in, const GptSizes& sizes, ThreadPool& pool);

}  // namespace tilewright::lab
