// tw bench: the benchmark laboratory. Its subcommands and their arguments.
#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "pairs/pairs.h"
#include "tw/bench/bench_input.h"
#include "tw/command/command_tree.h"
#include "tw/command/commands.h"
#include "tw/command/number_checks.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;

std::string values_text(const std::vector<lab::KnobValue>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const lab::KnobValue& value : values) texts.push_back(lab::to_string(value));
  return fmt::format("{}", fmt::join(texts, ","));
}

std::string list_text() {
  std::string text;
  for (const lab::Pair& pair : lab::all_pairs()) {
    text += fmt::format("{:22} {}\n", pair.name, pair.doc);
    for (const lab::Knob& knob : pair.knobs) {
      std::string line = fmt::format("    {}={}", knob.name, values_text(knob.values));
      if (!knob.cuda_values.empty()) line += fmt::format("  (cuda: {})", values_text(knob.cuda_values));
      text += fmt::format("{}  {}\n", line, knob.doc);
    }
  }
  text += "suites:\n";
  for (const lab::Suite& suite : lab::all_suites()) text += fmt::format("{:22} {}\n", suite.name, suite.doc);
  return text;
}

Json values_json(const std::vector<lab::KnobValue>& values) {
  Json texts = Json::array();
  for (const lab::KnobValue& value : values) texts.push_back(lab::to_string(value));
  return texts;
}

Json list_json() {
  Json pairs = Json::array(), suites = Json::array();
  for (const lab::Pair& pair : lab::all_pairs()) {
    Json knobs = Json::array();
    for (const lab::Knob& knob : pair.knobs)
      knobs.push_back({{"name", knob.name},
                       {"doc", knob.doc},
                       {"values", values_json(knob.values)},
                       {"cuda_values", values_json(knob.cuda_values)}});
    pairs.push_back({{"name", pair.name}, {"doc", pair.doc}, {"knobs", std::move(knobs)}});
  }
  for (const lab::Suite& suite : lab::all_suites())
    suites.push_back({{"name", suite.name}, {"doc", suite.doc}});
  return {{"pairs", std::move(pairs)}, {"suites", std::move(suites)}};
}

void add_list(CLI::App& bench) {
  CLI::App* sub = bench.add_subcommand("list", "The pairs with their knobs, and the suites");
  auto output = std::make_shared<OutputOptions>();
  add_output_options(*sub, *output, "an object");
  sub->callback(
      [output] { write_results(*output, output->as_json() ? list_json().dump(2) + "\n" : list_text()); });
}

void add_run(CLI::App& bench) {
  CLI::App* sub = bench.add_subcommand("run", "Verify and time pairs, and print a table");
  auto in = std::make_shared<BenchInput>();
  in->expectations = "lab/expectations";
  sub->add_option("names", in->names, "Pairs, suites (quick) or patterns (softmax*); none: every pair")
      ->type_name("WORK");
  sub->add_option("--device", in->device, "cpu, cuda:N or reference")->type_name("DEVICE");
  sub->add_option("--set", in->settings,
                  "A knob of every pair that has it, key=value[,value]; pair.key=value of one pair, "
                  "which holds over the other")
      ->type_name(kSettingKind)
      ->take_all();
  sub->add_option("--seed", in->seed, "Seed of the random inputs");
  sub->add_option("--budget", in->budget_s, "Seconds of timing for each workload (default 3; quick: 1)")
      ->check(not_negative());
  sub->add_option("--threads", in->threads, "CPU threads (default: every allowed core)");
  sub->add_option("--cache", in->cache, "Folder of compiled kernels; '' compiles everything anew")
      ->type_name("FOLDER");
  sub->add_option("--ceilings", in->ceilings,
                  "auto: those stored by tw devices --probe, else measured now; measure; none")
      ->check(CLI::IsMember({"auto", "measure", "none"}));
  sub->add_flag("--autotune", in->autotune, "Time the compiled program with measured schedules as well");
  sub->add_flag("--libraries", in->libraries,
                "Time vendors' libraries (cublaslt) as well, where they have calls for all of a program");
  sub->add_flag("--launches", in->launches,
                "Time the compiled program without replayed graphs as well, each kernel launched by itself");
  sub->add_flag("--peers", in->peers, "Time PyTorch as well, in a process of its own, where it is installed");
  sub->add_option("--python", in->python, "Interpreter of the peers")->type_name("FILE");
  sub->add_option("--without", in->without, "A peer to leave out: 'torch max-autotune'; may be repeated")
      ->allow_extra_args(false);
  sub->add_option(
         "--device-time", in->device_time,
         "How a GPU's own work is timed: trace (CUPTI, where there is one), events (gaps included), off")
      ->check(CLI::IsMember({"trace", "events", "off"}));
  sub->add_flag("--expect", in->expect, "Judge the medians by the stored expectations of this hardware");
  sub->add_flag("--update-expectations", in->update, "Store the medians as this hardware's expectations");
  sub->add_flag("--accept-regressions", in->accept_regressions, "Store slower medians, too");
  sub->add_option("--expectations", in->expectations, "Folder of the expectation files")->type_name("FOLDER");
  add_output_options(*sub, in->output, "what `tw bench report` and `tw bench compare` read");
  sub->callback([in] { bench_run(*in); });
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("bench", "Measure workloads against eager execution and the roofline");
  sub->require_subcommand(1);
  add_list(*sub);
  add_run(*sub);
  add_bench_sweep(*sub);
  add_bench_compare(*sub);
  add_bench_report(*sub);
}

}  // namespace tilewright::tw
