// Knobs: the typed parameters of a pair, declared once with their values and doc, changed by `--set
// key=value`.
#pragma once

#include <tilewright/base/dtype.h>
#include <tilewright/base/shape.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tilewright::lab {

using KnobValue = std::variant<std::int64_t, double, DType, Shape, std::string>;
std::string to_string(const KnobValue& value);  // 4096, 0.5, f32, 8192x4096, text
std::string shape_text(const Shape& shape);     // "8192x4096"; "scalar" for rank 0

enum class DeviceKind { cpu, cuda };

// One parameter. Every combination of the values of a pair's knobs is one instance of the pair.
struct Knob {
  std::string name;
  std::vector<KnobValue> values;            // not empty; the first one's type is the knob's type
  std::string doc;                          // what it is, with its unit
  std::vector<KnobValue> cuda_values = {};  // on a GPU, when they differ
  std::vector<KnobValue> choices = {};      // when not empty: what else than these is refused
  // What an integer, a number or each extent of a shape must lie between. By default a size: at least one,
  // and fewer than fill 4 TB.
  double least = 1, most = 0x1p40;

  // Whether --set means this knob: by its name, or `cols` for columns.
  bool is_named(std::string_view text) const { return text == name || (text == "cols" && name == "columns"); }

  const std::vector<KnobValue>& defaults(DeviceKind kind) const {
    return kind == DeviceKind::cuda && !cuda_values.empty() ? cuda_values : values;
  }
};

// The value of each knob for one instance. A wrong name or type here is a bug of the pair, not of the user.
class Knobs {
 public:
  void set(std::string name, KnobValue value);
  std::int64_t integer(std::string_view name) const { return std::get<std::int64_t>(find(name, 0)); }
  double real(std::string_view name) const { return std::get<double>(find(name, 1)); }
  DType dtype(std::string_view name) const { return std::get<DType>(find(name, 2)); }
  const Shape& shape(std::string_view name) const { return std::get<Shape>(find(name, 3)); }
  const std::string& text(std::string_view name) const { return std::get<std::string>(find(name, 4)); }
  const std::vector<std::pair<std::string, KnobValue>>& all() const { return values_; }
  std::string to_string() const;  // "shape=8192x4096 dtype=f32"
  friend bool operator==(const Knobs&, const Knobs&) = default;

 private:
  const KnobValue& find(std::string_view name, std::size_t type) const;
  std::vector<std::pair<std::string, KnobValue>> values_;
};

// `--set key=value[,value…]` or `--set pair.key=value[,value…]`.
struct Setting {
  std::string pair;  // empty: every pair that has the knob
  std::string key;
  std::string values;
  friend bool operator==(const Setting&, const Setting&) = default;
};
Setting parse_setting(std::string_view text);  // throws Error

// The values a user wrote for `knob`. Integers: 4096, 2^12, and 2^12..2^16 (doubling). Shapes: 8192x4096.
// Throws Error with the knob's doc and an example, or with the range or the choices that it takes.
std::vector<KnobValue> parse_values(const Knob& knob, std::string_view text);

// Every combination of the knobs' values, the last knob running fastest; a later setting overrides an earlier
// one. `settings` are those for this pair; one that names no knob throws Error.
std::vector<Knobs> expand(std::span<const Knob> knobs, DeviceKind kind, std::span<const Setting> settings);

// Splits at `separator`; empty pieces are kept.
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace tilewright::lab
