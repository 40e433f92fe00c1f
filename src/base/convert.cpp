// Bulk conversion: fast loops for the pairs that data actually passes through, one value at a time for the
// rest.
#include <tilewright/base/dtype.h>

#include <cstring>

#include "base/float_format.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewright {

namespace {

// The loops read and write through memcpy because callers hand over bytes; the compiler turns each into one
// move.
template <class From, class To, class F>
inline __attribute__((always_inline)) void each(const void* from, void* to, std::size_t begin,
                                                std::size_t end, const F& f) {
  const auto* source = static_cast<const unsigned char*>(from);
  auto* target = static_cast<unsigned char*>(to);
  for (std::size_t i = begin; i < end; ++i) {
    From a;
    std::memcpy(&a, source + i * sizeof(From), sizeof a);
    const To b = f(a);
    std::memcpy(target + i * sizeof(To), &b, sizeof b);
  }
}

constexpr auto kF32ToBF16 = [](std::uint32_t bits) {
  const std::uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  const std::uint32_t quiet_nan = bits >> 16 | 0x40;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet_nan : rounded);
};
// A signalling NaN becomes quiet, as in every other conversion.
constexpr auto kBF16ToF32 = [](std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  return (wide & 0x7FFFFFFF) > 0x7F800000 ? wide | 0x400000 : wide;
};

void f32_to_f16_plain(const void* from, void* to, std::size_t begin, std::size_t end) {
  each<float, std::uint16_t>(from, to, begin, end,
                             [](float v) { return static_cast<std::uint16_t>(base::encode(base::kF16, v)); });
}

void f16_to_f32_plain(const void* from, void* to, std::size_t begin, std::size_t end) {
  each<std::uint16_t, float>(from, to, begin, end,
                             [](std::uint16_t v) { return static_cast<float>(base::decode(base::kF16, v)); });
}

#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"); }

__attribute__((target("avx2"))) void f32_to_bf16_avx2(const void* from, void* to, std::size_t count) {
  each<std::uint32_t, std::uint16_t>(from, to, 0, count, kF32ToBF16);
}

__attribute__((target("avx2"))) void bf16_to_f32_avx2(const void* from, void* to, std::size_t count) {
  each<std::uint16_t, std::uint32_t>(from, to, 0, count, kBF16ToF32);
}

// Both return how many elements they did; the rest is for the plain loop.
__attribute__((target("avx2,f16c"))) std::size_t f32_to_f16_f16c(const void* from, void* to,
                                                                 std::size_t count) {
  const auto* source = static_cast<const float*>(from);
  auto* target = static_cast<std::uint16_t*>(to);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i), half);
  }
  return i;
}

__attribute__((target("avx2,f16c"))) std::size_t f16_to_f32_f16c(const void* from, void* to,
                                                                 std::size_t count) {
  const auto* source = static_cast<const std::uint16_t*>(from);
  auto* target = static_cast<float*>(to);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i));
    _mm256_storeu_ps(target + i, _mm256_cvtph_ps(half));
  }
  return i;
}
#endif

void f32_to_bf16(const void* from, void* to, std::size_t count) {
#if defined(__x86_64__)
  if (has_avx2()) return f32_to_bf16_avx2(from, to, count);
#endif
  each<std::uint32_t, std::uint16_t>(from, to, 0, count, kF32ToBF16);
}

void bf16_to_f32(const void* from, void* to, std::size_t count) {
#if defined(__x86_64__)
  if (has_avx2()) return bf16_to_f32_avx2(from, to, count);
#endif
  each<std::uint16_t, std::uint32_t>(from, to, 0, count, kBF16ToF32);
}

void f32_to_f16(const void* from, void* to, std::size_t count) {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (has_avx2()) done = f32_to_f16_f16c(from, to, count);
#endif
  f32_to_f16_plain(from, to, done, count);
}

void f16_to_f32(const void* from, void* to, std::size_t count) {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (has_avx2()) done = f16_to_f32_f16c(from, to, count);
#endif
  f16_to_f32_plain(from, to, done, count);
}

void convert_each(const void* from, DType from_dtype, void* to, DType to_dtype, std::size_t count) {
  const auto* source = static_cast<const unsigned char*>(from);
  auto* target = static_cast<unsigned char*>(to);
  const std::size_t from_size = size_bytes(from_dtype);
  const std::size_t to_size = size_bytes(to_dtype);
  const bool through_f64 = is_float(from_dtype);  // integers keep all 64 bits on their way
  for (std::size_t i = 0; i < count; ++i) {
    if (through_f64) {
      store_f64(target + i * to_size, to_dtype, load_f64(source + i * from_size, from_dtype));
    } else {
      store_i64(target + i * to_size, to_dtype, load_i64(source + i * from_size, from_dtype));
    }
  }
}

}  // namespace

void convert(const void* from, DType from_dtype, void* to, DType to_dtype, std::size_t count) {
  if (count == 0) return;
  if (from_dtype == to_dtype) {
    std::memcpy(to, from, count * size_bytes(from_dtype));
  } else if (from_dtype == DType::f32 && to_dtype == DType::bf16) {
    f32_to_bf16(from, to, count);
  } else if (from_dtype == DType::bf16 && to_dtype == DType::f32) {
    bf16_to_f32(from, to, count);
  } else if (from_dtype == DType::f32 && to_dtype == DType::f16) {
    f32_to_f16(from, to, count);
  } else if (from_dtype == DType::f16 && to_dtype == DType::f32) {
    f16_to_f32(from, to, count);
  } else if (from_dtype == DType::f64 && to_dtype == DType::f32) {
    each<double, float>(from, to, 0, count, [](double v) { return static_cast<float>(v); });
  } else if (from_dtype == DType::f32 && to_dtype == DType::f64) {
    each<float, double>(from, to, 0, count, [](float v) { return static_cast<double>(v); });
  } else {
    convert_each(from, from_dtype, to, to_dtype, count);
  }
}

}  // namespace tilewright
