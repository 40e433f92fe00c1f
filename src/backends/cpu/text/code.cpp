// Lines, identifiers, literals.
#include "backends/cpu/text/code.h"

#include "backends/cpu/jit/device_headers.h"
#include "backends/printer/names.h"

#include <tilewright/base/dtype.h>
#include <tilewright/base/error.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

namespace tilewright::cpu {

namespace {

constexpr std::size_t kLineWidth = 110;

// Parameters of the printed functions, and the coordinates of a program.
constexpr std::string_view kPrinted =
    " tw views scalars begin end scratch program p0 p1 p2 i r c f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 vmask ";

struct TypeRow {
  DType dtype;
  std::string_view memory, scalar, vector;
  int bytes;
};
constexpr TypeRow kTypes[] = {
    {DType::f64, "f64", "f64", "vf64", 8},      {DType::f32, "f32", "f32", "vf32", 4},
    {DType::f16, "u16", "u16", "vu16", 2},      {DType::bf16, "u16", "u16", "vu16", 2},
    {DType::f8e4m3, "u8", "u8", "vu8", 1},      {DType::f8e5m2, "u8", "u8", "vu8", 1},
    {DType::i64, "i64", "i64", "vi64", 8},      {DType::i32, "i32", "i32", "vi32", 4},
    {DType::i8, "i8", "i8", "vi8", 1},          {DType::u8, "u8", "u8", "vu8", 1},
    {DType::boolean, "u8", "bool", "vmask", 1},
};
constexpr bool types_in_order() {
  for (std::size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i].dtype != kAllDTypes[i]) return false;
  return std::size(kTypes) == std::size(kAllDTypes);
}
static_assert(types_in_order(), "kTypes has one row per DType, in the order of the enum");
const TypeRow& row(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)]; }

std::string float_literal(double value, std::string_view suffix, std::string_view builtin_suffix) {
  if (std::isnan(value)) return fmt::format("__builtin_nan{}(\"\")", builtin_suffix);
  if (std::isinf(value)) return fmt::format("{}__builtin_inf{}()", value < 0 ? "-" : "", builtin_suffix);
  std::string text = suffix.empty() ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".";
  return text + std::string(suffix);
}

}  // namespace

void Code::add(const std::string& line) {
  if (line.empty()) {
    text_ += "\n";
    return;
  }
  text_.append(2 * static_cast<std::size_t>(depth_), ' ');
  text_ += line + "\n";
}

void Code::declare(std::string_view type, const std::vector<std::string>& declarators) {
  const std::string all = fmt::format("{} {};", type, fmt::join(declarators, ", "));
  if (all.size() + 2 * static_cast<std::size_t>(depth_) <= kLineWidth) return add(all);
  const std::string indent(type.size(), ' ');
  for (std::size_t i = 0; i < declarators.size(); ++i)
    line("{} {}{}", i == 0 ? type : indent, declarators[i], i + 1 < declarators.size() ? "," : ";");
}

bool is_reserved(std::string_view name) {
  static const std::set<std::string, std::less<>> declared = printer::declared_words(device_headers());
  return printer::is_word_of(kPrinted, name) || declared.count(name) > 0;
}

std::string_view memory_type(DType dtype) { return row(dtype).memory; }
std::string_view scalar_type(DType dtype) { return row(dtype).scalar; }
std::string_view vector_type(DType dtype) { return row(dtype).vector; }
int memory_bytes(DType dtype) { return row(dtype).bytes; }

std::string int_text(Index value) {
  // The smallest number has no literal of its own: its digits without the sign do not fit.
  if (value == std::numeric_limits<Index>::min()) return fmt::format("({} - 1)", value + 1);
  return fmt::format("{}", value);
}

std::string literal(DType dtype, const tile::Number& number) {
  if (dtype == DType::f64) return float_literal(number.f, "", "");
  if (dtype == DType::f32) return float_literal(number.f, "f", "f");
  if (is_narrow_float(dtype)) {
    std::array<unsigned char, 2> bits{};
    store_f64(bits.data(), dtype, number.f);
    return fmt::format("{:#x}", bits[0] | bits[1] << 8);
  }
  if (is_bool(dtype)) return number.i != 0 ? "true" : "false";
  return int_text(number.i);
}

bool has_sign(DType dtype, const tile::Number& number) {
  if (dtype == DType::f64 || dtype == DType::f32) return std::signbit(number.f) && !std::isnan(number.f);
  // The smallest number stands in brackets.
  return is_integer(dtype) && number.i < 0 && number.i != std::numeric_limits<Index>::min();
}

}  // namespace tilewright::cpu
