// tw bench sweep: programs drawn at random, verified and timed beside PyTorch's.
#include <tilewright/base/error.h>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "harness/report/table.h"
#include "harness/run/environment.h"
#include "ir/text.h"
#include "pairs/ceilings.h"
#include "pairs/lab_device.h"
#include "runtime/device_name.h"
#include "sweep/report.h"
#include "tensor/storage.h"
#include "tw/bench/bench_input.h"
#include "tw/command/byte_size.h"
#include "tw/command/commands.h"
#include "tw/command/number_checks.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;

struct SweepInput {
  BenchInput bench;
  int count = 20;
  std::vector<std::string> families, dtypes;
  std::string least_bytes = "1KiB", most_bytes;
  bool list = false, graphs = false, families_only = false;
};

// A GPU multiplies a hundred times what these two cores do in the time of a program.
sweep::Limits limits_of(const SweepInput& in, bool cuda) {
  sweep::Limits limits;
  limits.least_bytes = static_cast<double>(bytes_of_text(in.least_bytes));
  limits.most_bytes =
      in.most_bytes.empty() ? (cuda ? 0x1p31 : 0x1p26) : static_cast<double>(bytes_of_text(in.most_bytes));
  if (limits.least_bytes >= limits.most_bytes) throw Error("--min-bytes is not below --max-bytes");
  limits.most_flops = cuda ? 1e12 : 4e9;
  if (in.bench.device != "cpu") limits.arguments += " --device " + in.bench.device;
  if (!in.most_bytes.empty()) limits.arguments += " --max-bytes " + in.most_bytes;
  if (in.least_bytes != "1KiB") limits.arguments += " --min-bytes " + in.least_bytes;
  if (!in.dtypes.empty()) limits.arguments += fmt::format(" --dtypes {}", fmt::join(in.dtypes, ","));
  if (cuda) limits.dtypes = {DType::f32, DType::bf16, DType::f16};
  if (!in.dtypes.empty()) limits.dtypes.clear();
  for (const std::string& text : in.dtypes) {
    const auto dtype = parse_dtype(text);
    if (!dtype || !is_float(*dtype) || size_bytes(*dtype) < 2 || *dtype == DType::f64)
      throw Error(fmt::format("--dtypes: '{}' is none of f32, bf16, f16", text));
    limits.dtypes.push_back(*dtype);
  }
  return limits;
}

// The programs of all seeds: of each family that --family names, otherwise of one that the seed draws.
std::vector<sweep::DrawnWork> draw_all(const SweepInput& in, const sweep::Limits& limits, Context& context) {
  const std::vector<std::string> families = in.families.empty() ? std::vector<std::string>{""} : in.families;
  std::vector<sweep::DrawnWork> all;
  for (int i = 0; i < in.count; ++i)
    for (const std::string& family : families)
      all.push_back(sweep::draw_work(in.bench.seed + static_cast<std::uint64_t>(i), family, limits, context));
  return all;
}

lab::Environment environment(const SweepInput& in, const lab::LabDevice& device) {
  lab::EnvironmentOptions options{.seed = in.bench.seed};
  if (device.kind == lab::DeviceKind::cuda)
    options.gpu_name = detail::backend_of(*device.context, device.name).target().name;
  options.options = {{"command", fmt::format("tw bench sweep --seed {} --count {}", in.bench.seed, in.count)},
                     {"device", in.bench.device},
                     {"max_bytes", in.most_bytes},
                     {"dtypes", fmt::format("{}", fmt::join(in.dtypes, ","))},
                     {"families", fmt::format("{}", fmt::join(in.families, ","))},
                     {"peers", device.peers ? device.peers->describe() : "none"},
                     {"budget_s", fmt::format("{}", in.bench.budget_s)}};
  return lab::read_environment(options);
}

