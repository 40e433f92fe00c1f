// Attacks on the verification: each way to cheat must be caught.
#include "harness/run/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "harness/run/synthetic.h"

namespace tilewright::lab {
namespace {

using synthetic::Body;
using Floats = std::vector<float>;

Verification verdict_on(Body body, int copies = 2) {
  auto [instance, memory] = synthetic::instance(1000, copies);
  synthetic::add(instance, memory, "suspect", std::move(body));
  return verify(instance, 1).front();
}

// Verifies, "times" five runs, verifies what they left.
Verification verdict_after_timing(Body body, int copies = 2) {
  constexpr std::int64_t iterations = 5;
  auto [instance, memory] = synthetic::instance(1000, copies);
  synthetic::add(instance, memory, "suspect", std::move(body));
  auto verifications = verify(instance, 1);
  EXPECT_TRUE(verifications.front().verified) << verifications.front().reason;
  const auto digest_before = prepare_timed(instance, verifications, 1);
  for (std::int64_t i = 0; i < iterations; ++i) EXPECT_TRUE(instance.contenders[0].run(i).ok());
  verify_timed(instance, *digest_before, std::vector<std::int64_t>{iterations - 1}, verifications);
  return verifications.front();
}

TEST(Verify, ACorrectContenderIsVerified) {
  const Verification v = verdict_on(synthetic::right);
  EXPECT_TRUE(v.verified) << v.reason;
  EXPECT_GT(v.tolerance, 0);
  EXPECT_LE(v.max_rel_err, v.tolerance);
  EXPECT_TRUE(verdict_after_timing(synthetic::right).verified);
}

TEST(Verify, AnInterruptEndsItAheadOfTheNextContender) {
  auto [instance, memory] = synthetic::instance(1000, 2);
  synthetic::add(instance, memory, "first", synthetic::right);
  synthetic::add(instance, memory, "second", synthetic::right);
  int asked = 0;
  const auto all = verify(instance, 1, {.rounds = 1, .stop = [&] { return asked++ > 0; }});
  EXPECT_TRUE(all[0].verified) << all[0].reason;
  EXPECT_FALSE(all[1].verified);
  EXPECT_EQ(all[1].reason, "interrupted");
}

TEST(Verify, OutputsOfWhichNothingIsKnownMustBeWritten) {
  const auto verdict = [](Body body) {
    auto [instance, memory] = synthetic::instance(1000, 2);
    synthetic::add(instance, memory, "suspect", std::move(body));
    instance.reference = [](std::int64_t) {
      return std::vector<Reference>{{.values = {}, .known = {.length = 1000, .rows = {false}}}};
    };
    return verify(instance, 1).front();
  };
  EXPECT_TRUE(verdict(synthetic::right).verified);
  const Verification v = verdict([](const Floats&, Floats&, std::int64_t) {});
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("1000 never written"), std::string::npos) << v.reason;
}

TEST(Verify, CatchesZeros) {
  EXPECT_FALSE(verdict_on([](const Floats&, Floats& y, std::int64_t) {
                 std::fill(y.begin(), y.end(), 0.f);
               }).verified);
}

TEST(Verify, CatchesStaleOutputs) {
  const Verification v = verdict_on([](const Floats&, Floats&, std::int64_t) {});
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("1000 never written"), std::string::npos) << v.reason;
}

TEST(Verify, CatchesWorkDoneOnlyTheFirstTime) {
  EXPECT_FALSE(verdict_on([done = false](const Floats& x, Floats& y, std::int64_t i) mutable {
                 if (!done) synthetic::right(x, y, i);
                 done = true;
               }).verified);
}

TEST(Verify, CatchesOneWrongElement) {
  const Verification v = verdict_on([](const Floats& x, Floats& y, std::int64_t i) {
    synthetic::right(x, y, i);
    y[617] += 1e-3f;
  });
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("y[617]"), std::string::npos) << v.reason;
  EXPECT_NE(v.reason.find("1 of 1000 elements are wrong"), std::string::npos) << v.reason;
}

TEST(Verify, CatchesUnwrittenElements) {
  const Verification v = verdict_on([](const Floats& x, Floats& y, std::int64_t) {
    for (std::size_t i = 0; i + 1 < x.size(); ++i) y[i] = 2 * x[i] + 1;
  });
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("1 NaN, 1 never written"), std::string::npos) << v.reason;
}

// The NaN poison cannot show this one: the reference is NaN there.
TEST(Verify, CatchesUnwrittenElementsWhereTheReferenceIsNan) {
  auto [instance, memory] = synthetic::instance();
  const auto truth = instance.reference;
  instance.reference = [truth](std::int64_t i) {
    auto references = truth(i);
    references[0].values[5] = std::numeric_limits<double>::quiet_NaN();
    return references;
  };
  synthetic::add(instance, memory, "suspect", [](const Floats& x, Floats& y, std::int64_t) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i != 5) y[i] = 2 * x[i] + 1;
    }
  });
  const Verification v = verify(instance, 1).front();
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("round 2"), std::string::npos) << v.reason;
}

