// Progress of a bench run: one changing line on a terminal, one line per workload elsewhere.
#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>

#include "harness/report/table.h"
#include "tw/bench/bench_input.h"

namespace tilewright::tw {

BenchProgress::BenchProgress(std::size_t jobs, Progress progress)
    : jobs_(jobs), start_us_(lab::steady_now_us()), progress_(progress), terminal_(isatty(2) != 0) {}

std::string BenchProgress::position() const {
  return fmt::format("[{}/{} {:5.1f} s] {}", current_, jobs_, (lab::steady_now_us() - start_us_) / 1e6, job_);
}

void BenchProgress::clear() {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

void BenchProgress::say(const std::string& what) {
  if (progress_ == Progress::silent) return;
  clear();
  fmt::print(stderr, "{}\n", what);
}

void BenchProgress::started(const lab::Job& job) {
  ++current_;
  job_ = fmt::format("{} {}", job.pair->name, job.knobs.to_string());
  step("inputs, compile");
}

void BenchProgress::step(std::string_view what) {
  if (!terminal_ || progress_ == Progress::silent) return;
  clear();
  fmt::print(stderr, "{}: {}", position(), what);
  std::fflush(stderr);
}

void BenchProgress::done(const lab::InstanceResult& result) {
  std::string times;
  for (const lab::Row& row : result.rows) {
    times +=
        fmt::format("{} {} {}", times.empty() ? "" : ",", row.contender,
                    row.median_us ? lab::time_text(*row.median_us) : std::string(lab::name(row.verdict)));
  }
  say(fmt::format("{}:{}", position(), times));
}

}  // namespace tilewright::tw
