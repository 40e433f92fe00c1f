// Large products without a reference of their own: Freivalds' check ("Probabilistic machines can use less
// running time", 1977). C x is compared with A (B x) for a random x of ±1: m n + k (m + n) operations see
// every element of C.
#pragma once

#include "support/matmul_kernels.h"
#include "support/parity.h"

namespace tilewright::test {

// Runs the product of uniform random operands and checks all of its rows. `product` has one batch, no gaps
// and nothing around the product; f16, bf16 or f32 operands and a float result. Empty when each row is within
// what rounding allows, else what differs. A right product fails with a probability below 1e-12: each row's
// difference is a sum of its elements' errors under random signs that do not depend on them (Hoeffding's
// inequality), and an element's error is at most its rounding and γ_k |A| |B|, of which Cauchy-Schwarz gives
// the row's norm. A row fails whose elements are wrong by more than that: for f32 results and k in the
// hundreds, one element that is wrong by its own size; for 16-bit results, some tens of them.
std::string check_large_product(const tile::samples::MatmulKernel& product, const RunOnBackend& backend,
                                std::uint64_t seed = 1);

}  // namespace tilewright::test
