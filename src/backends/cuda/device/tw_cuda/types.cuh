// Element types and small register arrays for generated kernels. No standard header: NVRTC has none by
// default, and each include costs compile time that a user waits for.
#pragma once

#define TW_DEVICE __device__ __forceinline__
// Rare slow paths. Out of line they keep unrolled kernels short; a kernel with wgmma must define
// TW_INLINE_COLD, since any call in it makes ptxas serialise the tensor cores (C7510).
#ifdef TW_INLINE_COLD
#define TW_COLD __device__ __forceinline__
#else
#define TW_COLD static __device__ __noinline__
#endif

namespace tw {

using i8 = signed char;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;

// Narrow floats are stored bits; arithmetic happens in f32.
struct bf16 {
  u16 bits;
};
struct f16 {
  u16 bits;
};
struct f8e4m3 {
  u8 bits;
};
struct f8e5m2 {
  u8 bits;
};

// A register array. Index it with constants (unrolled loops) only: a run-time index sends it to local memory.
template <class T, int N>
struct Vec {
  static_assert(N > 0, "a Vec has at least one element");
  T v[N];
  TW_DEVICE T& operator[](int i) { return v[i]; }
  TW_DEVICE const T& operator[](int i) const { return v[i]; }
};

// 2, 4, 8 or 16 consecutive bytes as one memory access.
struct alignas(8) Bytes8 {
  u32 w[2];
};
struct alignas(16) Bytes16 {
  u32 w[4];
};

template <class T, class U>
struct is_same {
  static constexpr bool value = false;
};
template <class T>
struct is_same<T, T> {
  static constexpr bool value = true;
};
template <class T, class U>
inline constexpr bool same = is_same<T, U>::value;

// The bits of one type as another of the same size.
template <class To, class From>
TW_DEVICE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

TW_DEVICE float bits_to_f32(u32 bits) { return __uint_as_float(bits); }
TW_DEVICE u32 f32_to_bits(float value) { return __float_as_uint(value); }

inline constexpr u32 kFullWarp = 0xffffffffu;

}  // namespace tw
