// Conversions between all element types, rounding as the tile IR says: to nearest even; f16 and bf16 overflow
// to infinity; fp8 saturates; float → integer truncates and saturates, NaN gives 0; integers wrap.
#pragma once

#include "tw_cuda/types.cuh"

namespace tw {

// ---- narrow float → f32, exact
// -------------------------------------------------------------------------------------
TW_DEVICE float to_f32(bf16 x) { return bits_to_f32(u32(x.bits) << 16); }
TW_DEVICE float to_f32(f16 x) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x.bits));
  return out;
}
// e5m2 is f16 without its low byte.
TW_DEVICE float to_f32(f8e5m2 x) { return to_f32(f16{u16(x.bits << 8)}); }
// Exponent and mantissa moved into f32's fields, then rescaled by the difference of the biases: exact,
// subnormals included.
TW_DEVICE float to_f32(f8e4m3 x) {
  const u32 magnitude = x.bits & 0x7fu;
  const u32 sign = u32(x.bits & 0x80u) << 24;
  const float value = bits_to_f32(magnitude << 20) * 0x1p120f;  // 127 - 7 = 120
  return bits_to_f32((magnitude == 0x7fu ? 0x7fffffffu : f32_to_bits(value)) | sign);
}

// Two at once from one word, low half first.
TW_DEVICE Vec<float, 2> unpack_bf16x2(u32 word) {
  return {{bits_to_f32(word << 16), bits_to_f32(word & 0xffff0000u)}};
}
TW_DEVICE Vec<float, 2> unpack_f16x2(u32 word) {
  Vec<float, 2> out;
  asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %2; cvt.f32.f16 %0, lo; cvt.f32.f16 %1, hi; }"
      : "=f"(out.v[0]), "=f"(out.v[1])
      : "r"(word));
  return out;
}
TW_DEVICE Vec<float, 2> unpack_e5m2x2(u16 pair) {
  return unpack_f16x2(((pair & 0xffu) << 8) | (u32(pair & 0xff00u) << 16));
}
TW_DEVICE Vec<float, 2> unpack_e4m3x2(u16 pair) {
#if __CUDA_ARCH__ >= 890
  u32 halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
  return unpack_f16x2(halves);
#else
  return {{to_f32(f8e4m3{u8(pair)}), to_f32(f8e4m3{u8(pair >> 8)})}};
#endif
}

// ---- f32 → narrow float
// --------------------------------------------------------------------------------------------
TW_DEVICE u32 pack_bf16x2(float low, float high) {
  u32 out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
TW_DEVICE u32 pack_f16x2(float low, float high) {
  u32 out;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}

// Rounds a magnitude to `kMantissa` bits and a smallest exponent of 1 - kBias, ties to even; for GPUs without
// fp8.
template <int kMantissa, int kBias, u32 kMaxFinite>
TW_DEVICE u8 round_to_f8(float x) {
  const u32 bits = f32_to_bits(x);
  const u8 sign = u8((bits >> 24) & 0x80u);
  const u32 magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7fu;  // NaN
  constexpr u32 kMinNormal = u32(127 + 1 - kBias) << 23;
  u32 out;
  if (magnitude < kMinNormal) {
    // One f32 addition rounds at the right bit: the sum's last place is the format's smallest subnormal.
    constexpr u32 kMagicExponent = u32(127 + 1 - kBias - kMantissa + 23) << 23;
    out = f32_to_bits(bits_to_f32(magnitude) + bits_to_f32(kMagicExponent)) - kMagicExponent;
  } else {
    constexpr int kDrop = 23 - kMantissa;
    const u32 rounded = magnitude + ((1u << (kDrop - 1)) - 1u) + ((magnitude >> kDrop) & 1u);
    out = (rounded >> kDrop) - (u32(127 - kBias) << kMantissa);
  }
  return sign | u8(out > kMaxFinite ? kMaxFinite : out);
}
TW_DEVICE u8 soft_e4m3(float x) { return round_to_f8<3, 7, 0x7eu>(x); }
TW_DEVICE u8 soft_e5m2(float x) { return round_to_f8<2, 15, 0x7bu>(x); }

TW_DEVICE u16 pack_e4m3x2(float low, float high) {
#if __CUDA_ARCH__ >= 890
  u16 out;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(out) : "f"(high), "f"(low));
  return out;
#else
  return u16(soft_e4m3(low) | (u32(soft_e4m3(high)) << 8));
#endif
}
TW_DEVICE u16 pack_e5m2x2(float low, float high) {
#if __CUDA_ARCH__ >= 890
  u16 out;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(out) : "f"(high), "f"(low));
  return out;
#else
  return u16(soft_e5m2(low) | (u32(soft_e5m2(high)) << 8));
#endif
}

TW_DEVICE void from_f32(float x, bf16& out) { out.bits = u16(pack_bf16x2(x, 0.f)); }
TW_DEVICE void from_f32(float x, f16& out) { out.bits = u16(pack_f16x2(x, 0.f)); }
TW_DEVICE void from_f32(float x, f8e4m3& out) { out.bits = u8(pack_e4m3x2(x, 0.f)); }
TW_DEVICE void from_f32(float x, f8e5m2& out) { out.bits = u8(pack_e5m2x2(x, 0.f)); }

