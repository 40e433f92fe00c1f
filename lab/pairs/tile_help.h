// What hand-written kernels of several pairs share: narrow types are computed in f32.
#pragma once

#include <tilewright/tile/builder.h>

namespace tilewright::lab {

inline tile::Value widen(tile::Builder& k, const tile::Value& v) {
  return is_narrow_float(v.dtype()) ? k.cast(v, DType::f32) : v;
}
inline tile::Value narrow(tile::Builder& k, const tile::Value& v, DType dtype) {
  return v.dtype() == dtype ? v : k.cast(v, dtype);
}

}  // namespace tilewright::lab
