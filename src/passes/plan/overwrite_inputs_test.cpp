// Plans written by hand: who may write where, in what order.
#include "passes/plan/overwrite_inputs.h"

#include "passes/plan/plan_memory.h"

#include <tilewright/tile/builder.h>

#include <gtest/gtest.h>

namespace tilewright::passes {
namespace {

using tile::Plan;
using tile::PlanBuffer;
using tile::PlanStep;
using Role = PlanBuffer::Role;

// out[i] = in[i], or in[n - 1 - i], in blocks of 64.
tile::Kernel copy(const std::string& name, Index n, Index stride = 1) {
  tile::Builder b(name);
  const tile::View out = b.view("out", DType::f32, {n}),
                   in = b.view("in", DType::f32, {n}, {.strides = {{stride, -1}}});
  const tile::Value at = b.program_id(0) * 64;
  b.store(out, {at}, b.load(in, {at}, {.shape = {64}, .fill = 0.0}), {.bounded = true});
  return b.finish({{{n, 64}}});
}

struct Written {
  Plan plan;
  std::vector<std::vector<tile::Kernel>> variants;
  int buffer(Role role, int position, Index n) {
    plan.buffers.push_back({role, position, DType::f32, n, -1});
    return static_cast<int>(plan.buffers.size()) - 1;
  }
  void launch(const tile::Kernel& kernel, int out, int in) {
    const Index behind = kernel.views[1].strides[0].value < 0 ? kernel.views[1].extents[0].value - 1 : 0;
    plan.steps.push_back(
        {.kernel = static_cast<int>(plan.kernels.size()), .views = {{out, 0}, {in, behind}}});
    plan.kernels.push_back(kernel);
    variants.emplace_back();
  }
  std::string why_not(const Overwrite& wish) { return overwrite_inputs(plan, variants, {wish})[0].why_not; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    all.reserve(plan.steps.size());
    for (const PlanStep& s : plan.steps)
      all.push_back(s.kind == PlanStep::Kind::launch ? plan.kernels[static_cast<std::size_t>(s.kernel)].name
                                                     : "copy");
    return all;
  }
};

constexpr Index kN = 1000;
using Names = std::vector<std::string>;

TEST(OverwriteInputs, AKernelThatReadsWhatItWritesGetsOneView) {
  Written w;
  const int in = w.buffer(Role::input, 0, kN), out = w.buffer(Role::output, 0, kN);
  w.launch(copy("k", kN), out, in);
  EXPECT_EQ(w.why_not({0, {0}}), "");
  EXPECT_EQ(w.plan.kernels[0].views.size(), 1U);
  EXPECT_EQ(w.plan.steps[0].views, (std::vector<tile::ViewBinding>{{out, 0}}));
}

TEST(OverwriteInputs, OneThatReadsOtherElementsIsTheReason) {
  Written w;
  const int in = w.buffer(Role::input, 0, kN), out = w.buffer(Role::output, 0, kN);
  w.launch(copy("turn", kN, -1), out, in);
  const Plan before = w.plan;
  EXPECT_EQ(w.why_not({0, {0}}), "kernel turn reads it at another place than it writes");
  EXPECT_EQ(w.plan, before);
}

TEST(OverwriteInputs, ReadersAreLaunchedBeforeWhatWritesThere) {
  Written w;
  const int in = w.buffer(Role::input, 0, kN), out = w.buffer(Role::output, 0, kN),
            other = w.buffer(Role::output, 1, kN);
  w.launch(copy("write", kN), out, in);
  w.launch(copy("read", kN, -1), other, in);
  EXPECT_EQ(w.why_not({0, {0}}), "");
  EXPECT_EQ(w.names(), (Names{"read", "write"}));
}

TEST(OverwriteInputs, AReaderThatWaitsForTheWriterIsTheReason) {
  Written w;
  const int in = w.buffer(Role::input, 0, kN), out = w.buffer(Role::output, 0, kN),
            other = w.buffer(Role::output, 1, kN);
  w.launch(copy("write", kN), out, in);
  w.launch(copy("between", kN), other, out);
  tile::Kernel both = copy("read", kN);
  both.views.push_back(both.views[1]);
  both.views.back().name = "also";
  w.launch(both, other, in);
  w.plan.steps.back().views.push_back({out, 0});
  // "read" writes what "between" wrote, and reads the input.
  EXPECT_EQ(w.why_not({0, {0}}), "kernel read reads it and waits for kernel write, which writes there");
  EXPECT_EQ(w.names(), (Names{"write", "between", "read"}));
}

TEST(OverwriteInputs, CopiesOfAnInputToItselfGo) {
  Written w;
  const int in = w.buffer(Role::input, 0, kN), out = w.buffer(Role::output, 0, kN),
            value = w.buffer(Role::input, 1, kN);
  w.plan.steps.push_back({.kind = PlanStep::Kind::copy, .buffer = out, .from = in});
  w.launch(copy("part", kN), out, value);
  EXPECT_EQ(w.why_not({-1, {0}}), "");
  EXPECT_EQ(w.names(), (Names{"part"}));
}

TEST(OverwriteInputs, AnOutputTakesOneInput) {
  Written w;
  const int a = w.buffer(Role::input, 0, kN);
  w.buffer(Role::input, 1, kN);
  w.buffer(Role::input, 2, kN / 2);
  const int out = w.buffer(Role::output, 0, kN);
  w.launch(copy("k", kN), out, a);
  const auto all = overwrite_inputs(w.plan, w.variants, {{-1, {1}}, {-1, {0}}, {-1, {2}}});
  EXPECT_EQ(all[0].what, (Overwrite{0, {1}})) << "nobody reads it";
  EXPECT_EQ(all[1].why_not, "no output has its size and type") << "that one is taken";
  EXPECT_EQ(all[2].why_not, "no output has its size and type");
}

TEST(MergeTemporaries, WhatIsCopiedIsWrittenWhereItGoes) {
  Written w;
  const int in = w.buffer(Role::input, 0, kN), made = w.buffer(Role::temporary, -1, kN),
            out = w.buffer(Role::output, 0, kN), value = w.buffer(Role::input, 1, kN);
  w.launch(copy("make", kN, -1), made, in);
  w.plan.steps.push_back({.kind = PlanStep::Kind::copy, .buffer = out, .from = made});
  w.launch(copy("part", kN), out, value);
  merge_copied_temporaries(w.plan, w.variants);
  EXPECT_EQ(w.names(), (Names{"make", "part"}));
  EXPECT_EQ(w.plan.steps[0].views[0].buffer, out);
}

TEST(MergeTemporaries, OneThatIsCopiedTwiceLiesInOneOfItsCopies) {
  Written w;
  const int in = w.buffer(Role::input, 0, kN), made = w.buffer(Role::temporary, -1, kN),
            first = w.buffer(Role::temporary, -1, kN), second = w.buffer(Role::temporary, -1, kN),
            value = w.buffer(Role::input, 1, kN), out = w.buffer(Role::output, 0, kN);
  w.launch(copy("make", kN, -1), made, in);
  w.plan.steps.push_back({.kind = PlanStep::Kind::copy, .buffer = first, .from = made});
  w.launch(copy("part", kN), first, value);
  w.plan.steps.push_back({.kind = PlanStep::Kind::copy, .buffer = second, .from = made});
  w.launch(copy("other_part", kN), second, value);
  w.launch(copy("read", kN, -1), out, first);
  w.launch(copy("read_other", kN, -1), out, second);
  merge_copied_temporaries(w.plan, w.variants);
  const auto copies = std::count_if(w.plan.steps.begin(), w.plan.steps.end(),
                                    [](const PlanStep& s) { return s.kind == PlanStep::Kind::copy; });
  EXPECT_EQ(copies, 1) << "the second block would find the first one's in its memory";
}

TEST(MergeTemporaries, LargeOnesTakeTheMemoryOfWhatIsReadLast) {
  for (const Index n : {Index{1} << 20, Index{1} << 27}) {  // 4 MiB and 512 MiB
    Written w;
    const int in = w.buffer(Role::input, 0, n), a = w.buffer(Role::temporary, -1, n),
              b = w.buffer(Role::temporary, -1, n), out = w.buffer(Role::output, 0, n);
    w.launch(copy("first", n, -1), a, in);
    w.launch(copy("second", n), b, a);
    w.launch(copy("third", n, -1), out, b);
    reuse_large_temporaries(w.plan, w.variants, {});
    plan_memory(w.plan);
    const bool large = n > Index{1} << 20;
    EXPECT_EQ(w.plan.arena_bytes, (large ? 1 : 2) * 4 * n);
    EXPECT_EQ(w.plan.kernels[1].views.size(), large ? 1U : 2U);
  }
}

}  // namespace
}  // namespace tilewright::passes
