// A group's price is the time that the backend predicts for the kernels it becomes, under the schedules they
// are given: for a CPU and for GPUs, none of which is asked to run anything.
#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "ir/text.h"
#include "ops/functions.h"
#include "ops/ops.h"
#include "passes/graph/simplify.h"
#include "passes/pipeline.h"
#include "passes/store/materialize.h"
#include "support/random_graph.h"
#include "support/training_step.h"

#include <tilewright/tile/cost.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tilewright::test {
namespace {

std::unique_ptr<backends::Backend> opened(const std::string& arch) {
  return arch == "cpu" ? cpu::CpuBackend::open({.threads = 8, .isa = "baseline"}).value()
                       : cuda::CudaBackend::open({.compile_only = arch}).value();
}

double zeros_s(const tile::Plan& plan, const tile::Target& target) {
  double seconds = 0;
  for (const tile::PlanStep& step : plan.steps) {
    if (step.kind != tile::PlanStep::Kind::zero) continue;
    const tile::PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(step.buffer)];
    seconds += target.launch_s + static_cast<double>(buffer.elements) *
                                     static_cast<double>(size_bytes(buffer.dtype)) /
                                     target.memory_bytes_per_s;
  }
  return seconds;
}

struct Priced {
  passes::Compiled compiled;
  std::shared_ptr<passes::GroupPlans> plans;
};

Priced lowered(const ir::Graph& graph, const tile::Target& target) {
  passes::FusedGraph fused =
      passes::fuse_chunked(passes::materialize(passes::simplify(graph), target), target);
  const std::shared_ptr<passes::GroupPlans> plans = fused.fusion.plans;
  return {passes::plan_groups(std::move(fused.graph), std::move(fused.fusion), target), plans};
}

// Compares the groups that have kernels; the others' values are written where they are computed. Returns
// their number.
int expect_prices_are_predictions(const ir::Graph& graph, const backends::Backend& backend) {
  const tile::Target& target = backend.target();
  const auto [compiled, plans] = lowered(graph, target);
  const double zeros = zeros_s(compiled.plan, target);
  passes::GroupForms forms(compiled.graph);
  double not_predicted = 0;
  int groups = 0;
  for (const passes::Group& group : compiled.fusion.groups) {
    const passes::GroupPrice price = plans->price(compiled.graph, forms, group);
    if (price.refusal != passes::Refusal::none) continue;
    double predicted = 0;
    for (std::size_t k = 0; k < compiled.kernels.size(); ++k)
      if (compiled.kernels[k].nodes == group.nodes) {
        const auto candidates = backend.candidates(compiled.plan.kernels[k]);
        EXPECT_TRUE(candidates.front().refusal.empty()) << candidates.front().refusal;
        predicted += candidates.front().predicted_us * 1e-6;
      }
    if (predicted == 0) continue;
    ++groups;
    EXPECT_GE(price.seconds, predicted * (1 - 1e-9)) << "group of %" << group.nodes.back();
    not_predicted += price.seconds - predicted;
  }
  EXPECT_LE(not_predicted, zeros + 1e-9 * compiled.fusion.seconds) << "beside " << zeros << " s of zeros";
  return groups;
}

class Price : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(On, Price, testing::Values("cpu", "sm_80", "sm_90a"));

TEST_P(Price, OfAGroupIsThePredictionForItsKernels) {
  const auto backend = opened(GetParam());
  int groups = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    groups += expect_prices_are_predictions(
        random_graph({.seed = seed, .ops = 16, .matmuls = true, .tame = seed % 2 == 0}), *backend);
  }
  EXPECT_GT(groups, 150);
}

constexpr TrainingStep kSmallStep{.layers = 1, .vocabulary = 4096, .compute = DType::bf16};

TEST_P(Price, OfATrainingStepIsThePredictionForItsKernels) {
  EXPECT_GT(expect_prices_are_predictions(graph_of(kSmallStep), *opened(GetParam())), 20);
}

// Threads that fuse and plan it come to one result, whichever of them is first: the layers differ in the
// names of what they read.
TEST(Price, OfALargeProgramAndItsKernelsAreTheSameEachTime) {
  const auto backend = opened("sm_90a");
  const ir::Graph graph = graph_of(TrainingStep{.layers = 4, .vocabulary = 4096, .compute = DType::bf16});
  const passes::Compiled first = passes::run_pipeline(graph, backend->target());
  EXPECT_GT(first.plan.kernels.size(), 60U);
  for (int again = 0; again < 4; ++again) {
    const passes::Compiled other = passes::run_pipeline(graph, backend->target());
    EXPECT_EQ(other.fusion.seconds, first.fusion.seconds);
    EXPECT_EQ(other.fusion.work.asked, first.fusion.work.asked);
    EXPECT_EQ(other.fusion.work.programs, first.fusion.work.programs);
    EXPECT_TRUE(other.plan == first.plan);
  }
}

