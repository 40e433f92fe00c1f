// Makes charts of rows.
#include "harness/report/charts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "harness/report/plot.h"
#include "harness/report/table.h"

namespace tilewright::lab {

namespace {

const Ceilings* ceilings_of_device(const RunRecord& run, const std::string& device) {
  for (const DeviceCeilings& entry : run.environment.ceilings) {
    if (entry.device == device && !entry.ceilings.levels.empty()) return &entry.ceilings;
  }
  return nullptr;
}

struct RooflinePoint {
  const Row* row = nullptr;
  double intensity = 0, flops_per_s = 0;
};

std::vector<RooflinePoint> roofline_points(const RunRecord& run, const std::string& device) {
  std::vector<RooflinePoint> points;
  for (const Row* row : representative_rows(run, device)) {
    const WorkEntry* entry = work_of(run, *row);
    if (!entry || entry->work.cost.flops() <= 0 || entry->work.cost.bytes() <= 0) continue;
    const perf::Cost& cost = entry->work.cost;
    points.push_back({row, cost.intensity(), cost.flops() / *row->median_us * 1e6});
  }
  return points;
}

// The math ceilings worth a line: those of the types that the run computes in, or all when that is unknown.
std::vector<MathRate> used_rates(const RunRecord& run, const std::string& device, const Ceilings& ceilings) {
  std::vector<MathRate> used;
  for (const MathRate& rate : ceilings.math) {
    const bool any =
        std::any_of(run.environment.work.begin(), run.environment.work.end(), [&](const WorkEntry& e) {
          const auto& flops = rate.unit == perf::MathUnit::matrix ? e.work.cost.matrix : e.work.cost.vector;
          return e.device == device && flops[rate.dtype] > 0;
        });
    if (any) used.push_back(rate);
  }
  return used;
}

// What the rates of a chart are written in: all of them in one.
struct RateUnit {
  std::string name = "GFLOP/s";
  double flops_per_s = 1e9;
};

std::string rate_name(const MathRate& rate, const RateUnit& unit) {
  return fmt::format("{} {}, {:.4g} {}", name(rate.dtype),
                     rate.unit == perf::MathUnit::matrix ? "matrix" : "vector",
                     rate.flops_per_s / unit.flops_per_s, unit.name);
}

// A line of the chart, and its name.
struct Ceiling {
  std::vector<Point> line;  // the name stands near its last point
  std::string name;
};

std::vector<Ceiling> draw_ceilings(Plot& plot, const Ceilings& ceilings, const std::vector<MathRate>& rates,
                                   const AxisSpec& x, const AxisSpec& y, const RateUnit& unit) {
  std::vector<Ceiling> drawn;
  double roof = y.high;
  if (!rates.empty()) {
    roof = 0;
    for (const MathRate& rate : rates) roof = std::max(roof, rate.flops_per_s / unit.flops_per_s);
  }
  for (const MathRate& rate : rates) {
    const double height = rate.flops_per_s / unit.flops_per_s;
    drawn.push_back({{{rate.flops_per_s / ceilings.levels.front().copy, height}, {x.high, height}},
                     rate_name(rate, unit)});
    plot.line(drawn.back().line, "ceiling", drawn.back().name);
  }
  for (const MemoryLevel& level : ceilings.levels) {
    const bool memory = &level == &ceilings.levels.back();
    const double slope = level.copy / unit.flops_per_s;  // of FLOP/B
    const double left = std::max(x.low, y.low / slope), right = std::min(x.high, roof / slope);
    drawn.push_back({{{right, right * slope}, {left, left * slope}},
                     fmt::format("{}, {:.0f} GB/s", level.name, level.copy / 1e9)});
    plot.line(drawn.back().line, memory ? "ceiling strong" : "ceiling", drawn.back().name);
  }
  return drawn;
}

// One label per workload, at its fastest contender.
void label_workloads(Plot& plot, const std::vector<RooflinePoint>& points, const RateUnit& unit) {
  std::map<std::string, RooflinePoint> best;
  for (const RooflinePoint& p : points) {
    auto& known = best[p.row->target];
    if (!known.row || p.flops_per_s > known.flops_per_s) known = p;
  }
  for (const auto& [target, p] : best)
    plot.label({p.intensity, p.flops_per_s / unit.flops_per_s}, target, "ink");
}

std::string roofline_caption(const RunRecord& run, const std::string& device, std::size_t points,
                             const Ceilings& ceilings) {
  std::string text = fmt::format("Dashed: ceilings ({}). Points: medians, a workload's name at its fastest.",
                                 ceilings.source);
  if (leaves_out_sizes(run, device)) text += " Where a workload's size was swept, the largest is shown.";
  if (points < representative_rows(run, device).size())
    text += " Workloads without arithmetic are not on this chart.";
  return text;
}

}  // namespace

const WorkEntry* work_of(const RunRecord& run, const Row& row) {
  for (const WorkEntry& e : run.environment.work) {
    if (e.target == row.target && e.device == row.device && e.shape == row.shape && e.dtype == row.dtype)
      return &e;
  }
  return nullptr;
}

bool drawable(const Row& row, const std::string& device) {
  return row.device == device && row.verified && row.median_us && row.verdict != Verdict::impossible;
}

std::string tooltip(const Row& row) {
  std::string text = fmt::format("{} {} {}, {}: {}", row.target, row.shape, row.dtype, row.contender,
                                 time_text(*row.median_us));
  if (row.rate) text += fmt::format(", {:.4g} {}", *row.rate, row.unit);
  if (row.roofline) text += fmt::format(", {:.0f} % of the roofline", 100 * *row.roofline);
  return text;
}

std::vector<std::string> contenders_of(const RunRecord& run) {
  std::vector<std::string> names;
  for (const Row& row : run.rows) {
    if (row.median_us && std::find(names.begin(), names.end(), row.contender) == names.end())
      names.push_back(row.contender);
  }
  return names;
}

SeriesStyles series_styles(const RunRecord& run) {
  constexpr std::size_t kColours = 8;  // in the page's style sheet; a ninth contender repeats the first's
  SeriesStyles styles;
  for (const std::string& contender : contenders_of(run))
    styles.emplace(contender, fmt::format("s{}", styles.size() % kColours));
  return styles;
}

std::string series_rules() {
  std::string css;
  for (int i = 0; i < 8; ++i)
    css += fmt::format("svg .line.s{0} {{ stroke:var(--s{0}); }} svg .dot.s{0} {{ fill:var(--s{0}); }}\n", i);
  return css;
}

Chart roofline_chart(const RunRecord& run, const std::string& device, const SeriesStyles& styles) {
  const Ceilings* ceilings = ceilings_of_device(run, device);
  const std::vector<RooflinePoint> points = roofline_points(run, device);
  if (!ceilings || points.empty()) return {};
  const std::vector<MathRate> rates = used_rates(run, device, *ceilings);
  double top = 0;
  for (const RooflinePoint& p : points) top = std::max(top, p.flops_per_s);
  for (const MathRate& rate : rates) top = std::max(top, rate.flops_per_s);
  const RateUnit unit = top >= 1e13 ? RateUnit{"TFLOP/s", 1e12} : RateUnit{};
  double x_low = 1e300, x_high = 0, y_low = 1e300;
  for (const RooflinePoint& p : points) {
    x_low = std::min(x_low, p.intensity), x_high = std::max(x_high, p.intensity);
    y_low = std::min(y_low, p.flops_per_s);
  }
  for (const MathRate& rate : rates)
    x_high =
        std::max(x_high, 2 * rate.flops_per_s / ceilings->levels.back().copy);  // the ridge, with room beyond
  const AxisSpec x{"arithmetic intensity, FLOP per byte", Scale::log10, x_low / 4, x_high * 2};
  const AxisSpec y{unit.name, Scale::log10, y_low / 3 / unit.flops_per_s, top * 2 / unit.flops_per_s};
  const auto drawn = [&](const PlotFrame& frame) {
    Plot plot(x, y, frame);
    const std::vector<Ceiling> lines = draw_ceilings(plot, *ceilings, rates, x, y, unit);
    for (const RooflinePoint& p : points)
      plot.point({p.intensity, p.flops_per_s / unit.flops_per_s}, styles.at(p.row->contender),
                 tooltip(*p.row));
    for (const Ceiling& ceiling : lines) plot.name_line(ceiling.line, ceiling.name, "muted");
    label_workloads(plot, points, unit);
    return plot.svg();
  };
  const std::string title = "roofline of " + device;
  Chart chart{fmt::format("Roofline, {}", device), roofline_caption(run, device, points.size(), *ceilings),
              drawn({.height = 460, .title = title})};
  chart.narrow = drawn({.width = kNarrowWidth, .height = 380, .title = title});
  for (const std::string& contender : contenders_of(run))
    if (std::any_of(points.begin(), points.end(),
                    [&](const RooflinePoint& p) { return p.row->contender == contender; }))
      chart.key.push_back(contender);
  return chart;
}

}  // namespace tilewright::lab