std::string outcome(const sweep::SweepRow& row) {
  if (!row.wrong.empty()) return "WRONG: " + row.wrong;
  if (!row.failed.empty()) return row.failed;
  std::string text = lab::time_text(row.ours_us.value_or(0));
  if (const auto ratio = row.ratio())
    text += fmt::format(", {} {}: {:.2f}", row.peer, lab::time_text(*row.peer_us), *ratio);
  if (row.ours_device_us && row.device_ratio())
    text += fmt::format(", on the device {:.2f}", *row.device_ratio());
  return text;
}

// What is there so far, so that little is lost where the rest cannot be had.
void store(const SweepInput& in, const std::vector<sweep::SweepRow>& rows, const lab::Environment& about) {
  const OutputOptions& output = in.bench.output;
  if (output.as_json() && !output.path.empty()) write_results(output, sweep::to_json(rows, about));
}

std::string families_text(bool json) {
  Json all = Json::array();
  std::string text;
  for (const sweep::Family& family : sweep::all_families()) {
    all.push_back({{"name", family.name}, {"doc", family.doc}});
    text += fmt::format("{:20} {}\n", family.name, family.doc);
  }
  return json ? all.dump(2) + "\n" : text;
}

// --list and --graphs have one form.
std::string programs_text(const SweepInput& in, const std::vector<sweep::DrawnWork>& programs) {
  std::string text;
  if (in.list)
    for (const sweep::DrawnWork& work : programs) text += work.drawn.text() + "\n";
  if (in.graphs)
    for (const sweep::DrawnWork& work : programs) text += ir::print(work.traced.graph);
  return text;
}

void run(const SweepInput& in) {
  const bool cuda = !runtime::parse_device_name(in.bench.device).value().is_host();
  const OutputOptions& output = in.bench.output;
  if (in.families_only) return write_results(output, families_text(output.as_json()));
  const sweep::Limits limits = limits_of(in, cuda);
  const bool runs = !in.list && !in.graphs;
  check_output(output);
  lab::OpenDevice open = lab::open_lab_device({.device = runs ? in.bench.device : "cpu",
                                               .cache_directory = in.bench.cache,
                                               .threads = in.bench.threads},
                                              device_time(in.bench));
  const std::vector<sweep::DrawnWork> programs = draw_all(in, limits, *open.context);
  if (!runs) return write_results(output, programs_text(in, programs));
  keep_freed_memory();
  const InterruptGuard guard;
  lab::LabDevice& device = open.device;
  device.autotune = in.bench.autotune;
  device.libraries = in.bench.libraries;
  if (in.bench.peers) device.peers = lab::open_peers(peer_options(in.bench, device));
  lab::Environment about = environment(in, device);
  lab::RunOptions options{.seed = in.bench.seed, .rounds = 1};
  options.timing.budget_us = in.bench.budget_s * 1e6;
  options.timing.max_samples = 50;
  options.timing.stop = InterruptGuard::interrupted;
  const double start_us = lab::steady_now_us();
  std::vector<sweep::SweepRow> rows;
  {
    ProgressLine progress("sweep", output.progress());
    progress.step(fmt::format("{} programs on {}{}", programs.size(), device.name,
                              device.peers ? ", peers: " + device.peers->describe() : ""));
    device.ceilings = {.source = "none"};
    if (in.bench.ceilings != "none")
      lab::find_ceilings(
          device,
          in.bench.ceilings == "measure" ? lab::CeilingSource::measured
                                         : lab::CeilingSource::stored_or_measured,
          {.progress = [&](std::string_view what) { progress.step(fmt::format("ceilings: {}", what)); },
           .stop = InterruptGuard::interrupted});
    for (const sweep::DrawnWork& work : programs) {
      if (InterruptGuard::interrupted()) break;
      const std::string place = fmt::format("[{}/{} {:.0f} s] {} {} {}", rows.size() + 1, programs.size(),
                                            (lab::steady_now_us() - start_us) / 1e6, work.drawn.family,
                                            name(work.drawn.dtype), work.drawn.shapes());
      progress.step(place);
      sweep::SweepRow row = sweep::measure(work, device, limits, options);
      if (InterruptGuard::interrupted()) break;  // the program under way is left out
      rows.push_back(std::move(row));
      progress.step(fmt::format("{}: {}", place, outcome(rows.back())));
      if (rows.size() % 10 == 0) store(in, rows, about);
    }
  }
  about.interrupted = InterruptGuard::interrupted();
  write_measured(output, sweep::to_json(rows, about), sweep::render(rows, terminal_width()));
  if (about.interrupted) throw CLI::RuntimeError(130);
  std::string wrong;
  for (const sweep::SweepRow& row : rows)
    if (!row.wrong.empty())
      wrong += fmt::format("{}{} of seed {}", wrong.empty() ? "" : ", ", row.family, row.seed);
  if (!wrong.empty()) end_with_1("wrong results: " + wrong);
}

}  // namespace

