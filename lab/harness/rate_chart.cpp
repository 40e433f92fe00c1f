// Rate against size: one curve a contender.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "harness/charts.h"
#include "harness/plot.h"

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

struct Sweep {
  std::string target, dtype, unit;
  std::map<std::string, std::map<double, const Row*>> curves;  // contender → size → row
  std::set<double> sizes;
};

std::vector<Sweep> find_sweeps(const RunRecord& run, const std::string& device) {
  std::vector<Sweep> sweeps;
  for (const Row& row : run.rows) {
    const double n = elements(row.shape);
    if (!drawable(row, device) || !row.rate || n <= 0) continue;
    auto it = std::find_if(sweeps.begin(), sweeps.end(), [&](const Sweep& s) {
      return s.target == row.target && s.dtype == row.dtype && s.unit == row.unit;
    });
    if (it == sweeps.end()) it = sweeps.insert(sweeps.end(), {row.target, row.dtype, row.unit, {}, {}});
    it->curves[row.contender][n] = &row;
    it->sizes.insert(n);
  }
  std::erase_if(sweeps, [](const Sweep& s) { return s.sizes.size() < 4; });
  return sweeps;
}

// The rate at the floor: what the dashed line shows.
std::vector<Point> ceiling_line(const Sweep& sweep) {
  std::map<double, double> best;
  for (const auto& [contender, curve] : sweep.curves) {
    for (const auto& [n, row] : curve) {
      if (row->roofline && *row->roofline > 0) best[n] = *row->rate / *row->roofline;
    }
  }
  std::vector<Point> points;
  points.reserve(best.size());
  for (const auto& [n, rate] : best) points.push_back({n, rate});
  return points;
}

Chart rate_chart(const Sweep& sweep, const SeriesStyles& styles) {
  const std::vector<Point> ceiling = ceiling_line(sweep);
  double top = 0;
  for (const auto& [contender, curve] : sweep.curves) {
    for (const auto& [n, row] : curve) top = std::max(top, *row->rate);
  }
  // Where the data fits in a cache the ceiling is far above: the line may then leave the chart.
  double lowest_ceiling = std::numeric_limits<double>::infinity();
  for (const Point& p : ceiling) lowest_ceiling = std::min(lowest_ceiling, p.y);
  if (std::isfinite(lowest_ceiling)) top = std::max(top, lowest_ceiling);
  const AxisSpec x{"elements (N)", Scale::log2, *sweep.sizes.begin(), *sweep.sizes.rbegin()};
  const AxisSpec y{sweep.unit, Scale::linear, 0, 1.12 * top};
  Plot plot(x, y, kChartWidth, 380, sweep.target);
  std::vector<Point> inside;
  for (const Point& p : ceiling) {
    if (p.y <= y.high) inside.push_back(p);
  }
  if (inside.size() > 1) {
    plot.line(inside, "ceiling strong", "measured ceiling");
    plot.text(inside.front(), "measured ceiling", "muted", Plot::Anchor::start, -6);
  }
  std::vector<std::pair<Point, std::string>> ends;
  for (const auto& [contender, curve] : sweep.curves) {
    ends.emplace_back(Point{curve.rbegin()->first, *curve.rbegin()->second->rate}, contender);
    const std::string& style = styles.at(contender);
    std::vector<Point> points;
    for (const auto& [n, row] : curve) points.push_back({n, *row->rate});
    plot.line(points, style, contender);
    for (const auto& [n, row] : curve) {
      const double amount = *row->rate * *row->median_us;
      if (row->ci95_us) plot.whisker(n, {amount / row->ci95_us->high, amount / row->ci95_us->low}, style);
      plot.point({n, *row->rate}, style, tooltip(*row));
    }
  }
  for (const auto& [at, contender] : ends)
    plot.label(at, contender, "ink");  // after all points, to avoid them
  return {fmt::format("{}, {}: {} against N", sweep.target, sweep.dtype, sweep.unit),
          "Medians with 95 % intervals. The dashed line is the measured ceiling of the memory level that the "
          "data is in.",
          plot.svg()};
}

}  // namespace

std::vector<const Row*> representative_rows(const RunRecord& run, const std::string& device) {
  const std::vector<Sweep> sweeps = find_sweeps(run, device);
  std::vector<const Row*> rows;
  for (const Row& row : run.rows) {
    const bool smaller = std::any_of(sweeps.begin(), sweeps.end(), [&](const Sweep& s) {
      return s.target == row.target && s.dtype == row.dtype && elements(row.shape) < *s.sizes.rbegin();
    });
    if (drawable(row, device) && !smaller) rows.push_back(&row);
  }
  return rows;
}

std::vector<Chart> rate_charts(const RunRecord& run, const std::string& device, const SeriesStyles& styles) {
  std::vector<Chart> charts;
  for (const Sweep& sweep : find_sweeps(run, device)) charts.push_back(rate_chart(sweep, styles));
  return charts;
}

}  // namespace tilewright::lab
