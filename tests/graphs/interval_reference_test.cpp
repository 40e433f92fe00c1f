// The oracle in intervals: they hold what roundings give, every outcome of a decision, and no more than that.
#include "support/interval_reference.h"

#include "ops/composites.h"
#include "ops/ops.h"
#include "ops/rows.h"
#include "support/graph_check.h"
#include "support/mistaken_graph.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tilewright::test {
namespace {

using ir::HostTensor;
using ir::Value;

std::vector<HostTensor> as_stored(std::vector<HostTensor> values) {
  for (HostTensor& t : values)
    for (double& v : t.f) v = round_to(t.type.dtype, v);
  return values;
}

TEST(IntervalReference, HoldsWhatRoundingsGive) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const ir::Graph graph = random_graph(graph_of_seed(seed));
    const std::vector<HostTensor> inputs = random_inputs(graph, seed);
    const Intervals intervals = reference_intervals(graph, inputs);
    EXPECT_EQ(difference(as_stored(ops::evaluate(graph, inputs)), intervals), "") << seed;
    Random random(seed);
    for (int run = 0; run < 4; ++run) {
      const auto rounded = ops::evaluate(graph, inputs, [&](const ir::Node& node, HostTensor& value) {
        const bool computes = node.op->kind == ir::OpClass::pointwise ||
                              node.op->kind == ir::OpClass::reduce || node.op->kind == ir::OpClass::scan ||
                              node.op->kind == ir::OpClass::matmul;
        if (!computes || is_exact(*node.op)) return;
        // A narrow value may be stored, which rounds it, also to 0 and to infinity.
        if (node.type.dtype != compute_dtype(node.type.dtype) && random.chance(0.5)) {
          for (double& v : value.f) v = round_to(node.type.dtype, v);
          return;
        }
        // An error as large as it may be, or anything up to that.
        const double noise = 0.99 * noise_of(node.type.dtype);
        for (double& v : value.f) {
          // A sum or product that the type holds may be one of exact numbers, and so exact.
          if (node.type.dtype != DType::f64 && round_to(DType::f32, v) == v) continue;
          v *= 1 + noise * (run % 2 == 0 ? random.real(-1, 1) : random.chance(0.5) ? 1 : -1);
        }
      });
      EXPECT_EQ(difference(as_stored(rounded), intervals), "") << seed;
    }
  }
}

class Decisions : public testing::Test {
 protected:
  Value input(DType dtype, std::vector<double> values) {
    const ir::Type type{dtype, {static_cast<Index>(values.size())}};
    inputs_.push_back({type, std::move(values), {}});
    return {&graph_, graph_.add_input("x" + std::to_string(inputs_.size()), type)};
  }
  Intervals intervals_of(Value result) {
    graph_.set_outputs({result.id});
    return reference_intervals(graph_, inputs_);
  }
  // The outcomes that are taken for right, from -3 to 3.
  std::vector<std::int64_t> outcomes(Value result, std::size_t element) {
    const Intervals all = intervals_of(result);
    std::vector<std::int64_t> right;
    for (std::int64_t outcome = -3; outcome <= 3; ++outcome) {
      std::vector<HostTensor> got = all.low;
      if (is_float(got[0].type.dtype))
        got[0].f[element] = static_cast<double>(outcome);
      else
        got[0].i[element] = outcome;
      if (difference(got, all).empty()) right.push_back(outcome);
    }
    return right;
  }
  using Outcomes = std::vector<std::int64_t>;

  ir::Graph graph_;
  std::vector<HostTensor> inputs_;
};

// erf(3.7) is 1 - 1.7e-7: an f32 beside it is 1.
TEST_F(Decisions, TruncatingWhatReachesAWholeNumber) {
  const Value y = ops::cast(ops::erf(input(DType::f32, {3.7, 2.0, -3.7})), DType::i32);
  EXPECT_EQ(outcomes(y, 0), (Outcomes{0, 1}));
  EXPECT_EQ(outcomes(y, 1), (Outcomes{0}));
  EXPECT_EQ(outcomes(y, 2), (Outcomes{-1, 0}));
}

TEST_F(Decisions, AskingWhetherADifferenceIsZero) {
  const Value a = ops::tanh(input(DType::f32, {1.0, 1.0})),
              b = ops::tanh(input(DType::f32, {1.0 + 1e-7, 1.1}));
  EXPECT_EQ(outcomes(ops::cast(a - b, DType::boolean), 0), (Outcomes{0, 1}));
  EXPECT_EQ(outcomes(ops::ne(a, b), 0), (Outcomes{0, 1}));
  EXPECT_EQ(outcomes(ops::ne(a, b), 1), (Outcomes{1}));
  EXPECT_EQ(outcomes(ops::lt(a, b), 0), (Outcomes{0, 1}));
}

