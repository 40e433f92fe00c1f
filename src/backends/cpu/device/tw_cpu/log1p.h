// log(1 + x) of f32 lanes.
#pragma once
#include "tw_cpu/log.h"

namespace tw {

// u = 1 + x rounded, c what the rounding lost (Knuth's TwoSum): log(u) with c carried into f.
TW_INLINE vf32 log1p(vf32 x) {
  const vf32 u = x + 1.f;
  const vf32 back = u - 1.f;
  const vf32 lost = (x - back) + (1.f - (u - back));
  Split s = split(u);
  const vi32 exponent = convert<vi32>(at_least(at_most(number_or_zero(s.e), vf32(126.f)), vf32(-126.f)));
  s.f = mad(lost, bits_as<vf32>((127 - exponent) << 23), s.f);
  const vmask itself =
      (x == vf32(0.f)) | (x == vf32(__builtin_inff()));  // keeps -0; infinity lost to infinity - infinity
  return select(itself, x, log_of(s));
}

}  // namespace tw