// ---- wide values → narrow float without rounding twice
// --------------------------------------------------------------- f32 rounded to odd: toward zero, and an
// inexact result gets its last bit set. It keeps enough for one more rounding to 16 bits or fewer to come out
// as if from the wide value.
TW_DEVICE float to_f32_odd(f64 x) {
  const float toward_zero = __double2float_rz(x);
  return f64(toward_zero) == x ? toward_zero : bits_to_f32(f32_to_bits(toward_zero) | 1u);
}
TW_DEVICE float to_f32_odd(i64 x) {
  const float toward_zero = __ll2float_rz(x);
  return __float2ll_rz(toward_zero) == x ? toward_zero : bits_to_f32(f32_to_bits(toward_zero) | 1u);
}
TW_DEVICE float to_f32_odd(i32 x) { return to_f32_odd(f64(x)); }

// ---- float → integer: truncates, saturates, NaN → 0
// ------------------------------------------------------------------
TW_DEVICE i32 clamp_i32(i32 x, i32 low, i32 high) { return x < low ? low : x > high ? high : x; }
TW_DEVICE i64 to_i64(f32 x) { return x != x ? 0 : __float2ll_rz(x); }
TW_DEVICE i64 to_i64(f64 x) { return x != x ? 0 : __double2ll_rz(x); }
TW_DEVICE i32 to_i32(f32 x) { return x != x ? 0 : __float2int_rz(x); }
TW_DEVICE i32 to_i32(f64 x) { return x != x ? 0 : __double2int_rz(x); }

// ---- cast<To>(x) for every pair of element types
// ----------------------------------------------------------------------
template <class T>
inline constexpr bool is_narrow_float = same<T, bf16> || same<T, f16> || same<T, f8e4m3> || same<T, f8e5m2>;
template <class T>
inline constexpr bool is_wide_float = same<T, f32> || same<T, f64>;

template <class To, class From>
TW_DEVICE To cast(From x) {
  if constexpr (same<To, From>) {
    return x;
  } else if constexpr (is_narrow_float<From>) {
    return cast<To>(to_f32(x));
  } else if constexpr (is_narrow_float<To>) {
    To out;
    if constexpr (same<From, f64> || same<From, i64> || same<From, i32>) {
      from_f32(to_f32_odd(x), out);
    } else {
      from_f32(float(x), out);  // f32, or 8 bits and bool: exact
    }
    return out;
  } else if constexpr (same<To, bool>) {
    return x != From(0);
  } else if constexpr (is_wide_float<From> && same<To, i64>) {
    return to_i64(x);
  } else if constexpr (is_wide_float<From> && same<To, i32>) {
    return to_i32(x);
  } else if constexpr (is_wide_float<From> && same<To, i8>) {
    return i8(clamp_i32(to_i32(x), -128, 127));
  } else if constexpr (is_wide_float<From> && same<To, u8>) {
    return u8(clamp_i32(to_i32(x), 0, 255));
  } else {
    return To(x);  // integer → integer wraps; integer → f32, f64 and f32 ↔ f64 round to nearest
  }
}

template <class To, class From, int N>
TW_DEVICE Vec<To, N> cast(const Vec<From, N>& x) {
  Vec<To, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out.v[i] = cast<To>(x.v[i]);
  return out;
}

// ---- 32-bit words of packed narrow floats ↔ f32
// ----------------------------------------------------------------------- How many T are in one word, and the
// two directions for a whole word.
template <class T>
inline constexpr int per_word = int(4 / sizeof(T));

template <class T>
TW_DEVICE Vec<float, per_word<T>> unpack_word(u32 word) {
  if constexpr (same<T, bf16>) {
    return unpack_bf16x2(word);
  } else if constexpr (same<T, f16>) {
    return unpack_f16x2(word);
  } else if constexpr (same<T, f32>) {
    return {{bits_to_f32(word)}};
  } else {
    static_assert(same<T, f8e4m3> || same<T, f8e5m2>, "unpack_word: f32 or a narrow float");
    Vec<float, 2> low, high;
    if constexpr (same<T, f8e4m3>) {
      low = unpack_e4m3x2(u16(word));
      high = unpack_e4m3x2(u16(word >> 16));
    } else {
      low = unpack_e5m2x2(u16(word));
      high = unpack_e5m2x2(u16(word >> 16));
    }
    return {{low.v[0], low.v[1], high.v[0], high.v[1]}};
  }
}

template <class T>
TW_DEVICE u32 pack_word(const float* x) {
  if constexpr (same<T, bf16>) {
    return pack_bf16x2(x[0], x[1]);
  } else if constexpr (same<T, f16>) {
    return pack_f16x2(x[0], x[1]);
  } else if constexpr (same<T, f32>) {
    return f32_to_bits(x[0]);
  } else if constexpr (same<T, f8e4m3>) {
    return pack_e4m3x2(x[0], x[1]) | (u32(pack_e4m3x2(x[2], x[3])) << 16);
  } else {
    static_assert(same<T, f8e5m2>, "pack_word: f32 or a narrow float");
    return pack_e5m2x2(x[0], x[1]) | (u32(pack_e5m2x2(x[2], x[3])) << 16);
  }
}

}  // namespace tw
