// Looking hardware up, standing in for missing rates, and building a description from measurements.
#include <tilewright/perf/hardware.h>

#include <tilewright/perf/cost.h>

#include <tilewright/base/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace tilewright::perf {

namespace {

const Figure* find_rate(const std::vector<MathRate>& rates, DType dtype) {
  for (const MathRate& r : rates) {
    if (r.dtype == dtype) return &r.flops_per_s;
  }
  return nullptr;
}

struct Candidate {
  MathUnit unit;
  DType dtype;
};

std::string_view name(MathUnit unit) { return unit == MathUnit::matrix ? "matrix" : "vector"; }

// What may stand in for a rate, best first. Each is at least as fast as the work could run, so the bound
// holds: a narrow type is computed in a wider one that the unit has, and f32 is never faster than bf16.
std::vector<Candidate> candidates(MathUnit unit, DType dtype) {
  using enum MathUnit;
  std::vector<Candidate> list = {{unit, dtype}};
  const auto add = [&list](MathUnit u, std::initializer_list<DType> dtypes) {
    for (DType d : dtypes) list.push_back({u, d});
  };
  if (dtype == DType::f64) {
    add(unit == matrix ? vector : matrix, {DType::f64});
  } else if (is_float(dtype)) {
    if (unit == matrix && dtype != DType::f32) add(matrix, {DType::bf16, DType::f16});
    add(vector, {DType::f32});
    add(matrix, {DType::bf16});
  } else {
    if (unit == matrix && dtype == DType::u8) add(matrix, {DType::i8});
    add(vector, {DType::i32, DType::f32});
    add(matrix, {DType::i8, DType::bf16});
  }
  return list;
}

double checked(const Measurement& m) {
  if (!std::isfinite(m.value) || m.value <= 0) {
    throw Error(fmt::format("measured hardware: {} is {}, expected a positive number", m.what, m.value));
  }
  return m.value;
}

// "bf16" of "matrix.bf16".
DType dtype_of(const Measurement& m, std::string_view prefix) {
  const std::string_view text = std::string_view(m.what).substr(prefix.size());
  if (const auto dtype = parse_dtype(text)) return *dtype;
  throw Error(fmt::format("measured hardware: '{}' names no element type in '{}'", text, m.what));
}

// The figure of "read_bytes_per_s" and its like; null for another property.
std::optional<Figure>* traffic_of(Traffic& traffic, std::string_view property) {
  if (property == "read_bytes_per_s") return &traffic.read;
  if (property == "write_bytes_per_s") return &traffic.write;
  if (property == "copy_bytes_per_s") return &traffic.copy;
  return nullptr;
}

// The best figure by kind, for who knows one rate only.
std::optional<Figure> best_of(const Traffic& traffic) {
  for (const auto* figure : {&traffic.read, &traffic.copy, &traffic.write})
    if (*figure && (*figure)->value == traffic.best()) return *figure;
  return std::nullopt;
}

// "level.L2.bytes" → the level "L2", made when it is new, and its property.
void set_level(Hardware& hardware, const Measurement& m) {
  const std::string_view rest = std::string_view(m.what).substr(std::string_view("level.").size());
  const auto dot = rest.rfind('.');
  const std::string_view level_name = rest.substr(0, dot);
  const std::string_view property = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
  MemoryLevel* level = nullptr;
  for (MemoryLevel& l : hardware.levels) {
    if (l.name == level_name) level = &l;
  }
  if (level == nullptr)
    level = &hardware.levels.emplace_back(MemoryLevel{std::string(level_name), {}, 1, {}, {}});
  if (auto* figure = traffic_of(level->traffic, property)) {
    *figure = Figure{checked(m), m.how};
  } else if (property == "bytes") {
    level->bytes = {checked(m), m.how};
  } else if (property == "bytes_per_s") {
    level->bytes_per_s = Figure{checked(m), m.how};
  } else if (property == "instances") {
    level->instances = static_cast<int>(checked(m));
  } else {
    throw Error(
        fmt::format("measured hardware: unknown key '{}'; a level has bytes, instances, bytes_per_s and "
                    "read_, write_ and copy_bytes_per_s",
                    m.what));
  }
}

void apply(Hardware& hardware, const Measurement& m) {
  const std::string_view what = m.what;
  if (what == "memory_bytes") {
    hardware.memory_bytes = {checked(m), m.how};
  } else if (what == "memory_bytes_per_s") {
    hardware.memory_bytes_per_s = {checked(m), m.how};
  } else if (what == "special_ops_per_s") {
    hardware.special_ops_per_s = Figure{checked(m), m.how};
  } else if (what == "link_bytes_per_s") {
    hardware.link_bytes_per_s = Figure{checked(m), m.how};
  } else if (what == "launch_s") {
    hardware.launch_s = Figure{checked(m), m.how};
  } else if (what == "graph_launch_s") {
    hardware.graph_launch_s = Figure{checked(m), m.how};
  } else if (what == "matrix_beside_vector") {
    hardware.matrix_beside_vector = m.value != 0;
  } else if (what.starts_with("matrix.")) {
    hardware.matrix.push_back({dtype_of(m, "matrix."), {checked(m), m.how}});
  } else if (what.starts_with("vector.")) {
    hardware.vector.push_back({dtype_of(m, "vector."), {checked(m), m.how}});
  } else if (auto* figure = what.starts_with("memory.") ? traffic_of(hardware.memory_traffic, what.substr(7))
                                                        : nullptr) {
    *figure = Figure{checked(m), m.how};
  } else if (what.starts_with("level.")) {
    set_level(hardware, m);
  } else {
    throw Error(fmt::format("measured hardware: unknown key '{}'", what));
  }
}

}  // namespace

