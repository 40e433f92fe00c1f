// What `tw bench run` was asked for, and what its parts share.
#pragma once

#include <string>
#include <vector>

#include "harness/run/runner.h"
#include "peers/peers.h"
#include "tw/command/output.h"

namespace tilewright::tw {

struct BenchInput {
  std::vector<std::string> names;  // pairs, suites, patterns
  std::vector<std::string> settings;
  std::string device = "cpu";
  OutputOptions output;
  std::string expectations;  // folder of the expectation files
  bool expect = false, update = false, accept_regressions = false;
  bool peers = false;
  bool autotune = false;              // also with measured schedules
  bool libraries = false;             // of vendors: contenders of their own name
  bool launches = false;              // also without replayed graphs
  std::string python;                 // interpreter of the peers; empty: the first with PyTorch
  std::vector<std::string> without;   // peers to leave out
  std::string device_time = "trace";  // "trace", "events", "off"
  std::uint64_t seed = 1;
  double budget_s = 0;  // of timing for each workload; 0: the suite's, or 3
  std::string cache = "auto";
  std::string ceilings = "auto";  // "auto", "measure", "none"
  int threads = 0;
};

void bench_run(const BenchInput& input);  // throws CLI::RuntimeError for exit codes 1 and 130

// What bench_run() shares with other subcommands.
int terminal_width();
lab::DeviceTime device_time(const BenchInput& input);
// Peers are timed with the clock that our contenders are.
lab::PeerOptions peer_options(const BenchInput& input, const lab::LabDevice& device);
// References and copies of outputs are arrays of hundreds of megabytes, made again for every contender.
// Memory that goes back to the system in between costs a page fault every 4 KiB, which took longer than the
// checks.
void keep_freed_memory();
// Ends the run with status 1; why is the last line of what it writes.
[[noreturn]] void end_with_1(const std::string& why);

// The table of a run, coloured where it is read at once and not kept.
std::string table_of(const lab::RunRecord& run, const OutputOptions& output);
// Writes what was measured, and its table to standard error, too, where the results go elsewhere than to whom
// watches.
void write_measured(const OutputOptions& output, const std::string& json, const std::string& table);

// Lines on stderr while a run goes on: what is done now and how long it has taken.
class BenchProgress {
 public:
  BenchProgress(std::size_t jobs, Progress progress);
  void started(const lab::Job& job);
  void step(std::string_view what);
  void done(const lab::InstanceResult& result);
  void say(const std::string& what);  // a line of its own

 private:
  std::string position() const;
  void clear();
  std::size_t jobs_, current_ = 0;
  std::string job_;
  double start_us_;
  Progress progress_;
  bool terminal_;
};

}  // namespace tilewright::tw
