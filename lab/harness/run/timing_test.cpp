#include "harness/run/timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "base/interrupt.h"
#include "harness/run/synthetic.h"
#include "harness/stats/stats.h"

namespace tilewright::lab {
namespace {

using synthetic::FakeClock;
using synthetic::FakeTimer;
using Floats = std::vector<float>;

TimingOptions options_of(FakeClock& clock) {
  TimingOptions options;
  options.now_us = clock.reader();
  return options;
}

// An instance whose contender c takes us[c] of fake time; `log` receives who ran which iteration.
struct Bench {
  FakeClock clock;
  PairInstance instance;
  std::vector<std::pair<std::size_t, std::int64_t>> log;

  explicit Bench(std::vector<double> us, int copies = 3) {
    auto [made, memory] = synthetic::instance(10, copies);
    instance = std::move(made);
    for (std::size_t c = 0; c < us.size(); ++c) {
      synthetic::add(instance, memory, std::string(1, static_cast<char>('A' + c)),
                     [this, c, t = us[c]](const Floats&, Floats&, std::int64_t i) {
                       clock.now_us += t;
                       log.emplace_back(c, i);
                     });
    }
  }
  Timing time(const TimingOptions& options, double timer_cost_us = 0) {
    FakeTimer timer(clock, timer_cost_us);
    return time_contenders(instance, timer, std::vector<bool>(instance.contenders.size(), true), options);
  }
};

TEST(OrderOfRound, TwoContendersGoABBA) {
  std::string order;
  for (int round = 0; round < 4; ++round) {
    for (std::size_t c : order_of_round(round, 2)) order += static_cast<char>('A' + c);
  }
  EXPECT_EQ(order, "ABBABAAB");
}

TEST(OrderOfRound, EveryContenderTakesEveryPlaceEquallyOften) {
  constexpr std::size_t kCount = 5;
  std::vector<std::vector<int>> seen(kCount, std::vector<int>(kCount));
  for (int round = 0; round < 10; ++round) {
    const auto order = order_of_round(round, kCount);
    for (std::size_t place = 0; place < kCount; ++place) ++seen[order[place]][place];
  }
  for (const auto& places : seen) {
    for (int count : places) EXPECT_EQ(count, 2);
  }
}

TEST(Timing, MediansAreTheContendersTimes) {
  Bench bench({100, 250});
  const Timing timing = bench.time(options_of(bench.clock));
  EXPECT_NEAR(median(timing.contenders[0].samples_us), 100, 1e-6);
  EXPECT_NEAR(median(timing.contenders[1].samples_us), 250, 1e-6);
  EXPECT_EQ(timing.contenders[0].samples_us.size(), static_cast<std::size_t>(timing.rounds));
}

TEST(Timing, TimesAreOfAStepWhereAnIterationIsSeveral) {
  Bench bench({1000, 2500});
  bench.instance.steps = 10;
  double waiting_us = 0;
  Contender& waits = bench.instance.contenders[1];
  waits.run = [run = waits.run, &waiting_us](std::int64_t i) {
    waiting_us += 400;
    return run(i);
  };
  waits.waited_us = [&]() -> Result<double> { return std::exchange(waiting_us, 0.0); };
  const Timing timing = bench.time(options_of(bench.clock));
  EXPECT_NEAR(median(timing.contenders[0].samples_us), 100, 1e-6);
  EXPECT_NEAR(median(timing.contenders[1].samples_us), 250, 1e-6);
  EXPECT_TRUE(timing.contenders[0].waited_us.empty());
  EXPECT_EQ(timing.contenders[1].waited_us.size(), timing.contenders[1].samples_us.size());
  for (const double us : timing.contenders[1].waited_us) EXPECT_NEAR(us, 40, 1e-6);
}

TEST(Timing, WhoCannotSayWhatItWaitedHasNoTime) {
  Bench bench({1000});
  bench.instance.contenders[0].waited_us = []() -> Result<double> {
    return failure(Failure::Kind::io, "nobody knows");
  };
  const Timing timing = bench.time(options_of(bench.clock));
  EXPECT_TRUE(timing.contenders[0].samples_us.empty());
  EXPECT_EQ(timing.contenders[0].error, "nobody knows");
}

TEST(Timing, WhatIsDoneBesideTakesNoBudgetAndSpoilsNoSample) {
  const std::vector<double> us = {1000, 2500};
  TimingOptions plain;
  plain.budget_us = 400e3;
  plain.min_samples = plain.max_samples = 1000000;  // until the budget ends
  plain.warmup_us = 1e3;
  Bench without(us);
  plain.now_us = without.clock.reader();
  const Timing alone = without.time(plain);
  Bench with(us);
  int calls = 0;
  TimingOptions beside = plain;
  beside.now_us = with.clock.reader();
  beside.beside = [&] {
    ++calls;
    with.clock.now_us += 300e3;
    with.log.emplace_back(9, 0);
  };
  const Timing timing = with.time(beside);
  EXPECT_GE(calls, 4);
  EXPECT_LE(calls, 6);
  EXPECT_GE(timing.rounds, alone.rounds - 8) << "of the samples that are not kept";
  EXPECT_EQ(with.log.back().first, 9u) << "after the last round, too";
  EXPECT_EQ(timing.contenders[0].samples_us.size(), static_cast<std::size_t>(timing.rounds));
  EXPECT_NEAR(median(timing.contenders[1].samples_us), 2500, 1e-6);
}

TEST(Timing, ASampleIsABatchLongEnoughForTheClock) {
  Bench bench({7, 10000});
  const Timing timing = bench.time(options_of(bench.clock));
  EXPECT_EQ(timing.contenders[0].batch, 72);  // 500 us
  EXPECT_EQ(timing.contenders[1].batch, 1);
}

TEST(Timing, TheFramesShareStaysBelowOneMicrosecond) {
  Bench bench({10000});
  const Timing timing =
      bench.time(options_of(bench.clock), 8.0);  // a timer that costs 8 us, as device events do
  EXPECT_NEAR(timing.frame.fixed_us, 8, 1e-6);
  EXPECT_GE(timing.contenders[0].batch, 8);
  EXPECT_LE(timing.contenders[0].frame_us, 1.0);
  EXPECT_NEAR(median(timing.contenders[0].samples_us), 10000 + timing.contenders[0].frame_us, 1e-6);
}

TEST(Timing, WarmUpTakesFiveRunsAndATenthOfASecondUnlessStable) {
  Bench bench({100});
  bench.clock.now_us = 0;
  TimingOptions options = options_of(bench.clock);
  options.max_samples = 1;
  options.min_samples = 1;
  bench.time(options);
  const std::int64_t stable_runs = bench.log.back().second;
  EXPECT_GE(stable_runs, 5);
  EXPECT_LT(stable_runs * 100, 100e3);  // ended early: the times agree

  auto [made, memory] = synthetic::instance(10, 1);
  FakeClock clock;
  std::int64_t runs = 0;
  synthetic::add(made, memory, "cooling", [&](const Floats&, Floats&, std::int64_t) {
    ++runs;
    clock.now_us += 100 + 100 * std::sin(static_cast<double>(runs) / 50);  // never stable
  });
  FakeTimer timer(clock);
  options.now_us = clock.reader();
  time_contenders(made, timer, {true}, options);
  EXPECT_GE(clock.now_us, 100e3);
}

TEST(Timing, EveryBatchEndsOnTheSameInputCopy) {
  Bench bench({7, 333, 100});
  const Timing timing = bench.time(options_of(bench.clock));
  for (const ContenderTiming& c : timing.contenders) EXPECT_EQ(c.last_iteration % 3, 2);
}

TEST(Timing, InputsRotate) {
  Bench bench({100});
  bench.time(options_of(bench.clock));
  std::set<std::int64_t> copies;
  for (const auto& [c, i] : bench.log) copies.insert(i % 3);
  EXPECT_EQ(copies.size(), 3u);
}

TEST(Timing, ContendersAreInterleaved) {
  Bench bench({1000, 1000});
  TimingOptions options = options_of(bench.clock);
  options.min_samples = options.max_samples = 8;
  bench.time(options);
  std::string tail;
  // Two calls a sample: the first is not timed.
  for (auto it = bench.log.end() - 32; it != bench.log.end(); it += 2) {
    EXPECT_EQ(it->first, (it + 1)->first);
    tail += static_cast<char>('A' + it->first);
  }
  EXPECT_EQ(tail, "ABBABAABABBABAAB");
}

// The call behind another contender's finds caches emptied and threads asleep.
TEST(Timing, WhatTheOtherLeavesBehindIsNotTimed) {
  auto [instance, memory] = synthetic::instance(10, 1);
  FakeClock clock;
  std::string last;
  for (const std::string name : {"a", "b"})
    synthetic::add(instance, memory, name, [&, name](const Floats&, Floats&, std::int64_t) {
      clock.now_us += last == name ? 1000 : 3000;
      last = name;
    });
  FakeTimer timer(clock);
  const Timing timing = time_contenders(instance, timer, {true, true}, options_of(clock));
  for (const ContenderTiming& c : timing.contenders)
    for (const double us : c.samples_us) EXPECT_NEAR(us, 1000, 20);
}

TEST(Timing, SlowDriftDoesNotMakeAWinner) {
  auto [instance, memory] = synthetic::instance(10, 1);
  FakeClock clock;
  double us = 1000;
  for (const char* name : {"a", "b"}) {
    synthetic::add(instance, memory, name,
                   [&](const Floats&, Floats&, std::int64_t) { clock.now_us += us *= 1.002; });
  }
  FakeTimer timer(clock);
  TimingOptions options = options_of(clock);
  options.budget_us = 1e9;
  options.target_ci = 0;
  options.max_samples = 64;
  const Timing timing = time_contenders(instance, timer, {true, true}, options);
  ASSERT_EQ(timing.rounds, 64);
  EXPECT_EQ(compare_paired(timing.contenders[0].samples_us, timing.contenders[1].samples_us).verdict,
            Comparison::same);
}

TEST(Timing, TheBudgetEndsTheRoundsButNotBelowTheFloor) {
  Bench bench({1e6, 1e6});
  TimingOptions options = options_of(bench.clock);
  options.budget_us = 3e6;
  const Timing timing = bench.time(options);
  EXPECT_EQ(timing.rounds, options.floor_samples);
  EXPECT_LE(bench.log.size(), 2u * (2 + 5));  // two warm-up runs each, since they alone eat the budget
}

TEST(Timing, CtrlCKeepsWhatWasMeasured) {
  Bench bench({1000, 2000});
  TimingOptions options = options_of(bench.clock);
  options.target_ci = 0;
  options.stop = [&] { return bench.clock.now_us > 60e3; };
  const Timing timing = bench.time(options);
  EXPECT_TRUE(timing.interrupted);
  EXPECT_GT(timing.rounds, 3);
  for (const ContenderTiming& c : timing.contenders) {
    EXPECT_EQ(c.samples_us.size(), static_cast<std::size_t>(timing.rounds));
  }
}

// A call of many steps ends between two of them: that is no sample, and no failure.
TEST(Timing, ACallThatGivesUpWhereTheUserWantsAnEndHasNotFailed) {
  Bench bench({1000, 2000});
  TimingOptions options = options_of(bench.clock);
  options.target_ci = 0;
  options.stop = [&] { return bench.clock.now_us > 60e3; };
  Contender& gives_up = bench.instance.contenders[1];
  gives_up.run = [&, run = gives_up.run](std::int64_t i) -> Status {
    if (Status done = run(i); !done) return done;
    if (options.stop()) return failure(Failure::Kind::device, "interrupted");
    return Unit{};
  };
  const Timing timing = bench.time(options);
  EXPECT_TRUE(timing.interrupted);
  EXPECT_GT(timing.rounds, 3);
  for (const ContenderTiming& c : timing.contenders) {
    EXPECT_EQ(c.error, "");
    EXPECT_GE(c.samples_us.size(), static_cast<std::size_t>(timing.rounds));
  }
}

TEST(Timing, CtrlCInTheLastSampleIsTold) {
  Bench bench({1000});
  TimingOptions options = options_of(bench.clock);
  bool wants_end = false;
  options.stop = [&] { return wants_end; };
  options.beside = [&] { wants_end = !bench.log.empty(); };  // behind the last round, for one
  EXPECT_TRUE(bench.time(options).interrupted);
}

TEST(Timing, TheGuardTurnsSignalsIntoAFlag) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const InterruptGuard guard;
    EXPECT_FALSE(InterruptGuard::interrupted());
    std::raise(signal);
    EXPECT_TRUE(InterruptGuard::interrupted());
  }
}

