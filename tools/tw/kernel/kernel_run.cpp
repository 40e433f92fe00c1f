// tw kernel run: an edited kernel is compiled, proved against the interpreter, and timed beside the original.
#include <fmt/format.h>
#include <tilewright/tile/text.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "harness/report/table.h"
#include "harness/run/timing.h"
#include "tensor/storage.h"
#include "tw/command/crash_guard.h"
#include "tw/kernel/kernel_input.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;
using runtime::LoadedKernel;

// What was found out about the kernel, in both forms.
struct Findings {
  std::string text;
  Json json = Json::object();
};

void write(const Findings& found, const OutputOptions& output) {
  write_results(output, output.as_json() ? found.json.dump(2) + "\n" : found.text);
}

// The compiler's messages name the user's file and lines.
std::string with_lines_of(const std::string& path, const std::string& text) {
  return fmt::format("#line 1 \"{}\"\n{}", path, text);
}

struct Edited {
  tile::Kernel kernel;  // what it is in tile IR; for edited C++ the original's
  std::shared_ptr<LoadedKernel> loaded;
};

Edited load_source(KernelBench& bench, std::size_t original, const KernelInput& input,
                   const std::string& text, const FileHead& head) {
  backends::Source source = bench.loaded(original).source;
  source.text = with_lines_of(input.file, text);
  if (head.launch) source.launch = *head.launch;
  auto loaded = bench.store().get_edited(bench.kernel(original), source);
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return {bench.kernel(original), std::move(*loaded)};
}

// An edited kernel in tile IR takes what the original takes.
Edited load_tile(KernelBench& bench, std::size_t original, const KernelInput& input,
                 const std::string& text) {
  auto kernel = tile::parse(text);
  if (!kernel) throw std::runtime_error(fmt::format("{}: {}", input.file, kernel.error().message));
  const tile::Kernel& was = bench.kernel(original);
  if (kernel->views != was.views || kernel->scalars != was.scalars)
    throw Error(fmt::format("{}: its views and scalars must stay those of {}: they are bound to its memory",
                            input.file, was.name));
  auto loaded = bench.store().get(*kernel);
  if (!loaded) throw std::runtime_error(fmt::format("{}: {}", input.file, loaded.error().message));
  return {std::move(*kernel), std::move(*loaded)};
}

lab::Contender contender(std::string name, backends::Program& program,
                         const runtime::Executable::StepLaunch& launch, backends::Backend& backend) {
  lab::Contender c{.name = std::move(name)};
  c.run = [&program, &launch](std::int64_t) {
    return program.launch(
        {launch.views.data(), launch.scalars.data(), {launch.grid[0], launch.grid[1], launch.grid[2]}});
  };
  c.finish = [&backend] { return backend.synchronize(); };
  return c;
}

// Proves one program; false when it is wrong.
bool prove(KernelBench& bench, const tile::Kernel& meaning, backends::Program& program,
           const runtime::Executable::StepLaunch& launch, Progress shown, Findings& found) {
  ProgressLine progress("tw kernel run", shown);
  progress.step("against the interpreter, every element");
  const auto check = runtime::check_launch(bench.device(), meaning, program, launch);
  progress.clear();
  if (!check) throw std::runtime_error(check.error().message);
  found.json.update({{"right", check->wrong == 0},
                     {"compared", check->compared},
                     {"wrong", check->wrong},
                     {"decided_by_rounding", check->undecided},
                     {"worst_error", check->worst}});
  if (check->wrong > 0) {
    found.json["problem"] = check->problem;
    found.text +=
        fmt::format("WRONG: {} of {} elements; {}\n", check->wrong, check->compared, check->problem);
    return false;
  }
  found.text += fmt::format(
      "right: {} elements agree with the interpreter{}; the worst error is {:.2g} of what rounding allows\n",
      check->compared - check->undecided,
      check->undecided > 0 ? fmt::format(" ({} more are decided by rounding)", check->undecided) : "",
      check->worst);
  return true;
}

lab::Timing time_them(KernelBench& bench, lab::PairInstance& instance, double budget_s) {
  lab::TimingOptions options;
  options.budget_us = budget_s * 1e6;
  const lab::Timing timing = lab::time_contenders(
      instance, *bench.lab_device().timer, std::vector<bool>(instance.contenders.size(), true), options);
  for (const lab::ContenderTiming& t : timing.contenders)
    if (!t.error.empty()) throw std::runtime_error(t.error);
  return timing;
}

void note_time(const char* name, const std::vector<double>& samples, Findings& found) {
  const lab::Estimate e = lab::estimate_median(samples);
  found.text += fmt::format("{:<9} {} [{}, {}]\n", name, lab::time_text(e.median), lab::time_text(e.ci.low),
                            lab::time_text(e.ci.high));
  found.json[name] = {{"median_us", e.median}, {"ci95_us", {e.ci.low, e.ci.high}}};
}

