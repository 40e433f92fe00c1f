// Curves and tables, by what the lab's pages are made of.
#include "tw/train/train_page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "harness/report/charts.h"
#include "harness/report/page.h"
#include "harness/report/plot.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;
using lab::AxisSpec;
using lab::Point;
using Value = std::function<double(const TrainReport&)>;

constexpr int kHeight = 340, kNarrowHeight = 280;  // of a chart, in its own units
constexpr std::size_t kMostDots = 40;              // of a curve: more are a line without dots

// What a curve stands against.
struct Against {
  std::string name, label, unit;
  Value of;
};

struct RunCurve {
  std::string name, label, style;  // the label stands at its end, where there is one
  Value of;
  const TrainedRun* run = nullptr;
  bool dotted = false;
};

std::vector<Point> points_of(const RunCurve& curve, const Against& x) {
  std::vector<Point> points;
  for (const TrainReport& r : curve.run->reports)
    if (const double y = curve.of(r); std::isfinite(y)) points.push_back({x.of(r), y});
  return points;
}

// An axis from the least of the curves, or 0 if that is near, to the most, with room above for labels.
AxisSpec fitting(const std::string& label, const std::vector<std::vector<Point>>& curves) {
  double low = 1e300, high = -1e300;
  for (const auto& curve : curves)
    for (const Point& p : curve) low = std::min(low, p.y), high = std::max(high, p.y);
  if (low > high) low = 0, high = 1;
  const double room = high > low ? high - low : std::max(std::abs(high), 1e-12);
  const bool from_zero = low >= 0 && low < 0.4 * high;
  return {label, lab::Scale::linear, from_zero ? 0 : low - 0.05 * room, high + 0.1 * room};
}

std::string chart(const std::string& what, const std::vector<RunCurve>& curves, const Against& x) {
  std::vector<std::vector<Point>> points;
  double first = 1e300, last = 0;
  for (const RunCurve& curve : curves) {
    points.push_back(points_of(curve, x));
    for (const Point& p : points.back()) first = std::min(first, p.x), last = std::max(last, p.x);
  }
  first = std::min(first, last);
  if (last <= first) last = first + 1;
  const AxisSpec across{x.label, lab::Scale::linear, first, last}, up = fitting(what, points);
  const auto drawn = [&](lab::PlotFrame frame) {
    std::vector<lab::Plot::EndName> ends;
    const auto style = [](const RunCurve& curve) { return curve.style + (curve.dotted ? " dashed" : ""); };
    for (std::size_t i = 0; i < curves.size(); ++i) {
      if (points[i].empty() || curves[i].label.empty()) continue;
      ends.push_back({points[i].back(), curves[i].label, style(curves[i])});
      frame.names.push_back(curves[i].label);
    }
    lab::Plot plot(across, up, frame);
    for (std::size_t i = 0; i < curves.size(); ++i) {
      if (points[i].empty()) continue;
      if (points[i].size() > 1) plot.line(points[i], style(curves[i]), curves[i].name);
      const bool dots = points[i].size() <= kMostDots;
      for (const Point& p : points[i])
        if (dots || &p == &points[i].back())
          plot.point(p, curves[i].style,
                     fmt::format("{}: {:.4g} at {:.4g} {}", curves[i].name, p.y, p.x, x.unit));
    }
    plot.end_names(std::move(ends));
    return plot.svg();
  };
  const std::string title = what + " over " + x.name;
  return lab::plot_html(drawn({.height = kHeight, .title = title}),
                        drawn({.width = lab::kNarrowWidth, .height = kNarrowHeight, .title = title}));
}

std::string style_of(std::size_t run) { return fmt::format("s{}", 1 + run % 7); }

// The colours of several runs.
std::string key(const std::vector<TrainedRun>& runs) {
  if (runs.size() == 1) return "";
  std::string html = "<div class='key'>";
  for (std::size_t i = 0; i < runs.size(); ++i)
    html += fmt::format("<span><i style='background:var(--{})'></i>{}</span>", style_of(i),
                        lab::escape_html(runs[i].name));
  return html + "</div>\n";
}

