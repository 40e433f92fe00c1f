#include "harness/run/runner.h"

#include <gtest/gtest.h>

#include "harness/report/table.h"
#include "harness/run/synthetic.h"

namespace tilewright::lab {
namespace {

using synthetic::FakeClock;
using synthetic::FakeTimer;
using Floats = std::vector<float>;

// 1000 f32 elements are 8 kB of traffic: 8 us at 1 GB/s.
Ceilings slow_machine() { return {.levels = {{"memory", 0, 1e9, 1e9, 1e9}}, .source = "made up"}; }

struct Stage {
  FakeClock clock;
  LabDevice device;
  RunOptions options;
  PairInstance instance;
  std::shared_ptr<synthetic::Memory> memory;

  Stage() {
    device.timer = std::make_shared<FakeTimer>(clock);
    device.ceilings = slow_machine();
    options.timing.now_us = clock.reader();
    std::tie(instance, memory) = synthetic::instance();
  }
  Contender& add(std::string name, double us, synthetic::Body body = synthetic::right) {
    return synthetic::add(instance, memory, std::move(name),
                          [this, us, body = std::move(body)](const Floats& x, Floats& y, std::int64_t i) {
                            clock.now_us += us;
                            body(x, y, i);
                          });
  }
  std::vector<Row> rows() { return run_instance(instance, device, options).rows; }
};

TEST(RunInstance, VerifiedAndTimedContendersBecomeRows) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("compiled", 10);
  stage.add("tile", 10);
  stage.add("slow", 80);
  const auto rows = stage.rows();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].verdict, Verdict::baseline);
  EXPECT_EQ(rows[1].verdict, Verdict::faster);
  EXPECT_EQ(rows[3].verdict, Verdict::slower);
  EXPECT_TRUE(rows[1].verified);
  EXPECT_NEAR(*rows[1].median_us, 10, 1e-6);
  EXPECT_NEAR(*rows[1].rate, 0.8, 1e-6);
  EXPECT_EQ(rows[1].unit, "GB/s");
  EXPECT_NEAR(*rows[1].floor_us, 8, 1e-6);
  EXPECT_NEAR(*rows[1].roofline, 0.8, 1e-6);
  EXPECT_NEAR(*rows[1].speedup, 4, 1e-6);
  EXPECT_LE(*rows[1].max_rel_err, *rows[1].tolerance);
  EXPECT_EQ(rows[0].key(), "affine/eager cpu 1000 f32");
}

TEST(RunInstance, WhatAStepWaitedForStandsInItsRow) {
  Stage stage;
  stage.add("in turn", 40);
  stage.add("prefetch", 40).waited_us = []() -> Result<double> { return 0.0; };
  const auto rows = stage.rows();
  EXPECT_FALSE(rows[0].waited_us);
  EXPECT_EQ(rows[1].waited_us, 0);
}

TEST(RunInstance, EqualContendersAreTheSame) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("compiled", 40);
  EXPECT_EQ(stage.rows()[1].verdict, Verdict::same);
}

TEST(RunInstance, WrongContendersAreNotTimed) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("zeros", 10, [](const Floats&, Floats& y, std::int64_t) { y.assign(y.size(), 0.f); });
  const Row row = stage.rows()[1];
  EXPECT_EQ(row.verdict, Verdict::wrong);
  EXPECT_FALSE(row.verified);
  EXPECT_FALSE(row.median_us);
  EXPECT_FALSE(row.note.empty());
}

TEST(RunInstance, ContendersThatCheatWhileTimedLoseTheirTimes) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("lazy", 10, [calls = 0](const Floats& x, Floats& y, std::int64_t i) mutable {
    if (++calls <= 2) synthetic::right(x, y, i);
  });
  const Row row = stage.rows()[1];
  EXPECT_EQ(row.verdict, Verdict::wrong);
  EXPECT_FALSE(row.median_us);
  EXPECT_FALSE(row.speedup);
  EXPECT_EQ(row.samples, 0);
}

TEST(RunInstance, FasterThanPhysicsIsAnErrorNotARecord) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("miracle", 4);
  const Row row = stage.rows()[1];
  EXPECT_EQ(row.verdict, Verdict::impossible);
  EXPECT_FALSE(row.speedup);
  EXPECT_NE(row.note.find("faster than physics"), std::string::npos);
  EXPECT_FALSE(sound({{row}, {}}));
}

TEST(RunInstance, AWrongBaselineLeavesTheOthersUncompared) {
  Stage stage;
  stage.add("eager", 40, [](const Floats&, Floats&, std::int64_t) {});
  stage.add("compiled", 10);
  const auto rows = stage.rows();
  EXPECT_EQ(rows[0].verdict, Verdict::wrong);
  EXPECT_EQ(rows[1].verdict, Verdict::uncompared);
  EXPECT_TRUE(rows[1].median_us);
  EXPECT_FALSE(rows[1].speedup);
}

