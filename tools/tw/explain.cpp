// tw explain: what a program was compiled to, what that costs, and what it could cost at best.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "tw/command/byte_size.h"
#include "tw/command/commands.h"
#include "tw/command/output.h"
#include "tw/command/subject.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;

struct ExplainInput {
  SubjectInput subject;
  std::string stage, dump;
  bool time = true;
  OutputOptions output;
};

Json to_json(const SpecialisationReport& r) {
  Json kernels = Json::array();
  for (const KernelReport& k : r.kernels) {
    kernels.push_back({{"name", k.name},
                       {"ops", k.ops},
                       {"flops", k.flops},
                       {"bytes", k.bytes},
                       {"floor_us", k.floor_us},
                       {"bound", k.bound},
                       {"measured_us", k.measured_us > 0 ? Json(k.measured_us) : Json(nullptr)},
                       {"schedule", k.schedule},
                       {"tiles", k.tiles},
                       {"types", k.types},
                       {"predicted_us", k.predicted_us},
                       {"schedules", k.schedules},
                       {"tuning", k.tuning},
                       {"library", k.library},
                       {"refused", k.refused},
                       {"origin", k.origin},
                       {"build_ms", k.build_ms}});
  }
  return {{"guards", r.key},
          {"reason", r.reason},
          {"compile_ms", r.compile_ms},
          {"compile_times",
           {{"trace_ms", r.times.trace_ms},
            {"passes_ms", r.times.passes_ms},
            {"print_ms", r.times.print_ms},
            {"compiler_ms", r.times.compiler_ms},
            {"load_ms", r.times.load_ms}}},
          {"kernels", kernels},
          {"not_fused", r.not_fused},
          {"breaks", r.breaks},
          {"temporary_bytes", r.arena_bytes},
          {"recomputing", r.recomputing},
          {"memory", r.memory},
          {"precision", r.precision},
          {"copied_bytes", r.copied_bytes},
          {"floor_us", r.floor_us},
          {"floor_source", r.floor_source},
          {"measured_us", r.measured_us > 0 ? Json(r.measured_us) : Json(nullptr)}};
}

std::string stages_text(const SpecialisationReport& report, const std::string& wanted) {
  std::string text;
  for (const Stage stage : kAllStages) {
    if (wanted != "all" && wanted != name(stage)) continue;
    if (wanted == "all") text += fmt::format("// ---- {}\n", name(stage));
    text += stage_text(report, stage);
  }
  return text;
}

// --stage and --dump have one form.
bool asks_for_text(const ExplainInput& input) { return !input.stage.empty() || !input.dump.empty(); }

// What was asked for of the program's text: the files written, a stage, or what explain() says.
std::string to_text(const Subject& subject, const ExplainInput& input) {
  const SpecialisationReport report = subject.report();
  std::string text;
  if (!input.dump.empty())
    for (const std::string& path : dump_stages(report, input.dump)) text += path + "\n";
  if (!input.stage.empty()) text += stages_text(report, input.stage);
  if (asks_for_text(input)) return text;
  return fmt::format("{} on {}\n{}", subject.title, subject.open.device.name, subject.function.explain());
}

void run(const ExplainInput& input) {
  const Subject subject = open_subject(input.subject);
  within_memory_option(input.subject.memory, "as much", [&] { subject.prepare(); });
  const bool time = input.time && !asks_for_text(input);
  if (input.subject.autotune) subject.function(subject.inputs);
  if (time) subject.function.measure(subject.inputs);
  for (const std::vector<Tensor>& inputs : subject.more_inputs) {
    subject.function(inputs);
    if (time) subject.function.measure(inputs);
  }
  if (asks_for_text(input) || !input.output.as_json())
    return write_results(input.output, to_text(subject, input));
  Json all = Json::array();
  for (const SpecialisationReport& r : subject.function.report()) all.push_back(to_json(r));
  write_results(input.output, all.dump(2) + "\n");
}

}  // namespace

void add_explain(CLI::App& app) {
  CLI::App* sub = app.add_subcommand(
      "explain", "What a program was compiled to: kernels, guards, fusions refused, cost, floor and time");
  auto in = std::make_shared<ExplainInput>();
  add_subject_options(*sub, in->subject);
  sub->add_option("--stage", in->stage, "Print a stage instead: graph, fused, tile, source, or all")
      ->check(CLI::IsMember({"graph", "fused", "tile", "source", "all"}));
  sub->add_option("--dump", in->dump, "Write every stage of every kernel to files in this folder")
      ->type_name("FOLDER");
  sub->add_flag("--time,!--no-time", in->time,
                "Measure each kernel beside its floor (about half a second; the default)");
  sub->add_flag("--autotune", in->subject.autotune,
                "Measure the schedules of each kernel and take the fastest; each is listed with its times");
  sub->add_option("--precision", in->subject.precision,
                  "What products of f32 of a graph file run in: f32, tf32, bf16, f16, fp8 or fp8-block")
      ->type_name("PRECISION");
  sub->add_option(
         "--memory", in->subject.memory,
         fmt::format("The most that a call of a graph file may hold: launches are repeated where temporaries "
                     "need more; {}",
                     kSizeForms))
      ->type_name("SIZE");
  add_output_options(*sub, in->output, "a list, an object for each specialisation");
  sub->get_option("--json")->excludes("--stage")->excludes("--dump");
  sub->callback([in] { run(*in); });
}

}  // namespace tilewright::tw