// A product is written with each of its tiles once it is taken, and priced by the fastest.
TEST(Price, ProductsTakeTheTilesOfTheLeastPrice) {
  const auto backend = opened("sm_90a");
  const ir::Graph graph =
      ir::parse(R"(graph @main(%0: bf16[128,65536], %1: bf16[65536,128]) -> (bf16[128,128]) {
  %2 = matmul %0, %1 : bf16[128,128]
  return %2
})",
                ops::all_ops())
          .value();
  passes::GroupPlans plans(backend->target());
  passes::GroupForms forms(graph);
  const passes::Group product{.nodes = {2}, .outputs = {2}};
  const double first = plans.price(graph, forms, product).seconds;
  const auto plan = plans.plan(graph, forms.of(product), product, {.name = "product"});
  ASSERT_TRUE(std::holds_alternative<passes::PlannedGroup>(plan));
  double predicted = 0;
  for (const passes::EmittedKernel& k : std::get<passes::PlannedGroup>(plan).lowered.kernels)
    predicted += backend->candidates(k.kernel).front().predicted_us * 1e-6;
  EXPECT_LT(predicted, 0.97 * first);
  EXPECT_NEAR(plans.price(graph, forms, product).seconds, predicted, 1e-9 * first);
}

// A cache that holds what each half of a program moves, and not what all of it does, holds nothing of use: an
// optimizer's update is one kernel at every size.
TEST_P(Price, HalvesThatACacheHoldsAreNotFasterThanTheWhole) {
  const auto backend = opened(GetParam());
  const tile::Target& target = backend->target();
  for (const Index cache : {target.cache_bytes, target.unit_cache_bytes})
    for (const double share : {0.35, 0.45, 0.55, 0.7, 0.9, 1.2}) {
      // Four numbers are read of each element, three written.
      const auto n = static_cast<Index>(share * static_cast<double>(cache) / (7 * 4));
      if (n < 4096) continue;
      SCOPED_TRACE(n);
      ir::Graph graph("update");
      const auto input = [&](const char* name) {
        return ir::Value{&graph, graph.add_input(name, {DType::f32, {n}})};
      };
      const ir::Value p = input("p"), g = input("g"), m = input("m"), v = input("v");
      const ir::Value next_m = m * 0.9 + g * 0.1, next_v = v * 0.999 + g * g * 0.001;
      const ir::Value next = p * 0.99999 - next_m / (ops::sqrt(next_v) * 10 + 1e-5) * 0.0015;
      graph.set_outputs({next.id, next_m.id, next_v.id});
      EXPECT_EQ(lowered(graph, target).compiled.plan.kernels.size(), 1u);
    }
}

// A bias' gradient is a sum of few columns: with its update, or beside a product, it would be a kernel of few
// blocks that walk all rows (once 860 us in 24 blocks, ten times what its bytes take).
TEST(Price, KernelsOfATrainingStepStayNearTheirFloors) {
  const auto backend = opened("sm_90a");
  const tile::Target target = backend->target();
  const passes::Compiled compiled = lowered(graph_of(kSmallStep), target).compiled;
  for (const tile::Kernel& kernel : compiled.plan.kernels) {
    const perf::Cost work = tile::cost(kernel, {});
    // Half of the cache holds what kernels leave for one another.
    const double bytes_per_s = 2 * work.bytes() <= static_cast<double>(target.cache_bytes)
                                   ? target.cache_bytes_per_s
                                   : target.memory_bytes_per_s;
    const double floor_us =
        1e6 * (target.launch_s +
               std::max({work.bytes() / bytes_per_s, work.matrix.total() / target.matrix_flops_per_s,
                         work.vector.total() / target.flops_per_s}));
    const double predicted_us = backend->candidates(kernel).front().predicted_us;
    EXPECT_LT(predicted_us, 5 * floor_us) << kernel.name;
    constexpr double kHiddenUs = 1.2;  // pass while the next kernel is launched
    EXPECT_GT(predicted_us, 0.9 * (floor_us - kHiddenUs)) << kernel.name;
    double programs = 1;
    for (const Index n : tile::grid_extents(kernel, {})) programs *= static_cast<double>(n);
    // A product's large tiles may leave a few units idle, but not most of them for long.
    EXPECT_FALSE(2 * programs < target.units && predicted_us > 50)
        << kernel.name << " has " << programs << " programs";
  }
}

}  // namespace
}  // namespace tilewright::test