// Charts in which each run has a colour, and its training loss, which is of a single batch, is dotted.
std::string charts(const std::vector<TrainedRun>& runs, const Against& x) {
  std::vector<RunCurve> losses;
  std::vector<std::vector<RunCurve>> others(3);
  const Value values[] = {[](const TrainReport& r) { return r.tokens_per_s; },
                          [](const TrainReport& r) { return r.grad_norm; },
                          [](const TrainReport& r) { return r.learning_rate; }};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const TrainedRun& run = runs[i];
    const std::string style = style_of(i);
    const bool alone = runs.size() == 1;
    const std::string before = alone ? "" : run.name + ", ";
    losses.push_back({.name = before + "training",
                      .label = alone ? "training" : "",
                      .style = style,
                      .of = [](const TrainReport& r) { return r.train_loss; },
                      .run = &run,
                      .dotted = true});
    losses.push_back({.name = before + "validation",
                      .label = alone ? "validation" : run.name,
                      .style = style,
                      .of = [](const TrainReport& r) { return r.val_loss; },
                      .run = &run});
    for (std::size_t k = 0; k < others.size(); ++k)
      others[k].push_back(
          {.name = run.name, .label = alone ? "" : run.name, .style = style, .of = values[k], .run = &run});
  }
  const auto figure = [&](const std::string& title, const std::string& axis,
                          const std::vector<RunCurve>& curves, const std::string& caption) {
    return lab::figure_html(fmt::format("{} over {}", title, x.name), key(runs) + chart(axis, curves, x),
                            caption);
  };
  return figure("Loss", "loss", losses,
                "Lines: validation, the mean of batches held back. Dotted: training, the last step's batch "
                "alone.") +
         figure("Rate", "tokens/s", others[0],
                "A report counts the steps since the one before it; validation is left out.") +
         figure("Gradient norm", "norm", others[1], "The last step's gradient, before it is clipped.") +
         figure("Learning rate", "learning rate", others[2], "The last step's.");
}

using Named = std::vector<std::pair<std::string, std::string>>;

