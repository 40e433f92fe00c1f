// Work that is no compiled program: what a loader does wrong is found, and what it waited is told.
#include "pairs/procedure_pair.h"

#include <gtest/gtest.h>

#include <tilewright/base/dtype.h>
#include <tilewright/tensor/compile.h>
#include <tilewright/tensor/functions.h>

#include "harness/run/runner.h"
#include "harness/run/verify.h"
#include "pairs/lab_device.h"
#include "pairs/pairs.h"
#include "support/errors.h"

namespace tilewright::lab {
namespace {

// An epoch of `steps` batches of two numbers each, 10 · seed + 0, 1, 2 …, and how often each was delivered.
struct Numbered {
  std::int64_t seed = 0;
  static constexpr Index kSteps = 3, kCount = 2 * kSteps;

  std::vector<std::int32_t> batch(Index step) const {
    const auto first = static_cast<std::int32_t>(10 * seed + 2 * step);
    return {first, first + 1};
  }
};

using Order = std::vector<Index>;  // of the batches that a loader gives

class ProcedurePair : public testing::Test {
 protected:
  ProcedureWorkload workload_of(std::vector<Procedure> procedures) {
    ProcedureWorkload w{.target = "numbers", .shape = "3", .dtype = "i32", .steps = Numbered::kSteps};
    w.cost.bytes_read = 8;
    for (Index step = 0; step < Numbered::kSteps; ++step)
      w.outputs.push_back({"batch", DType::i32, Shape{2}, {.kind = ToleranceRule::Kind::exact}});
    w.derived = {
        {.spec = {"times", DType::i64, Shape{Numbered::kCount}, {.kind = ToleranceRule::Kind::exact}},
         .make = [data = data_](const std::vector<std::vector<double>>& outputs) {
           std::vector<double> times(Numbered::kCount, 0);
           for (const auto& output : outputs)
             for (const double value : output) {
               const double place = value - static_cast<double>(10 * data->seed);
               if (place >= 0 && place < Numbered::kCount) ++times[static_cast<std::size_t>(place)];
             }
           return times;
         }}};
    w.refresh = [data = data_](std::uint64_t seed) -> Status {
      data->seed = static_cast<std::int64_t>(seed);
      return Unit{};
    };
    w.digest = [data = data_]() -> Result<std::uint64_t> { return static_cast<std::uint64_t>(data->seed); };
    w.reference = [data = data_] {
      std::vector<Reference> all;
      for (Index step = 0; step < Numbered::kSteps; ++step) {
        const auto batch = data->batch(step);
        all.push_back({.values = std::vector<double>(batch.begin(), batch.end())});
      }
      all.push_back({.values = std::vector<double>(Numbered::kCount, 1)});
      return all;
    };
    w.procedures = std::move(procedures);
    return w;
  }

  // Gives these batches, of which some may be missing.
  Procedure loader(const Order& order) {
    return {.name = "loader",
            .run =
                [this, order, data = data_](std::int64_t, const std::vector<Tensor>& results) {
                  for (std::size_t step = 0; step < order.size(); ++step)
                    copy_.into({results[step]},
                               {open_.context->from(data->batch(order[step]), {2}, DType::i32)});
                },
            .waited_us = [] { return 30.0; }};
  }

  Verification verified(Procedure procedure) {
    auto instance = make_instance(workload_of({std::move(procedure)}), open_.device);
    if (!instance) return {.reason = instance.error().message};
    return verify(*instance, 1).at(0);
  }

  std::shared_ptr<Numbered> data_ = std::make_shared<Numbered>();
  OpenDevice open_ = open_lab_device({.device = "reference", .cache_directory = ""});
  CompiledList copy_ = compile([](const std::vector<Tensor>& in) { return std::vector{concat(in, 0)}; });
};

TEST_F(ProcedurePair, ALoaderThatGivesEachBatchIsVerified) {
  const Verification v = verified(loader({0, 1, 2}));
  EXPECT_TRUE(v.verified) << v.reason;
  EXPECT_EQ(v.compared, 1);
}

TEST_F(ProcedurePair, OneThatGivesABatchTwiceIsNot) {
  const Verification v = verified(loader({0, 1, 1}));
  EXPECT_FALSE(v.verified);
}

TEST_F(ProcedurePair, OneThatLeavesABatchOutIsNot) {
  const Verification v = verified(loader({0, 1}));
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("never written"), std::string::npos) << v.reason;
}

TEST_F(ProcedurePair, OneThatGivesThemInAnotherOrderIsNot) {
  EXPECT_FALSE(verified(loader({1, 0, 2})).verified);
}

TEST_F(ProcedurePair, OneThatKeepsTheDataOfTheLastRoundIsNot) {
  Procedure stale = loader({0, 1, 2});
  const auto first = std::make_shared<std::optional<Numbered>>();
  stale.run = [this, first, data = data_](std::int64_t, const std::vector<Tensor>& results) {
    if (!*first) *first = *data;
    for (Index step = 0; step < Numbered::kSteps; ++step)
      copy_.into({results[static_cast<std::size_t>(step)]},
                 {open_.context->from((*first)->batch(step), {2}, DType::i32)});
  };
  const Verification v = verified(stale);
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("round 2"), std::string::npos) << v.reason;
}