// Two of three terms may be added first, and be infinite, though all three are not.
TEST_F(Decisions, AddingWhatMayOverflowOnTheWay) {
  const auto sum_of = [&](std::vector<double> terms) {
    const Value x = input(DType::f32, std::move(terms));
    graph_.set_outputs({ops::sum(x, {0}).id});
    const Intervals all = reference_intervals(graph_, inputs_);
    return std::pair(all.low[0].f[0], all.high[0].f[0]);
  };
  const auto [low, high] = sum_of({3e38, 3e38, -3e38});
  EXPECT_NEAR(low, 3e38, 1e33);
  EXPECT_EQ(high, HUGE_VAL);
  const auto [lowest, highest] = sum_of({3e38, 3e38, -3e38, -3e38});
  EXPECT_EQ(lowest, -HUGE_VAL) << "also inf - inf";
  EXPECT_EQ(highest, HUGE_VAL);
  const auto [near, far] = sum_of({3e38, -1e38, -1e38});
  EXPECT_NEAR(near, 1e38, 1e32);
  EXPECT_NEAR(far, 1e38, 1e32);
}

// A quarter of the smallest number of the type is 0 once it is stored.
TEST_F(Decisions, StoringNextToZero) {
  const Value x = input(DType::f8e4m3, {0x1p-9, 1.0});
  EXPECT_EQ(outcomes(ops::ne(x * 0.25, 0), 0), (Outcomes{0, 1}));
  EXPECT_EQ(outcomes(ops::ne(x * 0.25, 0), 1), (Outcomes{1}));
}

TEST_F(Decisions, WholeNumbersStayExact) {
  const Value a = input(DType::f32, {1, 2}), b = input(DType::f32, {1, -2});
  EXPECT_EQ(outcomes(ops::ne(a - b, 0), 0), (Outcomes{0}));
  EXPECT_EQ(outcomes(ops::floor(a * b + a), 1), (Outcomes{-2}));
}

TEST_F(Decisions, WhatIsChosenByThem) {
  const Value near_one = ops::erf(input(DType::f32, {3.7, 3.7, 0.1}));
  const Value two = input(DType::f32, {2, 2, 2}), three = input(DType::f32, {3, 3, 3});
  EXPECT_EQ(outcomes(ops::where(ops::ge(near_one, 1.0), two, three), 0), (Outcomes{2, 3}));
  EXPECT_EQ(outcomes(ops::where(ops::ge(near_one, 1.0), two, three), 2), (Outcomes{3}));
  EXPECT_EQ(outcomes(ops::argmax(near_one, 0), 0), (Outcomes{0, 1}));
  const Value table = input(DType::i32, {-1, -2, 3});
  inputs_.back().f.clear(), inputs_.back().i = {-1, -2, 3};
  EXPECT_EQ(outcomes(ops::take(table, ops::cast(near_one, DType::i64), 0), 1), (Outcomes{-2, -1}));
  EXPECT_EQ(outcomes(ops::bit_and(ops::cast(near_one, DType::i64), 1), 0), (Outcomes{0, 1}));
}

// The same graph with another op in the place of one of its nodes.
std::optional<ir::Graph> with_a_mistake(const ir::Graph& graph, Random& random) {
  static constexpr std::pair<const ir::Op*, const ir::Op*> kMistaken[] = {
      {&ops::kAdd, &ops::kSub},  {&ops::kSub, &ops::kAdd},         {&ops::kMul, &ops::kAdd},
      {&ops::kSin, &ops::kCos},  {&ops::kTanh, &ops::kErf},        {&ops::kErf, &ops::kTanh},
      {&ops::kExp, &ops::kExp2}, {&ops::kMinimum, &ops::kMaximum}, {&ops::kFloor, &ops::kCeil},
      {&ops::kLt, &ops::kLe},    {&ops::kGt, &ops::kLt},           {&ops::kMax, &ops::kMin}};
  std::vector<std::pair<ir::NodeId, const ir::Op*>> all;
  const std::vector<bool> live = graph.live();
  for (ir::NodeId id = 0; id < graph.size(); ++id)
    for (const auto& [right, wrong] : kMistaken)
      if (graph.node(id).op == right && live[static_cast<std::size_t>(id)]) all.emplace_back(id, wrong);
  if (all.empty()) return std::nullopt;
  const auto [place, wrong] = all[static_cast<std::size_t>(random.below(static_cast<Index>(all.size())))];
  return mistaken(graph, [&, place = place, wrong = wrong](ir::NodeId id) {
    return id == place ? wrong : graph.node(id).op;
  });
}

// Intervals explain next to no mistake that random roundings do not explain: only a few values, many ops from
// the inputs, of which rounding leaves little.
TEST(IntervalReference, MistakesLieOutside) {
  int mistakes = 0, found = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const ir::Graph graph = random_graph(graph_of_seed(seed));
    Random random(seed);
    const auto wrong = with_a_mistake(graph, random);
    if (!wrong) continue;
    const std::vector<HostTensor> inputs = random_inputs(graph, seed);
    const std::vector<HostTensor> got = as_stored(ops::evaluate(*wrong, inputs));
    if (difference(got, reference_with_spread(graph, inputs, {.seed = seed, .runs = 50})).empty()) continue;
    ++mistakes;
    found += difference(got, reference_intervals(graph, inputs)).empty() ? 0 : 1;
  }
  EXPECT_GT(mistakes, 300);
  EXPECT_GE(found, 0.98 * mistakes) << "of " << mistakes;
}

}  // namespace
}  // namespace tilewright::test
