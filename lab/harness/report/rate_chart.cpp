// Rate against size: one curve a contender.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "harness/report/charts.h"
#include "harness/report/plot.h"

namespace tilewright::lab {

namespace {

// "8192x1024" → 8388608; 0 when it is no shape.
double elements(const std::string& shape) {
  double n = 1;
  for (const std::string& piece : split(shape, 'x')) {
    const double extent = std::atof(piece.c_str());
    if (extent <= 0) return 0;
    n *= extent;
  }
  return n;
}

// A row's place on the axis: what its pair says, or its shape's elements; value 0 if there are neither.
SweepPoint point_of(const RunRecord& run, const Row& row) {
  const WorkEntry* entry = work_of(run, row);
  if (entry && entry->sweep) return *entry->sweep;
  return {.axis = "N", .value = elements(row.shape)};
}

struct Sweep {
  std::string target, dtype;
  SweepPoint of;                                               // but its value
  std::map<std::string, std::map<double, const Row*>> curves;  // contender → size → row
  std::set<double> sizes;
  std::string unit = {};                    // of the largest size
  std::map<const Row*, double> rates = {};  // in it

  bool takes(const Row& row, const SweepPoint& at) const {
    return target == row.target && dtype == row.dtype && of.axis == at.axis && of.series == at.series;
  }
};

// A row's rate in a unit. Small sizes may be bound by arithmetic where large ones are bound by memory: then
// their own unit is another. 0: unknown.
double rate_in(const std::string& unit, const RunRecord& run, const Row& row) {
  if (row.unit == unit) return *row.rate;
  const WorkEntry* entry = work_of(run, row);
  if (!entry) return 0;
  const perf::Cost& cost = entry->work.cost;
  return (unit == "GB/s" ? cost.bytes() : cost.flops()) / *row.median_us / 1e3;
}

void set_rates(const RunRecord& run, Sweep& sweep) {
  double largest = 0;
  for (const auto& [contender, curve] : sweep.curves)
    if (const auto& [size, row] = *curve.rbegin(); size > largest) largest = size, sweep.unit = row->unit;
  for (auto& [contender, curve] : sweep.curves) {
    for (const auto& [size, row] : curve) sweep.rates[row] = rate_in(sweep.unit, run, *row);
    std::erase_if(curve, [&](const auto& at) { return sweep.rates[at.second] <= 0; });
  }
  std::erase_if(sweep.curves, [](const auto& curve) { return curve.second.empty(); });
}

std::vector<Sweep> find_sweeps(const RunRecord& run, const std::string& device) {
  std::vector<Sweep> sweeps;
  for (const Row& row : run.rows) {
    const SweepPoint at = point_of(run, row);
    if (!drawable(row, device) || !row.rate || at.value <= 0) continue;
    auto it = std::find_if(sweeps.begin(), sweeps.end(), [&](const Sweep& s) { return s.takes(row, at); });
    if (it == sweeps.end()) it = sweeps.insert(sweeps.end(), {row.target, row.dtype, at, {}, {}});
    it->curves[row.contender][at.value] = &row;
    it->sizes.insert(at.value);
  }
  std::erase_if(sweeps, [](const Sweep& s) { return s.sizes.size() < 4; });
  for (Sweep& s : sweeps) set_rates(run, s);
  return sweeps;
}

// Rates in their unit, or in thousands of it where they are tens of thousands.
struct ShownUnit {
  std::string name;
  double factor = 1;
};
ShownUnit shown_unit(const Sweep& sweep) {
  double top = 0;
  for (const auto& [contender, curve] : sweep.curves) {
    for (const auto& [n, row] : curve) top = std::max(top, sweep.rates.at(row));
  }
  if (top >= 1e4 && sweep.unit.starts_with("G")) return {"T" + sweep.unit.substr(1), 1e-3};
  return {sweep.unit, 1};
}

// The rate at the floor: what the dashed line shows.
std::vector<Point> ceiling_line(const Sweep& sweep, double factor) {
  std::map<double, double> best;
  for (const auto& [contender, curve] : sweep.curves) {
    for (const auto& [n, row] : curve) {
      if (row->roofline && *row->roofline > 0) best[n] = factor * sweep.rates.at(row) / *row->roofline;
    }
  }
  std::vector<Point> points;
  points.reserve(best.size());
  for (const auto& [n, rate] : best) points.push_back({n, rate});
  return points;
}

Chart rate_chart(const Sweep& sweep, const SeriesStyles& styles) {
  const ShownUnit unit = shown_unit(sweep);
  const auto rate = [&](const Row& row) { return unit.factor * sweep.rates.at(&row); };
  const std::vector<Point> ceiling = ceiling_line(sweep, unit.factor);
  double top = 0;
  for (const auto& [contender, curve] : sweep.curves) {
    for (const auto& [n, row] : curve) top = std::max(top, rate(*row));
  }
  // The ceiling is far above for data that fits a cache: its line may leave the chart there.
  double lowest_ceiling = std::numeric_limits<double>::infinity();
  for (const Point& p : ceiling) lowest_ceiling = std::min(lowest_ceiling, p.y);
  if (std::isfinite(lowest_ceiling)) top = std::max(top, lowest_ceiling);
  // A shape of a product is rows, columns and depth: its extents are no tensor's.
  const std::string extents = sweep.unit == "GB/s" ? "elements (N)" : "product of the extents (N)";
  const AxisSpec x{sweep.of.axis == "N" ? extents : sweep.of.axis, Scale::log2, *sweep.sizes.begin(),
                   *sweep.sizes.rbegin()};
  const AxisSpec y{unit.name, Scale::linear, 0, 1.12 * top};
  std::string caption = "Medians with 95 % intervals, the lines' names in the order of their ends.";
  std::vector<Point> inside;
  for (const Point& p : ceiling) {
    if (p.y <= y.high) inside.push_back(p);
  }
  if (inside.size() > 1) {
    caption += " Dashed: the rate of the least time that the measured ceilings allow";
    caption +=
        inside.size() < ceiling.size() ? "; where caches allow more than the chart shows it ends." : ".";
  }
  const auto drawn = [&](PlotFrame frame) {
    std::vector<Plot::EndName> ends;
    for (const auto& [contender, curve] : sweep.curves) {
      ends.push_back(
          {{curve.rbegin()->first, rate(*curve.rbegin()->second)}, contender, styles.at(contender)});
      frame.names.push_back(contender);
    }
    Plot plot(x, y, frame);
    if (inside.size() > 1) plot.line(inside, "ceiling strong", "measured ceiling");
    for (const auto& [contender, curve] : sweep.curves) {
      const std::string& style = styles.at(contender);
      std::vector<Point> points;
      for (const auto& [n, row] : curve) points.push_back({n, rate(*row)});
      plot.line(points, style, contender);
      for (const auto& [n, row] : curve) {
        const double amount = rate(*row) * *row->median_us;
        if (row->ci95_us) plot.whisker(n, {amount / row->ci95_us->high, amount / row->ci95_us->low}, style);
        plot.point({n, rate(*row)}, style, tooltip(*row));
      }
    }
    if (inside.size() > 1) plot.name_line({inside.rbegin(), inside.rend()}, "measured ceiling", "muted");
    plot.end_names(std::move(ends));
    return plot.svg();
  };
  const std::string work = sweep.of.series.empty() ? sweep.target : sweep.target + " " + sweep.of.series;
  return {fmt::format("{}, {}: {} against {}", work, sweep.dtype, unit.name, sweep.of.axis),
          caption,
          drawn({.height = 380, .title = sweep.target}),
          {},
          drawn({.width = kNarrowWidth, .height = 320, .title = sweep.target})};
}

}  // namespace

std::vector<const Row*> representative_rows(const RunRecord& run, const std::string& device) {
  const std::vector<Sweep> sweeps = find_sweeps(run, device);
  std::vector<const Row*> rows;
  for (const Row& row : run.rows) {
    const SweepPoint at = point_of(run, row);
    const bool smaller = std::any_of(sweeps.begin(), sweeps.end(), [&](const Sweep& s) {
      return s.takes(row, at) && at.value < *s.sizes.rbegin();
    });
    if (drawable(row, device) && !smaller) rows.push_back(&row);
  }
  return rows;
}

bool leaves_out_sizes(const RunRecord& run, const std::string& device) {
  return !find_sweeps(run, device).empty();
}

std::vector<Chart> rate_charts(const RunRecord& run, const std::string& device, const SeriesStyles& styles) {
  std::vector<Chart> charts;
  for (const Sweep& sweep : find_sweeps(run, device)) charts.push_back(rate_chart(sweep, styles));
  return charts;
}

}  // namespace tilewright::lab