// A row for each name; where runs differ it is marked.
std::string table(const std::vector<TrainedRun>& runs, const std::vector<Named>& columns, bool marked) {
  std::string html = "<div class='scroll'><table><thead><tr><th class='l'></th>";
  for (const TrainedRun& run : runs) html += fmt::format("<th>{}</th>", lab::escape_html(run.name));
  html += "</tr></thead><tbody>\n";
  for (std::size_t row = 0; row < columns.front().size(); ++row) {
    const auto& [name, first] = columns.front()[row];
    const bool differs = marked && std::any_of(columns.begin(), columns.end(),
                                               [&](const Named& c) { return c[row].second != first; });
    html += fmt::format("<tr class='row{}'><th class='l' scope='row'>{}</th>", differs ? " differs" : "",
                        lab::escape_html(name));
    for (std::size_t i = 0; i < runs.size(); ++i)
      html += fmt::format("<td data-what='{}'><span>{}</span></td>", lab::escape_html(runs[i].name),
                          lab::escape_html(columns[i][row].second));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string tiles(const std::vector<TrainedRun>& runs) {
  const auto best = std::min_element(runs.begin(), runs.end(), [](const TrainedRun& a, const TrainedRun& b) {
    return a.reports.back().best_val_loss < b.reports.back().best_val_loss;
  });
  const TrainReport& r = best->reports.back();
  const std::string of = runs.size() > 1 ? ", " + best->name : "";
  return "<div class='tiles'>\n" +
         lab::tile_html(fmt::format("{:.4f}", r.best_val_loss), "best validation loss" + of) +
         lab::tile_html(fmt::format("{}", r.step), "steps" + of) +
         lab::tile_html(lab::short_number(r.tokens_per_s), "tokens/s at the end" + of) +
         lab::tile_html(fmt::format("{:.0f} %", 100 * r.mfu), "mfu at the end" + of) + "</div>\n";
}

}  // namespace

TrainedRun read_trained(const std::string& folder) {
  TrainedRun run{.name = std::filesystem::path(folder).lexically_normal().filename().string(),
                 .settings = read_settings(folder),
                 .reports = {}};
  if (run.name.empty()) run.name = folder;
  for (const std::string& line : log_lines(folder)) {
    const Json j = Json::parse(line);
    const auto number = [&](const char* key) {
      return j.contains(key) && j[key].is_number() ? j[key].get<double>() : std::nan("");
    };
    run.reports.push_back({.step = j.at("step"),
                           .train_loss = number("train_loss"),
                           .val_loss = number("val_loss"),
                           .best_val_loss = number("best_val_loss"),
                           .grad_norm = number("grad_norm"),
                           .learning_rate = number("learning_rate"),
                           .tokens_per_s = number("tokens_per_s"),
                           .mfu = number("mfu"),
                           .seconds = number("seconds"),
                           .peak_bytes = j.value("peak_bytes", std::size_t{0}),
                           .loader_wait = j.value("loader_wait", 0.0)});
  }
  if (run.reports.empty()) throw Error(fmt::format("{} has no report yet", folder));
  return run;
}

Named settings_of(const TrainedRun& run) {
  const TrainFolder::Settings& s = run.settings;
  return {{"recipe", s.small ? s.recipe + ", small" : s.recipe},
          {"data", s.data},
          {"precision", s.precision},
          {"learning rate, at most", fmt::format("{:g}", s.rate)},
          {"steps", fmt::format("{}", s.steps)},
          {"micro-batches of a step", fmt::format("{}", s.accumulate)},
          {"moments", s.moments},
          {"decay of the average", s.ema > 0 ? fmt::format("{:g}", s.ema) : "no average"},
          {"seed", fmt::format("{}", s.seed)}};
}

Named results_of(const TrainedRun& run) {
  const TrainReport& r = run.reports.back();
  return {{"steps done", fmt::format("{}", r.step)},
          {"best validation loss", fmt::format("{:.4f}", r.best_val_loss)},
          {"last validation loss", fmt::format("{:.4f}", r.val_loss)},
          {"last training loss", fmt::format("{:.4f}", r.train_loss)},
          {"tokens/s", fmt::format("{:.0f}", r.tokens_per_s)},
          {"mfu", fmt::format("{:.1f} %", 100 * r.mfu)},
          {"memory at most", fmt::format("{:.3g} GB", static_cast<double>(r.peak_bytes) / 1e9)},
          {"time", fmt::format("{:.1f} s", r.seconds)}};
}

std::string train_page(const std::vector<TrainedRun>& runs, const std::string& title) {
  const Against steps{"steps", "steps", "steps",
                      [](const TrainReport& r) { return static_cast<double>(r.step); }};
  const Against time{"time", "time, s", "s", [](const TrainReport& r) { return r.seconds; }};
  std::vector<Named> settings, results;
  for (const TrainedRun& run : runs) {
    settings.push_back(settings_of(run));
    results.push_back(results_of(run));
  }
  std::string body = tiles(runs);
  body += "<div class='charts'>\n" + charts(runs, steps) + charts(runs, time) + "</div>\n";
  body += "<h2>Settings</h2>\n" + table(runs, settings, /*marked=*/true);
  body += "<h2>Results</h2>\n" + table(runs, results, /*marked=*/false);
  body += fmt::format("<p class='muted'>{}.</p>\n", lab::escape_html(kMfuFormula));
  return lab::page_html(title, fmt::format("{} training{}", runs.size(), runs.size() == 1 ? "" : "s"), body);
}

}  // namespace tilewright::tw