double Traffic::best() const {
  double most = 0;
  for (const auto* figure : {&read, &write, &copy})
    if (*figure) most = std::max(most, (*figure)->value);
  return most;
}

const Hardware& find_hardware(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Hardware& h : known_hardware()) {
    if (h.name == name) return h;
    names.push_back(h.name);
  }
  throw Error(fmt::format("unknown hardware '{}'; known: {}", name, fmt::join(names, ", ")));
}

Rate rate(const Hardware& hardware, MathUnit unit, DType dtype) {
  if (unit == MathUnit::matrix && dtype == DType::f32 && find_rate(hardware.matrix, dtype) == nullptr) {
    const Figure *whole = find_rate(hardware.vector, dtype), *parts = find_rate(hardware.matrix, DType::bf16);
    if (whole != nullptr && parts != nullptr && parts->value / kPartProducts > whole->value)
      return {
          parts->value / kPartProducts,
          fmt::format("{} has no matrix rate for f32: a sixth of that of bf16 is used, as six products of "
                      "parts make one",
                      hardware.name)};
  }
  const std::vector<Candidate> list = candidates(unit, dtype);
  for (const Candidate& c : list) {
    const Figure* figure = find_rate(c.unit == MathUnit::matrix ? hardware.matrix : hardware.vector, c.dtype);
    if (figure == nullptr) continue;
    Rate found{figure->value, {}};
    if (c.unit != unit || c.dtype != dtype) {
      found.substitute =
          fmt::format("{} has no {} rate for {}: the {} rate of {} is used", hardware.name, name(unit),
                      tilewright::name(dtype), name(c.unit), tilewright::name(c.dtype));
    }
    return found;
  }
  throw Error(fmt::format("{} has no {} rate for {}, and none that could stand in for it", hardware.name,
                          name(unit), tilewright::name(dtype)));
}

namespace {
const MemoryLevel* innermost(const Hardware& hardware, double working_set_bytes) {
  for (const MemoryLevel& level : hardware.levels) {
    if (level.bytes_per_s && !level.name.starts_with("shared") &&
        level.bytes.value * level.instances >= working_set_bytes)
      return &level;
  }
  return nullptr;
}
}  // namespace

Hardware holding(const Hardware& hardware, double working_set_bytes) {
  Hardware h = hardware;
  if (const MemoryLevel* level = innermost(hardware, working_set_bytes)) {
    h.memory_bytes_per_s = *level->bytes_per_s;
    h.memory_traffic = level->traffic;
  }
  return h;
}

std::string level_holding(const Hardware& hardware, double working_set_bytes) {
  const MemoryLevel* level = innermost(hardware, working_set_bytes);
  return level != nullptr ? level->name : "memory";
}

Hardware from_measured(std::string_view name, std::string_view title,
                       std::span<const Measurement> measurements) {
  Hardware hardware;
  hardware.name = name;
  hardware.title = title;
  for (const Measurement& m : measurements) apply(hardware, m);
  for (MemoryLevel& level : hardware.levels) {
    if (!level.bytes_per_s) level.bytes_per_s = best_of(level.traffic);
  }
  if (hardware.memory_bytes_per_s.value == 0)
    hardware.memory_bytes_per_s = best_of(hardware.memory_traffic).value_or(Figure{});
  if (hardware.memory_bytes_per_s.value == 0) {
    throw Error(fmt::format("measured hardware '{}': memory_bytes_per_s is missing", name));
  }
  return hardware;
}

}  // namespace tilewright::perf
