// What beats a ceiling has it probed again beside the work, on a made-up machine whose clock only contenders
// and probes advance.
#include "harness/run/recheck.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/run/runner.h"
#include "harness/run/synthetic.h"

namespace tilewright::lab {
namespace {

using Floats = std::vector<float>;

// Memory at 1 GB/s: 1000 f32 elements are 8 kB of traffic, 8 us.
Ceilings memory_at(double bytes_per_s) {
  return {.levels = {{"memory", 0, bytes_per_s, bytes_per_s, bytes_per_s}}, .source = "made up"};
}

struct Stage {
  synthetic::FakeClock clock;
  LabDevice device;
  RunOptions options;
  PairInstance instance;
  std::shared_ptr<synthetic::Memory> memory;
  std::vector<std::string> asked;
  int probes = 0;

  Stage() {
    device.timer = std::make_shared<synthetic::FakeTimer>(clock);
    device.ceilings = memory_at(1e9);
    options.timing.now_us = clock.reader();
    std::tie(instance, memory) = synthetic::instance();
  }
  void add(std::string name, std::function<double()> us) {
    synthetic::add(instance, memory, std::move(name),
                   [this, us = std::move(us)](const Floats& x, Floats& y, std::int64_t i) {
                     clock.now_us += us();
                     synthetic::right(x, y, i);
                   });
  }
  void add(std::string name, double us) {
    add(std::move(name), [us] { return us; });
  }
  // Probes that take 100 us each and see one figure after another; the last stays.
  void will_see(const std::vector<double>& bytes_per_s) {
    device.probe_again = [this, bytes_per_s](const std::vector<std::string>& figures) -> CeilingSampler {
      asked = figures;
      return [this, bytes_per_s]() -> Result<Ceilings> {
        clock.now_us += 100;
        const auto at = std::min(static_cast<std::size_t>(probes++), bytes_per_s.size() - 1);
        return memory_at(bytes_per_s[at]);
      };
    };
  }
  std::vector<Row> rows() { return run_instance(instance, device, options).rows; }
};

TEST(Recheck, ACeilingOfASlowMinuteIsProbedAgainBesideTheWorkWhichPasses) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("compiled", 4);
  stage.will_see({0.9e9, 3e9, 2e9});
  const auto rows = stage.rows();
  EXPECT_EQ(rows[1].verdict, Verdict::faster) << rows[1].note;
  EXPECT_NEAR(*rows[1].median_us, 4, 1e-6);
  for (const Row& row : rows) EXPECT_NEAR(*row.floor_us, 8.0 / 3, 1e-6) << "the best seen, not the last seen";
  EXPECT_NE(rows[1].note.find("timed again beside probes"), std::string::npos) << rows[1].note;
  EXPECT_EQ(rows[0].note, "");
  EXPECT_EQ(stage.asked, (std::vector<std::string>{"memory.read_bytes_per_s", "memory.write_bytes_per_s",
                                                   "memory.copy_bytes_per_s"}));
  EXPECT_GE(stage.probes, 2) << "before the rounds and after";
  EXPECT_EQ(stage.device.ceilings.levels[0].copy, 3e9);
}

TEST(Recheck, WhatStaysAboveIsImpossible) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("miracle", 4);
  stage.will_see({1.1e9});
  const auto rows = stage.rows();
  EXPECT_EQ(rows[0].verdict, Verdict::baseline);
  EXPECT_EQ(rows[1].verdict, Verdict::impossible);
  EXPECT_NE(rows[1].note.find("probed again beside it 3 times"), std::string::npos) << rows[1].note;
  EXPECT_EQ(why_failed({rows, {}})
                .find("1 of 2 rows: affine/miracle cpu 1000 f32 is IMPOSSIBLE (faster than physics: 4 us"),
            0u);
}

TEST(Recheck, ATimeOfAFastMinuteThatHasPassedIsNotKept) {
  Stage stage;
  bool fast = true;  // until the probes begin: none of them sees that minute
  stage.add("eager", 40);
  stage.add("compiled", [&] { return fast ? 4.0 : 10.0; });
  stage.device.probe_again = [&](const std::vector<std::string>&) -> CeilingSampler {
    fast = false;
    return []() -> Result<Ceilings> { return memory_at(1e9); };
  };
  const Row row = stage.rows()[1];
  EXPECT_EQ(row.verdict, Verdict::faster) << row.note;
  EXPECT_NEAR(*row.median_us, 10, 1e-6);
}

