// From instances to rows.
#include "harness/runner.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::lab {

namespace {

Row empty_row(const PairInstance& instance, const Contender& contender) {
  Row row{instance.target, contender.name, instance.device, instance.shape, instance.dtype};
  row.note = contender.note;
  return row;
}

void set_verification(Row& row, const Contender& contender, const Verification& v) {
  row.verified = v.verified;
  if (!contender.unavailable.empty()) {
    row.verdict = Verdict::unavailable;
    row.note = contender.unavailable;
    return;
  }
  if (v.no_memory) {
    row.verdict = Verdict::no_memory;
    row.note = v.reason;
    return;
  }
  row.max_rel_err = v.max_rel_err;
  row.tolerance = v.tolerance;
  row.verdict = v.verified ? Verdict::untimed : Verdict::wrong;
  if (!v.verified) row.note = v.reason;
  if (v.verified && v.compared < 1) {
    row.note += fmt::format(
        "{}compared with the reference in {:.2g} % of its rows, drawn anew in each round; the others must be "
        "written and finite",
        row.note.empty() ? "" : "; ", 100 * v.compared);
  }
}

void set_times(Row& row, const ContenderTiming& timing, const PairInstance& instance, const LabDevice& device,
               const RunOptions& options) {
  const Estimate estimate = estimate_median(timing.samples_us, {.seed = options.seed});
  row.median_us = estimate.median;
  row.ci95_us = estimate.ci;
  row.samples = static_cast<int>(timing.samples_us.size());
  const auto floor = floor_of(instance.work, device.ceilings);
  row.unit = instance.unit;
  if (row.unit.empty()) row.unit = floor && !floor->memory_bound ? "GFLOP/s" : "GB/s";
  // Amount per microsecond / 1000 is billions per second.
  const double amount = row.unit == "GFLOP/s" ? instance.work.cost.flops() : instance.work.cost.bytes();
  if (amount > 0) row.rate = amount / estimate.median / 1e3;
  if (floor) {
    row.floor_us = floor->us;
    row.roofline = floor->us / estimate.median;
  }
  const auto least = impossible_below_us(instance.work, device.ceilings);
  if (least && estimate.median * options.ceiling_slack < *least) {
    row.verdict = Verdict::impossible;
    row.note = fmt::format(
        "faster than physics: {:.4g} us, where the measured ceilings ({}) allow {:.4g} us at best",
        estimate.median, device.ceilings.source, *least);
    return;
  }
  row.verdict = Verdict::uncompared;
}

void set_speedup(Row& row, const Row& baseline, const std::vector<double>& baseline_us,
                 const std::vector<double>& samples_us, std::uint64_t seed) {
  if (row.verdict != Verdict::uncompared || baseline.verdict != Verdict::baseline) return;
  const Speedup speedup = compare_paired(baseline_us, samples_us, {.seed = seed});
  row.speedup = speedup.ratio;
  row.speedup_ci95 = speedup.ci;
  switch (speedup.verdict) {
    case Comparison::faster:
      row.verdict = Verdict::faster;
      break;
    case Comparison::slower:
      row.verdict = Verdict::slower;
      break;
    case Comparison::same:
      row.verdict = Verdict::same;
      break;
  }
}

// A row whose verification failed only on the timed runs loses its times: they are of some other work.
void withdraw(Row& row, const Verification& v) {
  row.median_us = row.rate = row.floor_us = row.roofline = std::nullopt;
  row.ci95_us = std::nullopt;
  row.samples = 0;
  row.verified = false;
  row.verdict = Verdict::wrong;
  row.note = v.reason;
}

std::vector<bool> to_time(const std::vector<Verification>& verifications) {
  std::vector<bool> take;
  take.reserve(verifications.size());
  for (const Verification& v : verifications) take.push_back(v.verified);
  return take;
}

void fail_all(std::vector<Row>& rows, const std::string& why) {
  for (Row& row : rows) {
    if (row.verdict != Verdict::untimed) continue;
    row.verdict = Verdict::failed;
    row.note = why;
  }
}

// Fills the rows' times, then takes back those whose last outputs are wrong.
void merge_timing(std::vector<Row>& rows, const PairInstance& instance, const LabDevice& device,
                  const Timing& timing, const std::vector<Verification>& verifications,
                  const RunOptions& options) {
  for (std::size_t c = 0; c < rows.size(); ++c) {
    if (rows[c].verdict != Verdict::untimed) continue;
    const ContenderTiming& times = timing.contenders[c];
    rows[c].max_rel_err = verifications[c].max_rel_err;
    rows[c].tolerance = verifications[c].tolerance;
    if (!times.error.empty()) {
      rows[c].verdict = Verdict::failed;
      rows[c].note = times.error;
    } else if (!verifications[c].verified) {
      withdraw(rows[c], verifications[c]);
    } else if (!times.samples_us.empty()) {
      set_times(rows[c], times, instance, device, options);
    }
  }
  Row& baseline = rows.front();
  if (baseline.verdict == Verdict::uncompared) {
    baseline.verdict = Verdict::baseline;
    baseline.speedup = 1;
    baseline.speedup_ci95 = Interval{1, 1};
  }
  for (std::size_t c = 1; c < rows.size(); ++c) {
    set_speedup(rows[c], baseline, timing.contenders[0].samples_us, timing.contenders[c].samples_us,
                options.seed);
  }
}

InstanceResult unavailable(const Job& job, const LabDevice& device, const Failure& why) {
  InstanceResult result;
  Row row{job.pair->name, "all", device.name, job.knobs.to_string(), ""};
  const bool no_memory = why.kind == Failure::Kind::out_of_memory;
  row.verdict = no_memory ? Verdict::no_memory : Verdict::unavailable;
  row.note = why.message;
  result.rows.push_back(row);
  return result;
}

}  // namespace

