// 8-bit integers, and signed numbers of 4 bits in them, as floats: whole vectors at once, in instructions of
// the full rate. A conversion (I2F) runs at a quarter of it, and one for each byte. What stands in the last
// places of a mantissa is a number above a power of two, from which that is subtracted: exact.
#pragma once

#include "tw_cuda/convert.cuh"

namespace tw {

namespace detail {

constexpr u32 kSigns = 0x80808080u;  // a signed byte with its sign turned is 128 more than it, from 0 on

// 2^23 + the byte.
TW_DEVICE float above_2_23(u32 word, u32 byte) {
  return bits_to_f32(__byte_perm(word, 0x4b000000u, 0x7440u | byte));
}

// a & b ^ c: of two constants, the compiler would make two instructions.
TW_DEVICE u32 and_xor(u32 a, u32 b, u32 c) {
  u32 out;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}

// The numbers of 4 bits that (byte << count) >> 4 leaves of the bytes of a word, each in its byte and 8 more
// than it, from 0 on; where `alike` has ones, under what `above` has over them.
TW_DEVICE u32 nibbles_and_8(u32 word, i8 count, u32 alike, u32 above) {
  const u32 by = u32(count) & 7u;
  return and_xor(__funnelshift_r(word, word, 4u - by), alike * (0xffu << by >> 4 & 0xfu), above + alike * 8u);
}

// The words that hold a vector's bytes, the last one filled up with zeros.
template <int N>
TW_DEVICE Vec<u32, (N + 3) / 4> words_of(const Vec<i8, N>& bytes) {
  if constexpr (N % 4 == 0) return bit_cast<Vec<u32, N / 4>>(bytes);
  Vec<u32, (N + 3) / 4> out;
#pragma unroll
  for (int w = 0; w < (N + 3) / 4; ++w) out.v[w] = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) out.v[i / 4] |= u32(u8(bytes.v[i])) << i % 4 * 8;
  return out;
}
TW_DEVICE Vec<u32, 1> words_of(const Vec<i8, 2>& bytes) { return {{u32(bit_cast<u16>(bytes))}}; }

}  // namespace detail

template <int N>
TW_DEVICE Vec<float, N> bytes_to_f32(const Vec<i8, N>& bytes) {
  const auto words = detail::words_of(bytes);
  Vec<float, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i)
    out.v[i] = detail::above_2_23(words.v[i / 4] ^ detail::kSigns, i % 4) - (0x1p23f + 128.f);
  return out;
}
// (byte << count) >> 4 as f32.
template <int N>
TW_DEVICE Vec<float, N> nibbles_to_f32(const Vec<i8, N>& bytes, i8 count) {
  const auto words = detail::words_of(bytes);
  Vec<float, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i)
    out.v[i] = detail::above_2_23(detail::nibbles_and_8(words.v[i / 4], count, 0x01010101u, 0), i % 4) -
               (0x1p23f + 8.f);
  return out;
}

// Eight bits are a bf16's mantissa: it is the upper half of the f32.
template <int N>
TW_DEVICE Vec<bf16, N> bytes_to_bf16(const Vec<i8, N>& bytes) {
  static_assert(N % 2 == 0, "bytes_to_bf16: pairs");
  const Vec<float, N> wide = bytes_to_f32(bytes);
  Vec<u32, N / 2> out;
#pragma unroll
  for (int i = 0; i < N / 2; ++i)
    out.v[i] = __byte_perm(f32_to_bits(wide.v[2 * i]), f32_to_bits(wide.v[2 * i + 1]), 0x7632u);
  return bit_cast<Vec<bf16, N>>(out);
}
// (byte << count) >> 4 as bf16, by way of 128 + 8 + the number, two at a time.
template <int N>
TW_DEVICE Vec<bf16, N> nibbles_to_bf16(const Vec<i8, N>& bytes, i8 count) {
  static_assert(N % 2 == 0, "nibbles_to_bf16: pairs");
  constexpr u32 k128 = 0x43004300u, kOne = 0x3f803f80u, kLess136 = 0xc308c308u;
  const auto words = detail::words_of(bytes);
  Vec<u32, N / 2> out;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const u32 pair = __byte_perm(words.v[i / 2], 0, i % 2 == 0 ? 0x4140u : 0x4342u);
    const u32 above = detail::nibbles_and_8(pair, count, 0x00010001u, k128);
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out.v[i]) : "r"(above), "r"(kOne), "r"(kLess136));
  }
  return bit_cast<Vec<bf16, N>>(out);
}

}  // namespace tw
