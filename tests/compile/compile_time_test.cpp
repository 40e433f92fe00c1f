// Compile time has a bound: of every family of programs one that is four times as long takes about four times
// the work, whatever is nested in what. Work is counted, not timed: allocations of the passes, operations
// of the programs that fusion tries, and operations of the kernels, which the backends' compilers read.
#include "backends/cpu/machine/fitted.h"
#include "count_allocations.h"
#include "passes/fuse/recompute.h"
#include "passes/pipeline.h"
#include "passes/store/materialize.h"
#include "support/draws.h"
#include "support/graph_check.h"
#include "support/h200_target.h"
#include "support/program_families.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <set>

namespace tilewright::test {
namespace {

struct Work {
  std::size_t allocations = 0;
  std::size_t exprs = 0;       // of the programs that fusion tried
  std::size_t members = 0;     // of all groups: nodes that several compute count in each
  std::size_t operations = 0;  // of the kernels that differ
  std::size_t longest = 0;     // of one kernel
  double ms = 0;               // of this thread; printed, never compared
};

double thread_ms() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

Work work_of(const ir::Graph& graph, const tile::Target& target) {
  Work work;
  const std::size_t before = test::allocations();
  const double start = thread_ms();
  const passes::Compiled compiled = passes::run_pipeline(graph, target);
  work.ms = thread_ms() - start;
  work.allocations = test::allocations() - before;
  work.exprs = compiled.fusion.work.exprs;
  for (const passes::Group& group : compiled.fusion.groups) work.members += group.nodes.size();
  std::set<std::string> known;
  for (const tile::Kernel& kernel : compiled.plan.kernels) {
    work.longest = std::max(work.longest, kernel.values.size());
    if (known.insert(kernel.name).second) work.operations += kernel.values.size();
  }
  return work;
}

tile::Target cpu_target() {
  tile::Target target{.kind = tile::TargetKind::cpu, .name = "test", .arch = "baseline", .vector_bytes = 16};
  cpu::fill_fitted(target);
  return target;
}

struct Case {
  const ProgramFamily* family;
  Derivative derivative;
};

// Second derivatives, which take longest, are drawn.
std::vector<Case> cases() {
  std::vector<Case> all;
  std::uint64_t number = 0;
  for (const ProgramFamily& family : program_families()) {
    for (Derivative d : {Derivative::none, Derivative::first}) all.push_back({&family, d});
    if (family.twice && is_drawn(++number)) all.push_back({&family, Derivative::second});
  }
  return all;
}

std::string name_of(const Case& c) {
  constexpr const char* suffixes[] = {"", "_gradient", "_second"};
  return std::string(c.family->name) + suffixes[static_cast<std::size_t>(c.derivative)];
}

class CompileTime : public ::testing::TestWithParam<Case> {};

// Four times the length is four times the work; as much again and more is left for what saturates between the
// two (a kernel's length, neighbours in a window: 8 are seen). The square would be sixteen.
constexpr double kMostTimes = 10;
// Below this much nothing is proportional. So many operations are a second of Clang.
constexpr std::size_t kSmallWork = 20000, kSmallOperations = 2000, kFewMembers = 500;

TEST_P(CompileTime, GrowsWithTheProgram) {
  if (!kCountsAllocations) GTEST_SKIP() << "allocations are not counted here";
  const auto& [family, derivative] = GetParam();
  for (const tile::Target& target : {cpu_target(), h200_target()}) {
    const ir::Graph small = program_of(*family, derivative, family->size),
                    large = program_of(*family, derivative, 4 * family->size);
    const Work one = work_of(small, target), four = work_of(large, target);
    const std::string text = fmt::format(
        "{} {} x {}: {} nodes {:.1f} ms {} allocations {} exprs {} members {} operations; x {}: {} nodes "
        "{:.1f} ms {} allocations {} exprs {} members {} operations, {} in one kernel",
        target.kind == tile::TargetKind::cpu ? "cpu" : "h200", name_of(GetParam()), family->size,
        small.size(), one.ms, one.allocations, one.exprs, one.members, one.operations, 4 * family->size,
        large.size(), four.ms, four.allocations, four.exprs, four.members, four.operations, four.longest);
    if (std::getenv("TILEWRIGHT_COMPILE_TIMES") != nullptr) fmt::print("{}\n", text);
    const auto times = static_cast<double>(large.size()) / static_cast<double>(small.size()) / 4 * kMostTimes;
    const auto bounded = [&](std::size_t a, std::size_t b, std::size_t small) {
      return static_cast<double>(b) <= times * static_cast<double>(std::max(a, small));
    };
    EXPECT_TRUE(bounded(one.allocations, four.allocations, kSmallWork)) << text;
    EXPECT_TRUE(bounded(one.exprs, four.exprs, kSmallWork)) << text;
    EXPECT_TRUE(bounded(one.members, four.members, kFewMembers)) << text;
    EXPECT_TRUE(bounded(one.operations, four.operations, kSmallOperations)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CompileTime, ::testing::ValuesIn(cases()),
                         [](const auto& c) { return name_of(c.param); });

const ProgramFamily& family_named(std::string_view name) {
  const auto& all = program_families();
  return *std::find_if(all.begin(), all.end(), [&](const ProgramFamily& f) { return f.name == name; });
}

// Compiled by the backend, too, and right: what is copied on the way, and kernels that were cut in two.
TEST(CompileTime, NestedProgramsRunOnTheCpu) {
  GraphCheck check({});
  struct Program {
    const char* family;
    Derivative derivative;
    int n;
  };
  for (const auto& [family, derivative, n] :
       {Program{"wide_concat", Derivative::second, 40},
        Program{"wide_concat_of_columns", Derivative::first, 40},
        Program{"wide_concat_of_computed", Derivative::first, 40},
        Program{"nested_concat", Derivative::none, 5}, Program{"nested_concat", Derivative::second, 2},
        Program{"nested_stack", Derivative::second, 2}, Program{"concats_of_computed", Derivative::first, 3},
        Program{"views_of_views", Derivative::first, 16}, Program{"rotations", Derivative::none, 60},
        Program{"growing_concat", Derivative::first, 20},
        Program{"reshaped_transposes", Derivative::first, 8}, Program{"selections", Derivative::none, 300}})
    EXPECT_EQ(check.problem_with(program_of(family_named(family), derivative, n), 1), "")
        << family << " " << n;
}

// The layers of a network differ in their buffers: one text for all of them is compiled once.
TEST(CompileTime, RepeatedLayersHaveTheKernelsOfAFew) {
  for (const tile::Target& target : {cpu_target(), h200_target()})
    for (const char* family : {"dense_layers", "residual_layers", "attention_layers"}) {
      const auto kernels = [&](int layers) {
        std::set<std::string> names;
        for (const tile::Kernel& kernel :
             passes::run_pipeline(program_of(family_named(family), Derivative::first, layers), target)
                 .plan.kernels)
          names.insert(kernel.name);
        return names.size();
      };
      EXPECT_EQ(kernels(12), kernels(6)) << family;
    }
}

const std::vector<const char*>& layer_families() {
  static const std::vector<const char*> families = {"residual_layers", "attention_layers"};
  return families;
}

// What fusion tries of one layer it has tried of all: as many programs are built however many layers there
// are (dense layers become one kernel of several, which is as long as a kernel may be). What it asks for
// grows with the layers.
TEST(CompileTime, RepeatedLayersAreTriedOnce) {
  constexpr double kMostAsked = 16;  // a node: its neighbours, after each of its group's merges; 11 are seen
  for (const tile::Target& target : {cpu_target(), h200_target()})
    for (const char* family : layer_families()) {
      const auto work = [&](int layers) {
        const passes::Compiled compiled =
            passes::run_pipeline(program_of(family_named(family), Derivative::first, layers), target);
        EXPECT_LT(static_cast<double>(compiled.fusion.work.asked), kMostAsked * compiled.graph.size())
            << family;
        return compiled.fusion.work;
      };
      const passes::GroupWork six = work(6), more = work(24);
      EXPECT_EQ(more.programs, six.programs) << family;
      EXPECT_EQ(more.exprs, six.exprs) << family;
      EXPECT_GT(more.asked, 3 * six.asked) << family;
    }
}

// What is behind a value is known from what is behind its operands, however long the chain of views is.
TEST(CompileTime, RecomputableTakesEachNodeOnce) {
  if (!kCountsAllocations) GTEST_SKIP() << "allocations are not counted here";
  const auto allocations_of = [&](int n) {
    const ir::Graph graph =
        passes::materialize(program_of(family_named("rotations"), Derivative::first, n), h200_target());
    const std::size_t before = test::allocations();
    (void)passes::recomputable(graph, passes::kMuchLarger);
    return test::allocations() - before;
  };
  EXPECT_LT(allocations_of(400), 6 * allocations_of(100));
}

// Work per product does not grow with the program around it: each is looked at by itself.
TEST(CompileTime, MaterializeTakesEachProductByItself) {
  if (!kCountsAllocations) GTEST_SKIP() << "allocations are not counted here";
  for (const char* family : layer_families()) {
    const auto allocations_of = [&](int layers) {
      const ir::Graph graph = program_of(family_named(family), Derivative::first, layers);
      const std::size_t before = test::allocations();
      (void)passes::materialize(graph, h200_target());
      return test::allocations() - before;
    };
    EXPECT_LT(allocations_of(32), 5 * allocations_of(8)) << family;
  }
}

}  // namespace
}  // namespace tilewright::test
