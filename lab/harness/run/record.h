// What a run leaves behind: one row per target and contender, one environment, as JSON.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/read_file.h"
#include "harness/run/ceiling.h"
#include "harness/run/workload.h"
#include "harness/stats/stats.h"

namespace tilewright::lab {

enum class Verdict {
  baseline,  // the contender that the others are compared with
  faster,    // than the baseline, by the whole interval
  slower,
  same,
  wrong,        // its outputs are not within the bound; not timed, or its times are withdrawn
  failed,       // it could not run, or the clocks disagree
  impossible,   // faster than the measured ceilings allow: an error of measurement, not a record
  unavailable,  // cannot run on this machine; the note says why
  no_memory,    // the device cannot hold what it needs; its time and rate are shown as −1
  untimed,      // verified, but the run was stopped before its first sample
  uncompared,   // timed, but the baseline was not
};
// Whether this machine cannot do the work: nothing is wrong, and nothing was measured.
inline bool could_not_run(Verdict v) { return v == Verdict::unavailable || v == Verdict::no_memory; }
std::string_view name(Verdict verdict);  // "BASELINE", "FASTER", …
std::optional<Verdict> parse_verdict(std::string_view text);

// One line of the results. The JSON object has exactly these fields, in this order, but for `waited_us`,
// which stands last where it is; `note` goes to the environment.
struct Row {
  std::string target, contender, device, shape, dtype;
  bool verified = false;
  std::optional<double> max_rel_err, tolerance;
  std::optional<double> median_us;  // of a call: many of them, and one wait for all at the end
  std::optional<Interval> ci95_us;
  int samples = 0;
  // The device's own work in a call. None: it was not measured, or the calls are the work (calls_are_work()).
  std::optional<double> device_us;
  std::optional<Interval> device_ci95_us;
  // What a call waited for something else than its own work, such as data. None: it waits for nothing,
  // and the JSON object has no such field.
  std::optional<double> waited_us = {};
  std::optional<double> compile_ms;  // of the first call, of contenders that compile
  bool from_disk = false;            // they found kernels compiled before
  std::string chosen = {};           // of a family's best: the contender whose figures these are
  std::optional<double> rate;        // in `unit`, by the time of a call, as all that follows
  std::string unit;                  // "GB/s" or "GFLOP/s"
  std::optional<double> floor_us;
  std::optional<double> roofline;  // floor_us / median_us: the share of what the machine can do
  std::optional<double> speedup;   // over the baseline; 1 for the baseline itself
  std::optional<Interval> speedup_ci95;
  Verdict verdict = Verdict::failed;
  std::string note;  // why it failed, or under which condition the figure stands

  // Whether the device is the host, and the time of a call that of its work.
  bool calls_are_work() const { return !device.starts_with("cuda"); }
  // Two rows of one key measure the same thing.
  std::string key() const;  // "softmax/compiled cpu 8192x1024 bf16"
  friend bool operator==(const Row&, const Row&) = default;
};

// The work behind the rows of one instance, for plots; kept in the environment object.
struct WorkEntry {
  std::string target, device, shape, dtype;
  Work work;
  std::optional<SweepPoint> sweep = {};
  friend bool operator==(const WorkEntry&, const WorkEntry&) = default;
};

struct DeviceCeilings {
  std::string device;
  Ceilings ceilings;
  friend bool operator==(const DeviceCeilings&, const DeviceCeilings&) = default;
};

// Under which conditions the rows were measured. Unknown facts are empty or 0.
struct Environment {
  std::string cpu_model;
  int cores = 0;         // of the machine
  std::string affinity;  // cores this process may use: "0-1"
  std::string governor;  // "performance"; "none" where there is no frequency scaling
  double memory_gib = 0, swap_used_gib = 0;
  bool virtual_machine = false;
  std::string kernel, compiler, git_commit, date;  // date: 2026-11-21T10:20:30Z
  std::string gpu_name, gpu_driver;
  std::uint64_t seed = 0;
  double load_average = 0;                // over one minute, before the run
  std::string cgroup_cpu, cgroup_memory;  // "2 cores", "16 GiB"; "none" when not limited
  double frame_us = 0;                    // the harness's share of an iteration, the largest of the run
  bool interrupted = false;
  std::vector<std::pair<std::string, std::string>> options;  // what the command line asked for
  std::vector<std::pair<std::string, std::string>> notes;    // row key → note
  std::vector<WorkEntry> work;
  std::vector<DeviceCeilings> ceilings;
  friend bool operator==(const Environment&, const Environment&) = default;
};

struct RunRecord {
  std::vector<Row> rows;
  Environment environment;
  friend bool operator==(const RunRecord&, const RunRecord&) = default;
};

// A JSON list: one object per row, then {"environment": {…}}.
std::string to_json(const RunRecord& run);
// Reads what to_json writes, and {"results": […], "environment": {…}} as well.
Result<RunRecord> parse_run(const std::string& json);

Status write_run(const RunRecord& run, const std::string& path);
Result<RunRecord> read_run(const std::string& path);

// Missing folders are made. Readers see the old content or the new, never half, after the machine's sudden
// end as well.
Status write_file(const std::string& path, std::string_view content);

}  // namespace tilewright::lab
