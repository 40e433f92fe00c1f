// Table, distributions, the worst, JSON.
#include "sweep/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/report/table.h"

namespace tilewright::sweep {

namespace {

using Json = nlohmann::ordered_json;

std::string number(std::optional<double> value) { return value ? fmt::format("{:.2f}", *value) : "–"; }
std::string time(std::optional<double> us) { return us ? lab::time_text(*us) : "–"; }

std::optional<double> over(std::optional<double> a, std::optional<double> b) {
  return a && b && *a > 0 && *b > 0 ? std::optional(*a / *b) : std::nullopt;
}

std::optional<double> floor_share(const SweepRow& row) {
  return over(row.floor_us, row.ours_device_us ? row.ours_device_us : row.ours_us);
}
std::optional<double> prediction(const SweepRow& row) {
  return over(row.predicted_us, row.ours_device_us ? row.ours_device_us : row.ours_us);
}

// The ratio that counts: of the device's own time where there is one.
std::optional<double> deciding(const SweepRow& row) {
  const auto device = row.device_ratio();
  return device ? device : row.ratio();
}

std::string faults(const std::vector<SweepRow>& rows) {
  std::string text;
  for (const SweepRow& row : rows)
    if (!row.wrong.empty())
      text += fmt::format("WRONG: {} {} {}\n    {}\n    {}\n", row.family, row.dtype, row.shapes, row.wrong,
                          row.command);
  return text;
}

std::string table(const std::vector<SweepRow>& rows, int width) {
  lab::TextTable t;
  t.column("program", lab::Align::left);
  for (const char* header : {"bytes", "FLOPs", "ours", "device", "peer", "device", "call", "device", "floor",
                             "predicted", "kernels", "compile"})
    t.column(header, lab::Align::right);
  t.column("judge", lab::Align::left);
  for (const SweepRow& row : rows) {
    t.row({fmt::format("{} {} {}", row.family, row.seed, row.dtype), perf::with_prefix(row.bytes),
           row.flops > 0 ? perf::with_prefix(row.flops) : "–", time(row.ours_us), time(row.ours_device_us),
           time(row.peer_us), time(row.peer_device_us), number(row.ratio()), number(row.device_ratio()),
           number(floor_share(row)), number(prediction(row)), std::to_string(row.kernels),
           fmt::format("{:.0f} ms{}", row.compile_ms, row.from_disk ? "*" : ""),
           !row.wrong.empty()    ? "WRONG"
           : !row.failed.empty() ? "FAILED"
                                 : row.judge});
  }
  return t.to_string(width) +
         "call, device: the best peer's time over ours; floor and predicted: theirs over ours; *: every "
         "kernel was in the "
         "cache on disk\n";
}

std::string line(const char* what, const Distribution& d) {
  if (d.count == 0) return "";
  return fmt::format(
      "{}: geometric mean {:.2f} of {} programs; least {:.2f}, quartiles {:.2f} {:.2f} {:.2f}, most {:.1f}; "
      "{:.0f} % at least 1.0, {:.0f} % at least 0.85\n",
      what, d.geometric_mean, d.count, d.least, d.lower_quartile, d.median, d.upper_quartile, d.most,
      100 * d.at_least_as_fast, 100 * d.nearly);
}

template <class F>
Distribution distribution_of(const std::vector<SweepRow>& rows, F&& figure) {
  std::vector<double> values;
  for (const SweepRow& row : rows)
    if (const std::optional<double> value = figure(row)) values.push_back(*value);
  return distribution(std::move(values));
}

// Programs whose kernels take more than 20 us on average, where launches, which a prediction counts and a
// device's own time does not, are little; and the share of them whose time was predicted within 30 %.
struct Foreseen {
  int count = 0;
  double share = 0;
};

Foreseen foreseen(const std::vector<SweepRow>& rows) {
  constexpr double kLongUs = 20, kNear = 0.3;
  Foreseen out;
  int near = 0;
  for (const SweepRow& row : rows) {
    const std::optional<double> ours = row.ours_device_us ? row.ours_device_us : row.ours_us,
                                p = prediction(row);
    if (!p || row.kernels == 0 || *ours / row.kernels <= kLongUs) continue;
    ++out.count;
    near += std::abs(*p - 1) <= kNear ? 1 : 0;
  }
  if (out.count > 0) out.share = static_cast<double>(near) / out.count;
  return out;
}

struct Summary {
  Distribution calls, device, floor, predicted;
  Foreseen foreseen;
};

Summary summary(const std::vector<SweepRow>& rows) {
  return {distribution_of(rows, [](const SweepRow& row) { return row.ratio(); }),
          distribution_of(rows, [](const SweepRow& row) { return row.device_ratio(); }),
          distribution_of(rows, floor_share), distribution_of(rows, prediction), foreseen(rows)};
}

std::string worst(const std::vector<SweepRow>& rows) {
  constexpr std::size_t kShown = 20;
  std::vector<const SweepRow*> order;
  for (const SweepRow& row : rows)
    if (deciding(row)) order.push_back(&row);
  std::sort(order.begin(), order.end(),
            [](const SweepRow* a, const SweepRow* b) { return *deciding(*a) < *deciding(*b); });
  if (order.size() > kShown) order.resize(kShown);
  if (order.empty()) return "";
  std::string text = fmt::format("\nThe {} whose ratio to the best peer is least:\n", order.size());
  for (const SweepRow* row : order)
    text += fmt::format("{:5.2f}  {} {} {}: {} by {}, floor {}\n       {}\n       {}\n", *deciding(*row),
                        row->family, row->dtype, row->shapes, time(row->ours_us),
                        time(row->peer_us) + " (" + row->peer + ")", time(row->floor_us), row->explained,
                        row->command);
  return text;
}

}  // namespace

Distribution distribution(std::vector<double> ratios) {
  Distribution d{.count = static_cast<int>(ratios.size())};
  if (ratios.empty()) return d;
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double share) {
    return ratios[static_cast<std::size_t>(std::lround(share * static_cast<double>(ratios.size() - 1)))];
  };
  double logs = 0;
  for (const double ratio : ratios) logs += std::log(ratio);
  const auto count = static_cast<double>(ratios.size());
  d.geometric_mean = std::exp(logs / count);
  d.least = ratios.front();
  d.lower_quartile = at(0.25);
  d.median = at(0.5);
  d.upper_quartile = at(0.75);
  d.most = ratios.back();
  const auto from = [&](double least) {
    return static_cast<double>(ratios.end() - std::lower_bound(ratios.begin(), ratios.end(), least)) / count;
  };
  d.at_least_as_fast = from(1.0);
  d.nearly = from(0.85);
  return d;
}

