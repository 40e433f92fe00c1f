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
constexpr double kNameLine = 18;                    // of a narrow chart: a workload's name above its line

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
// The course of a line of dots.
struct Track {
  double left, right, y;
  double end;  // of the chart: names may stand up to there
};
// What of a line has text.
struct Covered {
  double from, to;
};
// The upright line of a percentage.
struct Place {
  double x;
  const char* style;
  std::vector<Covered> covered = {};  // from above
};

// The dots of a line with their contenders' names: those that are too close for names between them have
// theirs together, in their order, behind the last or, where there is no room, before the first. Where there
// is none there either, they are in the key.
struct DrawnDots {
  std::string svg;
  std::vector<std::string> key;
  std::vector<Covered> covered;  // from left to right
};
DrawnDots draw_dots(std::vector<Dot> dots, const Track& track, const SeriesStyles& styles) {
  constexpr double kGap = 10, kCharacter = 6.2;
  std::stable_sort(dots.begin(), dots.end(), [](const Dot& a, const Dot& b) { return a.x < b.x; });
  DrawnDots drawn;
  const double y = track.y;
  for (const Dot& dot : dots)
    drawn.svg +=
        fmt::format("<circle class='dot {}' cx='{:.1f}' cy='{:.1f}' r='5.5'><title>{}</title></circle>\n",
                    styles.at(dot.row->contender), dot.x, y, escape_html(tooltip(*dot.row)));
  const auto width = [](const std::string& text) {
    return kGap + kCharacter * static_cast<double>(display_width(text));
  };
  double free_from = track.left;  // what is to the left of it has text
  for (std::size_t first = 0, end = 0; first < dots.size(); first = end) {
    std::string text = dots[first].row->contender;
    for (end = first + 1; end < dots.size() && dots[end].x - dots[end - 1].x < width(text) + kGap; ++end)
      text += ", " + dots[end].row->contender;
    const double behind = dots[end - 1].x + kGap, before = dots[first].x - kGap;
    const double limit = end < dots.size() ? dots[end].x - kGap : track.end;
    if (behind + width(text) - kGap <= limit) {
      drawn.svg += fmt::format("<text class='name' x='{:.1f}' y='{:.1f}'>{}</text>\n", behind, y + 4,
                               escape_html(text));
      drawn.covered.push_back({behind - 3, behind + width(text) - kGap + 3});
      free_from = behind + width(text);
    } else if (before - width(text) >= free_from) {
      drawn.svg += fmt::format("<text class='name' x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text>\n",
                               before, y + 4, escape_html(text));
      drawn.covered.push_back({before - width(text) + kGap - 3, before + 3});
    } else {
      for (std::size_t i = first; i < end; ++i) {
        const std::string& name = dots[i].row->contender;
        drawn.key.push_back(name);
      }
    }
  }
  return drawn;
}

// A line from `from` to `to` but for these parts of it, which stand in their order; `draw` draws a piece.
template <class Draw>
void draw_between(double from, double to, const std::vector<Covered>& covered, const Draw& draw) {
  for (const Covered& c : covered) {
    if (c.from > from) draw(from, c.from);
    from = std::max(from, c.to);
  }
  if (from < to) draw(from, to);
}

constexpr std::size_t kMostCharacters = 50;  // of a workload's name: what 360 units have room for
std::string fitting(const std::string& name) {
  return name.size() <= kMostCharacters ? name : name.substr(0, kMostCharacters - 1) + "…";
}

void add_names(std::vector<std::string>& key, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (std::find(key.begin(), key.end(), name) == key.end()) key.push_back(name);
}

struct Drawing {
  std::string body;  // SVG elements
  double height = 0;
  std::vector<std::string> key;  // contenders without a name beside one of their dots
};

