// The bit layouts of the narrow floats, and exact conversion between their codes and float64 in integer
// arithmetic.
#pragma once

#include <bit>
#include <cstdint>

namespace tilewright::base {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  std::uint32_t max_code;  // the code of the largest finite value
  std::uint32_t nan_code;  // the quiet NaN without payload
  bool has_infinity;       // codes for infinity exist (f8e4m3 has none)
  bool saturates;          // overflow gives max_code instead of infinity
};

inline constexpr FloatFormat kF16{5, 10, 0x7BFF, 0x7E00, true, false};
inline constexpr FloatFormat kBF16{8, 7, 0x7F7F, 0x7FC0, true, false};
inline constexpr FloatFormat kF8E4M3{4, 3, 0x7E, 0x7F, false, true};
inline constexpr FloatFormat kF8E5M2{5, 2, 0x7B, 0x7E, true, true};

constexpr int bias(const FloatFormat& f) { return (1 << (f.exponent_bits - 1)) - 1; }
constexpr int bits(const FloatFormat& f) { return 1 + f.exponent_bits + f.mantissa_bits; }

// 2^exponent for exponents in float64's normal range.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// code → value, exact; NaN keeps its sign and payload.
constexpr double decode(const FloatFormat& f, std::uint32_t code) {
  const std::uint64_t sign = static_cast<std::uint64_t>(code >> (bits(f) - 1) & 1) << 63;
  const std::uint32_t magnitude = code & ((1u << (bits(f) - 1)) - 1);
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const std::uint64_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  std::uint64_t out = 0;
  if (magnitude > f.max_code) {  // infinity or NaN
    const bool infinite = f.has_infinity && mantissa == 0;
    const std::uint64_t payload = f.has_infinity ? mantissa << (52 - f.mantissa_bits) : 1ull << 51;
    out = 0x7FFull << 52 | (infinite ? 0 : payload);
  } else if (exponent == 0) {
    const double value = static_cast<double>(mantissa) * power_of_two(1 - bias(f) - f.mantissa_bits);
    out = std::bit_cast<std::uint64_t>(value);
  } else {
    out = static_cast<std::uint64_t>(exponent - bias(f) + 1023) << 52 | mantissa << (52 - f.mantissa_bits);
  }
  return std::bit_cast<double>(sign | out);
}

// value → code, rounded once to nearest, ties to even.
constexpr std::uint32_t encode(const FloatFormat& f, double value) {
  const std::uint64_t all = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = static_cast<std::uint32_t>(all >> 63) << (bits(f) - 1);
  const std::uint64_t magnitude = all & ~(1ull << 63);
  if (magnitude > 0x7FFull << 52) {
    const std::uint64_t mask = (1u << f.mantissa_bits) - 1;
    const auto payload = static_cast<std::uint32_t>(magnitude >> (52 - f.mantissa_bits) & mask);
    return sign | f.nan_code | (f.has_infinity ? payload : 0);
  }
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  const int smallest = 1 - bias(f);  // exponent of the smallest normal value
  const int shift = 52 - f.mantissa_bits + (exponent < smallest ? smallest - exponent : 0);
  if (shift > 53) return sign;  // below half the smallest subnormal, float64 subnormals included
  const std::uint64_t significand = (magnitude & ((1ull << 52) - 1)) | 1ull << 52;
  std::uint64_t rounded = significand >> shift;
  const std::uint64_t rest = significand & ((1ull << shift) - 1);
  const std::uint64_t half = 1ull << (shift - 1);
  if (rest > half || (rest == half && (rounded & 1) != 0)) ++rounded;
  // A carry out of the mantissa moves to the next exponent by itself, from subnormal to normal too.
  std::uint64_t code = rounded;
  if (exponent >= smallest) code += static_cast<std::uint64_t>(exponent + bias(f) - 1) << f.mantissa_bits;
  if (code > f.max_code) code = f.saturates ? f.max_code : f.max_code + 1;
  return sign | static_cast<std::uint32_t>(code);
}

}  // namespace tilewright::base