TEST(RunInstance, UnavailableContendersSayWhy) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("torch", 10).unavailable = "PyTorch is not installed";
  const Row row = stage.rows()[1];
  EXPECT_EQ(row.verdict, Verdict::unavailable);
  EXPECT_EQ(row.note, "PyTorch is not installed");
  EXPECT_TRUE(sound({{row}, {}}));
}

// A contender in another process that ends at its n-th call.
void let_die(Contender& contender, int n) {
  contender.batch_us = [run = contender.run, calls = 0, n](std::int64_t first,
                                                           std::int64_t count) mutable -> Result<double> {
    if (++calls >= n) return failure(Failure::Kind::io, "the peer's process has ended");
    for (std::int64_t i = first; i < first + count; ++i) (void)run(i);
    return 30.0 * static_cast<double>(count);
  };
}

TEST(RunInstance, APeerThatDiesIsUnavailableAndNobodyElse) {
  for (const int call : {1, 2, 3, 12}) {  // in the rounds of verification, in the warm-up, while timed
    Stage stage;
    stage.add("eager", 40);
    stage.add("compiled", 20);
    let_die(stage.add("torch", 30), call);
    stage.add("tile", 10);
    const auto rows = stage.rows();
    EXPECT_EQ(rows[2].verdict, Verdict::unavailable) << call;
    EXPECT_NE(rows[2].note.find("the peer's process has ended"), std::string::npos) << rows[2].note;
    EXPECT_FALSE(rows[2].median_us);
    EXPECT_EQ(rows[0].verdict, Verdict::baseline) << rows[0].note;
    EXPECT_EQ(rows[1].verdict, Verdict::faster) << rows[1].note;
    EXPECT_EQ(rows[3].verdict, Verdict::faster) << rows[3].note;
    EXPECT_TRUE(sound({rows, {}}));
  }
}

TEST(RunInstance, APeerWhoseOutputsAreGoneAfterTheTimedRunsIsUnavailable) {
  Stage stage;
  stage.add("eager", 40);
  Contender& torch = stage.add("torch", 30);
  let_die(torch, 1 << 30);
  torch.outputs[0].read = [read = torch.outputs[0].read,
                           reads = 0](const ElementsVisitor& visit) mutable -> Status {
    if (++reads > 2) return failure(Failure::Kind::io, "the peer's process has ended");
    return read(visit);
  };
  const auto rows = stage.rows();
  EXPECT_EQ(rows[1].verdict, Verdict::unavailable) << rows[1].note;
  EXPECT_FALSE(rows[1].median_us);
  EXPECT_EQ(rows[0].verdict, Verdict::baseline);
}

TEST(RunInstance, TheQuickestOfAFamilyIsARowThatNamesIt) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("torch", 30).family = "torch";
  stage.add("torch.compile", 20).family = "torch";
  Contender& wrong = stage.add("torch.compile:wrong", 10, [](const Floats&, Floats&, std::int64_t) {});
  wrong.family = "torch";
  const auto rows = stage.rows();
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[4].contender, "torch best");
  EXPECT_EQ(rows[4].chosen, "torch.compile");
  EXPECT_EQ(rows[4].median_us, rows[2].median_us);
  EXPECT_NEAR(*rows[4].speedup, 2, 1e-6);
  EXPECT_NE(rows[4].note.find("those of \"torch.compile\""), std::string::npos) << rows[4].note;
}

TEST(RunInstance, TheDevicesOwnTimeIsAFigureOfItsOwn) {
  Stage stage;
  synthetic::FakeDevice device{stage.clock};
  stage.device.device_timer = std::make_shared<synthetic::FakeTrace>(device);
  for (const double work_us : {10.0, 2.0}) {
    Contender& contender = stage.add("a", 0);
    contender.run = [&device, work_us, run = contender.run](std::int64_t i) {
      device.launch(40, work_us);
      return run(i);
    };
    contender.finish = [&device] { return device.wait(); };
  }
  const auto rows = stage.rows();
  EXPECT_NEAR(*rows[0].median_us, 40, 0.4);
  EXPECT_NEAR(*rows[0].device_us, 10, 1e-6);
  EXPECT_FALSE(rows[1].device_us) << "2 us, where the ceilings allow 8";
  EXPECT_NE(rows[1].note.find("no device time"), std::string::npos) << rows[1].note;
  EXPECT_EQ(rows[1].verdict, Verdict::same) << "the calls stand";
}