TEST(Recheck, AMinuteThatTurnsDuringTheProbesGetsAnotherTry) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("compiled", 4);
  stage.will_see({1e9, 1e9, 1e9, 2.5e9});
  EXPECT_EQ(stage.rows()[1].verdict, Verdict::faster);
  EXPECT_GE(stage.probes, 4);
}

TEST(Recheck, WhatIsBelowTheCeilingsIsTimedOnce) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("compiled", 10);
  stage.will_see({9e9});
  EXPECT_EQ(stage.rows()[1].verdict, Verdict::faster);
  EXPECT_EQ(stage.probes, 0);
}

TEST(Recheck, AProbeThatFailsIsSaid) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("miracle", 4);
  int begun = 0;
  stage.device.probe_again = [&](const std::vector<std::string>&) -> CeilingSampler {
    ++begun;
    return []() -> Result<Ceilings> { return failure(Failure::Kind::device, "no memory for the probes"); };
  };
  const Row row = stage.rows()[1];
  EXPECT_EQ(row.verdict, Verdict::impossible);
  EXPECT_NE(row.note.find("could not be probed again: no memory for the probes"), std::string::npos)
      << row.note;
  EXPECT_EQ(begun, 1);
}

TEST(Recheck, ACeilingRaisedOnTheWayHoldsForWhatCameBefore) {
  Stage stage;
  const auto pair_of = [&](double us) {
    return Pair{"pair", "", {}, [&stage, us](const Knobs&, LabDevice&) -> Result<PairInstance> {
                  auto [instance, memory] = synthetic::instance();
                  synthetic::add(instance, memory, "eager",
                                 [&stage, us](const Floats& x, Floats& y, std::int64_t i) {
                                   stage.clock.now_us += us;
                                   synthetic::right(x, y, i);
                                 });
                  return std::move(instance);
                }};
  };
  const Pair slow = pair_of(10), fast = pair_of(4);
  stage.will_see({4e9});
  const Job jobs[] = {{&slow, {}}, {&fast, {}}};
  const RunRecord run = run_jobs(jobs, stage.device, stage.options, {});
  ASSERT_EQ(run.rows.size(), 2u);
  for (const Row& row : run.rows) EXPECT_NEAR(*row.floor_us, 2, 1e-6);
  EXPECT_NEAR(*run.rows[0].roofline, 0.2, 1e-6);
  EXPECT_EQ(run.environment.ceilings[0].ceilings.levels[0].copy, 4e9);
}

TEST(WhyFailed, NamesRowsAndTheirReasons) {
  Row good;
  good.verdict = Verdict::faster;
  EXPECT_EQ(why_failed({{good}, {}}), "");
  EXPECT_EQ(why_failed({{}, {}}), "");
  Row wrong{"elu", "compiled", "cpu", "16", "f32"};
  wrong.verdict = Verdict::wrong;
  wrong.note = "y[3]: got 1, want 2";
  EXPECT_EQ(why_failed({{good, wrong}, {}}),
            "1 of 2 rows: elu/compiled cpu 16 f32 is WRONG (y[3]: got 1, want 2)");
  EXPECT_NE(why_failed({{wrong, wrong, wrong, wrong, wrong}, {}}).find("; and 2 more"), std::string::npos);
  Row big = wrong;
  big.verdict = Verdict::no_memory;
  big.note = "needs 8 TB";
  EXPECT_EQ(why_failed({{big, good}, {}}), "") << "what does not fit is no error beside what does";
  EXPECT_NE(why_failed({{big, big}, {}}).find("nothing fits: elu/compiled cpu 16 f32 (needs 8 TB)"),
            std::string::npos);
}

TEST(RunJobs, SizesThatTheHostCannotHoldAreNoMemory) {
  Stage stage;
  const Pair huge{
      "huge", "", {}, [](const Knobs&, LabDevice&) -> Result<PairInstance> { throw std::bad_alloc(); }};
  const Job jobs[] = {{&huge, {}}};
  const RunRecord run = run_jobs(jobs, stage.device, stage.options, {});
  EXPECT_EQ(run.rows[0].verdict, Verdict::no_memory);
  EXPECT_NE(why_failed(run), "");
}

}  // namespace
}  // namespace tilewright::lab
