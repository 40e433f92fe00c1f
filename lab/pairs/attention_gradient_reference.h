// Attention and its gradients in float64, with what they may be off by.
#pragma once

#include "pairs/attention_reference.h"

namespace tilewright::lab {

// Of inputs q, k, v and dy, as many heads of k as of q: y, dq, dk, dv. `scale` is theirs: one rule for all.
std::vector<Reference> attention_gradient_reference(const HostArrays& in, const AttentionSizes& s,
                                                    const SeenKeys& seen, const ErrorScale& scale,
                                                    ThreadPool& pool);

}  // namespace tilewright::lab