Drawing draw_shares(const Workloads& workloads, const SeriesStyles& styles, int width) {
  const bool narrow = width <= kNarrowWidth;
  double most = 1;
  for (const auto& [line, row] : workloads.dots) most = std::max(most, *row->roofline);
  std::size_t longest = 0;  // characters of a workload's name
  for (const std::string& name : workloads.names) longest = std::max(longest, display_width(fitting(name)));
  const double names = narrow ? 14 : std::clamp(6.6 * static_cast<double>(longest) + 20, 120.0, 360.0);
  const double high = std::min(1.2, most), span = width - names - kEnd;
  const double height = narrow ? kLine + kNameLine : kLine;  // of a workload
  const double bottom = kHead + height * static_cast<double>(workloads.names.size());
  const auto at = [&](double share) { return names + std::min(share, high) / high * span; };
  Drawing drawing{.body = "", .height = bottom + 26, .key = {}};
  std::vector<Place> places;
  for (int percent = 0; percent <= 100; percent += 20) {
    places.push_back({at(percent / 100.0), percent == 100 ? "line ceiling strong" : "grid"});
    drawing.body += fmt::format("<text class='tick' x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}%</text>\n",
                                places.back().x, bottom + 16, percent);
  }
  std::string dots_svg;
  for (std::size_t i = 0; i < workloads.names.size(); ++i) {
    const double top = kHead + height * static_cast<double>(i) + (narrow ? kNameLine : 0);
    const Track track{names, width - kEnd, top + kLine / 2, static_cast<double>(width)};
    const std::string &whole = workloads.names[i], shown = fitting(whole);
    drawing.body +=
        fmt::format("<text class='label ink' x='{}' y='{:.1f}'{}>{}{}</text>", narrow ? 2 : names - 12,
                    narrow ? top - 4 : track.y + 4, narrow ? "" : " text-anchor='end'", escape_html(shown),
                    shown == whole ? "" : fmt::format("<title>{}</title>", escape_html(whole)));
    std::vector<Dot> dots;
    for (const auto& [line, row] : workloads.dots)
      if (line == i) dots.push_back({at(*row->roofline), row});
    const DrawnDots drawn = draw_dots(std::move(dots), track, styles);
    draw_between(track.left, track.right, drawn.covered, [&](double from, double to) {
      drawing.body += svg_line("grid", {from, track.y}, {to, track.y});
    });
    for (Place& place : places) {
      if (narrow) place.covered.push_back({top - kNameLine, top});
      constexpr double kText = 8;  // above and below the middle of a name
      if (std::any_of(drawn.covered.begin(), drawn.covered.end(),
                      [&](const Covered& c) { return c.from < place.x && place.x < c.to; }))
        place.covered.push_back({track.y - kText, track.y + kText});
    }
    dots_svg += drawn.svg;
    add_names(drawing.key, drawn.key);
  }
  for (const Place& place : places)
    draw_between(kHead, bottom, place.covered, [&](double from, double to) {
      drawing.body += svg_line(place.style, {place.x, from}, {place.x, to});
    });
  drawing.body += dots_svg;
  return drawing;
}

}  // namespace

Chart share_chart(const RunRecord& run, const std::string& device, const SeriesStyles& styles) {
  const Workloads workloads = workloads_of(run, device);
  if (workloads.names.empty()) return {};
  const Drawing drawing = draw_shares(workloads, styles, kChartWidth);
  const Drawing narrow = draw_shares(workloads, styles, kNarrowWidth);
  std::vector<std::string> key = drawing.key;
  add_names(key, narrow.key);
  const std::string what = "share of the roofline";
  return {fmt::format("Share of the roofline, {}", device),
          fmt::format("Medians of calls. 100 % is the least time that the ceilings allow for the compulsory "
                      "work{}.",
                      workloads.sweeps ? "; where a workload's size was swept, the largest is shown" : ""),
          svg_of(kChartWidth, drawing.height, what, drawing.body), std::move(key),
          svg_of(kNarrowWidth, narrow.height, what, narrow.body)};
}

std::string share_picture(const RunRecord& run, const std::string& title) {
  const SeriesStyles styles = series_styles(run);
  const Workloads workloads = run.rows.empty() ? Workloads{} : workloads_of(run, run.rows.front().device);
  if (workloads.names.empty()) return "";
  constexpr double kTitle = 26, kTop = 40;  // its baseline, and where the chart begins
  const Drawing drawing = draw_shares(workloads, styles, kChartWidth);
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
