// Warm-up, batches, rounds; then the device's own times.
#include "harness/run/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "harness/stats/stats.h"

namespace tilewright::lab {

namespace {

struct BatchTime {
  double us = 0;                      // by the timer
  double wall = 0;                    // by the wall clock, around it
  std::optional<double> waited = {};  // of it, for what is not its work
};

using Now = std::function<double()>;

Result<BatchTime> run_batch(const Contender& contender, Timer& timer, std::int64_t first, std::int64_t count,
                            const Now& now_us) {
  const double wall = now_us();
  if (contender.batch_us) {
    const auto us = contender.batch_us(first, count);
    if (!us) return us.error();
    return BatchTime{*us, now_us() - wall};
  }
  if (Status s = timer.start(); !s) return s.error();
  for (std::int64_t i = first; i < first + count; ++i) {
    if (Status s = contender.run(i); !s) return s.error();
  }
  if (contender.finish && !timer.waits()) {
    if (Status s = contender.finish(); !s) return s.error();
  }
  const auto us = timer.stop_us();
  if (!us) return us.error();
  return BatchTime{*us, now_us() - wall};
}

// The first iteration of a batch that ends on the last input copy: every contender's outputs then hold the
// result of the same copy, and one reference serves to check them all.
std::int64_t aligned_first(std::int64_t next, std::int64_t batch, std::int64_t copies) {
  return next + (copies - (next + batch) % copies) % copies;
}

// Everything about one contender while it is timed.
struct Lane {
  const Contender* contender = nullptr;
  ContenderTiming timing;
  std::int64_t next = 0;  // iteration
  double steps = 1;       // in an iteration
  double warm_us = 0;     // of one iteration, when warm
  std::vector<double> wall_us;
  bool active() const { return contender != nullptr && timing.error.empty(); }
  // The time of a step, where so many iterations took so long.
  double of_step(double us, std::int64_t count) const { return us / static_cast<double>(count) / steps; }
};

// A call that gives up because the user wants an end (LabDevice::stop) has not failed: it is no sample.
std::optional<BatchTime> sample(Lane& lane, Timer& timer, std::int64_t batch, std::int64_t copies,
                                const TimingOptions& options) {
  const std::int64_t first = aligned_first(lane.next, batch, copies);
  auto time = run_batch(*lane.contender, timer, first, batch, options.now_us);
  if (time && lane.contender->waited_us) {  // after every batch: what is told is of the time since
    const auto waited = lane.contender->waited_us();
    if (waited)
      time->waited = *waited;
    else
      time = waited.error();
  }
  if (!time) {
    if (!(options.stop && options.stop())) lane.timing.error = time.error().message;
    return std::nullopt;
  }
  lane.next = first + batch;
  lane.timing.last_iteration = lane.next - 1;
  return *time;
}

// Runs until warm; returns the estimated time of one iteration.
double warm_up(Lane& lane, Timer& timer, std::int64_t copies, double most_us, const TimingOptions& options) {
  const double start = options.now_us();
  std::deque<double> recent;  // time of an iteration in the last three batches
  std::int64_t batch = 1;
  std::int64_t runs = 0;
  while (true) {
    const auto time = sample(lane, timer, batch, copies, options);
    if (!time) return 0;
    runs += batch;
    recent.push_back(time->wall / static_cast<double>(batch));
    if (recent.size() > 3) recent.pop_front();
    const double elapsed = options.now_us() - start;
    const auto [low, high] = std::minmax_element(recent.begin(), recent.end());
    // Stable: three batches long enough to be told apart agree within 2 %.
    const bool stable = recent.size() == 3 && time->wall > 1000 && *high <= 1.02 * *low;
    const bool enough = runs >= options.warmup_runs && (elapsed >= options.warmup_us || stable);
    if (enough || (runs >= 2 && elapsed >= most_us) || (options.stop && options.stop())) return *low;
    if (time->wall < options.warmup_us / 20) batch = std::min<std::int64_t>(2 * batch, 1 << 20);
  }
}

std::int64_t choose_batch(double iteration_us, const Frame& frame, const TimingOptions& options) {
  constexpr double kMost = 1e7;
  double batch = std::ceil(options.min_sample_us / std::max(iteration_us, 1e-4));
  const double allowed = options.max_frame_us - frame.per_iteration_us;
  if (allowed > 0) batch = std::max(batch, std::ceil(frame.fixed_us / allowed));
  return static_cast<std::int64_t>(std::clamp(batch, 1.0, kMost));
}

// The least of three times of an iteration in batches of this length: what disturbs a batch only adds.
std::optional<double> quickest_us(Lane& lane, Timer& timer, std::int64_t batch, std::int64_t copies,
                                  const TimingOptions& options) {
  double least = INFINITY;
  for (int i = 0; i < 3; ++i) {
    const auto time = sample(lane, timer, batch, copies, options);
    if (!time) return std::nullopt;
    least = std::min(least, time->us / static_cast<double>(batch));
  }
  return least;
}

// The first queued call's way to the device and the wait at the end stand in the figure: o / b in a
// batch of b. Doubles the batch until that changed it by less than the share; the longer one is taken, in
// which as much is left as still another doubling would change at most.
std::int64_t fill_queue(Lane& lane, Timer& timer, double iteration_us, std::int64_t copies,
                        const TimingOptions& options) {
  std::int64_t batch = lane.timing.batch;
  const auto fits = [&](double us) { return 2 * static_cast<double>(batch) * us <= options.max_sample_us; };
  if (!fits(iteration_us)) return batch;
  auto before = quickest_us(lane, timer, batch, copies, options);
  while (before && fits(*before) && !(options.stop && options.stop())) {
    batch *= 2;
    const auto now = quickest_us(lane, timer, batch, copies, options);
    if (!now || *before <= (1 + options.queue_share) * *now) break;
    before = now;
  }
  return batch;
}

// Whether every active lane's median is known within the target.
bool precise(const std::vector<Lane>& lanes, const TimingOptions& options) {
  return std::all_of(lanes.begin(), lanes.end(), [&](const Lane& lane) {
    if (!lane.active()) return true;
    const Estimate e = estimate_median(lane.timing.samples_us, {.resamples = 300, .seed = options.seed});
    return e.ci.high - e.ci.low <= 2 * options.target_ci * e.median;
  });
}

// The event/wall test. A device timer sees an iteration from its first enqueued work to its last, so over a
// batch it must account for the wall time but for starting and waiting: 50 µs are generous for that, 500 for
// another process.
void check_clocks(Lane& lane) {
  const double us = median(lane.timing.samples_us) * static_cast<double>(lane.timing.batch) * lane.steps;
  const double wall = median(lane.wall_us);
  const double slack = lane.contender->is_foreign() ? 500 : 50;
  if (us <= 1.02 * wall + 5 && us >= 0.5 * wall - slack) return;
  lane.timing.error =
      fmt::format("the timer reports {:.4g} us where {:.4g} us went by: it does not see the work", us, wall);
}

// TimingOptions::beside and when it is due: at the start, then each quarter of the budget.
class Beside {
 public:
  explicit Beside(const TimingOptions& options) : options_(options), due_us_(options.now_us()) {}
  bool is_due() const { return options_.beside && options_.now_us() >= due_us_; }
  double run_us() {  // returns how long it took
    if (!options_.beside) return 0;
    const double start = options_.now_us();
    options_.beside();
    const double end = options_.now_us();
    due_us_ = end + options_.budget_us / 4;
    return end - start;
  }

