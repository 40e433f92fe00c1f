// The chart of shares of the roofline: one line a workload, one dot a contender.
#include <fmt/format.h>

#include <algorithm>

#include "harness/report/charts.h"
#include "harness/report/plot.h"
#include "harness/report/report_style.h"
#include "harness/report/table.h"

namespace tilewright::lab {

namespace {

constexpr double kLine = 26, kEnd = 20, kHead = 8;  // height of a line, margins right and above

struct Workloads {
  std::vector<std::string> names;
  std::vector<std::pair<std::size_t, const Row*>> dots;  // line, row
};

Workloads workloads_of(const RunRecord& run, const std::string& device) {
  Workloads found;
  for (const Row* row : representative_rows(run, device)) {
    if (!row->roofline) continue;
    const std::string workload = fmt::format("{} {} {}", row->target, row->shape, row->dtype);
    auto it = std::find(found.names.begin(), found.names.end(), workload);
    if (it == found.names.end()) it = found.names.insert(it, workload);
    found.dots.emplace_back(static_cast<std::size_t>(it - found.names.begin()), row);
  }
  return found;
}

struct Drawing {
  std::string body;  // SVG elements
  double height = 0;
};

Drawing draw_shares(const Workloads& workloads, const SeriesStyles& styles) {
  double most = 1;
  for (const auto& [line, row] : workloads.dots) most = std::max(most, *row->roofline);
  std::size_t longest = 0;  // characters of a workload's name
  for (const std::string& name : workloads.names) longest = std::max(longest, name.size());
  const double names = std::clamp(6.6 * static_cast<double>(longest) + 20, 120.0, 360.0);
  const double high = std::min(1.2, most), span = kChartWidth - names - kEnd;
  const double bottom = kHead + kLine * static_cast<double>(workloads.names.size());
  const auto at = [&](double share) { return names + std::min(share, high) / high * span; };
  const auto middle = [](std::size_t line) { return kHead + kLine * (static_cast<double>(line) + 0.5); };
  std::string body;
  for (int percent = 0; percent <= 100; percent += 20) {
    const double x = at(percent / 100.0);
    body += svg_line(percent == 100 ? "line ceiling strong" : "grid", {x, kHead}, {x, bottom});
    body += fmt::format("<text class='tick' x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}%</text>\n", x,
                        bottom + 16, percent);
  }
  for (std::size_t i = 0; i < workloads.names.size(); ++i) {
    const double y = middle(i);
    body += fmt::format("<text class='label ink' x='{}' y='{:.1f}' text-anchor='end'>{}</text>", names - 12,
                        y + 4, escape_html(workloads.names[i]));
    body += svg_line("grid", {names, y}, {kChartWidth - kEnd, y});
  }
  for (const auto& [line, row] : workloads.dots) {
    body +=
        fmt::format("<circle class='dot {}' cx='{:.1f}' cy='{:.1f}' r='5.5'><title>{}</title></circle>\n",
                    styles.at(row->contender), at(*row->roofline), middle(line), escape_html(tooltip(*row)));
  }
  return {body, bottom + 26};
}

std::string draw_legend(const RunRecord& run, const SeriesStyles& styles, double y) {
  std::string svg;
  double x = 20;
  for (const std::string& contender : contenders_of(run)) {
    svg += fmt::format("<circle class='dot {}' cx='{:.1f}' cy='{:.1f}' r='5.5'/>", styles.at(contender), x,
                       y - 4);
    svg +=
        fmt::format("<text class='ink' x='{:.1f}' y='{:.1f}'>{}</text>\n", x + 10, y, escape_html(contender));
    x += 30 + 7 * static_cast<double>(display_width(contender));
  }
  return svg;
}

}  // namespace

Chart share_chart(const RunRecord& run, const std::string& device, const SeriesStyles& styles) {
  const Workloads workloads = workloads_of(run, device);
  if (workloads.names.empty()) return {};
  const Drawing drawing = draw_shares(workloads, styles);
  return {fmt::format("Share of the roofline, {}", device),
          "100 % is the least time that the measured ceilings allow for the compulsory work.",
          fmt::format("<svg viewBox='0 0 {} {:.0f}' role='img' aria-label='share of the roofline' "
                      "xmlns='http://www.w3.org/2000/svg'>\n{}</svg>\n",
                      kChartWidth, drawing.height, drawing.body)};
}

std::string share_picture(const RunRecord& run, const std::string& title) {
  const SeriesStyles styles = series_styles(run);
  const Workloads workloads = run.rows.empty() ? Workloads{} : workloads_of(run, run.rows.front().device);
  if (workloads.names.empty()) return "";
  constexpr double kTitle = 26, kLegend = 50, kTop = 60;  // baselines of the two, and where the chart begins
  const Drawing drawing = draw_shares(workloads, styles);
  const double height = kTop + drawing.height;
  std::string svg = fmt::format(
      "<svg viewBox='0 0 {0} {1:.0f}' width='{0}' height='{1:.0f}' role='img' aria-label='{2}' "
      "xmlns='http://www.w3.org/2000/svg'>\n<style>{3}{4}{5}</style>\n",
      kChartWidth, height, escape_html(title), kReportColours, kChartStyle, series_rules());
  svg += fmt::format("<rect class='card' width='{}' height='{:.0f}' rx='10'/>\n", kChartWidth, height);
  svg += fmt::format("<text class='ink title' x='15' y='{}'>{}</text>\n", kTitle, escape_html(title));
  svg += draw_legend(run, styles, kLegend);
  svg += fmt::format("<g transform='translate(0,{})'>\n{}</g>\n</svg>\n", kTop, drawing.body);
  return svg;
}

}  // namespace tilewright::lab