TEST(Timing, AContenderThatFailsLosesItsSamplesAndTheOthersGoOn) {
  Bench bench({1000, 1000});
  const auto run = bench.instance.contenders[1].run;
  bench.instance.contenders[1].run = [run, n = 0](std::int64_t i) mutable -> Status {
    if (++n > 15) return failure(Failure::Kind::device, "launch failed");
    return run(i);
  };
  const Timing timing = bench.time(options_of(bench.clock));
  EXPECT_EQ(timing.contenders[1].error, "launch failed");
  EXPECT_TRUE(timing.contenders[1].samples_us.empty());
  EXPECT_GE(timing.contenders[0].samples_us.size(), 20u);
}

// The known lab stored 72 ns for a graph launch: its events were on another stream.
class BlindTimer final : public Timer {
 public:
  std::string_view name() const override { return "events on the wrong stream"; }
  Status start() override { return Unit{}; }
  Result<double> stop_us() override { return 0.5; }
  bool waits() const override { return true; }
};

TEST(Timing, ATimerThatDoesNotSeeTheWorkIsCaught) {
  Bench bench({1000});
  BlindTimer timer;
  const Timing timing = time_contenders(bench.instance, timer, {true}, options_of(bench.clock));
  EXPECT_NE(timing.contenders[0].error.find("does not see the work"), std::string::npos);
  EXPECT_TRUE(timing.contenders[0].samples_us.empty());
}

