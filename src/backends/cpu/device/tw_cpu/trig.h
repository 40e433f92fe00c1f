// What sin, cos and tan of f32 lanes share: subtracting multiples of π, and the lanes too large for that.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

constexpr i32 kSignBit = (i32)0x80000000;

// Up to here n·π with three parts of π is good to the last bit; lanes beyond it go to the C library, one by
// one.
constexpr f32 kLargestReduced = 0x1p17f;

template <f32 (*Function)(f32)>
TW_COLD vf32 redo_large_lanes(vf32 x, vf32 result) {
  for (int lane = 0; lane < TW_LANES; ++lane)
    if (!(__builtin_fabsf(x[lane]) <= kLargestReduced)) result[lane] = Function(x[lane]);
  return result;
}

// x - n · unit · π; n · unit · the first part of π leaves an exact difference (Cody and Waite).
TW_INLINE vf32 subtract_pi(vf32 x, vf32 n, f32 unit) {
  return fma(n, vf32(unit * 0x1.ee59dap-49f),
             fma(n, vf32(unit * 0x1.777a5cp-24f), fma(n, vf32(unit * -0x1.921fb6p+1f), x)));
}

// sin r on [-π/2, π/2] to relative error 2^-27, its sign flipped where `flip` has the sign bit. Never beyond
// ±1, which rounding alone would allow; clamped last, because the compiler finds no min and max under the
// flip.
TW_INLINE vf32 sin_flipped(vf32 r, vi32 flip) {
  const vf32 square = r * r;
  const vf32 p = polynomial(square, vf32(-0.1666666f), 0.0083330665f, -0.00019809435f, 2.6051127e-06f);
  const vf32 flipped = bits_as<vf32>(bits_as<vi32>(mad(r * square, p, r)) ^ flip);
  return at_least(at_most(flipped, vf32(1.f)), vf32(-1.f));
}

}  // namespace tw
