// The table of element types, and conversion of single values.
#include <tilewright/base/dtype.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <ostream>

#include "base/float_format.h"

namespace tilewright {

namespace {

struct Row {
  std::string_view name;
  std::size_t size;
  double unit_roundoff, max_finite, min_normal, min_subnormal;
  DType dtype;
  bool is_float;
};

template <class T>
constexpr Row integer_row(DType dtype, std::string_view name) {
  return {name, sizeof(T), 0, static_cast<double>(std::numeric_limits<T>::max()), 1, 1, dtype, false};
}

template <class T>
constexpr Row wide_row(DType dtype, std::string_view name) {
  using Limits = std::numeric_limits<T>;
  return {name,  sizeof(T), Limits::epsilon() / 2, Limits::max(), Limits::min(), Limits::denorm_min(),
          dtype, true};
}

constexpr Row narrow_row(DType dtype, std::string_view name, const base::FloatFormat& f) {
  return {name,
          static_cast<std::size_t>(base::bits(f) / 8),
          base::power_of_two(-f.mantissa_bits - 1),
          base::decode(f, f.max_code),
          base::decode(f, 1u << f.mantissa_bits),
          base::decode(f, 1),
          dtype,
          true};
}

// In the order of the enumerators.
constexpr Row kRows[] = {
    wide_row<double>(DType::f64, "f64"),
    wide_row<float>(DType::f32, "f32"),
    narrow_row(DType::f16, "f16", base::kF16),
    narrow_row(DType::bf16, "bf16", base::kBF16),
    narrow_row(DType::f8e4m3, "f8e4m3", base::kF8E4M3),
    narrow_row(DType::f8e5m2, "f8e5m2", base::kF8E5M2),
    integer_row<std::int64_t>(DType::i64, "i64"),
    integer_row<std::int32_t>(DType::i32, "i32"),
    integer_row<std::int8_t>(DType::i8, "i8"),
    integer_row<std::uint8_t>(DType::u8, "u8"),
    integer_row<bool>(DType::boolean, "bool"),
};
static_assert(std::size(kRows) == std::size(kAllDTypes));

const Row& row(DType dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

template <class T>
T read(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void write(void* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// Truncates and saturates; NaN → 0. For int64 the upper limit becomes 2^63, the first value that does not
// fit.
template <class T>
std::int64_t saturate(double value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<std::int64_t>(value);
}

// The float64 nearest to `value` rounded to odd: a second rounding to a narrower type then gives the result
// of one.
double to_odd_f64(std::int64_t value) {
  const double nearest = static_cast<double>(value);
  // 2^63 itself, which only rounding up from below can give, does not fit back into int64.
  const bool too_large = nearest >= 0x1p63;
  const std::int64_t back =
      too_large ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(nearest);
  const auto bits = std::bit_cast<std::uint64_t>(nearest);
  if ((!too_large && back == value) || (bits & 1) != 0) return nearest;
  // Inexact and even: its odd neighbour on the other side of `value`.
  const bool rounded_away = nearest > 0 ? (too_large || back > value) : back < value;
  return std::bit_cast<double>(rounded_away ? bits - 1 : bits + 1);
}

}  // namespace

std::string_view name(DType dtype) { return row(dtype).name; }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

std::optional<DType> parse_dtype(std::string_view text) {
  for (const Row& r : kRows) {
    if (r.name == text) return r.dtype;
  }
  return std::nullopt;
}

std::size_t size_bytes(DType dtype) { return row(dtype).size; }
bool is_float(DType dtype) { return row(dtype).is_float; }
bool is_integer(DType dtype) { return !is_float(dtype) && !is_bool(dtype); }
bool is_narrow_float(DType dtype) { return is_float(dtype) && size_bytes(dtype) <= 2; }
DType compute_dtype(DType dtype) { return is_narrow_float(dtype) ? DType::f32 : dtype; }

double unit_roundoff(DType dtype) { return row(dtype).unit_roundoff; }
double max_finite(DType dtype) { return row(dtype).max_finite; }
double min_normal(DType dtype) { return row(dtype).min_normal; }
double min_subnormal(DType dtype) { return row(dtype).min_subnormal; }

double load_f64(const void* at, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return read<double>(at);
    case DType::f32:
      return read<float>(at);
    case DType::f16:
      return base::decode(base::kF16, read<std::uint16_t>(at));
    case DType::bf16:
      return base::decode(base::kBF16, read<std::uint16_t>(at));
    case DType::f8e4m3:
      return base::decode(base::kF8E4M3, read<std::uint8_t>(at));
    case DType::f8e5m2:
      return base::decode(base::kF8E5M2, read<std::uint8_t>(at));
    default:
      return static_cast<double>(load_i64(at, dtype));
  }
}

std::int64_t load_i64(const void* at, DType dtype) {
  switch (dtype) {
    case DType::i64:
      return read<std::int64_t>(at);
    case DType::i32:
      return read<std::int32_t>(at);
    case DType::i8:
      return read<std::int8_t>(at);
    case DType::u8:
      return read<std::uint8_t>(at);
    case DType::boolean:
      return read<std::uint8_t>(at) != 0;
    default:
      return float_to_int(DType::i64, load_f64(at, dtype));
  }
}

void store_f64(void* at, DType dtype, double value) {
  switch (dtype) {
    case DType::f64:
      return write(at, value);
    case DType::f32:
      return write(at, static_cast<float>(value));
    case DType::f16:
      return write(at, static_cast<std::uint16_t>(base::encode(base::kF16, value)));
    case DType::bf16:
      return write(at, static_cast<std::uint16_t>(base::encode(base::kBF16, value)));
    case DType::f8e4m3:
      return write(at, static_cast<std::uint8_t>(base::encode(base::kF8E4M3, value)));
    case DType::f8e5m2:
      return write(at, static_cast<std::uint8_t>(base::encode(base::kF8E5M2, value)));
    default:
      return store_i64(at, dtype, float_to_int(dtype, value));
  }
}

void store_i64(void* at, DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::i64:
      return write(at, value);
    case DType::i32:
      return write(at, static_cast<std::int32_t>(value));
    case DType::i8:
      return write(at, static_cast<std::int8_t>(value));
    case DType::u8:
      return write(at, static_cast<std::uint8_t>(value));
    case DType::boolean:
      return write(at, static_cast<std::uint8_t>(value != 0));
    case DType::f64:
      return write(at, static_cast<double>(value));
    case DType::f32:
      return write(at, static_cast<float>(value));
    default:
      return store_f64(at, dtype, to_odd_f64(value));
  }
}

double round_to(DType dtype, double value) {
  std::uint64_t storage = 0;
  store_f64(&storage, dtype, value);
  return load_f64(&storage, dtype);
}

std::int64_t wrap_to(DType dtype, std::int64_t value) {
  std::uint64_t storage = 0;
  store_i64(&storage, dtype, value);
  return load_i64(&storage, dtype);
}

std::int64_t float_to_int(DType dtype, double value) {
  switch (dtype) {
    case DType::i32:
      return saturate<std::int32_t>(value);
    case DType::i8:
      return saturate<std::int8_t>(value);
    case DType::u8:
      return saturate<std::uint8_t>(value);
    case DType::boolean:
      return value != 0;
    default:
      return saturate<std::int64_t>(value);
  }
}

bool holds(DType dtype, double value) {
  // The largest i64 becomes 2^63 as a double, one more than it is.
  return value < 0x1p63 && static_cast<double>(float_to_int(dtype, value)) == value;
}

}  // namespace tilewright
