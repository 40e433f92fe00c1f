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
  bool sweeps = false;                                   // smaller sizes were left out
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
  found.sweeps = leaves_out_sizes(run, device);
  return found;
}

struct Dot {
  double x = 0;
  const Row* row = nullptr;
};

// The dots of a line with their contenders' names: those that are too close for names between them have
// theirs together, in their order, behind the last or, where there is no room, before the first. Where there
// is none there either, they are added to `key`.
std::string draw_dots(std::vector<Dot> dots, double y, double left, const SeriesStyles& styles,
                      std::vector<std::string>& key) {
  constexpr double kGap = 10, kCharacter = 6.2;
  std::stable_sort(dots.begin(), dots.end(), [](const Dot& a, const Dot& b) { return a.x < b.x; });
  std::string svg;
  for (const Dot& dot : dots)
    svg += fmt::format("<circle class='dot {}' cx='{:.1f}' cy='{:.1f}' r='5.5'><title>{}</title></circle>\n",
                       styles.at(dot.row->contender), dot.x, y, escape_html(tooltip(*dot.row)));
  const auto width = [](const std::string& text) {
    return kGap + kCharacter * static_cast<double>(display_width(text));
  };
  double free_from = left;  // what is to the left of it has text
  for (std::size_t first = 0, end = 0; first < dots.size(); first = end) {
    std::string text = dots[first].row->contender;
    for (end = first + 1; end < dots.size() && dots[end].x - dots[end - 1].x < width(text) + kGap; ++end)
      text += ", " + dots[end].row->contender;
    const double behind = dots[end - 1].x + kGap, before = dots[first].x - kGap;
    const double limit = end < dots.size() ? dots[end].x - kGap : static_cast<double>(kChartWidth);
    if (behind + width(text) - kGap <= limit) {
      svg += fmt::format("<text class='name' x='{:.1f}' y='{:.1f}'>{}</text>\n", behind, y + 4,
                         escape_html(text));
      free_from = behind + width(text);
    } else if (before - width(text) >= free_from) {
      svg += fmt::format("<text class='name' x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text>\n", before,
                         y + 4, escape_html(text));
    } else {
      for (std::size_t i = first; i < end; ++i) {
        const std::string& name = dots[i].row->contender;
        if (std::find(key.begin(), key.end(), name) == key.end()) key.push_back(name);
      }
    }
  }
  return svg;
}

constexpr std::size_t kMostCharacters = 50;  // of a workload's name: what 360 units have room for
std::string fitting(const std::string& name) {
  return name.size() <= kMostCharacters ? name : name.substr(0, kMostCharacters - 1) + "…";
}

struct Drawing {
  std::string body;  // SVG elements
  double height = 0;
  std::vector<std::string> key;  // contenders without a name beside one of their dots
};

Drawing draw_shares(const Workloads& workloads, const SeriesStyles& styles) {
  double most = 1;
  for (const auto& [line, row] : workloads.dots) most = std::max(most, *row->roofline);
  std::size_t longest = 0;  // characters of a workload's name
  for (const std::string& name : workloads.names) longest = std::max(longest, display_width(fitting(name)));
  const double names = std::clamp(6.6 * static_cast<double>(longest) + 20, 120.0, 360.0);
  const double high = std::min(1.2, most), span = kChartWidth - names - kEnd;
  const double bottom = kHead + kLine * static_cast<double>(workloads.names.size());
  const auto at = [&](double share) { return names + std::min(share, high) / high * span; };
  const auto middle = [](std::size_t line) { return kHead + kLine * (static_cast<double>(line) + 0.5); };
  std::string body;
  std::vector<std::string> key;
  for (int percent = 0; percent <= 100; percent += 20) {
    const double x = at(percent / 100.0);
    body += svg_line(percent == 100 ? "line ceiling strong" : "grid", {x, kHead}, {x, bottom});
    body += fmt::format("<text class='tick' x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}%</text>\n", x,
                        bottom + 16, percent);
  }
  for (std::size_t i = 0; i < workloads.names.size(); ++i) {
    const double y = middle(i);
    const std::string &whole = workloads.names[i], shown = fitting(whole);
    body += fmt::format("<text class='label ink' x='{}' y='{:.1f}' text-anchor='end'>{}{}</text>", names - 12,
                        y + 4, escape_html(shown),
                        shown == whole ? "" : fmt::format("<title>{}</title>", escape_html(whole)));
    body += svg_line("grid", {names, y}, {kChartWidth - kEnd, y});
  }
  for (std::size_t i = 0; i < workloads.names.size(); ++i) {
    std::vector<Dot> dots;
    for (const auto& [line, row] : workloads.dots)
      if (line == i) dots.push_back({at(*row->roofline), row});
    body += draw_dots(std::move(dots), middle(i), names, styles, key);
  }
  return {body, bottom + 26, std::move(key)};
}

}  // namespace

Chart share_chart(const RunRecord& run, const std::string& device, const SeriesStyles& styles) {
  const Workloads workloads = workloads_of(run, device);
  if (workloads.names.empty()) return {};
  const Drawing drawing = draw_shares(workloads, styles);
  return {fmt::format("Share of the roofline, {}", device),
          fmt::format("Medians of calls. 100 % is the least time that the ceilings allow for the compulsory "
                      "work{}.",
                      workloads.sweeps ? "; where a workload's size was swept, the largest is shown" : ""),
          fmt::format("<svg viewBox='0 0 {} {:.0f}' role='img' aria-label='share of the roofline' "
                      "xmlns='http://www.w3.org/2000/svg'>\n{}</svg>\n",
                      kChartWidth, drawing.height, drawing.body),
          drawing.key};
}

std::string share_picture(const RunRecord& run, const std::string& title) {
  const SeriesStyles styles = series_styles(run);
  const Workloads workloads = run.rows.empty() ? Workloads{} : workloads_of(run, run.rows.front().device);
  if (workloads.names.empty()) return "";
  constexpr double kTitle = 26, kTop = 40;  // its baseline, and where the chart begins
  const Drawing drawing = draw_shares(workloads, styles);
  const double height = kTop + drawing.height;
  std::string svg = fmt::format(
      "<svg viewBox='0 0 {0} {1:.0f}' width='{0}' height='{1:.0f}' role='img' aria-label='{2}' "
      "xmlns='http://www.w3.org/2000/svg'>\n<style>{3}{4}{5}</style>\n",
      kChartWidth, height, escape_html(title), kReportColours, kChartStyle, series_rules());
  svg += fmt::format("<rect class='card' width='{}' height='{:.0f}' rx='10'/>\n", kChartWidth, height);
  svg += fmt::format("<text class='ink title' x='15' y='{}'>{}</text>\n", kTitle, escape_html(title));
  svg += fmt::format("<g transform='translate(0,{})'>\n{}</g>\n</svg>\n", kTop, drawing.body);
  return svg;
}

}  // namespace tilewright::lab
