// tw bench: the benchmark laboratory. Its subcommands and their arguments.
#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/report/charts.h"
#include "harness/report/compare.h"
#include "harness/report/figures.h"
#include "harness/report/report.h"
#include "harness/report/summary.h"
#include "harness/report/table.h"
#include "pairs/pairs.h"
#include "tw/bench_input.h"
#include "tw/commands.h"
#include "tw/number_checks.h"

namespace tilewright::tw {

namespace {

std::string values_text(const std::vector<lab::KnobValue>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const lab::KnobValue& value : values) texts.push_back(lab::to_string(value));
  return fmt::format("{}", fmt::join(texts, ","));
}

void print_list() {
  for (const lab::Pair& pair : lab::all_pairs()) {
    fmt::print("{:22} {}\n", pair.name, pair.doc);
    for (const lab::Knob& knob : pair.knobs) {
      std::string line = fmt::format("    {}={}", knob.name, values_text(knob.values));
      if (!knob.cuda_values.empty()) line += fmt::format("  (cuda: {})", values_text(knob.cuda_values));
      fmt::print("{}  {}\n", line, knob.doc);
    }
  }
  fmt::print("suites:\n");
  for (const lab::Suite& suite : lab::all_suites()) fmt::print("{:22} {}\n", suite.name, suite.doc);
}

lab::RunRecord run_of(const std::string& path) {
  auto run = lab::read_run(path);
  if (!run) throw Error(run.error().message);
  return std::move(*run);
}

void add_list(CLI::App& bench) {
  bench.add_subcommand("list", "The pairs with their knobs, and the suites")->callback(print_list);
}

void add_run(CLI::App& bench) {
  CLI::App* sub = bench.add_subcommand("run", "Verify and time pairs; print a table, write a page and JSON");
  auto in = std::make_shared<BenchInput>();
  in->expectations = "lab/expectations";
  sub->add_option("names", in->names, "Pairs, suites (quick) or patterns (softmax*); none: every pair");
  sub->add_option("--device", in->device, "cpu, cuda:N or reference");
  sub->add_option("--set", in->settings,
                  "key=value[,value]: change a knob of every pair that has it; pair.key=value of one pair, "
                  "which holds over the other")
      ->take_all();
  sub->add_option("--json", in->json, "Write the results here as well");
  sub->add_option("--out", in->folder, "Folder of the page and the JSON (default lab-results/<date>)");
  sub->add_option("--seed", in->seed, "Of the random inputs");
  sub->add_option("--budget", in->budget_s, "Seconds of timing for each workload (default 3; quick: 1)")
      ->check(not_negative());
  sub->add_option("--threads", in->threads, "CPU threads (default: every allowed core)");
  sub->add_option("--cache", in->cache, "Folder of compiled kernels; '' compiles everything anew");
  sub->add_option("--ceilings", in->ceilings,
                  "auto: those stored by tw devices --probe, else measured now; measure; none")
      ->check(CLI::IsMember({"auto", "measure", "none"}));
  sub->add_flag("--autotune", in->autotune, "Time the compiled program with measured schedules as well");
  sub->add_flag("--libraries", in->libraries,
                "Time vendors' libraries (cublaslt) as well, where they have calls for all of a program");
  sub->add_flag("--launches", in->launches,
                "Time the compiled program without replayed graphs as well, each kernel launched by itself");
  sub->add_flag("--peers", in->peers, "Time PyTorch as well, in a process of its own, where it is installed");
  sub->add_option("--python", in->python, "Interpreter of the peers");
  sub->add_option("--without", in->without, "A peer to leave out: 'torch max-autotune'; may be repeated")
      ->allow_extra_args(false);
  sub->add_option("--device-time", in->device_time,
                  "Of a GPU's own work: trace (CUPTI, where there is one), events (gaps included), off")
      ->check(CLI::IsMember({"trace", "events", "off"}));
  sub->add_flag("--expect", in->expect, "Judge the medians by the stored expectations of this hardware");
  sub->add_flag("--update-expectations", in->update, "Store the medians as this hardware's expectations");
  sub->add_flag("--accept-regressions", in->accept_regressions, "Store slower medians, too");
  sub->add_option("--expectations", in->expectations, "Folder of the expectation files");
  sub->callback([in] { bench_run(*in); });
}

void add_compare(CLI::App& bench) {
  CLI::App* sub = bench.add_subcommand("compare", "Two runs side by side");
  auto paths = std::make_shared<std::pair<std::string, std::string>>();
  sub->add_option("a", paths->first, "JSON of the first run")->required();
  sub->add_option("b", paths->second, "JSON of the second run")->required();
  sub->callback([paths] {
    fmt::print("{}", lab::render_comparison(lab::compare_runs(run_of(paths->first), run_of(paths->second))));
  });
}

struct ReportInput {
  std::string run, html, title, format = "table";
  std::vector<std::string> patterns, contenders;
};

std::string report_text(const lab::Figures& figures, const ReportInput& in) {
  const lab::RunRecord run = lab::run_of(figures);
  if (in.format == "summary") return lab::render_summary(figures);
  if (in.format == "svg") {
    const std::string title = "Share of the roofline: " + lab::measured_text(figures);
    std::string svg = lab::share_picture(run, in.title.empty() ? title : in.title);
    if (svg.empty()) throw Error(fmt::format("{}: no row has a share of the roofline to draw", in.run));
    return svg;
  }
  if (in.format == "markdown") return lab::render_markdown(run.rows);
  if (in.format == "csv") return lab::render_csv(run.rows);
  return lab::render_table(run);
}

void add_report(CLI::App& bench) {
  CLI::App* sub = bench.add_subcommand("report", "The table, the page or a chart of a stored run");
  auto in = std::make_shared<ReportInput>();
  sub->add_option("run", in->run, "JSON of the run, or of a machine's expectations")->required();
  sub->add_option("work", in->patterns,
                  "Patterns of what to show: 'softmax 8192*' (workload, shape, type, device)");
  sub->add_option("--contenders", in->contenders, "Only these, in this order: compiled,eager")
      ->delimiter(',');
  sub->add_option("--html", in->html, "Write the page here");
  sub->add_option("--title", in->title,
                  "Of the page or the chart (default of the chart: its machine and days)");
  sub->add_option(
         "--format", in->format,
         "table, markdown or csv: a line a contender; summary: Markdown, a line a workload; svg: the "
         "chart of shares of the roofline")
      ->check(CLI::IsMember({"table", "markdown", "csv", "summary", "svg"}));
  sub->callback([in] {
    auto figures = lab::read_figures(in->run);
    if (!figures) throw Error(figures.error().message);
    if (!in->patterns.empty() || !in->contenders.empty()) {
      *figures = lab::selected(*figures, in->patterns, in->contenders);
      if (figures->entries.empty()) throw Error(fmt::format("{}: no row is of what was asked for", in->run));
    }
    if (in->html.empty()) {
      fmt::print("{}", report_text(*figures, *in));
      return;
    }
    const std::string title = in->title.empty() ? "Tilewright bench" : in->title;
    if (Status written = lab::write_file(in->html, lab::render_html(lab::run_of(*figures), title)); !written)
      throw Error(written.error().message);
    fmt::print("page: {}\n", in->html);
  });
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("bench", "Measure workloads against eager execution and the roofline");
  sub->require_subcommand(1);
  add_list(*sub);
  add_run(*sub);
  add_bench_sweep(*sub);
  add_compare(*sub);
  add_report(*sub);
}

}  // namespace tilewright::tw
