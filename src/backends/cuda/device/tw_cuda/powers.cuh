// A row's maximum and its sum of powers below it, exchanged together.
#pragma once

#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/math.cuh"

namespace tw {

// A row's maximum m and its sum s of e^(x - m), from those of each warp, by its own maximum; after the
// barrier.
template <int kParts>
TW_DEVICE void take_powers(float& m, float& s, const float (&ms)[1][kParts], const float (&ss)[1][kParts]) {
  m = take_part<Max>(ms[0]);
  float sum = 0.f;
  if constexpr (kParts <= 4) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) sum += ss[0][i] * exp(ms[0][i] - m);
    s = sum;
  } else {
    constexpr int kLanes = detail::pow2_above<kParts>;
#pragma unroll
    for (int i = 0; i < kParts; i += 32) {
      const int from = i + int(threadIdx.x) % kLanes;
      if (kParts % kLanes == 0 || from < kParts) sum += ss[0][from] * exp(ms[0][from] - m);
    }
    s = warp_reduce<Sum, kLanes>(sum);
  }
}
// What a warp subtracts before it knows the row's maximum: with nothing but -inf its powers are 0.
TW_DEVICE float below_own(float m) { return m == -infinity() ? 0.f : m; }

}  // namespace tw
