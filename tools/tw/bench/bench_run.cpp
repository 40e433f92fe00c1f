// tw bench run: jobs, ceilings, rows, files, verdict.
#include <tilewright/base/error.h>
#include <tilewright/base/thread_pool.h>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <malloc.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/interrupt.h"
#include "harness/report/table.h"
#include "harness/run/environment.h"
#include "harness/run/expectations.h"
#include "pairs/ceilings.h"
#include "pairs/lab_device.h"
#include "pairs/pairs.h"
#include "peers/peers.h"
#include "runtime/device_name.h"
#include "tensor/storage.h"
#include "tw/bench/bench_input.h"

namespace tilewright::tw {

namespace {

constexpr double kDefaultBudget = 3;  // seconds of timing a workload
constexpr double kQuickBudget = 1;    // what lets the whole suite end in time

lab::RunOptions run_options(const BenchInput& input) {
  const bool quick = input.names == std::vector<std::string>{"quick"};
  const double budget = input.budget_s > 0 ? input.budget_s : (quick ? kQuickBudget : kDefaultBudget);
  lab::RunOptions options;
  options.seed = input.seed;
  options.timing.budget_us = budget * 1e6;
  options.timing.stop = InterruptGuard::interrupted;
  return options;
}

lab::Environment environment(const BenchInput& input, const lab::LabDevice& device) {
  lab::EnvironmentOptions options{.seed = input.seed};
  if (device.kind == lab::DeviceKind::cuda)
    options.gpu_name = detail::backend_of(*device.context, device.name).target().name;
  options.options = {{"command", fmt::format("tw bench run {}", fmt::join(input.names, " "))},
                     {"device", input.device},
                     {"set", fmt::format("{}", fmt::join(input.settings, " "))},
                     {"budget_s", fmt::format("{}", input.budget_s)},
                     {"threads", fmt::format("{}", input.threads)}};
  if (device.device_timer) {
    const bool gaps = device.device_timer->counts_gaps();
    options.options.emplace_back(
        "device_time", fmt::format("by {}, {}", device.device_timer->name(),
                                   gaps ? "the gaps in a queue of calls included" : "without gaps"));
  }
  return lab::read_environment(options);
}

}  // namespace

lab::PeerOptions peer_options(const BenchInput& input, const lab::LabDevice& device) {
  lab::PeerOptions options{.python = input.python, .device = device.name};
  options.threads = input.threads > 0 ? input.threads : allowed_cpu_count();
  options.without = input.without;
  if (device.device_timer)
    options.device_time =
        device.device_timer->counts_gaps() ? lab::DeviceTime::events : lab::DeviceTime::trace;
  return options;
}

lab::DeviceTime device_time(const BenchInput& input) {
  if (input.device_time == "off") return lab::DeviceTime::off;
  return input.device_time == "events" ? lab::DeviceTime::events : lab::DeviceTime::trace;
}

int terminal_width() {
  winsize size{};
  if (isatty(1) != 0 && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 40) return size.ws_col;
  return 140;
}

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
}

void end_with_1(const std::string& why) {
  std::fflush(stdout);  // before stderr, also where both go into one pipe
  fmt::print(stderr, "tw: exit status 1: {}\n", why);
  throw CLI::RuntimeError(1);
}