// Nor this one: −1 is what the first poison reads as in an integer.
TEST(Verify, CatchesUnwrittenIntegersThatLookRight) {
  std::int32_t value = 0;
  const OutputSpec spec{"index", DType::i32, Shape{1}, {.storage = DType::i32}};
  PairInstance instance{.target = "argmax", .device = "cpu", .shape = "1", .dtype = "i32", .outputs = {spec}};
  instance.reference = [](std::int64_t) { return std::vector<Reference>{{{-1}}}; };
  instance.refresh_inputs = [](std::uint64_t) -> Status { return Unit{}; };
  instance.input_digest = []() -> Result<std::uint64_t> { return std::uint64_t{7}; };
  const OutputAccess access{.poison = [&](std::uint8_t byte) -> Status {
                              std::memset(&value, byte, sizeof value);
                              return Unit{};
                            },
                            .read = [&](const ElementsVisitor& visit) -> Status {
                              visit({&value, DType::i32, 0, 1});
                              return Unit{};
                            }};
  instance.contenders = {
      {.name = "idle", .run = [](std::int64_t) -> Status { return Unit{}; }, .outputs = {access}}};
  const Verification v = verify(instance, 1).front();
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("round 2"), std::string::npos) << v.reason;
}

TEST(Verify, CatchesConstantOutputsByFreshInputs) {
  for (int copies : {1, 2}) {
    const Verification v = verdict_on(
        [cached = Floats()](const Floats& x, Floats& y, std::int64_t i) mutable {
          if (cached.empty()) {
            synthetic::right(x, y, i);
            cached = y;
          }
          y = cached;
        },
        copies);
    EXPECT_FALSE(v.verified);
    EXPECT_NE(v.reason.find("round 2"), std::string::npos) << v.reason;
  }
}

TEST(Verify, CatchesContendersThatChangeTheirInputs) {
  auto [instance, memory] = synthetic::instance();
  synthetic::add(instance, memory, "spoiler", [m = memory](const Floats& x, Floats& y, std::int64_t i) {
    synthetic::right(x, y, i);
    m->inputs[1][3] = 42;
  });
  synthetic::add(instance, memory, "innocent", synthetic::right);
  const auto verifications = verify(instance, 1);
  EXPECT_FALSE(verifications[0].verified);
  EXPECT_NE(verifications[0].reason.find("changed its inputs"), std::string::npos) << verifications[0].reason;
  EXPECT_TRUE(verifications[1].verified) << verifications[1].reason;
}

TEST(Verify, CatchesOutputsInsideAnInput) {
  auto [instance, memory] = synthetic::instance();
  Contender& suspect = synthetic::add(instance, memory, "suspect", synthetic::right);
  suspect.outputs[0].memory = [m = memory]() -> MemoryRange {
    return {reinterpret_cast<std::uintptr_t>(m->inputs[0].data()) + 400, 4};
  };
  const Verification v = verify(instance, 1).front();
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("lies in an input's memory"), std::string::npos) << v.reason;
}

TEST(Verify, AFailedRunIsNotVerifiedAndSaysWhy) {
  auto [instance, memory] = synthetic::instance();
  synthetic::add(instance, memory, "broken", synthetic::right).run = [](std::int64_t) -> Status {
    return failure(Failure::Kind::out_of_memory, "no memory for y");
  };
  const Verification v = verify(instance, 1).front();
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("no memory for y"), std::string::npos) << v.reason;
  EXPECT_TRUE(v.no_memory);
}

TEST(Verify, UnavailableContendersAreNotRun) {
  auto [instance, memory] = synthetic::instance();
  Contender& absent = synthetic::add(instance, memory, "torch", synthetic::right);
  absent.run = nullptr;
  absent.unavailable = "PyTorch is not installed";
  const Verification v = verify(instance, 1).front();
  EXPECT_FALSE(v.verified);
  EXPECT_EQ(v.reason, "PyTorch is not installed");
}

// What passes verification and then cheats while it is timed.
TEST(VerifyTimed, CatchesContendersThatStopWorkingAfterVerification) {
  EXPECT_FALSE(verdict_after_timing([calls = 0](const Floats& x, Floats& y, std::int64_t i) mutable {
                 if (++calls <= 2) synthetic::right(x, y, i);
               }).verified);
}

TEST(VerifyTimed, CatchesOutputsCachedDuringVerification) {
  for (int copies : {1, 2}) {
    const Verification v = verdict_after_timing(
        [calls = 0, cached = Floats()](const Floats& x, Floats& y, std::int64_t i) mutable {
          if (++calls <= 2) {
            synthetic::right(x, y, i);
            cached = y;
          }
          y = cached;
        },
        copies);
    EXPECT_FALSE(v.verified);
    EXPECT_NE(v.reason.find("after the timed runs"), std::string::npos) << v.reason;
  }
}

TEST(VerifyTimed, OutputsArePoisonedBeforeTheTimedRuns) {
  auto [instance, memory] = synthetic::instance();
  synthetic::add(instance, memory, "honest", synthetic::right);
  auto verifications = verify(instance, 1);
  ASSERT_TRUE(prepare_timed(instance, verifications, 1).ok());
  for (float y : memory->outputs[0]) ASSERT_TRUE(std::isnan(y));
}

TEST(VerifyTimed, CatchesInputsChangedWhileTimed) {
  auto [instance, memory] = synthetic::instance();
  synthetic::add(instance, memory, "spoiler",
                 [m = memory, calls = 0](const Floats& x, Floats& y, std::int64_t i) mutable {
                   if (++calls > 2) m->inputs[0][0] = 0;
                   synthetic::right(x, y, i);
                 });
  auto verifications = verify(instance, 1);
  ASSERT_TRUE(verifications[0].verified);
  const auto digest_before = prepare_timed(instance, verifications, 1);
  ASSERT_TRUE(instance.contenders[0].run(0).ok());
  verify_timed(instance, *digest_before, std::vector<std::int64_t>{0}, verifications);
  EXPECT_FALSE(verifications[0].verified);
}

}  // namespace
}  // namespace tilewright::lab
