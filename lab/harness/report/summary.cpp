// Lines of workloads.
#include "harness/report/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "harness/report/charts.h"
#include "harness/report/table.h"

namespace tilewright::lab {

namespace {

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

enum class Times { of_calls, of_calls_and_device };

// The kinds of time that the table has: both, once one of its rows has both.
Times times_of(const Figures& figures) {
  const bool both = std::any_of(figures.entries.begin(), figures.entries.end(),
                                [](const Figure& figure) { return figure.row.device_us.has_value(); });
  return both ? Times::of_calls_and_device : Times::of_calls;
}

// Every time of a line is in one unit: that of the least.
std::string median_cell(const Row* row, Times times, double like_us) {
  if (!row) return "";
  if (!row->median_us) return std::string(name(row->verdict));
  std::string text = trimmed(time_text(*row->median_us, like_us));
  if (times == Times::of_calls_and_device) text += " / " + trimmed(device_time_text(*row, like_us));
  return row->chosen.empty() ? text : fmt::format("{} ({})", text, row->chosen);
}

// A line of the table: what one run measured of one workload.
struct Line {
  const Figure* first = nullptr;
  std::map<std::string, const Row*> by_contender;
  bool takes(const Figure& figure) const {
    return workload_name(first->row) == workload_name(figure.row) && first->row.device == figure.row.device &&
           first->date == figure.date && first->commit == figure.commit;
  }
  double least_us() const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [contender, row] : by_contender) least = std::min(least, row->median_us.value_or(least));
    return least;
  }
};

std::vector<Line> lines_of(const Figures& figures) {
  std::vector<Line> lines;
  for (const Figure& figure : figures.entries) {
    auto it = std::find_if(lines.begin(), lines.end(), [&](const Line& line) { return line.takes(figure); });
    if (it == lines.end()) it = lines.insert(it, Line{&figure, {}});
    it->by_contender.emplace(figure.row.contender, &figure.row);
  }
  return lines;
}

// "NVIDIA H200, host …; gcc 12.2.0; commits …".
std::string machine_text(const Figures& figures) {
  const Environment& e = figures.environment;
  std::set<std::string> commits;
  for (const Figure& figure : figures.entries) commits.insert(figure.commit);
  const std::string machine =
      e.gpu_name.empty() ? e.cpu_model : fmt::format("{}, host {}", e.gpu_name, e.cpu_model);
  return fmt::format("{}; {}; built by {}; commits {}.", machine, e.kernel, e.compiler,
                     fmt::join(commits, ", "));
}

}  // namespace

std::string render_summary(const Figures& figures) {
  const std::vector<std::string> contenders = contenders_of(run_of(figures));
  TextTable table;
  table.column("work", Align::left);
  const Times times = times_of(figures);
  for (const std::string& contender : contenders)
    table.column(contender + (times == Times::of_calls_and_device ? ", call / device" : ""), Align::right);
  if (!contenders.empty()) table.column(fmt::format("rate, {}", contenders.front()), Align::right);
  table.column("of the roofline", Align::right);
  table.column("measured", Align::left);
  for (const Line& line : lines_of(figures)) {
    std::vector<std::string> cells = {workload_name(line.first->row)};
    for (const std::string& contender : contenders) {
      const auto it = line.by_contender.find(contender);
      cells.push_back(
          median_cell(it == line.by_contender.end() ? nullptr : it->second, times, line.least_us()));
    }
    const auto shown = line.by_contender.find(contenders.empty() ? "" : contenders.front());
    const Row* row = shown == line.by_contender.end() ? nullptr : shown->second;
    if (!contenders.empty()) cells.push_back(row ? short_rate_text(*row) : "");
    cells.push_back(row && row->roofline ? fmt::format("{:.0f} %", 100 * *row->roofline) : "");
    cells.push_back(line.first->date.substr(0, line.first->date.find('T')));
    table.row(std::move(cells));
  }
  return fmt::format("{}\n{}\n", table.to_markdown(), machine_text(figures));
}

}  // namespace tilewright::lab
