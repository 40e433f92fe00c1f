// tw bench compare and tw bench report: what stored runs say.
#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/report/charts.h"
#include "harness/report/compare.h"
#include "harness/report/figures.h"
#include "harness/report/report.h"
#include "harness/report/summary.h"
#include "harness/report/table.h"
#include "tw/bench/bench_input.h"
#include "tw/command/commands.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;

lab::RunRecord run_of(const std::string& path) {
  auto run = lab::read_run(path);
  if (!run) throw Error(run.error().message);
  return std::move(*run);
}

Json number_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json to_json(const lab::RunComparison& comparison) {
  Json rows = Json::array();
  for (const lab::ComparedRow& row : comparison.rows) {
    Json one = {{"key", row.key},
                {"a_us", number_json(row.a_us)},
                {"b_us", number_json(row.b_us)},
                {"ratio", number_json(row.ratio)},
                {"ratio_ci95", nullptr},
                {"verdict", row.verdict}};
    if (row.ratio_ci95) one["ratio_ci95"] = {row.ratio_ci95->low, row.ratio_ci95->high};
    rows.push_back(std::move(one));
  }
  return {{"rows", std::move(rows)}, {"differences", comparison.differences}};
}

struct ReportInput {
  std::string run, title, format;
  OutputOptions output;
  std::vector<std::string> patterns, contenders;
};

// The format that --format or --json asks for, else that of the ending of --output's file, else a table.
std::string format_of(const ReportInput& in) {
  if (!in.format.empty()) return in.format;
  if (in.output.as_json()) return "json";
  for (const auto& [ending, format] :
       {std::pair{".html", "html"}, {".svg", "svg"}, {".csv", "csv"}, {".md", "markdown"}})
    if (in.output.path.ends_with(ending)) return format;
  return "table";
}

std::string report_text(const lab::Figures& figures, const ReportInput& in) {
  const lab::RunRecord run = lab::run_of(figures);
  const std::string format = format_of(in);
  if (format == "summary") return lab::render_summary(figures);
  if (format == "html") return lab::render_html(run, in.title.empty() ? "Tilewright bench" : in.title);
  if (format == "json") return lab::to_json(run);
  if (format == "svg") {
    const std::string title = "Share of the roofline: " + lab::measured_text(figures);
    std::string svg = lab::share_picture(run, in.title.empty() ? title : in.title);
    if (svg.empty()) throw Error(fmt::format("{}: no row has a share of the roofline to draw", in.run));
    return svg;
  }
  if (format == "markdown") return lab::render_markdown(run.rows);
  if (format == "csv") return lab::render_csv(run.rows);
  return table_of(run, in.output);
}

}  // namespace

void add_bench_compare(CLI::App& bench) {
  CLI::App* sub = bench.add_subcommand("compare", "Two runs side by side");
  struct CompareInput {
    std::string a, b;
    OutputOptions output;
  };
  auto in = std::make_shared<CompareInput>();
  sub->add_option("a", in->a, "JSON of the first run")->required()->type_name("FILE");
  sub->add_option("b", in->b, "JSON of the second run")->required()->type_name("FILE");
  add_output_options(*sub, in->output, "an object");
  sub->callback([in] {
    const lab::RunComparison compared = lab::compare_runs(run_of(in->a), run_of(in->b));
    write_results(in->output,
                  in->output.as_json() ? to_json(compared).dump(2) + "\n" : lab::render_comparison(compared));
  });
}

void add_bench_report(CLI::App& bench) {
  CLI::App* sub = bench.add_subcommand("report", "The table, the page or a chart of a stored run");
  auto in = std::make_shared<ReportInput>();
  sub->add_option("run", in->run, "JSON of the run, or of a machine's expectations")
      ->type_name("FILE")
      ->required();
  sub->add_option("work", in->patterns,
                  "Patterns of what to show: 'softmax 8192*' (workload, shape, type, device)");
  sub->add_option("--contenders", in->contenders, "Only these, in this order: compiled,eager")
      ->delimiter(',');
  sub->add_option("--title", in->title,
                  "Title of the page or the chart (default of the chart: its machine and days)");
  sub->add_option(
         "--format", in->format,
         "table, markdown or csv: a line a contender; summary: Markdown, a line a workload; svg: the "
         "chart of shares of the roofline; html: the page; json (default: by the ending of --output's "
         "file, else table)")
      ->check(CLI::IsMember({"table", "markdown", "csv", "summary", "svg", "html", "json"}));
  add_output_options(*sub, in->output, "the rows chosen, as `tw bench run` writes them");
  sub->get_option("--json")->excludes("--format");
  sub->callback([in] {
    auto figures = lab::read_figures(in->run);
    if (!figures) throw Error(figures.error().message);
    if (!in->patterns.empty() || !in->contenders.empty()) {
      *figures = lab::selected(*figures, in->patterns, in->contenders);
      if (figures->entries.empty()) throw Error(fmt::format("{}: no row is of what was asked for", in->run));
    }
    write_results(in->output, report_text(*figures, *in));
  });
}

}  // namespace tilewright::tw
