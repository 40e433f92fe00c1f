// Sweeps: one extent varied, one or more curves, as a table, JSON or a plot.
#include <tilewright/base/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tw/command/arguments.h"
#include "tw/command/plot.h"
#include "tw/roofline/roofline_point.h"

namespace tilewright::tw {

namespace {

using perf::with_prefix;

struct Curve {
  std::string label;
  std::vector<std::pair<std::string, Index>> fixed;  // extents that differ from the command line
  std::vector<Answer> answers;                       // one for each value of the sweep
};

Index* extent(const Question& q, const std::string& name) {
  std::vector<std::string_view> names;
  for (const auto& [known, value] : q.extents) {
    if (known == name) return value;
    names.push_back(known);
  }
  throw Error(fmt::format("{} has no extent '{}' to set; it has {}", q.work, name,
                          names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

const Fact* fact(const Answer& a, const std::string& key) {
  const auto at = std::find_if(a.facts.begin(), a.facts.end(), [&](const Fact& f) { return f.key == key; });
  return at == a.facts.end() ? nullptr : &*at;
}

std::vector<Curve> run_sweep(const Question& q, const RooflineOptions& o, const Sweep& sweep,
                             const perf::Hardware& hardware) {
  std::vector<Curve> curves;
  const auto add_curve = [&](const std::vector<std::pair<std::string, Index>>& fixed) {
    std::vector<std::pair<Index*, Index>> saved;
    saved.reserve(q.extents.size());
    Curve curve{{}, fixed, {}};
    for (const auto& [name, value] : q.extents) saved.emplace_back(value, *value);
    for (const auto& [name, value] : fixed) *extent(q, name) = value;
    Index* swept = extent(q, sweep.name);
    for (const auto& [name, value] : q.extents) {
      const bool plain = *value == 0 || (name == "chips" && *value == 1);  // what nobody asked about
      if (value != swept && !plain) {
        curve.label += fmt::format("{}{} = {}", curve.label.empty() ? "" : ", ", name, *value);
      }
    }
    for (Index value : sweep.values) {
      *swept = value;
      curve.answers.push_back(evaluate(q, hardware));
    }
    for (const auto& [at, value] : saved) *at = value;
    curves.push_back(std::move(curve));
  };
  add_curve({});
  for (const std::string& text : o.also) add_curve(extents_argument(text));
  return curves;
}

Json sweep_json(const Question& q, const Sweep& sweep, const std::vector<Curve>& curves,
                const perf::Hardware& hardware) {
  Json out = head_json(q, hardware);
  out.erase(sweep.name);
  out["sweep"] = sweep.name;
  out["curves"] = Json::array();
  for (const Curve& curve : curves) {
    Json points = Json::array();
    for (std::size_t i = 0; i < sweep.values.size(); ++i) {
      Json point = {{sweep.name, sweep.values[i]}};
      point.update(point_json(curve.answers[i]));
      points.push_back(std::move(point));
    }
    Json one = {{"label", curve.label}};
    for (const auto& [name, value] : curve.fixed) one[name] = value;
    one["points"] = std::move(points);
    out["curves"].push_back(std::move(one));
  }
  return out;
}

std::string sweep_text(const Question& q, const Sweep& sweep, const std::vector<Curve>& curves,
                       const perf::Hardware& hardware) {
  std::string text;
  for (const Curve& curve : curves) {
    text +=
        fmt::format("{} on {}{}{}\n", q.work, hardware.title, curve.label.empty() ? "" : ", ", curve.label);
    text += fmt::format("{:>10} {:>12} {:>10} {:>10} {:>10} {:>12}  bound by\n", sweep.name, "FLOP/B",
                        "t_math", "t_comms", "at least", "FLOP/s");
    for (std::size_t i = 0; i < sweep.values.size(); ++i) {
      const Answer& a = curve.answers[i];
      const auto seconds = [](double s) { return with_prefix(s) + "s"; };
      text += fmt::format("{:>10} {:>12.5g} {:>10} {:>10} {:>10} {:>12}  {}\n", sweep.values[i],
                          a.bounds.intensity, seconds(a.bounds.t_math_s), seconds(a.bounds.t_comms_s),
                          seconds(a.bounds.lower_s), with_prefix(a.attainable()), name(a.bounds.limit));
    }
  }
  return text;
}

Plot sweep_plot(const Question& q, const Sweep& sweep, const std::vector<Curve>& curves,
                const perf::Hardware& hardware) {
  Plot plot{.title = fmt::format("{} on {}", q.work, hardware.title),
            .x_label = sweep.name,
            .y_label = "TFLOP/s at best",
            .log_x = sweep.geometric};
  for (const Curve& curve : curves) {
    Series series{.label = curve.label.empty() ? q.work : curve.label};
    for (std::size_t i = 0; i < sweep.values.size(); ++i) {
      series.points.emplace_back(static_cast<double>(sweep.values[i]), curve.answers[i].attainable() / 1e12);
    }
    plot.series.push_back(std::move(series));
    // The first value of the sweep suffices: a critical extent does not depend on itself.
    const Fact* critical = fact(curve.answers.front(), "critical_" + sweep.name);
    if (critical != nullptr && critical->value) plot.x_marks.push_back(*critical->value);
  }
  std::erase_if(plot.x_marks, [&](double x) {
    return x < static_cast<double>(sweep.values.front()) || x > static_cast<double>(sweep.values.back());
  });
  return plot;
}

}  // namespace

void answer_sweep(const Question& question, const RooflineOptions& options, const perf::Hardware& hardware) {
  const Sweep sweep = sweep_argument(options.sweep);
  const std::vector<Curve> curves = run_sweep(question, options, sweep, hardware);
  if (!options.plot.empty()) write_plot(sweep_plot(question, sweep, curves, hardware), options.plot);
  std::string text;
  if (options.output.as_json())
    text = sweep_json(question, sweep, curves, hardware).dump(2) + "\n";
  else if (options.plot.empty())
    text = sweep_text(question, sweep, curves, hardware);
  else
    text = fmt::format("{}: {} curve{} of {} points\n", options.plot, curves.size(),
                       curves.size() == 1 ? "" : "s", sweep.values.size());
  write_results(options.output, text);
}

}  // namespace tilewright::tw
