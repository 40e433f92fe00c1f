// Reading and choosing figures.
#include "harness/report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/report/charts.h"
#include "harness/run/pattern.h"

namespace tilewright::lab {

namespace {

Row row_of(const Expectation& e) {
  Row row{e.target, e.contender, e.device, e.shape, e.dtype};
  row.verified = true;  // others are not stored
  row.median_us = e.median_us;
  row.ci95_us = e.ci95_us;
  row.samples = e.samples;
  row.device_us = e.device_us;
  row.chosen = e.chosen;
  row.rate = e.rate;
  row.unit = e.unit;
  row.roofline = e.roofline;
  row.speedup = e.speedup;
  row.verdict = Verdict::uncompared;
  return row;
}

// The workloads that a pattern matches, in the order of their first rows.
std::vector<std::string> workloads_of(const Figures& figures, const std::string& pattern) {
  std::vector<std::string> found;
  for (const Figure& figure : figures.entries) {
    const std::string workload = workload_name(figure.row) + " " + figure.row.device;
    if (matches(pattern, workload) && std::find(found.begin(), found.end(), workload) == found.end())
      found.push_back(workload);
  }
  return found;
}

}  // namespace

Figures figures_of(const RunRecord& run) {
  Figures figures{{}, run.environment};
  for (const Row& row : run.rows)
    figures.entries.push_back({row, run.environment.date, run.environment.git_commit});
  return figures;
}

Figures figures_of(const Expectations& stored) {
  Figures figures;
  for (const Expectation& e : stored.entries) figures.entries.push_back({row_of(e), e.date, e.commit});
  if (stored.entries.empty()) return figures;
  const Expectation& any = stored.entries.front();  // one file is of one machine
  figures.environment.cpu_model = any.cpu;
  figures.environment.gpu_name = any.gpu;
  figures.environment.gpu_driver = any.driver;
  figures.environment.kernel = any.kernel;
  figures.environment.compiler = any.compiler;
  figures.environment.governor = any.governor;
  return figures;
}

Result<Figures> read_figures(const std::string& path) {
  if (const auto text = read_file(path)) {
    if (const auto stored = parse_expectations(*text)) return figures_of(*stored);
  }
  const auto run = read_run(path);
  if (!run) return run.error();
  return figures_of(*run);
}

RunRecord run_of(const Figures& figures) {
  RunRecord run{{}, figures.environment};
  for (const Figure& figure : figures.entries) run.rows.push_back(figure.row);
  return run;
}

Figures selected(const Figures& figures, const std::vector<std::string>& patterns,
                 const std::vector<std::string>& contenders) {
  const std::vector<std::string> everything = {"*"};
  const std::vector<std::string> everyone = contenders_of(run_of(figures));
  Figures chosen{{}, figures.environment};
  for (const std::string& pattern : patterns.empty() ? everything : patterns) {
    for (const std::string& workload : workloads_of(figures, pattern)) {
      for (const std::string& contender : contenders.empty() ? everyone : contenders) {
        for (const Figure& figure : figures.entries) {
          const bool same = workload_name(figure.row) + " " + figure.row.device == workload;
          if (same && figure.row.contender == contender) chosen.entries.push_back(figure);
        }
      }
    }
  }
  return chosen;
}

std::string workload_name(const Row& row) {
  return fmt::format("{} {} {}", row.target, row.shape, row.dtype);
}

// The GPU's machine is named where figures of a GPU and of a CPU stand together, as in tables.
std::string measured_text(const Figures& figures) {
  std::set<std::string> days;
  for (const Figure& figure : figures.entries) days.insert(figure.date.substr(0, figure.date.find('T')));
  days.erase("");
  const Environment& e = figures.environment;
  std::string text = e.gpu_name.empty() ? e.cpu_model : e.gpu_name;
  if (days.empty()) return text;
  const std::string last = days.size() == 1   ? ""
                           : days.size() == 2 ? fmt::format(" and {}", *days.rbegin())
                                              : fmt::format(" to {}", *days.rbegin());
  return fmt::format("{}, {}{}", text, *days.begin(), last);
}

}  // namespace tilewright::lab
