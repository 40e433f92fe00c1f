// Attention and its gradients in float64, with what they may be off by.
#pragma once

#include "pairs/attention_reference.h"

namespace tilewright::lab {

// References of y, dq, dk, dv from inputs q, k, v, dy with as many heads of k as of q. `scale` is that of
// every output.
std::vector<Reference> attention_gradient_reference(const HostArrays& in, const AttentionSizes& s,
                                                    const SeenKeys& seen, const ErrorScale& scale,
                                                    ThreadPool& pool);

}  // namespace tilewright::lab
