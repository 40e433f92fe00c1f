// Parsing and expansion of knobs.
#include "harness/run/knobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tilewright/base/error.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace tilewright::lab {

namespace {

std::optional<std::int64_t> parse_plain_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// 4096 or 2^12.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  const auto hat = text.find('^');
  if (hat == std::string_view::npos) return parse_plain_integer(text);
  const auto base = parse_plain_integer(text.substr(0, hat));
  const auto exponent = parse_plain_integer(text.substr(hat + 1));
  if (!base || !exponent || *exponent < 0 || *exponent > 62) return std::nullopt;
  if (std::pow(std::abs(static_cast<double>(*base)), static_cast<double>(*exponent)) > 9e18)
    return std::nullopt;
  std::int64_t value = 1;
  for (std::int64_t i = 0; i < *exponent; ++i) value *= *base;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<Shape> parse_shape(std::string_view text) {
  std::vector<Index> extents;
  for (const std::string& piece : split(text, 'x')) {
    const auto extent = parse_integer(piece);
    if (!extent || *extent < 0) return std::nullopt;
    extents.push_back(*extent);
  }
  return Shape(std::move(extents));
}

std::optional<KnobValue> parse_value(std::size_t type, std::string_view text) {
  switch (type) {
    case 0:
      if (const auto v = parse_integer(text)) return *v;
      return std::nullopt;
    case 1:
      if (const auto v = parse_real(text)) return *v;
      return std::nullopt;
    case 2:
      if (const auto v = parse_dtype(text)) return *v;
      return std::nullopt;
    case 3:
      if (const auto v = parse_shape(text)) return *v;
      return std::nullopt;
    default:
      return KnobValue(std::string(text));
  }
}

// "a..b": a, 2a, 4a, … up to b; nothing when `text` is no range of integers.
std::vector<KnobValue> parse_range(std::string_view text) {
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) return {};
  const auto first = parse_integer(text.substr(0, dots));
  const auto last = parse_integer(text.substr(dots + 2));
  if (!first || !last || *first <= 0 || *last < *first) return {};
  std::vector<KnobValue> values;
  for (std::int64_t v = *first; v <= *last; v *= 2) {
    values.emplace_back(v);
    if (v > *last / 2) break;  // the next doubling passes the end, or overflows
  }
  return values;
}

constexpr std::string_view kTypeNames[] = {"an integer", "a number", "a dtype", "a shape", "text"};
constexpr std::string_view kExamples[] = {"8192, 2^13 or 2^10..2^16", "0.1", "f32, f16, bf16, i32",
                                          "8192x4096", "any text"};

[[noreturn]] void refuse(const Knob& knob, std::string_view piece) {
  const std::size_t type = knob.values.front().index();
  throw Error(fmt::format("--set {}={}: not {} (knob {}: {}; write for example {})", knob.name, piece,
                          kTypeNames[type], knob.name, knob.doc, kExamples[type]));
}

// Whether the value lies in the knob's range; of a shape each extent, and the number of elements is one.
constexpr double kMostElements = 0x1p59;  // so that their bytes are still counted in 64 bits

bool is_in_range(const Knob& knob, const KnobValue& value) {
  const auto in_range = [&](double v) { return v >= knob.least && v <= knob.most; };
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return in_range(static_cast<double>(*integer));
  if (const auto* real = std::get_if<double>(&value)) return in_range(*real);
  const auto* shape = std::get_if<Shape>(&value);
  if (!shape) return true;
  return std::all_of(shape->extents().begin(), shape->extents().end(),
                     [&](Index extent) { return in_range(static_cast<double>(extent)); });
}

double elements_of(const KnobValue& value) {
  const auto* shape = std::get_if<Shape>(&value);
  double elements = 1;
  if (shape != nullptr)
    for (const Index extent : shape->extents()) elements *= static_cast<double>(extent);
  return elements;
}