 private:
  const TimingOptions& options_;
  double due_us_;
};

// One call that is not timed: the others' have emptied the caches, and threads have gone to sleep. A long
// call finds back by itself. False where it failed.
bool find_back(Lane& lane, Timer& timer, std::int64_t copies, const TimingOptions& options) {
  constexpr double kLongUs = 20e3;
  return lane.warm_us > kLongUs || sample(lane, timer, 1, copies, options);
}

void take_rounds(std::vector<Lane>& lanes, Timer& timer, std::int64_t copies, double deadline_us,
                 const TimingOptions& options, Timing& timing) {
  constexpr int kLookEvery = 10;  // rounds between two looks at the intervals
  std::vector<std::size_t> active;
  for (std::size_t c = 0; c < lanes.size(); ++c) {
    if (lanes[c].active()) active.push_back(c);
  }
  Beside beside(options);
  const auto stopped = [&] {
    timing.interrupted = options.stop && options.stop();
    return timing.interrupted;
  };
  while (timing.rounds < options.max_samples && !active.empty()) {
    const auto order = order_of_round(timing.rounds, active.size());
    if (beside.is_due() && !stopped()) {
      deadline_us += beside.run_us();
      Lane& next = lanes[active[order.front()]];
      if (next.active()) (void)sample(next, timer, next.timing.batch, copies, options);
    }
    const bool late = options.now_us() >= deadline_us && timing.rounds >= options.floor_samples;
    const bool look = timing.rounds >= options.min_samples && timing.rounds % kLookEvery == 0;
    if (late || (look && precise(lanes, options))) break;
    for (std::size_t place : order) {
      if (stopped()) return;
      Lane& lane = lanes[active[place]];
      if (!lane.active() || (active.size() > 1 && !find_back(lane, timer, copies, options))) continue;
      const auto time = sample(lane, timer, lane.timing.batch, copies, options);
      if (!time) continue;
      lane.timing.samples_us.push_back(lane.of_step(time->us, lane.timing.batch));
      if (time->waited) lane.timing.waited_us.push_back(lane.of_step(*time->waited, lane.timing.batch));
      lane.wall_us.push_back(time->wall);
    }
    ++timing.rounds;
  }
  beside.run_us();
}

// Bounds of a device's own time beyond that of its calls, which were timed before it (docs/lab.md, "Two
// times"): the clock may be lower by then, and a batch of b calls may end b · call_us after its first, but
// for starting and waiting.
constexpr double kLowerClock = 1.05, kStartAndWaitUs = 50;

// Why a device's own time cannot be that of the work which the calls, `call_us` each, asked for; empty when
// it can.
std::string distrust(double device_us, double call_us, std::int64_t count, const Timer* timer) {
  const double slack = kStartAndWaitUs / static_cast<double>(count);
  const bool too_long = device_us > kLowerClock * call_us + slack;
  const bool too_short =
      device_us <= 0 || (timer && timer->counts_gaps() && device_us < 0.5 * call_us - slack);
  if (!too_long && !too_short) return "";
  return fmt::format("no device time: {:.4g} us of it are reported in calls of {:.4g} us", device_us,
                     call_us);
}

// One more sample of the device's own time, of so many iterations; the batch before it finds the clocks, and
// leaves them, as the calls do.
Result<double> device_sample(Lane& lane, const Clocks& clocks, std::int64_t copies, std::int64_t count,
                             const TimingOptions& options) {
  const Contender& contender = *lane.contender;
  if (!sample(lane, clocks.calls, lane.timing.batch, copies, options))
    return failure(Failure::Kind::device, lane.timing.error);
  const std::int64_t first = aligned_first(lane.next, count, copies);
  Result<double> us = 0.0;
  if (contender.is_foreign()) {
    us = contender.device_us(first, count);
  } else {
    const auto time = run_batch(contender, *clocks.device, first, count, options.now_us);
    us = time ? Result(time->us) : Result<double>(time.error());
  }
  lane.next = first + count;
  lane.timing.last_iteration = lane.next - 1;
  return us;
}

void take_device_times(std::vector<Lane>& lanes, const Clocks& clocks, const PairInstance& instance,
                       const TimingOptions& options) {
  std::vector<std::size_t> active;
  for (std::size_t c = 0; c < lanes.size(); ++c) {
    if (lanes[c].active() && !lanes[c].timing.samples_us.empty()) active.push_back(c);
  }
  for (int round = 0; round < options.device_samples; ++round) {
    for (std::size_t place : order_of_round(round, active.size())) {
      if (options.stop && options.stop()) return;
      Lane& lane = lanes[active[place]];
      if (!lane.active() || !lane.timing.no_device_time.empty()) continue;
      const bool foreign = lane.contender->is_foreign();
      if (foreign && !lane.contender->device_us) continue;
      const std::int64_t count =
          clocks.device->counts_gaps() ? lane.timing.batch : std::min(lane.timing.batch, options.most_traced);
      const auto us = device_sample(lane, clocks, instance.input_copies, count, options);
      if (!lane.active()) continue;
      const double each = us ? lane.of_step(*us, count) : 0;
      const std::int64_t steps = count * instance.steps;
      lane.timing.no_device_time =
          us ? distrust(each, median(lane.timing.samples_us), steps, foreign ? nullptr : clocks.device)
             : "no device time: " + us.error().message;
      lane.timing.device_us.push_back(each);
    }
  }
}

}  // namespace

std::vector<std::size_t> order_of_round(int round, std::size_t n) {
  std::vector<std::size_t> order(n);
  const std::size_t turn = n == 0 ? 0 : static_cast<std::size_t>(round / 2) % n;
  for (std::size_t i = 0; i < n; ++i) order[i] = (i + turn) % n;
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

Result<Frame> measure_frame(Timer& timer, const std::function<double()>& now_us) {
  constexpr int kTries = 15;
  constexpr std::int64_t kLong = 1000;
  const Contender nothing{.name = "empty", .run = [](std::int64_t) -> Status { return Unit{}; }};
  std::vector<double> once, often;
  for (int i = 0; i < kTries; ++i) {
    const auto a = run_batch(nothing, timer, 0, 1, now_us);
    const auto b = run_batch(nothing, timer, 0, kLong, now_us);
    if (!a) return a.error();
    if (!b) return b.error();
    once.push_back(a->us);
    often.push_back(b->us);
  }
  const double per_iteration = std::max(0.0, (median(often) - median(once)) / static_cast<double>(kLong - 1));
  return Frame{std::max(0.0, median(once) - per_iteration), per_iteration};
}

Timing time_contenders(PairInstance& instance, const Clocks& clocks, const std::vector<bool>& take,
                       const TimingOptions& options) {
  Timer& timer = clocks.calls;
  TW_CHECK(take.size() == instance.contenders.size(), "one flag per contender");
  Timing timing;
  std::vector<Lane> lanes(take.size());
  const auto frame = measure_frame(timer, options.now_us);
  if (frame) timing.frame = *frame;
  const double deadline_us = options.now_us() + options.budget_us;
  const auto taking =
      static_cast<double>(std::max<std::ptrdiff_t>(1, std::count(take.begin(), take.end(), true)));
  for (std::size_t c = 0; c < lanes.size(); ++c) {
    Lane& lane = lanes[c];
    if (!take[c]) continue;
    lane.contender = &instance.contenders[c];
    lane.steps = static_cast<double>(instance.steps);
    if (!frame) lane.timing.error = frame.error().message;
    if (lane.active() && !(options.stop && options.stop())) {
      // A slow contender may spend a quarter of its share of the budget on getting warm.
      lane.warm_us = warm_up(lane, timer, instance.input_copies, options.budget_us / taking / 4, options);
      lane.timing.batch = choose_batch(lane.warm_us, timing.frame, options);
      if (lane.active() && lane.contender->queues_work())
        lane.timing.batch = fill_queue(lane, timer, lane.warm_us, instance.input_copies, options);
      lane.timing.frame_us =
          lane.contender->batch_us ? 0 : timing.frame.share_us(lane.timing.batch) / lane.steps;
    }
  }
  timing.interrupted = options.stop && options.stop();
  if (!timing.interrupted) take_rounds(lanes, timer, instance.input_copies, deadline_us, options, timing);
  timing.interrupted = timing.interrupted || (options.stop && options.stop());  // in the last sample
  if (clocks.device && !timing.interrupted) take_device_times(lanes, clocks, instance, options);
  for (std::size_t c = 0; c < lanes.size(); ++c) {
    Lane& lane = lanes[c];
    // A contender stopped in the middle of a round loses that sample: samples are compared round by round.
    if (lane.timing.samples_us.size() > static_cast<std::size_t>(timing.rounds))
      lane.timing.samples_us.pop_back();
    lane.timing.waited_us.resize(std::min(lane.timing.waited_us.size(), lane.timing.samples_us.size()));
    if (lane.active() && !lane.timing.samples_us.empty()) check_clocks(lane);
    if (!lane.timing.error.empty()) lane.timing.samples_us.clear();
    if (lane.timing.samples_us.empty() || !lane.timing.no_device_time.empty()) lane.timing.device_us.clear();
    timing.contenders.push_back(std::move(lane.timing));
  }
  return timing;
}

}  // namespace tilewright::lab