TEST_F(ProcedurePair, WhatADeliveryIsCountedByIsNotTheOrder) {
  ProcedureWorkload w = workload_of({loader({1, 0, 2})});
  for (std::size_t step = 0; step < 3; ++step) w.outputs[step].name = "batch";
  auto instance = make_instance(std::move(w), open_.device);
  ASSERT_TRUE(instance.ok());
  ASSERT_TRUE(instance->refresh_inputs(4).ok());
  ASSERT_TRUE(instance->contenders[0].run(0).ok());
  EXPECT_EQ(*read_doubles(instance->contenders[0].outputs.at(3)), std::vector<double>(Numbered::kCount, 1));
}

TEST_F(ProcedurePair, WhatThrowsIsTheRowsReason) {
  Procedure broken{.name = "broken", .run = [](std::int64_t, const std::vector<Tensor>&) {
                     throw Error("the shards are gone");
                   }};
  const Verification v = verified(broken);
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("the shards are gone"), std::string::npos) << v.reason;
}

TEST_F(ProcedurePair, RowsAreOfAStepWithWhatItWaited) {
  auto instance = make_instance(workload_of({loader({0, 1, 2})}), open_.device);
  ASSERT_TRUE(instance.ok());
  RunOptions options;
  options.timing.budget_us = 50e3;
  options.timing.warmup_us = 1e3;
  const auto result = run_instance(*instance, open_.device, options);
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0].verdict, Verdict::baseline) << result.rows[0].note;
  ASSERT_TRUE(result.rows[0].waited_us.has_value());
  EXPECT_LE(*result.rows[0].waited_us, 10);  // 30 of an iteration or several, of three steps each
}

Result<PairInstance> data_loading_of(const std::vector<std::string>& settings, LabDevice& device) {
  const std::vector<Pair> pairs = all_pairs();
  const std::vector<std::string> names = {"data_loading"};
  const Job job = select_jobs(pairs, {}, names, settings, DeviceKind::cpu).at(0);
  return job.pair->make(job.knobs, device);
}

TEST(DataLoading, AnEpochEndsBetweenTwoBatchesWhereTheUserWantsAnEnd) {
  OpenDevice open = open_lab_device({.device = "reference", .cache_directory = ""});
  int asked = 0;
  open.device.stop = [&] { return asked++ == 2; };
  auto instance = data_loading_of({"rows=2", "length=5", "steps=100", "step_us=0"}, open.device);
  ASSERT_TRUE(instance.ok()) << instance.error().message;
  const Status run = instance->contenders[0].run(0);
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.error().message.find("interrupted within an epoch"), std::string::npos)
      << run.error().message;
  EXPECT_EQ(asked, 3);
}

TEST(DataLoading, NoEpochIsLongerThanAMachineHolds) {
  OpenDevice open = open_lab_device({.device = "reference", .cache_directory = ""});
  test::expect_says([&] { (void)data_loading_of({"steps=2^40"}, open.device); },
                    {"steps=1099511627776: must be 1 to 1048576", "batches of an epoch"});
  test::expect_says([&] { (void)data_loading_of({"rows=2^20", "length=2^20", "steps=2^20"}, open.device); },
                    {"1048576 x 1048576 x 1048576", "at most 67108864"});
}

// PyTorch's loaders read the same shards, in one process and in several.
TEST(DataLoading, IsVerifiedWithPyTorchsLoaders) {
  OpenDevice open = open_lab_device({.device = "cpu", .cache_directory = ""});
  open.device.peers = open_peers({});
  const std::vector<Pair> pairs = all_pairs();
  const std::vector<std::string> names = {"data_loading"};
  const std::vector<std::string> settings = {"rows=3", "length=5", "steps=4", "step_us=50"};
  const Job job = select_jobs(pairs, {}, names, settings, DeviceKind::cpu).at(0);
  auto instance = job.pair->make(job.knobs, open.device);
  ASSERT_TRUE(instance.ok()) << instance.error().message;
  std::vector<std::string> contenders;
  for (const Contender& contender : instance->contenders) contenders.push_back(contender.name);
  EXPECT_EQ(contenders, (std::vector<std::string>{"in turn", "prefetch", "torch DataLoader",
                                                  "torch DataLoader, workers"}));
  const std::vector<Verification> verified = verify(*instance, 1);
  for (std::size_t c = 0; c < verified.size(); ++c) {
    EXPECT_TRUE(verified[c].verified) << contenders[c] << ": " << verified[c].reason;
    const auto waited = instance->contenders[c].waited_us();
    ASSERT_TRUE(waited.ok());
    EXPECT_GT(*waited, 0) << contenders[c];
  }
}

}  // namespace
}  // namespace tilewright::lab
