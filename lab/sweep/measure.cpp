// Instances to rows of the sweep.
#include "sweep/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/run/clock.h"

namespace tilewright::sweep {

namespace {

bool is_ours(const lab::Row& row) {
  return row.contender == "compiled" || row.contender == "tuned" || row.contender == "launched";
}

void take_less(std::optional<double>& least, std::optional<double> value) {
  if (value && (!least || *value < *least)) least = value;
}

// The better time of each side. A row that is a family's best repeats another.
void take_times(SweepRow& out) {
  for (const lab::Row& row : out.contenders) {
    if (!row.chosen.empty() || !row.median_us || !row.verified || row.verdict == lab::Verdict::impossible)
      continue;
    take_less(is_ours(row) ? out.ours_us : out.peer_us, row.median_us);
    take_less(is_ours(row) ? out.ours_device_us : out.peer_device_us, row.device_us);
    if (!is_ours(row) && out.peer_us == row.median_us) out.peer = row.contender;
    if (row.floor_us) out.floor_us = row.floor_us;
  }
}

void take_faults(SweepRow& out) {
  for (const lab::Row& row : out.contenders) {
    if (!is_ours(row)) continue;
    if (row.verdict == lab::Verdict::wrong && out.wrong.empty()) out.wrong = row.note;
    if (!row.median_us && row.verdict != lab::Verdict::wrong && out.failed.empty())
      out.failed = fmt::format("{}: {}", lab::name(row.verdict), row.note);
  }
}

// "2 kernels: [matmul, add, gelu] [sum]; not fused: gelu -> sum: why".
void take_report(SweepRow& out, const lab::PairInstance& instance) {
  const auto reports = instance.compiled->function.report();
  if (reports.empty()) return;
  const SpecialisationReport& report = reports.front();
  out.compile_ms = report.compile_ms;
  out.kernels = static_cast<int>(report.kernels.size());
  out.from_disk = !report.kernels.empty();
  constexpr std::size_t kMostShown = 6, kLongest = 60;
  std::string kernels;
  for (const KernelReport& kernel : report.kernels) {
    out.predicted_us += kernel.predicted_us;
    out.from_disk = out.from_disk && kernel.origin == "disk";
    if (static_cast<std::size_t>(&kernel - report.kernels.data()) < kMostShown)
      kernels +=
          fmt::format(" [{}{}]", kernel.ops.substr(0, kLongest), kernel.ops.size() > kLongest ? " .." : "");
  }
  if (report.kernels.size() > kMostShown) kernels += " ..";
  out.explained = fmt::format("{} kernel{}:{}", out.kernels, out.kernels == 1 ? "" : "s", kernels);
  if (!report.not_fused.empty()) out.explained += "; not fused: " + report.not_fused.front();
}

// What nobody could judge at its size is judged smaller: the same structure by the oracle.
void judge_smaller(SweepRow& out, const DrawnWork& work, lab::LabDevice device, Limits limits,
                   std::uint64_t seed) {
  limits.most_bytes = std::min(limits.most_bytes, 256.0 * 1024);
  limits.least_bytes = std::min(limits.least_bytes, limits.most_bytes / 4);
  limits.most_flops = 2e7;
  limits.dtypes = {work.drawn.dtype};
  device.peers = nullptr;
  device.autotune = device.libraries = false;
  const DrawnWork small = draw_work(work.drawn.seed, work.drawn.family, limits, *device.context);
  auto made = make_instance(small, device);
  if (!made) {
    out.judge = "nobody: " + made.error().message;
    return;
  }
  const lab::Verification verified = lab::verify(made->instance, seed, {.rounds = 1}).front();
  out.judge = made->judgement->by + ", smaller";
  if (!verified.verified) out.wrong = fmt::format("at {}: {}", small.drawn.shapes(), verified.reason);
}

std::optional<double> quotient(std::optional<double> a, std::optional<double> b) {
  return a && b && *b > 0 ? std::optional(*a / *b) : std::nullopt;
}

// Seconds between one piece of work and the next, under the names by which the harness tells them.
class Spent {
 public:
  explicit Spent(std::vector<std::pair<std::string, double>>& out) : out_(out) { begin("prepare"); }

  void begin(std::string what) {
    end();
    what_ = std::move(what);
    began_us_ = lab::steady_now_us();
  }

  void end() {
    if (!what_.empty()) out_.emplace_back(what_, (lab::steady_now_us() - began_us_) / 1e6);
    what_.clear();
  }

 private:
  std::vector<std::pair<std::string, double>>& out_;
  std::string what_;
  double began_us_ = 0;
};

}  // namespace

std::optional<double> SweepRow::ratio() const { return quotient(peer_us, ours_us); }

std::optional<double> SweepRow::device_ratio() const {
  const auto device = quotient(peer_device_us, ours_device_us);
  const bool on_host = !contenders.empty() && contenders.front().calls_are_work();
  return on_host ? ratio() : device;
}

SweepRow measure(const DrawnWork& work, lab::LabDevice& device, const Limits& limits,
                 const lab::RunOptions& options) {
  const Drawn& drawn = work.drawn;
  SweepRow out{.family = drawn.family,
               .command = drawn.command(),
               .shapes = drawn.shapes(),
               .dtype = std::string(name(drawn.dtype)),
               .text = drawn.text(),
               .seed = drawn.seed,
               .bytes = work.traced.cost.bytes(),
               .flops = work.traced.cost.matrix.total()};
  Spent spent(out.spent_s);
  auto made = make_instance(work, device);
  if (!made) {
    out.failed = made.error().message;
    return out;
  }
  lab::RunOptions with_clock = options;
  with_clock.progress = [&](std::string_view what) { spent.begin(std::string(what)); };
  out.contenders = lab::run_instance(made->instance, device, with_clock).rows;
  spent.begin("judge");
  out.judge = made->judgement->by;
  take_report(out, made->instance);
  take_faults(out);
  take_times(out);
  if (made->judgement->by == "nobody" && out.wrong.empty() && out.failed.empty()) {
    judge_smaller(out, work, device, limits, options.seed);
    if (!made->judgement->why_not.empty()) out.judge += fmt::format(" ({})", made->judgement->why_not);
  }
  spent.end();
  return out;
}

}  // namespace tilewright::sweep