std::string render(const std::vector<SweepRow>& rows, int width) {
  std::string text = faults(rows) + table(rows, width);
  const Summary s = summary(rows);
  text += line("calls, best peer / ours", s.calls);
  if (std::any_of(rows.begin(), rows.end(),
                  [](const SweepRow& row) { return row.ours_device_us.has_value(); }))
    text += line("device, best peer / ours", s.device);
  text += line("floor / ours", s.floor);
  text += line("predicted / ours", s.predicted);
  if (s.foreseen.count > 0)
    text += fmt::format(
        "predicted within 30 %: {:.0f} % of the {} programs whose kernels take more than 20 us on average\n",
        100 * s.foreseen.share, s.foreseen.count);
  for (const SweepRow& row : rows)
    if (!row.failed.empty())
      text += fmt::format("not measured: {} {}: {}\n", row.command, row.shapes, row.failed);
  return text + worst(rows);
}

namespace {

Json json_of(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

Json json_of(const Distribution& d) {
  return {{"count", d.count},
          {"geometric_mean", d.geometric_mean},
          {"quartiles", {d.least, d.lower_quartile, d.median, d.upper_quartile, d.most}},
          {"share_from_1", d.at_least_as_fast},
          {"share_from_0_85", d.nearly}};
}

Json json_of(const SweepRow& row) {
  Json spent = Json::object();
  for (const auto& [what, seconds] : row.spent_s)
    spent[what] = (spent.contains(what) ? spent[what].get<double>() : 0) + seconds;
  Json contenders = Json::array();
  for (const lab::Row& c : row.contenders)
    contenders.push_back({{"name", c.contender},
                          {"verdict", lab::name(c.verdict)},
                          {"call_us", json_of(c.median_us)},
                          {"device_us", json_of(c.device_us)},
                          {"error", json_of(c.max_rel_err)},
                          {"bound", json_of(c.tolerance)},
                          {"chosen", c.chosen},
                          {"note", c.note}});
  return {{"family", row.family},
          {"seed", row.seed},
          {"command", row.command},
          {"dtype", row.dtype},
          {"shapes", row.shapes},
          {"bytes", row.bytes},
          {"flops", row.flops},
          {"ours_us", json_of(row.ours_us)},
          {"ours_device_us", json_of(row.ours_device_us)},
          {"peer", row.peer},
          {"peer_us", json_of(row.peer_us)},
          {"peer_device_us", json_of(row.peer_device_us)},
          {"ratio", json_of(row.ratio())},
          {"device_ratio", json_of(row.device_ratio())},
          {"floor_us", json_of(row.floor_us)},
          {"floor_share", json_of(floor_share(row))},
          {"predicted_us", row.predicted_us},
          {"predicted_over_measured", json_of(prediction(row))},
          {"compile_ms", row.compile_ms},
          {"from_disk", row.from_disk},
          {"kernels", row.kernels},
          {"explained", row.explained},
          {"judge", row.judge},
          {"wrong", row.wrong},
          {"failed", row.failed},
          {"text", row.text},
          {"spent_s", spent},
          {"contenders", contenders}};
}

}  // namespace

std::string to_json(const std::vector<SweepRow>& rows, const lab::Environment& environment) {
  Json all = Json::array();
  for (const SweepRow& row : rows) all.push_back(json_of(row));
  const Summary s = summary(rows);
  Json options = Json::object();
  for (const auto& [key, value] : environment.options) options[key] = value;
  all.push_back(
      {{"summary",
        {{"calls", json_of(s.calls)},
         {"device", json_of(s.device)},
         {"floor", json_of(s.floor)},
         {"predicted", json_of(s.predicted)},
         {"predicted_within_30_percent", {{"count", s.foreseen.count}, {"share", s.foreseen.share}}}}},
       {"environment",
        {{"cpu_model", environment.cpu_model},
         {"gpu_name", environment.gpu_name},
         {"gpu_driver", environment.gpu_driver},
         {"affinity", environment.affinity},
         {"git_commit", environment.git_commit},
         {"date", environment.date},
         {"interrupted", environment.interrupted},
         {"options", options}}}});
  // A text with bytes that are no UTF-8 must not lose the figures.
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tilewright::sweep
