// A run with every kind of row, for the tests of what reads and shows runs.
#pragma once

#include <utility>
#include "harness/run/record.h"

namespace tilewright::lab::synthetic {

inline Row row_of(std::string target, std::string contender, std::string shape, double us, Verdict verdict) {
  Row row{std::move(target), std::move(contender), "cpu", std::move(shape), "f32"};
  row.verified = true;
  row.max_rel_err = 4.2e-7;
  row.tolerance = 4.8e-6;
  row.median_us = us;
  row.ci95_us = Interval{us * 0.99, us * 1.02};
  row.samples = 40;
  row.rate = 4e4 / us;
  row.unit = "GB/s";
  row.floor_us = 900;
  row.roofline = 900 / us;
  row.speedup = 3000 / us;
  row.speedup_ci95 = Interval{2900 / us, 3100 / us};
  row.verdict = verdict;
  return row;
}

inline Row untimed_row(std::string target, std::string contender, Verdict verdict, std::string note) {
  Row row{std::move(target), std::move(contender), "cpu", "8192x1024", "f32"};
  row.unit = "GB/s";
  row.verdict = verdict;
  row.note = std::move(note);
  return row;
}

inline RunRecord sample_run() {
  RunRecord run;
  run.rows.push_back(row_of("softmax", "eager", "8192x1024", 3000, Verdict::baseline));
  run.rows.push_back(row_of("softmax", "compiled", "8192x1024", 1000, Verdict::faster));
  run.rows.push_back(untimed_row("softmax", "tile", Verdict::wrong, "round 1: y[3,17]: got 0.5, want 0.25"));
  run.rows.push_back(
      untimed_row("softmax", "torch", Verdict::unavailable, "PyTorch <1.13> is not \"installed\""));
  for (double n : {4096.0, 65536.0, 1048576.0, 16777216.0}) {
    const std::string shape = std::to_string(static_cast<long>(n));
    for (const auto& [contender, slowness] : {std::pair{"eager", 3.0}, {"compiled", 1.1}, {"tile", 1.05}}) {
      Row row = row_of("elu", contender, shape, slowness * (n * 2e-4 + 1.5), Verdict::faster);
      row.rate = 8 * n / *row.median_us / 1e3;
      row.floor_us = n * 2e-4;
      row.roofline = *row.floor_us / *row.median_us;
      run.rows.push_back(row);
    }
    run.environment.work.push_back(
        {"elu", "cpu", shape, "f32", vector_work(4 * n, DType::f32, 4 * n, 4 * n)});
  }
  const double n = 8192.0 * 1024;
  run.environment.work.push_back(
      {"softmax", "cpu", "8192x1024", "f32", vector_work(14 * n, DType::f32, 4 * n, 4 * n)});
  Environment& e = run.environment;
  e.cpu_model = "AMD EPYC (family 26 model 2)";
  e.cores = 2;
  e.affinity = "0-1";
  e.governor = e.cgroup_cpu = e.cgroup_memory = "none";
  e.memory_gib = 23.5;
  e.kernel = "Linux 6.1 x86_64";
  e.compiler = "gcc 12.2.0";
  e.git_commit = "0123456789ab";
  e.date = "2026-11-21T10:20:30Z";
  e.seed = 7;
  e.frame_us = 0.012;
  e.options = {{"set", "n=2^12..2^24"}};
  e.ceilings.push_back({"cpu",
                        {{{"L3", 32e6, 160e9, 120e9, 140e9}, {"memory", 0, 45e9, 30e9, 40e9}},
                         {{perf::MathUnit::vector, DType::f32, 250e9}},
                         "tw devices --probe, 2026-11-21"}});
  return run;
}

inline Row timed(double us) { return row_of("elu", "tile", "4096", us, Verdict::faster); }

inline RunRecord run_of(std::vector<Row> rows) { return {std::move(rows), sample_run().environment}; }

}  // namespace tilewright::lab::synthetic
