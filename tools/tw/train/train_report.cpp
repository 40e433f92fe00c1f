// tw train report: the curves of trainings, as a page or in a few lines.
#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

#include "harness/report/table.h"
#include "tw/command/commands.h"
#include "tw/command/output.h"
#include "tw/train/train_page.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;

struct TrainReportInput {
  std::vector<std::string> folders;
  std::string title;
  OutputOptions output;
};

// Folders of one name are called by their whole paths.
std::vector<TrainedRun> read_all(const std::vector<std::string>& folders) {
  std::vector<TrainedRun> runs;
  runs.reserve(folders.size());
  for (const std::string& folder : folders) runs.push_back(read_trained(folder));
  std::vector<bool> twice(runs.size(), false);
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (std::size_t k = 0; k < runs.size(); ++k)
      twice[i] = twice[i] || (i != k && runs[i].name == runs[k].name);
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (twice[i]) runs[i].name = folders[i];
  return runs;
}

std::string table_text(const std::vector<TrainedRun>& runs) {
  lab::TextTable table;
  table.column("training", lab::Align::left);
  for (const auto& [name, value] : results_of(runs.front())) table.column(name, lab::Align::right);
  for (const TrainedRun& run : runs) {
    std::vector<std::string> cells = {run.name};
    for (const auto& [name, value] : results_of(run)) cells.push_back(value);
    table.row(std::move(cells));
  }
  return table.to_string(160);
}

Json to_json(const std::vector<TrainedRun>& runs, const std::vector<std::string>& folders) {
  Json all = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Json settings, reports = Json::array();
    for (const auto& [name, value] : settings_of(runs[i])) settings[name] = value;
    for (const std::string& line : log_lines(folders[i])) reports.push_back(Json::parse(line));
    all.push_back({{"name", runs[i].name}, {"settings", settings}, {"reports", reports}});
  }
  return all;
}

void report(const TrainReportInput& in) {
  const std::vector<TrainedRun> runs = read_all(in.folders);
  if (in.output.as_json()) return write_results(in.output, to_json(runs, in.folders).dump(2) + "\n");
  if (!in.output.path.ends_with(".html")) return write_results(in.output, table_text(runs));
  const std::string title = !in.title.empty()  ? in.title
                            : runs.size() == 1 ? "Training: " + runs.front().name
                                               : "Trainings";
  write_results(in.output, train_page(runs, title));
}

}  // namespace

void add_train_report(CLI::App& train) {
  CLI::App* sub = train.add_subcommand(
      "report", "Curves of trainings that --out kept, as a page (-o page.html), or a line for each");
  auto in = std::make_shared<TrainReportInput>();
  sub->add_option("folder", in->folders, "Folders of trainings, under way or done")
      ->required()
      ->type_name("FOLDER");
  sub->add_option("--title", in->title, "Title of the page");
  add_output_options(*sub, in->output, "a list, an object with settings and reports for each");
  sub->callback([in] { report(*in); });
}

}  // namespace tilewright::tw
