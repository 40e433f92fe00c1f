// Running probe kernels and storing what they measured.
#include "runtime/probe.h"

#include "runtime/other_work.h"
#include "runtime/probe_parts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <tilewright/base/clock.h>
#include <tilewright/base/philox.h>
#include <tilewright/perf/best_ceilings.h>
#include <tilewright/tile/builder.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>

namespace tilewright::runtime {

namespace {

constexpr std::size_t kNumbersBytes = 64 << 10;

std::string slug(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u))
      out += static_cast<char>(std::tolower(u));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

}  // namespace

// The parameters that every probe's text takes. The body is never run: it only says that a program is long
// work, which a backend that keeps short launches on one thread must know.
tile::Kernel probe_parameters() {
  constexpr Index kShare = 1 << 20;
  tile::Builder k("probe");
  const auto x = k.view("x", DType::f32, {64 * kShare}), y = k.view("y", DType::f32, {64});
  const auto program = k.program_id(0);
  k.store(y, {program}, k.reduce(tile::Monoid::sum, k.load(x, {program * kShare}, {.shape = {kShare}}), 0));
  tile::Kernel kernel = k.finish({{{64 * kShare, kShare}}});
  for (const char* name : {"share_bytes", "repeats", "spare_0", "spare_1"})
    kernel.scalars.push_back({name, DType::i64});
  return kernel;
}

backends::Source source_of(const ProbeKernel& kernel) {
  backends::Source source{.text = kernel.text, .entry = kernel.entry, .launch = {}, .schedule = {}};
  source.launch.threads = kernel.threads;
  source.launch.shared_bytes = kernel.shared_bytes;
  return source;
}

Status ProbeBench::reserve(std::size_t bytes) {
  if (x_ && x_->bytes() >= bytes) return Unit{};
  bytes = std::max(bytes, kNumbersBytes);
  x_.reset();
  y_.reset();
  for (std::shared_ptr<Buffer>* buffer : {&x_, &y_}) {
    auto made = Buffer::allocate(std::shared_ptr<Device>(&device_, [](Device*) {}), bytes);
    if (!made) return made.error();
    *buffer = std::move(*made);
    // Not zeros, which a virtual machine's host may keep as one shared page. The first touch of all of it
    // takes seconds: the user may end it between two pieces.
    constexpr std::size_t kPiece = 64 << 20;
    auto* const data = static_cast<std::byte*>((*buffer)->data());
    for (std::size_t at = 0; at < bytes; at += kPiece) {
      if (Status going = goes_on(); !going) return going;
      const std::size_t piece = std::min(kPiece, bytes - at);
      if (Status filled = backend().fill(data + at, {0x5A}, piece); !filled) return filled;
    }
  }
  // The start of x feeds the arithmetic: not zeros, which draw less power, but numbers that are small and
  // normal in every float type, from f8e4m3 to f64.
  std::vector<std::uint16_t> numbers(kNumbersBytes / 2);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<std::uint16_t>(0x3400u | (philox4x32(1, i)[0] & 0x83feu));
  return backend().copy(x_->data(), numbers.data(), kNumbersBytes, backends::CopyKind::host_to_device);
}

Result<std::shared_ptr<backends::Program>> ProbeBench::load(const ProbeKernel& kernel) {
  if (const auto known = programs_.find(kernel.text); known != programs_.end()) return known->second;
  const tile::Kernel meaning = probe_parameters();
  const backends::Source source = source_of(kernel);
  auto binary = backend().compile(meaning, source);
  if (!binary) return binary.error();
  auto program = backend().load(meaning, source, *binary);
  if (!program) return program.error();
  return programs_[kernel.text] = std::move(*program);
}

Result<double> ProbeBench::run_us(backends::Program& program, const Work& work, Index repeats) {
  void* const views[2] = {x_->data(), y_->data()};
  const std::int64_t scalars[4] = {work.share_bytes, repeats, 0, 0};
  backends::LaunchArgs args{views, scalars, {work.programs, 1, 1}};
  if (Status s = backend().timer_start(); !s) return s.error();
  if (Status s = program.launch(args); !s) return s.error();
  return backend().timer_stop_us();
}

Status ProbeBench::goes_on() const {
  if (options_.stop && options_.stop())
    return failure(Failure::Kind::device, "interrupted: nothing was stored");
  return Unit{};
}

Status ProbeBench::next(std::string_view what) const {
  if (Status going = goes_on(); !going) return going;
  if (options_.progress) options_.progress(what);
  return Unit{};
}

Result<double> ProbeBench::best_rate(backends::Program& program, const Work& work) {
  Index& repeats = repeats_.try_emplace({&program, work.share_bytes}, 1).first->second;
  std::vector<double> rates;
  const double end = seconds_now() + options_.seconds_each;
  while (rates.size() < 3 || seconds_now() < end) {
    if (Status going = goes_on(); !going) return going.error();
    const auto us = run_us(program, work, repeats);
    if (!us) return us.error();
    if (*us < options_.sample_us && repeats < (Index{1} << 40)) {
      // Too short to count.
      repeats =
          std::max(repeats + 1,
                   static_cast<Index>(static_cast<double>(repeats) *
                                      std::clamp(1.3 * options_.sample_us / std::max(*us, 1.0), 1.0, 64.0)));
      continue;
    }
    rates.push_back(work.amount * static_cast<double>(repeats) / *us * 1e6);
  }
  // What a tenth of the samples reach: a single sample may be a clock's slip.
  const auto place = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 10);
  std::nth_element(rates.begin(), place, rates.end(), std::greater<>());
  return *place;
}