void compare(KernelBench& bench, backends::Program& original, backends::Program& edited,
             const runtime::Executable::StepLaunch& launch, double budget_s, Findings& found) {
  lab::PairInstance instance;
  backends::Backend& backend = bench.device().backend();
  instance.contenders = {contender("original", original, launch, backend),
                         contender("edited", edited, launch, backend)};
  const lab::Timing timing = time_them(bench, instance, budget_s);
  const auto &was = timing.contenders[0].samples_us, &is = timing.contenders[1].samples_us;
  note_time("original", was, found);
  note_time("edited", is, found);
  const lab::Speedup speedup = lab::compare_paired(was, is);
  found.text +=
      fmt::format("{}: {:.3f}x [{:.3f}, {:.3f}], {} rounds, interleaved; median and 95 % intervals\n",
                  lab::name(speedup.verdict), speedup.ratio, speedup.ci.low, speedup.ci.high, timing.rounds);
  found.json.update({{"verdict", lab::name(speedup.verdict)},
                     {"speedup", speedup.ratio},
                     {"speedup_ci95", {speedup.ci.low, speedup.ci.high}},
                     {"rounds", timing.rounds}});
}

// A kernel of the user's own, in tile IR: nothing to compare it with but its own meaning.
void run_own(const KernelInput& input) {
  KernelInput own = input;
  own.subject.what = input.file;
  KernelBench bench = KernelBench::open(own);
  const auto launch = bench.launch(0);
  const std::string schedule = to_string(bench.loaded(0).source.schedule);
  Findings found{fmt::format("{}: kernel {}, schedule {}\n", input.file, bench.kernel(0).name, schedule),
                 {{"file", input.file}, {"kernel", bench.kernel(0).name}, {"schedule", schedule}}};
  const bool right =
      prove(bench, bench.kernel(0), *bench.loaded(0).program, launch, input.output.progress(), found);
  if (right) {
    lab::PairInstance instance;
    instance.contenders = {contender("kernel", *bench.loaded(0).program, launch, bench.device().backend())};
    note_time("time", time_them(bench, instance, input.budget_s).contenders[0].samples_us, found);
  }
  write(found, input.output);
  if (!right) throw CLI::RuntimeError(1);
}

// The program of an edit of the tile IR runs over its own grid, whatever that of the original is.
struct Regridded final : backends::Program {
  backends::Program* program = nullptr;
  std::vector<Index> grid;
  Status launch(const backends::LaunchArgs& args) override {
    return program->launch({args.views, args.scalars, {grid[0], grid[1], grid[2]}});
  }
};

}  // namespace

void run_kernel(const KernelInput& input) {
  const std::string text = read_text(input.file);
  if (text.empty())
    throw Error(input.file + ": is empty; `tw kernel edit -o FILE` writes a kernel to change");
  const std::optional<FileHead> head = read_head(text);
  const bool tile = is_tile_path(input.file);
  if (!head && input.subject.what.empty()) {
    if (tile) return run_own(input);
    throw Error(
        fmt::format("{}: nothing says which kernel this is an edit of; write the file with `tw kernel edit`, "
                    "or give --of and --kernel",
                    input.file));
  }
  KernelInput from = input;
  if (input.subject.what.empty()) from.subject = head->subject;
  if (input.subject.what.empty() && input.kernel.empty()) from.kernel = head->kernel;
  from.subject.cache = input.subject.cache;
  from.subject.threads = input.subject.threads;
  KernelBench bench = KernelBench::open(from);
  const std::size_t original = bench.find(from.kernel);
  const Edited edited = tile ? load_tile(bench, original, input, text)
                             : load_source(bench, original, input, text, head.value_or(FileHead{}));
  const auto launch = bench.launch(original);
  Findings found{
      fmt::format("{}: an edit of kernel {} of {} on {}\n{}", input.file, bench.kernel(original).name,
                  bench.title(), bench.device().name(), edited.loaded->compiler_log),
      {{"file", input.file},
       {"kernel", bench.kernel(original).name},
       {"of", bench.title()},
       {"device", bench.device().name()},
       {"compiler_log", edited.loaded->compiler_log}}};
  Regridded regridded;
  backends::Program* program = edited.loaded->program.get();
  std::optional<CrashGuard> guard;
  if (tile) {
    // Its own meaning is what it computes; the original's is what it must compute.
    auto own = launch;
    const std::vector<Index> grid = tile::grid_extents(edited.kernel, launch.scalars);
    std::copy(grid.begin(), grid.end(), std::begin(own.grid));
    if (Status s = runtime::check_reach(bench.device(), edited.kernel, own); !s)
      throw std::runtime_error(s.error().message);
    regridded.program = program;
    regridded.grid.assign(std::begin(own.grid), std::end(own.grid));
    program = &regridded;
  } else {
    guard.emplace(input.file);
  }
  const bool right = prove(bench, bench.kernel(original), *program, launch, input.output.progress(), found);
  if (right) compare(bench, *bench.loaded(original).program, *program, launch, input.budget_s, found);
  guard.reset();
  write(found, input.output);
  if (!right) throw CLI::RuntimeError(1);
}

}  // namespace tilewright::tw
