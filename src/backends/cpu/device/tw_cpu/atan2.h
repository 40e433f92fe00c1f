// atan2 of f32 lanes: the angle of (x, y). Polynomial: minimax with f32 coefficients (Sollya's fpminimax).
#pragma once
#include "tw_cpu/core.h"

namespace tw {

TW_INLINE vf32 atan2(vf32 y, vf32 x) {
  const vf32 across = abs(x), up = abs(y);
  const vf32 least = min(across, up), most = max(across, up);
  // 0/0 is 0 and infinity/infinity 1 here, as C's atan2 has it.
  const vf32 tangent = select(least == most, select(most == vf32(0.f), most, vf32(1.f)), least / most);
  const vf32 square = tangent * tangent;
  const vf32 p = polynomial(square, vf32(-0.33333153f), 0.19993769f, -0.14211023f, 0.1066588f, -0.075519517f,
                            0.04320876f, -0.016366003f, 0.0029202034f);
  vf32 angle = mad(tangent * square, p, tangent);
  angle = select(up > across, 0x1.921fb6p+0f - angle, angle);
  angle = select(bits_as<vi32>(x) < 0, 0x1.921fb6p+1f - angle, angle);
  return with_sign(select(ne(least, least), least, angle), y);
}

}  // namespace tw
