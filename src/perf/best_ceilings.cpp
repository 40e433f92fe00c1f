// Merging and ordering of measured figures.
#include <tilewright/perf/best_ceilings.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tilewright::perf {

namespace {

bool is_rate(std::string_view what) {
  return what.ends_with("bytes_per_s") || what.starts_with("matrix.") || what.starts_with("vector.") ||
         what == "special_ops_per_s";
}

bool is_time(std::string_view what) { return what.ends_with("launch_s"); }

bool is_better(const Measurement& a, const Measurement& b) {
  return is_time(a.what) ? a.value < b.value : a.value > b.value;
}

template <class Measurements>
auto* find(Measurements& measurements, std::string_view what) {
  const auto it = std::find_if(measurements.begin(), measurements.end(),
                               [&](const Measurement& m) { return m.what == what; });
  return it == measurements.end() ? nullptr : &*it;
}

constexpr std::string_view kKinds[] = {"read", "write", "copy"};

// "level.L1.", "level.L2.", …, "memory.": nearest first, as they are named.
std::vector<std::string> levels_in_order(const Ceilings& ceilings) {
  std::vector<std::string> levels;
  for (const Measurement& m : ceilings.measurements) {
    const std::string_view what = m.what;
    if (!what.starts_with("level.L") || what.size() < 9 || what[8] != '.' ||
        !std::isdigit(static_cast<unsigned char>(what[7])))
      continue;
    const std::string prefix(what.substr(0, 9));
    if (std::find(levels.begin(), levels.end(), prefix) == levels.end()) levels.push_back(prefix);
  }
  std::sort(levels.begin(), levels.end());
  levels.emplace_back("memory.");
  return levels;
}

}  // namespace

Ceilings best_of(const Ceilings& known, const Ceilings& latest) {
  Ceilings best{latest.name, latest.title, known.measurements};
  for (const Measurement& m : latest.measurements) {
    Measurement* old = find(best.measurements, m.what);
    if (!old)
      best.measurements.push_back(m);
    else if ((!is_rate(m.what) && !is_time(m.what)) || is_better(m, *old))
      *old = m;
  }
  return best;
}

List<OutOfOrder> out_of_order(const Ceilings& ceilings, double slack) {
  const std::vector<std::string> levels = levels_in_order(ceilings);
  List<OutOfOrder> found;
  for (const std::string_view kind : kKinds) {
    const Measurement* fastest_outside = nullptr;
    for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
      const Measurement* m = find(ceilings.measurements, fmt::format("{}{}_bytes_per_s", *level, kind));
      if (!m) continue;
      if (fastest_outside && m->value * slack < fastest_outside->value)
        found.push_back({m->what, fastest_outside->what, m->value, fastest_outside->value});
      if (!fastest_outside || m->value > fastest_outside->value) fastest_outside = m;
    }
  }
  return found;
}

Ceilings in_order(Ceilings ceilings) {
  for (const OutOfOrder& each : out_of_order(ceilings)) {
    Measurement* nearer = find(ceilings.measurements, each.nearer);
    nearer->value = each.farther_rate;
    nearer->how = fmt::format("{}; it found {:.3g} here, less than {}",
                              find(ceilings.measurements, each.farther)->how, each.nearer_rate, each.farther);
  }
  return ceilings;
}

}  // namespace tilewright::perf
