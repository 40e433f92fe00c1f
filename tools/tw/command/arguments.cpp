// Reading arguments; every error says what was expected.
#include "tw/command/arguments.h"

#include "runtime/binary_cache.h"
#include "runtime/device_name.h"
#include "runtime/probe.h"

#include <tilewright/base/error.h>
#include <tilewright/perf/ceiling_file.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

namespace tilewright::tw {

namespace {

constexpr std::pair<std::string_view, DType> kAliases[] = {
    {"float64", DType::f64}, {"fp64", DType::f64},      {"double", DType::f64},  {"float32", DType::f32},
    {"fp32", DType::f32},    {"float", DType::f32},     {"float16", DType::f16}, {"fp16", DType::f16},
    {"half", DType::f16},    {"bfloat16", DType::bf16}, {"fp8", DType::f8e4m3},  {"e4m3", DType::f8e4m3},
    {"e5m2", DType::f8e5m2}, {"int64", DType::i64},     {"int32", DType::i32},   {"int8", DType::i8},
    {"uint8", DType::u8},
};

constexpr std::size_t kMostSweepValues = 100'000;

Index index_from(std::string_view text, std::string_view whole) {
  Index value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    throw Error(fmt::format("'{}': '{}' is not a positive whole number", whole, text));
  }
  return value;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto next = text.find(at);
    parts.push_back(text.substr(0, next));
    if (next == std::string_view::npos) return parts;
    text = text.substr(next + 1);
  }
}

std::pair<std::string, std::string_view> name_and_value(std::string_view text, std::string_view example) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw Error(fmt::format("'{}' is not of the form {}", text, example));
  }
  return {std::string(text.substr(0, equals)), text.substr(equals + 1)};
}

}  // namespace

Precision precision_argument(std::string_view text) {
  if (const auto precision = parse_precision(text)) return *precision;
  std::vector<std::string_view> known;
  for (const Precision p : kAllPrecisions) known.push_back(name(p));
  throw Error(fmt::format(
      "there is no precision '{}'; known: {} (of products of f32; everything else stays as it is)", text,
      fmt::join(known, ", ")));
}

DType dtype_argument(std::string_view text) {
  if (const auto dtype = parse_dtype(text)) return *dtype;
  for (const auto& [alias, dtype] : kAliases) {
    if (alias == text) return dtype;
  }
  std::vector<std::string_view> names;
  for (DType dtype : kAllDTypes) names.push_back(name(dtype));
  throw Error(fmt::format("unknown element type '{}'; known: {}", text, fmt::join(names, ", ")));
}

std::string cache_argument(const std::string& text) {
  return text == "auto" ? runtime::BinaryCache::default_directory() : text;
}

void give_up(const Failure& why, const std::string& text) {
  if (why.kind == Failure::Kind::invalid) throw Error(text);
  throw Unavailable(text);
}

namespace {

// The first device of this machine that opens: its processor, else a GPU where no CPU backend is installed.
// An interpreter's speed is nobody's ceiling.
std::shared_ptr<runtime::Device> device_here(const std::string& name) {
  std::vector<std::string> names;
  if (name.empty())
    for (const runtime::BackendKind& kind : runtime::backend_kinds())
      names.push_back(runtime::DeviceName{std::string(kind.name)}.full());
  else
    names = {name};
  Failure why;
  for (const std::string& each : names) {
    auto device = runtime::Device::open(each);
    const bool interprets = device && (*device)->target().kind == tile::TargetKind::reference;
    if (device && !interprets) return *device;
    if (why.message.empty())
      why = interprets ? failure(Failure::Kind::invalid, "the reference interpreter has no speed to measure")
                       : device.error();
  }
  give_up(why, fmt::format("--hw here{}{}: {}", name.empty() ? "" : ":", name, why.message));
}

perf::Ceilings ceilings_argument(const std::string& text) {
  if (!text.starts_with("here")) {
    const auto ceilings = perf::read_ceilings(text);
    if (!ceilings) throw Error(fmt::format("--hw {}: {}", text, ceilings.error().message));
    return *ceilings;
  }
  const auto device = device_here(text.size() > 5 ? text.substr(5) : "");
  const auto ceilings = runtime::stored_ceilings(*device, cache_argument("auto"));
  if (!ceilings) give_up(ceilings.error(), fmt::format("--hw {}: {}", text, ceilings.error().message));
  return *ceilings;
}

}  // namespace

perf::Hardware hardware_argument(const std::string& text) {
  const bool here = text == "here" || text.starts_with("here:");
  const bool file = text.find('/') != std::string::npos || text.ends_with(".json");
  if (!here && !file) {
    try {
      return perf::find_hardware(text);
    } catch (const Error& error) {
      throw Error(fmt::format("{}, here, here:cuda:0, or the path of a ceiling file", error.what()));
    }
  }
  return perf::to_hardware(ceilings_argument(text));
}

Sweep sweep_argument(const std::string& text) {
  constexpr std::string_view kForm = "b=1:512, b=1:512:8 or b=1:65536:x2";
  const auto [name, range] = name_and_value(text, kForm);
  const auto parts = split(range, ':');
  if (parts.size() < 2 || parts.size() > 3)
    throw Error(fmt::format("'{}' is not of the form {}", text, kForm));
  Sweep sweep{name, {}, parts.size() == 3 && parts[2].starts_with('x')};
  const Index first = index_from(parts[0], text);
  const Index last = index_from(parts[1], text);
  const Index step = parts.size() < 3 ? 1 : index_from(sweep.geometric ? parts[2].substr(1) : parts[2], text);
  if (last < first) throw Error(fmt::format("'{}': the sweep ends before it begins", text));
  if (sweep.geometric && step < 2) throw Error(fmt::format("'{}': the factor must be at least 2", text));
  for (Index value = first;; value = sweep.geometric ? value * step : value + step) {
    sweep.values.push_back(value);
    if (sweep.values.size() > kMostSweepValues) {
      throw Error(fmt::format("'{}': more than {} values; give a step", text, kMostSweepValues));
    }
    const Index left = last - value;
    if (sweep.geometric ? value > last / step : step > left) break;
  }
  return sweep;
}

std::vector<std::pair<std::string, Index>> extents_argument(const std::string& text) {
  std::vector<std::pair<std::string, Index>> extents;
  for (std::string_view part : split(text, ',')) {
    const auto [name, value] = name_and_value(part, "d=1024,f=1024");
    extents.emplace_back(name, index_from(value, text));
  }
  return extents;
}

}  // namespace tilewright::tw