void add_bench_sweep(CLI::App& bench) {
  CLI::App* sub = bench.add_subcommand(
      "sweep", "Draw realistic programs at random; verify and time them, beside PyTorch's");
  auto in = std::make_shared<SweepInput>();
  in->bench.budget_s = 0.5;
  in->bench.without = {"torch max-autotune"};
  sub->add_option("--seed", in->bench.seed, "Seed of the first program; the next has the next seed");
  sub->add_option("--count", in->count, "How many seeds")->check(at_least(1));
  sub->add_option("--family", in->families, "Only of these families, a program of each for a seed")
      ->delimiter(',')
      ->type_name("FAMILY");
  sub->add_flag("--families", in->families_only, "List the families");
  sub->add_flag("--list", in->list, "Print the programs, ours and PyTorch's, and run nothing");
  sub->add_flag("--graphs", in->graphs,
                "Print the programs as graphs, each of which tw explain takes, and run nothing");
  sub->add_option("--device", in->bench.device, "cpu or cuda:N")->type_name("DEVICE");
  sub->add_option(
         "--max-bytes", in->most_bytes,
         fmt::format("The most traffic of a program (default 2GiB on a GPU, 64MiB on a CPU): {}", kSizeForms))
      ->type_name("SIZE");
  sub->add_option("--min-bytes", in->least_bytes, "The least traffic of a program")->type_name("SIZE");
  sub->add_option("--dtypes", in->dtypes, "Types to draw from: f32,bf16,f16 (default: f32,bf16 on a CPU)")
      ->delimiter(',');
  sub->add_flag("--peers", in->bench.peers, "Time PyTorch as well, and verify by it in float64");
  sub->add_option("--without", in->bench.without,
                  "A peer to leave out; may be repeated (default: 'torch max-autotune', which takes a minute "
                  "a program)")
      ->allow_extra_args(false);
  sub->add_option(
         "--device-time", in->bench.device_time,
         "How a GPU's own work is timed: trace (CUPTI, where there is one), events (gaps included), off")
      ->check(CLI::IsMember({"trace", "events", "off"}));
  sub->add_option("--python", in->bench.python, "Interpreter of the peers")->type_name("FILE");
  sub->add_flag("--autotune", in->bench.autotune, "Measure our schedules as well, and take the better time");
  sub->add_flag("--libraries", in->bench.libraries,
                "Time vendors' libraries as well, as a peer of their own name, where they have calls for all "
                "of a program");
  sub->add_option("--budget", in->bench.budget_s, "Seconds of timing for each program")->check(positive());
  sub->add_option("--threads", in->bench.threads, "CPU threads (default: every allowed core)");
  sub->add_option("--cache", in->bench.cache, "Folder of compiled kernels; '' compiles everything anew")
      ->type_name("FOLDER");
  sub->add_option("--ceilings", in->bench.ceilings, "auto: stored, else measured now; measure; none")
      ->check(CLI::IsMember({"auto", "measure", "none"}));
  add_output_options(*sub, in->bench.output, "a list, an object for each program, then the summary");
  sub->get_option("--json")->excludes("--list")->excludes("--graphs");
  sub->callback([in] { run(*in); });
}

}  // namespace tilewright::tw