TEST(Timing, WorkLeftInTheQueueIsWaitedFor) {
  Bench bench({0});
  int queued = 0;
  bench.instance.contenders[0].run = [&](std::int64_t) -> Status {
    bench.clock.now_us += 1;  // enqueueing
    ++queued;
    return Unit{};
  };
  bench.instance.contenders[0].finish = [&]() -> Status {
    bench.clock.now_us += 99.0 * queued;  // the work itself
    queued = 0;
    return Unit{};
  };
  const Timing timing = bench.time(options_of(bench.clock));
  EXPECT_NEAR(median(timing.contenders[0].samples_us), 100, 1e-6);
}

TEST(Timing, AContenderInAnotherProcessTimesItsOwnBatches) {
  Bench bench({100, 0});
  bench.instance.contenders[1].run = nullptr;
  bench.instance.contenders[1].batch_us = [&](std::int64_t, std::int64_t count) -> Result<double> {
    bench.clock.now_us += 40.0 * static_cast<double>(count) + 30;  // and the pipe
    return 40.0 * static_cast<double>(count);
  };
  const Timing timing = bench.time(options_of(bench.clock));
  EXPECT_NEAR(median(timing.contenders[1].samples_us), 40, 1e-6);
}

// A contender whose calls take the host a while and then its device, which a trace sees.
struct Queue {
  Bench bench{{0}};
  synthetic::FakeDevice device{bench.clock};
  synthetic::FakeTrace trace{device};