TEST(RunInstance, WhatTheDeviceCannotHoldIsNoErrorAndTheOthersAreTimed) {
  Stage stage;
  Contender& naive = stage.add("eager", 40);
  naive.run = [](std::int64_t) -> Status { return failure(Failure::Kind::out_of_memory, "cuda: no memory"); };
  stage.add("compiled", 20);
  const std::vector<Row> rows = stage.rows();
  EXPECT_EQ(rows[0].verdict, Verdict::no_memory);
  EXPECT_NE(rows[0].note.find("cuda: no memory"), std::string::npos);
  EXPECT_FALSE(rows[0].median_us);
  EXPECT_EQ(rows[1].verdict, Verdict::uncompared);
  EXPECT_TRUE(rows[1].median_us);
  EXPECT_TRUE(sound({rows, {}}));
  EXPECT_EQ(render_csv(rows).find("-1"), std::string::npos);
  EXPECT_EQ(render_table({rows, {}}).find("−1"), std::string::npos);
}

TEST(RunInstance, ARowSaysHowMuchOfItHadAReference) {
  Stage stage;
  stage.add("eager", 40);
  stage.add("wrong where it is known", 40, [](const Floats& x, Floats& y, std::int64_t i) {
    synthetic::right(x, y, i);
    y[999] += 1;
  });
  stage.instance.reference = [whole = stage.instance.reference](std::int64_t iteration) {
    std::vector<Reference> r = whole(iteration);
    r[0].known = {.length = 100, .rows = std::vector<bool>(10)};
    r[0].known.rows[9] = true;
    return r;
  };
  const std::vector<Row> rows = stage.rows();
  EXPECT_EQ(rows[0].verdict, Verdict::baseline);
  EXPECT_NE(rows[0].note.find("in 10 % of its rows"), std::string::npos) << rows[0].note;
  EXPECT_EQ(rows[1].verdict, Verdict::wrong);
}

TEST(RunInstance, ComputeBoundWorkIsRatedInFlops) {
  Stage stage;
  stage.device.ceilings.math = {{perf::MathUnit::vector, DType::f32, 1e8}};  // 2000 FLOPs: 20 us
  stage.add("eager", 40);
  const Row row = stage.rows()[0];
  EXPECT_EQ(row.unit, "GFLOP/s");
  EXPECT_NEAR(*row.rate, 0.05, 1e-9);
  EXPECT_NEAR(*row.roofline, 0.5, 1e-6);
}

TEST(RunInstance, StoppedBeforeItsFirstSampleARowIsUntimed) {
  Stage stage;
  stage.add("eager", 40);
  int asked = 0;
  const int of_verification = stage.options.rounds + 1;  // ahead of the contender in each round, and behind
  stage.options.timing.stop = [&] { return asked++ >= of_verification; };
  const Row row = stage.rows()[0];
  EXPECT_EQ(row.verdict, Verdict::untimed);
  EXPECT_TRUE(row.verified);
}

TEST(RunInstance, StoppedWhileItIsVerifiedItHasNoRows) {
  Stage stage;
  stage.add("eager", 40);
  stage.options.timing.stop = [] { return true; };
  EXPECT_TRUE(stage.rows().empty());
}

TEST(RunJobs, KeepsGoingPastWhatADeviceCannotDoAndStopsWhenAsked) {
  Stage stage;
  int made = 0;
  const Pair good{"good", "", {}, [&](const Knobs&, LabDevice&) -> Result<PairInstance> {
                    ++made;
                    auto [instance, memory] = synthetic::instance();
                    synthetic::add(instance, memory, "eager",
                                   [&](const Floats& x, Floats& y, std::int64_t i) {
                                     stage.clock.now_us += 40;
                                     synthetic::right(x, y, i);
                                   });
                    return std::move(instance);
                  }};
  const Pair big{"big", "", {}, [](const Knobs&, LabDevice&) -> Result<PairInstance> {
                   return failure(Failure::Kind::out_of_memory, "needs 99 GiB");
                 }};
  const Job jobs[] = {{&big, {}}, {&good, {}}, {&good, {}}};
  stage.options.timing.stop = [&] { return made == 1 && stage.clock.now_us > 5e4; };  // Ctrl-C in the rounds
  stage.options.timing.min_samples = stage.options.timing.max_samples = 1000000;
  int seen = 0;
  const RunRecord run = run_jobs(jobs, stage.device, stage.options, {},
                                 {.done = [&](const Job&, const InstanceResult&) { ++seen; }});
  ASSERT_EQ(run.rows.size(), 2u);
  EXPECT_EQ(run.rows[0].verdict, Verdict::no_memory);
  EXPECT_EQ(run.rows[0].note, "needs 99 GiB");
  EXPECT_EQ(run.rows[1].verdict, Verdict::baseline);
  EXPECT_TRUE(run.environment.interrupted);
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(run.environment.work.size(), 1u);
  EXPECT_EQ(run.environment.ceilings.size(), 1u);
}

}  // namespace
}  // namespace tilewright::lab