Result<double> ProbeBench::launch_seconds(const std::function<Status()>& launch_all, int count) {
  double best = 1e30;
  const double end = seconds_now() + options_.seconds_each / 2;
  for (int sample = 0; sample < 5 || seconds_now() < end; ++sample) {
    if (Status going = goes_on(); !going) return going.error();
    if (Status s = backend().timer_start(); !s) return s.error();
    if (Status s = launch_all(); !s) return s.error();
    const auto us = backend().timer_stop_us();
    if (!us) return us.error();
    best = std::min(best, *us * 1e-6 / count);
  }
  return best;
}

namespace {

// One pass over what the options want.
Result<Probed> one_pass(ProbeBench& bench, const std::string& device_name) {
  const tile::Target& target = bench.target();
  Probed out;
  const bool cuda = target.kind == tile::TargetKind::cuda;
  out.ceilings.name = device_name;
  out.ceilings.title =
      fmt::format("{} ({} {})", target.name, target.units, cuda ? "multiprocessors" : "threads");
  const ProbeReport report{
      out, fmt::format("{}, {:%Y-%m-%d}", bench.options().how, fmt::gmtime(std::time(nullptr)))};
  const double memory = backends::fact_value(bench.backend().facts(), "memory_bytes");
  if (memory > 0) out.ceilings.measurements.push_back({"memory_bytes", memory, "as the system tells it"});
  if (Status done = cuda ? probe_cuda(bench, report) : probe_cpu(bench, report); !done) return done.error();
  return out;
}

// Levels that a farther one outran are probed again; what stays below is raised. See best_ceilings.h.
Status put_in_order(ProbeBench& bench, const ProbeOptions& options, Probed& out) {
  constexpr int kTries = 2;
  constexpr double kSlack = 1.05;  // closer than that, two levels are as fast as each other
  for (int i = 0; i < kTries; ++i) {
    const auto slow = perf::out_of_order(out.ceilings, kSlack);
    if (slow.empty()) break;
    ProbeOptions again = options;
    again.wanted = [&](std::string_view figure) {
      return std::any_of(slow.begin(), slow.end(), [&](const auto& each) { return each.nearer == figure; });
    };
    bench.take(again);
    const auto more = one_pass(bench, out.ceilings.name);
    bench.take(options);
    if (!more) return more.error();
    out.ceilings = perf::best_of(out.ceilings, more->ceilings);
  }
  out.ceilings = perf::in_order(std::move(out.ceilings));
  return Unit{};
}

}  // namespace

Prober::Prober(Device& device) : bench_(std::make_unique<ProbeBench>(device)) {}
Prober::~Prober() = default;

Result<Probed> Prober::probe(const ProbeOptions& options) {
  const tile::TargetKind kind = bench_->target().kind;
  if (kind == tile::TargetKind::reference)
    return failure(Failure::Kind::unsupported, "the reference interpreter has no speed to measure");
  const ProcessorLook before = look_at_processors();
  bench_->take(options);
  auto out = one_pass(*bench_, bench_->device_name());
  if (!out) return out;
  if (Status ordered = put_in_order(*bench_, options, *out); !ordered) return ordered.error();
  if (kind == tile::TargetKind::cpu) out->busy = busy_text(share_of_others(before, look_at_processors()));
  if (!out->busy.empty())
    for (perf::Measurement& m : out->ceilings.measurements)
      if (m.how.starts_with(options.how)) m.how += fmt::format(", on a busy machine ({})", out->busy);
  return out;
}

Result<Probed> probe(Device& device, const ProbeOptions& options) { return Prober(device).probe(options); }

std::string ceilings_path(const Device& device, const std::string& cache_directory) {
  if (cache_directory.empty()) return "";
  const tile::Target& t = device.target();
  const char* unit = t.kind == tile::TargetKind::cuda ? "sm" : "c";
  return fmt::format("{}/ceilings/{}-{}{}.json", cache_directory, slug(t.name), t.units, unit);
}

Result<perf::Ceilings> stored_ceilings(const Device& device, const std::string& cache_directory) {
  const std::string path = ceilings_path(device, cache_directory);
  if (path.empty() || !std::filesystem::exists(path))
    return failure(
        Failure::Kind::not_found,
        fmt::format("{} was not measured on this machine: run `tw devices --probe`", device.name()));
  return perf::read_ceilings(path);
}

Result<perf::Ceilings> store_best(const perf::Ceilings& probed, const std::string& path) {
  const auto known = perf::read_ceilings(path);
  perf::Ceilings best = perf::in_order(known ? perf::best_of(*known, probed) : probed);
  if (Status written = perf::write_ceilings(best, path); !written) return written.error();
  return best;
}

}  // namespace tilewright::runtime
