// The element types of tensors and tiles: names, sizes, classes, and exact conversion of single values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>

#pragma GCC visibility push(default)
namespace tilewright {

enum class DType { f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i8, u8, boolean };

inline constexpr DType kAllDTypes[] = {DType::f64,    DType::f32,    DType::f16,    DType::bf16,
                                       DType::f8e4m3, DType::f8e5m2, DType::i64,    DType::i32,
                                       DType::i8,     DType::u8,     DType::boolean};

// "f32", "bf16", …; `boolean` is called "bool".
std::string_view name(DType dtype);
std::ostream& operator<<(std::ostream& out, DType dtype);  // its name
constexpr bool is_f8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }
std::optional<DType> parse_dtype(std::string_view text);

// Bytes of one element in memory: 8 of f64 and i64, 1 of bool and the 8-bit types.
std::size_t size_bytes(DType dtype);
bool is_float(DType dtype);                                           // f64 … f8e5m2
bool is_integer(DType dtype);                                         // i64 i32 i8 u8, not bool
inline bool is_bool(DType dtype) { return dtype == DType::boolean; }  // bool alone
// 16- and 8-bit floats: stored narrow, computed in f32.
bool is_narrow_float(DType dtype);
// The type a value of `dtype` has while it is computed with: f32 for narrow floats, else itself.
DType compute_dtype(DType dtype);

// Half the distance between 1 and the next value: the relative rounding error of one store. 0 for integers.
double unit_roundoff(DType dtype);
double max_finite(DType dtype);
double min_normal(DType dtype);
double min_subnormal(DType dtype);

// One value as float64 / int64. Narrow floats, subnormals and NaN convert exactly.
double load_f64(const void* at, DType dtype);
std::int64_t load_i64(const void* at, DType dtype);
// Rounds to nearest, ties to even. f16 and bf16 overflow to infinity; f8e4m3 and f8e5m2 saturate to the
// largest finite value, NaN stays NaN. Integers take the value modulo 2^bits; float → integer truncates and
// saturates, NaN → 0; anything → bool is `value != 0`.
void store_f64(void* at, DType dtype, double value);
void store_i64(void* at, DType dtype, std::int64_t value);
// value → dtype → float64: what a store and a load make of it.
double round_to(DType dtype, double value);
// The wrap-around of integer types and `!= 0` of bool.
std::int64_t wrap_to(DType dtype, std::int64_t value);
// float → integer as `cast` does it: truncates, saturates at the type's limits, NaN → 0; bool is `value !=
// 0`.
std::int64_t float_to_int(DType dtype, double value);
// Whether an integer type, or bool, has the value: a whole number within the type's limits.
bool holds(DType dtype, double value);

// Bulk conversion of `count` contiguous elements, the same rules element by element.
void convert(const void* from, DType from_dtype, void* to, DType to_dtype, std::size_t count);

}  // namespace tilewright
#pragma GCC visibility pop
