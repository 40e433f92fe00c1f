// x^y of f32 lanes, as 2^(y log2 |x|) in f64.
#pragma once
#include "tw_cpu/split.h"

namespace tw {

// Relative error 2^-33 on [-1/4, 1/2): y log2 |x| is below 150 where the result is finite.
TW_INLINE vf64 log2_in_f64(vf32 magnitude) {
  const Split s = split(magnitude);
  const vf64 f = convert<vf64>(s.f);
  const vf64 p =
      polynomial(f, vf64(1.442695040994546), -0.7213475168561526, 0.480898282226824, -0.36067435935366694,
                 0.28854602343551885, -0.2404282176335788, 0.20582039537989932, -0.1803146338683256,
                 0.16465712761226882, -0.1528702912530539, 0.1155030996912019, -0.044954122187175643);
  return mad(f, p, convert<vf64>(s.e));
}

// Relative error 2^-29. The clamps lie beyond f32's range: the conversion gives 0, subnormals and infinity.
TW_INLINE vf32 exp2_of_f64(vf64 x) {
  x = at_least(at_most(x, vf64(200.0)), vf64(-200.0));
  const vf64 shifted = x + 0x1.8p52;
  const vf64 r = x - (shifted - 0x1.8p52);
  const vf64 p = polynomial(r, vf64(1.0), 0.6931472028550386, 0.24022647913641351, 0.05550332471171183,
                            0.009618437356055095, 0.001339887440107399, 0.00015353362374345074);
  return convert<vf32>(p * bits_as<vf64>((bits_as<vi64>(shifted) + 1023) << 52));
}

TW_INLINE vf32 pow(vf32 x, vf32 y) {
  const f32 infinity = __builtin_inff();
  const vf32 magnitude = abs(x), large = abs(y);
  vf32 result = exp2_of_f64(convert<vf64>(y) * log2_in_f64(magnitude));
  // From 2^23 on every y is whole, from 2^24 on even; smaller ones fit i32.
  const vf32 small = at_most(large, vf32(0x1p24f));
  const vi32 whole = convert<vi32>(number_or_zero(small));
  const vmask is_whole = (convert<vf32>(whole) == large) | (large >= vf32(0x1p24f));
  const vmask negative = bits_as<vi32>(x) < 0;
  const vmask undefined = (x < vf32(0.f)) & (magnitude < vf32(infinity)) & ~is_whole;
  result = select(undefined, vf32(__builtin_nanf("")), result);
  result = select((y == vf32(0.f)) | ((magnitude == vf32(1.f)) & (~negative | is_whole)), vf32(1.f), result);
  const vmask odd = is_whole & ((whole & 1) != 0);
  return odd & negative ? -result : result;
}

}  // namespace tw