  Queue(double host_us, double work_us) {
    Contender& contender = bench.instance.contenders[0];
    contender.run = [this, host_us, work_us](std::int64_t) -> Status {
      device.launch(host_us, work_us);
      return Unit{};
    };
    contender.finish = [this] { return device.wait(); };
  }
  ContenderTiming time(Timer* device_timer) {
    FakeTimer timer(bench.clock);
    return time_contenders(bench.instance, {timer, device_timer}, {true}, options_of(bench.clock))
        .contenders[0];
  }
};

TEST(Timing, HostLatencyIsHiddenByCallsInFlight) {
  Queue queue(100, 500);
  const ContenderTiming timing = queue.time(&queue.trace);
  EXPECT_NEAR(median(timing.samples_us), 500, 5);
  EXPECT_NEAR(median(timing.device_us), 500, 1e-6);
  EXPECT_LE(100.0 / static_cast<double>(2 * timing.batch), 5) << "as many again change less than 1 %";
  EXPECT_EQ(timing.no_device_time, "");
}

TEST(Timing, CallsThatTheHostCannotMakeFastEnoughCostWhatTheyCostTheHost) {
  Queue queue(100, 20);
  const ContenderTiming timing = queue.time(&queue.trace);
  EXPECT_NEAR(median(timing.samples_us), 100, 1);
  EXPECT_NEAR(median(timing.device_us), 20, 1e-6);
}

