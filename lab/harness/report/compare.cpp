// Joins two runs by row key.
#include "harness/report/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/report/table.h"

namespace tilewright::lab {

namespace {

const Row* find(const RunRecord& run, const std::string& key) {
  const auto it =
      std::find_if(run.rows.begin(), run.rows.end(), [&](const Row& row) { return row.key() == key; });
  return it == run.rows.end() ? nullptr : &*it;
}

// A time that may be compared.
bool valid(const Row& row) {
  return row.verified && row.verdict != Verdict::impossible && row.median_us && *row.median_us > 0 &&
         row.ci95_us;
}

ComparedRow compare_row(const Row* a, const Row* b) {
  ComparedRow row{.key = (a ? a : b)->key()};
  if (a && valid(*a)) row.a_us = a->median_us;
  if (b && valid(*b)) row.b_us = b->median_us;
  if (!b || !a) {
    row.verdict = a ? "ONLY A" : "ONLY B";
  } else if (!row.a_us || !row.b_us) {
    const Row& bad = row.a_us ? *b : *a;
    row.verdict = fmt::format("INVALID ({} {})", row.a_us ? "b" : "a", name(bad.verdict));
  } else {
    row.ratio = *row.a_us / *row.b_us;
    row.ratio_ci95 = Interval{a->ci95_us->low / b->ci95_us->high, a->ci95_us->high / b->ci95_us->low};
    row.verdict = name(judge(*row.ratio, *row.ratio_ci95));
  }
  return row;
}

void differ(std::vector<std::string>& out, std::string_view what, const std::string& a,
            const std::string& b) {
  if (a != b)
    out.push_back(fmt::format("{}: {} → {}", what, a.empty() ? "unknown" : a, b.empty() ? "unknown" : b));
}

std::vector<std::string> environment_differences(const Environment& a, const Environment& b) {
  std::vector<std::string> out;
  differ(out, "cpu", a.cpu_model, b.cpu_model);
  differ(out, "cores", fmt::format("{}", a.cores), fmt::format("{}", b.cores));
  differ(out, "affinity", a.affinity, b.affinity);
  differ(out, "governor", a.governor, b.governor);
  differ(out, "gpu", a.gpu_name, b.gpu_name);
  differ(out, "gpu driver", a.gpu_driver, b.gpu_driver);
  differ(out, "kernel", a.kernel, b.kernel);
  differ(out, "compiler", a.compiler, b.compiler);
  differ(out, "commit", a.git_commit, b.git_commit);
  differ(out, "cpu limit", a.cgroup_cpu, b.cgroup_cpu);
  differ(out, "memory limit", a.cgroup_memory, b.cgroup_memory);
  differ(out, "seed", fmt::format("{}", a.seed), fmt::format("{}", b.seed));
  return out;
}

std::string time_or_nothing(const std::optional<double>& us) { return us ? time_text(*us) : "–"; }

}  // namespace

RunComparison compare_runs(const RunRecord& a, const RunRecord& b) {
  RunComparison comparison;
  for (const Row& row : a.rows) comparison.rows.push_back(compare_row(&row, find(b, row.key())));
  for (const Row& row : b.rows) {
    if (!find(a, row.key())) comparison.rows.push_back(compare_row(nullptr, &row));
  }
  comparison.differences = environment_differences(a.environment, b.environment);
  return comparison;
}

std::string render_comparison(const RunComparison& comparison, int width) {
  TextTable table;
  table.column("workload/contender", Align::left);
  table.column("a", Align::right);
  table.column("b", Align::right);
  table.column("a / b", Align::right);
  table.column("95%", Align::left);
  table.column("b is", Align::left);
  for (const ComparedRow& row : comparison.rows) {
    table.row(
        {row.key, time_or_nothing(row.a_us), time_or_nothing(row.b_us),
         row.ratio ? fmt::format("{:.3f}", *row.ratio) : "–",
         row.ratio_ci95 ? fmt::format("[{:.3f}–{:.3f}]", row.ratio_ci95->low, row.ratio_ci95->high) : "",
         row.verdict});
  }
  std::string text = table.to_string(width);
  for (const std::string& difference : comparison.differences) text += "differs: " + difference + "\n";
  return text;
}

}  // namespace tilewright::lab
