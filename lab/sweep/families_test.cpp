// Every family draws within limits, says the same to PyTorch, and is right.
#include "sweep/families.h"

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "harness/run/verify.h"
#include "pairs/lab_device.h"
#include "pairs/truth.h"
#include "support/draws.h"
#include "sweep/workload.h"

namespace tilewright::sweep {
namespace {

Limits tiny(DType dtype = DType::f32) {
  return {.least_bytes = 2048, .most_bytes = 48 << 10, .most_flops = 2e6, .dtypes = {dtype}};
}

// One for all tests, because PyTorch takes seconds to start.
lab::OpenDevice& device() {
  static lab::OpenDevice open = [] {
    lab::OpenDevice made = lab::open_lab_device({.cache_directory = ""});
    made.device.peers = lab::open_peers({.python = "/usr/bin/python3", .without = {"torch, pages kept"}});
    return made;
  }();
  return open;
}

class EveryFamily : public testing::TestWithParam<const Family*> {};

std::vector<const Family*> families() {
  std::vector<const Family*> all;
  for (const Family& family : all_families()) all.push_back(&family);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Sweep, EveryFamily, testing::ValuesIn(families()),
                         [](const auto& info) { return std::string(info.param->name); });

// PyTorch runs the text in float64; ours and PyTorch's own f32 must be near that.
TEST_P(EveryFamily, AgreesWithItsPyTorchText) {
  const DrawnWork work = draw_work(1, GetParam()->name, tiny(), *device().context);
  auto made = make_instance(work, device().device);
  ASSERT_TRUE(made) << made.error().message;
  const auto verified = lab::verify(made->instance, 1, {.rounds = 1});
  EXPECT_EQ(made->judgement->by, "torch in float64") << made->judgement->why_not << work.drawn.text();
  ASSERT_GE(verified.size(), 2u);
  EXPECT_EQ(made->instance.contenders[1].name, "torch");
  for (std::size_t c = 0; c < 2; ++c)
    EXPECT_TRUE(verified[c].verified)
        << made->instance.contenders[c].name << ": " << verified[c].reason << "\n"
        << work.drawn.text();
}

// Two mechanisms that know nothing of each other: the op table's float64 and PyTorch's.
TEST_P(EveryFamily, TheOracleAndThePeerAgree) {
  const DrawnWork work = draw_work(2, GetParam()->name, tiny(), *device().context);
  ASSERT_TRUE(lab::oracle_can(work.traced.graph));
  auto by_peer = make_instance(work, device().device);
  lab::LabDevice alone = device().device;
  alone.peers = nullptr;
  auto by_ours = make_instance(work, alone);
  ASSERT_TRUE(by_peer && by_ours);
  ASSERT_TRUE(by_peer->instance.refresh_inputs(3) && by_ours->instance.refresh_inputs(3));
  const auto a = by_peer->instance.reference(0), b = by_ours->instance.reference(0);
  ASSERT_EQ(by_peer->judgement->by, "torch in float64") << by_peer->judgement->why_not << work.drawn.text();
  ASSERT_EQ(by_ours->judgement->by, "oracle");
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t o = 0; o < a.size(); ++o) {
    double worst = 0, size = 0;
    for (std::size_t i = 0; i < a[o].values.size(); ++i) {
      worst = std::max(worst, std::fabs(a[o].values[i] - b[o].values[i]));
      size = std::max(size, std::fabs(a[o].values[i]));
    }
    // f32 appears in both as the type of literals such as epsilon.
    EXPECT_LE(worst, 1e-6 * size) << "result " << o << "\n" << work.drawn.text();
  }
}

TEST_P(EveryFamily, KeepsToItsLimits) {
  for (std::uint64_t seed = 1; seed <= test::draws(10); ++seed) {
    Limits limits = {
        .least_bytes = 1 << 16, .most_bytes = 1 << 28, .most_flops = 1e10, .dtypes = {DType::bf16}};
    const DrawnWork work = draw_work(seed, GetParam()->name, limits, *device().context);
    EXPECT_LE(work.traced.cost.bytes(), 1.25 * limits.most_bytes) << work.drawn.text();
    EXPECT_LE(work.traced.cost.matrix.total(), limits.most_flops) << work.drawn.text();
    EXPECT_EQ(work.drawn.text(), draw_work(seed, GetParam()->name, limits, *device().context).drawn.text());
  }
}

std::vector<std::string> ops_of(const Drawn& drawn) {
  std::vector<std::string> ops;
  ops.reserve(drawn.program.statements.size());
  for (const programs::Statement& statement : drawn.program.statements) ops.push_back(statement.op);
  return ops;
}

TEST_P(EveryFamily, IsOfTheSameStructureWhereSizesMustBeLess) {
  for (std::uint64_t seed = 1; seed <= test::draws(10); ++seed) {
    const Limits large = {
        .least_bytes = 1 << 24, .most_bytes = 1 << 28, .most_flops = 1e12, .dtypes = {DType::f32}};
    EXPECT_EQ(ops_of(draw_work(seed, GetParam()->name, large, *device().context).drawn),
              ops_of(draw_work(seed, GetParam()->name, tiny(), *device().context).drawn))
        << seed;
  }
}

TEST(Sweep, AMistakeIsFound) {
  DrawnWork work = draw_work(1, "softmax", tiny(), *device().context);
  work.drawn.torch += "\nof = program\ndef program(*inputs):\n    return of(*inputs) * 1.001\n";
  auto made = make_instance(work, device().device);
  ASSERT_TRUE(made) << made.error().message;
  const auto verified = lab::verify(made->instance, 1, {.rounds = 1});
  EXPECT_FALSE(verified[0].verified) << "ours, which the text no longer describes";
  EXPECT_TRUE(verified[1].verified) << verified[1].reason;
}

TEST(Sweep, ATextThatPyTorchCannotRunIsJudgedByNobody) {
  DrawnWork work = draw_work(1, "softmax", tiny(), *device().context);
  work.drawn.torch = "def program(*inputs):\n    raise ValueError('on purpose')\n";
  auto made = make_instance(work, device().device);
  ASSERT_TRUE(made) << made.error().message;
  (void)lab::verify(made->instance, 1);
  EXPECT_EQ(made->judgement->by, "nobody");
  EXPECT_NE(made->judgement->why_not.find("on purpose"), std::string::npos) << made->judgement->why_not;
}

TEST(Sweep, AnUnknownFamilyIsNamedWithThoseThatThereAre) {
  try {
    (void)family_named("attentoin");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("attention"), std::string::npos) << error.what();
  }
}

TEST(Sweep, ProgramsAreReadAsTheyArePrinted) {
  for (std::uint64_t seed = 1; seed <= test::draws(50); ++seed) {
    const DrawnWork work = draw_work(seed, "", tiny(), *device().context);
    const std::string text = programs::to_text(work.drawn.program);
    EXPECT_EQ(programs::to_text(programs::parse_program(text)), text);
  }
}

TEST(Sweep, ANumberThatIsNoneIsNamedWithItsStatement) {
  const programs::Values values{{"v0", device().context->ones({2, 3})}};
  try {
    (void)programs::evaluate({.result = "v1", .op = "sum", .operands = {"v0"}, .options = {{"axes", "1x"}}},
                             values, {});
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "sum: axes: no whole number: '1x'");
  }
}

}  // namespace
}  // namespace tilewright::sweep