TEST(Timing, ALongCallNeedsNoOtherInFlight) {
  Queue queue(100, 80e3);
  EXPECT_EQ(queue.time(nullptr).batch, 1) << "the next would end after the longest sample";
  EXPECT_TRUE(queue.time(nullptr).device_us.empty());
}

TEST(Timing, ADeviceTimeThatCannotBeIsLeftOut) {
  Queue queue(10, 500);
  BlindTimer events;  // half a microsecond, gaps included
  const ContenderTiming blind = queue.time(&events);
  EXPECT_NE(blind.no_device_time.find("no device time: 0.25 us"), std::string::npos) << blind.no_device_time;
  EXPECT_TRUE(blind.device_us.empty());
  EXPECT_FALSE(blind.samples_us.empty());
}

// A contender of another process whose calls take 200 us, and the device `device_us` of each.
ContenderTiming timing_of_foreign(double device_us) {
  Queue queue(0, 0);
  Contender& contender = queue.bench.instance.contenders[0];
  contender.run = nullptr;
  contender.finish = nullptr;
  contender.batch_us = [&](std::int64_t, std::int64_t count) -> Result<double> {
    const double us = 50 + 200.0 * static_cast<double>(count);
    queue.bench.clock.now_us += us;
    return us;
  };
  contender.device_us = [device_us](std::int64_t, std::int64_t count) -> Result<double> {
    return device_us * static_cast<double>(count);
  };
  return queue.time(&queue.trace);
}

TEST(Timing, AContenderInAnotherProcessTracesItsOwnDevice) {
  const ContenderTiming timing = timing_of_foreign(150);
  EXPECT_NEAR(median(timing.samples_us), 200, 2);
  EXPECT_NEAR(median(timing.device_us), 150, 1e-6);
}

TEST(Timing, ADeviceTimeMayExceedItsCallByWhatClocksExplain) {
  EXPECT_NEAR(median(timing_of_foreign(208).device_us), 208, 1e-6);
  const ContenderTiming timing = timing_of_foreign(300);
  EXPECT_TRUE(timing.device_us.empty());
  EXPECT_NE(timing.no_device_time.find("no device time: 300 us"), std::string::npos) << timing.no_device_time;
}

// With the real clock; a factor of 25 is beyond what a busy machine does to a median.
TEST(Timing, RealBusyWaitsOfKnownLengthsAreToldApart) {
  auto [instance, memory] = synthetic::instance(10, 1);
  for (const double us : {5000.0, 200.0}) {
    synthetic::add(instance, memory, "wait", [us](const Floats&, Floats&, std::int64_t) {
      const double end = steady_now_us() + us;
      while (steady_now_us() < end) {
      }
    });
  }
  HostTimer timer;
  const Timing timing = time_contenders(instance, timer, {true, true}, {.warmup_us = 1e4, .budget_us = 3e5});
  const Speedup speedup = compare_paired(timing.contenders[0].samples_us, timing.contenders[1].samples_us);
  EXPECT_EQ(speedup.verdict, Comparison::faster);
  EXPECT_GE(median(timing.contenders[1].samples_us), 200);  // a busy wait is never shorter
}

}  // namespace
}  // namespace tilewright::lab