namespace {

// Checks a run against the stored expectations, or merges it into them. Returns the keys of the rows that
// regressed.
std::vector<std::string> judge(const lab::RunRecord& run, const BenchInput& input) {
  const std::string key = lab::hardware_key(run.environment, input.device);
  const auto known = lab::read_expectations(input.expectations, key);
  if (!known) throw std::runtime_error(known.error().message);
  std::vector<std::string> regressed;
  std::FILE* const say = remarks(input.output);
  if (input.expect) {
    for (const lab::ExpectationCheck& check : lab::check_expectations(run.rows, *known)) {
      if (say) fmt::print(say, "{:12} {}: {}\n", lab::name(check.outcome), check.key, check.text);
      if (check.outcome == lab::Outcome::regression) regressed.push_back(check.key);
    }
  }
  if (input.update) {
    const auto mode = input.accept_regressions ? lab::Regressions::accept : lab::Regressions::refuse;
    const lab::ExpectationUpdate update = lab::update_expectations(run, *known, mode);
    for (const std::string& refused : update.refused)
      if (say) fmt::print(say, "not stored: {}\n", refused);
    if (Status written = lab::write_expectations(update.merged, input.expectations); !written)
      throw std::runtime_error(written.error().message);
    if (say)
      fmt::print(say, "{} expectations stored in {}/{}.json\n", update.accepted.size(), input.expectations,
                 key);
  }
  return regressed;
}

// What the run is held against: the ceilings stored for this machine, measured ones, or none.
void find_ceilings(lab::LabDevice& device, const std::string& which, BenchProgress& progress) {
  device.ceilings = {.source = "none"};
  if (which == "none") return;
  const auto source =
      which == "measure" ? lab::CeilingSource::measured : lab::CeilingSource::stored_or_measured;
  lab::find_ceilings(
      device, source,
      {.progress = [&](std::string_view what) { progress.step(fmt::format("ceilings: {}", what)); },
       .stop = InterruptGuard::interrupted});
}

lab::RunRecord measure(const BenchInput& input, std::span<const lab::Job> jobs, lab::LabDevice& device) {
  BenchProgress progress(jobs.size(), input.output.progress());
  progress.say(fmt::format("{} workloads on {}{}", jobs.size(), device.name,
                           device.peers ? ", peers: " + device.peers->describe() : ""));
  find_ceilings(device, input.ceilings, progress);
  lab::RunOptions options = run_options(input);
  options.progress = [&](std::string_view what) { progress.step(what); };
  const lab::RunEvents events{
      .started = [&](const lab::Job& job) { progress.started(job); },
      .done = [&](const lab::Job&, const lab::InstanceResult& result) { progress.done(result); }};
  return lab::run_jobs(jobs, device, options, environment(input, device), events);
}

}  // namespace

std::string table_of(const lab::RunRecord& run, const OutputOptions& output) {
  using Colour = lab::TableOptions::Colour;
  const bool colours = output.is_shown() && has_colours(1);
  return lab::render_table(run, {.width = terminal_width(), .colour = colours ? Colour::ansi : Colour::none});
}

void write_measured(const OutputOptions& output, const std::string& json, const std::string& table) {
  write_results(output, output.as_json() ? json : table);
  if (!output.is_shown() && !output.quiet) fmt::print(stderr, "{}", table);
}

void bench_run(const BenchInput& input) {
  const std::vector<lab::Pair> pairs = lab::all_pairs();
  const std::vector<lab::Suite> suites = lab::all_suites();
  check_output(input.output);
  keep_freed_memory();
  const InterruptGuard guard;
  const bool is_host = runtime::parse_device_name(input.device).value().is_host();
  const auto kind = is_host ? lab::DeviceKind::cpu : lab::DeviceKind::cuda;
  const auto jobs = lab::select_jobs(pairs, suites, input.names, input.settings, kind);
  lab::OpenDevice open = lab::open_lab_device(
      {.device = input.device, .cache_directory = input.cache, .threads = input.threads}, device_time(input));
  open.device.autotune = input.autotune;
  open.device.libraries = input.libraries;
  open.device.launches = input.launches;
  open.device.stop = InterruptGuard::interrupted;
  if (input.peers) open.device.peers = lab::open_peers(peer_options(input, open.device));
  const lab::RunRecord run = measure(input, jobs, open.device);
  const bool measured = std::any_of(run.rows.begin(), run.rows.end(),
                                    [](const lab::Row& row) { return row.median_us.has_value(); });
  if (run.environment.interrupted && !measured) {
    fmt::print(stderr, "interrupted before anything was measured: nothing is written\n");
    throw CLI::RuntimeError(130);
  }
  write_measured(input.output, lab::to_json(run), table_of(run, input.output));
  if (run.environment.interrupted) throw CLI::RuntimeError(130);
  std::vector<std::string> regressed;
  if (input.expect || input.update) regressed = judge(run, input);
  std::string why = lab::why_failed(run);
  if (!regressed.empty())
    why += fmt::format("{}slower than expected: {}", why.empty() ? "" : "; ", fmt::join(regressed, ", "));
  if (!why.empty()) end_with_1(why);
}

}  // namespace tilewright::tw