void check_value(const Knob& knob, const KnobValue& value) {
  if (!is_in_range(knob, value))
    throw Error(fmt::format("--set {}={}: {} {:.15g} to {:.15g} (knob {}: {})", knob.name, to_string(value),
                            value.index() == 3 ? "each extent must be" : "must be", knob.least, knob.most,
                            knob.name, knob.doc));
  if (elements_of(value) > kMostElements)
    throw Error(fmt::format("--set {}={}: {:.3g} elements are more than any memory holds (knob {}: {})",
                            knob.name, to_string(value), elements_of(value), knob.name, knob.doc));
  if (knob.choices.empty() ||
      std::find(knob.choices.begin(), knob.choices.end(), value) != knob.choices.end())
    return;
  std::vector<std::string> choices;
  choices.reserve(knob.choices.size());
  for (const KnobValue& choice : knob.choices) choices.push_back(to_string(choice));
  throw Error(fmt::format("--set {}={}: must be one of {} (knob {}: {})", knob.name, to_string(value),
                          fmt::join(choices, ", "), knob.name, knob.doc));
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  while (true) {
    const auto at = text.find(separator);
    pieces.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

std::string shape_text(const Shape& shape) {
  return shape.rank() == 0 ? "scalar" : fmt::format("{}", fmt::join(shape.extents(), "x"));
}

std::string to_string(const KnobValue& value) {
  switch (value.index()) {
    case 0:
      return fmt::format("{}", std::get<std::int64_t>(value));
    case 1:
      return fmt::format("{}", std::get<double>(value));
    case 2:
      return std::string(name(std::get<DType>(value)));
    case 3:
      return shape_text(std::get<Shape>(value));
    default:
      return std::get<std::string>(value);
  }
}

void Knobs::set(std::string name, KnobValue value) {
  for (auto& [known, old] : values_) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  values_.emplace_back(std::move(name), std::move(value));
}

const KnobValue& Knobs::find(std::string_view name, std::size_t type) const {
  const auto it =
      std::find_if(values_.begin(), values_.end(), [&](const auto& entry) { return entry.first == name; });
  TW_CHECK(it != values_.end(), fmt::format("the pair has no knob '{}'", name));
  TW_CHECK(it->second.index() == type, fmt::format("knob '{}' is not {}", name, kTypeNames[type]));
  return it->second;
}

std::string Knobs::to_string() const {
  std::vector<std::string> pieces;
  pieces.reserve(values_.size());
  for (const auto& [name, value] : values_) pieces.push_back(name + "=" + lab::to_string(value));
  return fmt::format("{}", fmt::join(pieces, " "));
}

Setting parse_setting(std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  if (equals == std::string_view::npos || key.empty() || equals + 1 == text.size()) {
    throw Error(fmt::format(
        "--set {}: expected key=value or pair.key=value, for example --set shape=8192x4096", text));
  }
  const auto dot = key.find('.');
  Setting setting;
  if (dot != std::string_view::npos) setting.pair = key.substr(0, dot);
  setting.key = dot == std::string_view::npos ? key : key.substr(dot + 1);
  setting.values = text.substr(equals + 1);
  if (setting.key.empty() || dot == 0)
    throw Error(fmt::format("--set {}: the name before '=' is incomplete", text));
  return setting;
}

std::vector<KnobValue> parse_values(const Knob& knob, std::string_view text) {
  TW_CHECK(!knob.values.empty(), "a knob has at least one value");
  const std::size_t type = knob.values.front().index();
  std::vector<KnobValue> values;
  for (const std::string& piece : split(text, ',')) {
    if (type == 0) {
      const auto range = parse_range(piece);
      values.insert(values.end(), range.begin(), range.end());
      if (!range.empty()) continue;
    }
    const auto value = piece.empty() ? std::nullopt : parse_value(type, piece);
    if (!value) refuse(knob, piece);
    values.push_back(*value);
  }
  for (const KnobValue& value : values) check_value(knob, value);
  return values;
}

std::vector<Knobs> expand(std::span<const Knob> knobs, DeviceKind kind, std::span<const Setting> settings) {
  for (const Setting& setting : settings) {
    if (std::any_of(knobs.begin(), knobs.end(), [&](const Knob& k) { return k.is_named(setting.key); }))
      continue;
    std::vector<std::string> names;
    for (const Knob& knob : knobs) names.push_back(knob.name);
    throw Error(fmt::format("--set {}={}: there is no such knob; the knobs are {}", setting.key,
                            setting.values, fmt::join(names, ", ")));
  }
  std::vector<Knobs> all = {Knobs()};
  for (const Knob& knob : knobs) {
    std::vector<KnobValue> values = knob.defaults(kind);
    for (const Setting& setting : settings) {
      if (knob.is_named(setting.key)) values = parse_values(knob, setting.values);
    }
    std::vector<Knobs> next;
    for (const Knobs& chosen : all) {
      for (const KnobValue& value : values) {
        next.push_back(chosen);
        next.back().set(knob.name, value);
      }
    }
    all = std::move(next);
  }
  return all;
}

}  // namespace tilewright::lab
