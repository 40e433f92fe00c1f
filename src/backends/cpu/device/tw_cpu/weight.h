// e^x of f32 lanes as weights of a row: those next to the largest, which is 1.
#pragma once
#include "tw_cpu/exp.h"
#include "tw_cpu/masked.h"

namespace tw {

// e^x, and 0 where that would be subnormal: such weights are nothing beside the largest, but a multiplication
// by one of them takes a processor's slow path (docs/notes/2026-11-29-products-where-they-lie.md).
TW_INLINE vf32 exp_weight(vf32 x) {
  const vmask is_nothing = x < vf32(-87.3365f);  // e^x = 2^-126; not of NaN
#ifdef TW_AVX512
  return exp_of_lanes(x, mask_bits(~is_nothing));
#else
  return select(is_nothing, vf32(0.f), exp(x));
#endif
}

}  // namespace tw
