// Interleaved timing of an instance's contenders: batches under one clock, A B B A, until the medians are
// known; then, where a device works by itself, how long it does.
//
// Two times are of interest, and neither stands in for the other. The time of a call is what a program sees
// that makes many of them and waits once, at the end. The time of the device is what its work takes, without
// what the host needs to ask for it and without the gaps that leaves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/run/workload.h"

namespace tilewright::lab {

struct TimingOptions {
  double min_sample_us =
      500;  // a sample is a batch of iterations at least this long: 1000 times a clock's resolution
  double max_frame_us = 1.0;  // the harness's own share of an iteration; batches grow until it is below
  // Calls that queue work come in batches so large that half of one would cost each call at most this share
  // more, but that end within max_sample_us. A GPU's clocks take tens of milliseconds to settle, too.
  double queue_share = 0.01;
  double max_sample_us = 100e3;
  int device_samples = 7;         // of the device's own time, after those of calls
  std::int64_t most_traced = 50;  // calls in one of them, of a trace: it keeps a record of every kernel
  int warmup_runs = 5;  // warm-up ends after these and after warmup_us, or earlier when times are stable
  double warmup_us = 100e3;
  int min_samples = 20;
  int max_samples = 200;
  double target_ci = 0.005;  // stop once every median's interval is within this share of the median
  double budget_us =
      3e6;  // for all contenders together, warm-up included; at least `floor_samples` are taken
  int floor_samples = 5;
  std::uint64_t seed = 1;
  // Something else to do in the same seconds, such as probing the machine: before the first round, a few
  // times between rounds, and after the last. Its time is not of the budget, and the sample after it is taken
  // and not kept, for it finds the caches full of something else.
  std::function<void()> beside = {};
  std::function<bool()> stop = {};                 // asked between samples; true ends the timing (Ctrl-C)
  std::function<double()> now_us = steady_now_us;  // the wall clock; tests bring their own
};

// The harness's own cost, measured with a contender that does nothing: one batch of b iterations takes
// fixed_us + b · per_iteration_us.
struct Frame {
  double fixed_us = 0;
  double per_iteration_us = 0;
  double share_us(std::int64_t batch) const {
    return fixed_us / static_cast<double>(batch) + per_iteration_us;
  }
};
Result<Frame> measure_frame(Timer& timer, const std::function<double()>& now_us = steady_now_us);

struct ContenderTiming {
  std::vector<double> samples_us;    // time of one step in each round: batch time / (batch · steps)
  std::vector<double> waited_us;     // of it, what Contender::waited_us says; empty where it has none
  std::int64_t batch = 0;            // iterations in a sample
  std::int64_t last_iteration = -1;  // what its outputs hold now
  double frame_us = 0;               // the harness's share of each step, included in the samples
  std::vector<double> device_us;     // the device's own time of one step, each a sample
  std::string no_device_time;        // why there are none of these, where there should be
  std::string error;                 // why there are no samples, when there are none
};

struct Timing {
  std::vector<ContenderTiming>
      contenders;  // as the instance's; all have the same number of samples or an error
  Frame frame;
  int rounds = 0;
  bool interrupted = false;
};

// Times the contenders for which `take[c]` holds. Sample i of every contender is from round i; the order
// within rounds turns and rotates, so that no contender always follows another. Checks each time against the
// wall clock: a timer that misses most of the elapsed time does not see the work.
Timing time_contenders(PairInstance& instance, const Clocks& clocks, const std::vector<bool>& take,
                       const TimingOptions& options);

// Positions of n contenders in a round: round 2k is rotated by k, round 2k + 1 is its reverse. n = 2: AB BA
// BA AB.
std::vector<std::size_t> order_of_round(int round, std::size_t n);

}  // namespace tilewright::lab