InstanceResult run_instance(PairInstance& instance, LabDevice& device, const RunOptions& options) {
  TW_CHECK(!instance.contenders.empty(), "an instance has a contender");
  InstanceResult result;
  result.work = {instance.target, instance.device, instance.shape,
                 instance.dtype,  instance.work,   instance.sweep};
  std::vector<Verification> verifications = verify(instance, options.seed, options.progress);
  for (std::size_t c = 0; c < instance.contenders.size(); ++c) {
    result.rows.push_back(empty_row(instance, instance.contenders[c]));
    set_verification(result.rows.back(), instance.contenders[c], verifications[c]);
  }
  const std::vector<bool> take = to_time(verifications);
  if (std::count(take.begin(), take.end(), true) == 0) return result;
  const auto digest_before = prepare_timed(instance, take, options.seed);
  if (!digest_before) {
    fail_all(result.rows, digest_before.error().message);
    return result;
  }
  if (options.progress) options.progress("timing");
  TimingOptions timing_options = options.timing;
  timing_options.seed = options.seed;
  const Timing timing = time_contenders(instance, *device.timer, take, timing_options);
  std::vector<std::int64_t> last;
  for (const ContenderTiming& times : timing.contenders) {
    last.push_back(times.error.empty() ? times.last_iteration : -1);
    result.frame_us = std::max(result.frame_us, times.frame_us);
  }
  if (options.progress) options.progress("verify what was timed");
  verify_timed(instance, *digest_before, last, verifications);
  merge_timing(result.rows, instance, device, timing, verifications, options);
  result.interrupted = timing.interrupted;
  return result;
}

RunRecord run_jobs(std::span<const Job> jobs, LabDevice& device, const RunOptions& options,
                   Environment environment, const RunEvents& events) {
  RunRecord run{{}, std::move(environment)};
  run.environment.seed = options.seed;
  run.environment.ceilings.push_back({device.name, device.ceilings});
  for (const Job& job : jobs) {
    if (options.timing.stop && options.timing.stop()) {
      run.environment.interrupted = true;
      break;
    }
    if (events.started) events.started(job);
    auto instance = job.pair->make(job.knobs, device);
    if (instance && events.made) events.made(job, *instance);
    const InstanceResult result =
        instance ? run_instance(*instance, device, options) : unavailable(job, device, instance.error());
    run.rows.insert(run.rows.end(), result.rows.begin(), result.rows.end());
    if (instance) run.environment.work.push_back(result.work);
    run.environment.frame_us = std::max(run.environment.frame_us, result.frame_us);
    run.environment.interrupted = run.environment.interrupted || result.interrupted;
    if (events.done) events.done(job, result);
  }
  return run;
}

bool sound(const RunRecord& run) {
  return std::none_of(run.rows.begin(), run.rows.end(), [](const Row& row) {
    return row.verdict == Verdict::wrong || row.verdict == Verdict::failed ||
           row.verdict == Verdict::impossible;
  });
}

}  // namespace tilewright::lab
