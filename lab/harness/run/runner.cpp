// Makes rows of instances.
#include "harness/run/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "harness/run/recheck.h"

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
  if (v.no_memory || v.gone) {
    row.verdict = v.no_memory ? Verdict::no_memory : Verdict::unavailable;
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

void set_floor(Row& row, const Work& work, const Ceilings& ceilings) {
  const auto floor = floor_of(work, ceilings);
  if (!floor || !row.median_us) return;
  row.floor_us = floor->us;
  row.roofline = floor->us / *row.median_us;
}

void add_note(Row& row, const std::string& note) { row.note += (row.note.empty() ? "" : "; ") + note; }

// Refuses a median that is above the ceilings still, after they were probed again.
void hold_against_ceilings(Row& row, const Work& work, const Ceilings& ceilings, const Recheck& recheck,
                           double slack) {
  row.verdict = Verdict::uncompared;
  if (!beats_ceilings(work, ceilings, *row.median_us, slack)) return;
  row.verdict = Verdict::impossible;
  std::string probed;
  if (recheck.tries > 0) probed = fmt::format(", probed again beside it {} times", recheck.tries);
  if (!recheck.why_not.empty()) probed = ", which could not be probed again: " + recheck.why_not;
  row.note = fmt::format(
      "faster than physics: {:.4g} us, where the measured ceilings ({}{}) allow {:.4g} us at best",
      *row.median_us, ceilings.source, probed, *impossible_below_us(work, ceilings));
}

// The device's own time. One that no device of these ceilings could reach is left out: the trace missed some
// of the work.
void set_device_time(Row& row, const ContenderTiming& timing, const Work& work, const Ceilings& ceilings,
                     const RunOptions& options) {
  if (!timing.no_device_time.empty()) add_note(row, timing.no_device_time);
  if (timing.device_us.empty()) return;
  const Estimate estimate = estimate_median(timing.device_us, {.seed = options.seed});
  if (beats_ceilings(work, ceilings, estimate.median, options.ceiling_slack))
    return add_note(
        row, fmt::format("no device time: {:.4g} us are less than the ceilings allow", estimate.median));
  row.device_us = estimate.median;
  row.device_ci95_us = estimate.ci;
}

void set_times(Row& row, const ContenderTiming& timing, const PairInstance& instance, const LabDevice& device,
               const Recheck& recheck, const RunOptions& options) {
  const Estimate estimate = estimate_median(timing.samples_us, {.seed = options.seed});
  row.median_us = estimate.median;
  row.ci95_us = estimate.ci;
  row.samples = static_cast<int>(timing.samples_us.size());
  if (!timing.waited_us.empty()) row.waited_us = median(timing.waited_us);
  const auto floor = floor_of(instance.work, device.ceilings);
  row.unit = instance.unit;
  if (row.unit.empty()) row.unit = floor && !floor->memory_bound ? "GFLOP/s" : "GB/s";
  // Amount per microsecond / 1000 is billions per second.
  const double amount = row.unit == "GFLOP/s" ? instance.work.cost.flops() : instance.work.cost.bytes();
  if (amount > 0) row.rate = amount / estimate.median / 1e3;
  set_floor(row, instance.work, device.ceilings);
  hold_against_ceilings(row, instance.work, device.ceilings, recheck, options.ceiling_slack);
  set_device_time(row, timing, instance.work, device.ceilings, options);
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
  row.median_us = row.device_us = row.waited_us = row.rate = row.floor_us = row.roofline = std::nullopt;
  row.ci95_us = row.device_ci95_us = std::nullopt;
  row.samples = 0;
  row.verified = false;
  row.verdict = v.gone ? Verdict::unavailable : Verdict::wrong;
  row.note = v.reason;
}

// Adds a row for each family: that of its contender with the quickest calls.
void add_best_rows(std::vector<Row>& rows, const PairInstance& instance) {
  std::vector<std::string> done;
  for (const Contender& contender : instance.contenders) {
    const std::string& family = contender.family;
    if (family.empty() || std::find(done.begin(), done.end(), family) != done.end()) continue;
    done.push_back(family);
    const Row* best = nullptr;
    std::string among;
    for (std::size_t c = 0; c < instance.contenders.size(); ++c) {
      const Row& row = rows[c];
      if (instance.contenders[c].family != family || !row.median_us || row.verdict == Verdict::impossible)
        continue;
      among += (among.empty() ? "" : "; ") + row.contender;
      if (!best || *row.median_us < *best->median_us) best = &row;
    }
    if (!best) continue;
    Row row = *best;
    row.contender = family + " best";
    row.chosen = best->contender;
    row.note = fmt::format("the quickest calls are those of \"{}\", of: {}", row.chosen, among);
    rows.push_back(std::move(row));
  }
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
                  const Recheck& recheck, const std::vector<Verification>& verifications,
                  const RunOptions& options) {
  const Timing& timing = recheck.timing;
  for (std::size_t c = 0; c < rows.size(); ++c) {
    if (rows[c].verdict != Verdict::untimed) continue;
    const ContenderTiming& times = timing.contenders[c];
    rows[c].max_rel_err = verifications[c].max_rel_err;
    rows[c].tolerance = verifications[c].tolerance;
    if (!times.error.empty()) {
      rows[c].verdict = instance.contenders[c].is_foreign() ? Verdict::unavailable : Verdict::failed;
      rows[c].note = times.error;
    } else if (!verifications[c].verified) {
      withdraw(rows[c], verifications[c]);
    } else if (!times.samples_us.empty()) {
      set_times(rows[c], times, instance, device, recheck, options);
      if (recheck.was_above[c] && rows[c].verdict != Verdict::impossible)
        add_note(
            rows[c],
            "timed again beside probes of the machine, for it was faster than the ceilings known before");
    }
  }
  for (std::size_t c = 0; c < rows.size(); ++c) {
    if (!rows[c].median_us || !instance.contenders[c].first_call) continue;
    const FirstCall first = instance.contenders[c].first_call();
    rows[c].compile_ms = first.compile_ms;
    rows[c].from_disk = first.from_disk;
    if (!first.note.empty()) add_note(rows[c], first.note);
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
  add_best_rows(rows, instance);
}

bool is_unsound(const Row& row) {
  return row.verdict == Verdict::wrong || row.verdict == Verdict::failed ||
         row.verdict == Verdict::impossible;
}

// Sizes that no memory of the host holds are no different from those that the device's does not.
Result<PairInstance> make_instance_of(const Job& job, LabDevice& device) {
  const Failure no_memory =
      failure(Failure::Kind::out_of_memory, "host: no memory for what these knobs describe");
  try {
    return job.pair->make(job.knobs, device);
  } catch (const std::bad_alloc&) {
    return no_memory;
  } catch (const std::length_error&) {
    return no_memory;
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
  std::vector<Verification> verifications =
      verify(instance, options.seed, {options.rounds, options.progress, options.timing.stop});
  if (options.timing.stop && options.timing.stop()) {
    result.interrupted = true;
    return result;
  }
  for (std::size_t c = 0; c < instance.contenders.size(); ++c) {
    result.rows.push_back(empty_row(instance, instance.contenders[c]));
    set_verification(result.rows.back(), instance.contenders[c], verifications[c]);
  }
  if (std::none_of(verifications.begin(), verifications.end(), [](const auto& v) { return v.verified; }))
    return result;
  const auto digest_before = prepare_timed(instance, verifications, options.seed);
  if (!digest_before) {
    fail_all(result.rows, digest_before.error().message);
    return result;
  }
  const std::vector<bool> take = to_time(verifications);
  if (options.progress) options.progress("timing");
  TimingOptions timing_options = options.timing;
  timing_options.seed = options.seed;
  const Recheck recheck = recheck_ceilings(
      instance, device, take, time_contenders(instance, device.clocks(), take, timing_options),
      {.timing = timing_options, .slack = options.ceiling_slack, .progress = options.progress});
  const Timing& timing = recheck.timing;
  std::vector<std::int64_t> last;
  for (const ContenderTiming& times : timing.contenders) {
    last.push_back(times.error.empty() ? times.last_iteration : -1);  // who failed has shown nothing
    result.frame_us = std::max(result.frame_us, times.frame_us);
  }
  if (options.progress) options.progress("verify what was timed");
  verify_timed(instance, *digest_before, last, verifications);
  merge_timing(result.rows, instance, device, recheck, verifications, options);
  result.interrupted = timing.interrupted;
  return result;
}

RunRecord run_jobs(std::span<const Job> jobs, LabDevice& device, const RunOptions& options,
                   Environment environment, const RunEvents& events) {
  RunRecord run{{}, std::move(environment)};
  run.environment.seed = options.seed;
  std::vector<Work> work;  // of each row; none for one that was not made
  for (const Job& job : jobs) {
    if (options.timing.stop && options.timing.stop()) {
      run.environment.interrupted = true;
      break;
    }
    if (events.started) events.started(job);
    auto instance = make_instance_of(job, device);
    if (instance && events.made) events.made(job, *instance);
    const InstanceResult result =
        instance ? run_instance(*instance, device, options) : unavailable(job, device, instance.error());
    run.rows.insert(run.rows.end(), result.rows.begin(), result.rows.end());
    work.resize(run.rows.size(), result.work.work);
    if (instance && !result.rows.empty()) run.environment.work.push_back(result.work);
    run.environment.frame_us = std::max(run.environment.frame_us, result.frame_us);
    run.environment.interrupted = run.environment.interrupted || result.interrupted;
    if (events.done) events.done(job, result);
  }
  const bool stopped = options.timing.stop && options.timing.stop();  // while the last was verified, perhaps
  run.environment.interrupted = run.environment.interrupted || stopped;
  // A ceiling that was raised on the way holds for what came before, too.
  for (std::size_t i = 0; i < run.rows.size(); ++i) set_floor(run.rows[i], work[i], device.ceilings);
  run.environment.ceilings.push_back({device.name, device.ceilings});
  return run;
}

bool sound(const RunRecord& run) { return std::none_of(run.rows.begin(), run.rows.end(), is_unsound); }

std::string why_failed(const RunRecord& run) {
  constexpr std::size_t kMostNamed = 3;  // the table above has them all
  std::size_t count = 0;
  std::string named;
  for (const Row& row : run.rows) {
    if (!is_unsound(row)) continue;
    if (++count <= kMostNamed)
      named += fmt::format("{}{} is {} ({})", count == 1 ? "" : "; ", row.key(), name(row.verdict), row.note);
  }
  const auto fits = [](const Row& row) { return row.verdict != Verdict::no_memory; };
  if (count == 0 && !run.rows.empty() && std::none_of(run.rows.begin(), run.rows.end(), fits))
    return fmt::format("nothing was measured, for nothing fits: {} ({}); smaller knobs (--set) may",
                       run.rows.front().key(), run.rows.front().note);
  if (count == 0) return "";
  if (count > kMostNamed) named += fmt::format("; and {} more", count - kMostNamed);
  return fmt::format("{} of {} rows: {}", count, run.rows.size(), named);
}

}  // namespace tilewright::lab
