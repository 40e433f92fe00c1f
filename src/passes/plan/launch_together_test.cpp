// Plans written by hand and at random: what runs as one, and that nothing begins before what it needs.
#include "passes/plan/launch_together.h"

#include "passes/plan/plan_memory.h"
#include "passes/plan/step_buffers.h"

#include <tilewright/tile/builder.h>

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

namespace tilewright::passes {
namespace {

using tile::PlanBuffer;
using tile::PlanStep;
using Role = PlanBuffer::Role;

constexpr Index kElements = 64;

// out[i] = a[i] + b[i], both views of kElements elements.
tile::Kernel add(const std::string& name) {
  tile::Builder b(name);
  const tile::View out = b.view("out", DType::f32, {kElements}), x = b.view("x", DType::f32, {kElements}),
                   y = b.view("y", DType::f32, {kElements});
  const tile::Value at = b.program_id(0) * 64;
  const auto load = [&](const tile::View& v) { return b.load(v, {at}, {.shape = {64}, .fill = 0.0}); };
  b.store(out, {at}, load(x) + load(y), {.bounded = true});
  return b.finish({{{kElements, 64}}});
}

double one_launch(const tile::Kernel&, const tile::Target& target) { return target.launch_s * 1e6; }

struct Bundled {
  Compiled compiled;
  Bundled() {
    compiled.target.together_bytes = 4096;
    compiled.target.predicted_us = &one_launch;
  }
  tile::Plan& plan() { return compiled.plan; }
  int buffer(Role role, int position = -1, Index elements = kElements) {
    plan().buffers.push_back({role, position, DType::f32, elements, -1});
    return static_cast<int>(plan().buffers.size()) - 1;
  }
  void launch(const std::string& kernel, tile::ViewBinding out, int x, int y) {
    plan().steps.push_back(
        {.kernel = static_cast<int>(plan().kernels.size()), .views = {out, {x, 0}, {y, 0}}});
    plan().kernels.push_back(add(kernel));
    compiled.kernels.emplace_back();
  }
  // a → b for each of three.
  void add_levels() {
    const int in = buffer(Role::input, 0);
    for (int i = 0; i < 3; ++i) {
      const int between = buffer(Role::temporary), out = buffer(Role::output, i);
      launch("a", {between, 0}, in, in);
      launch("b", {out, 0}, between, in);
    }
  }
  void run(Index more_bytes = Index{1} << 30) {
    plan_memory(plan());
    launch_together(compiled, more_bytes);
  }
  // Kernels of steps in their order, those that run as one with "+" between them.
  std::string order() {
    std::string text;
    for (const PlanStep& s : plan().steps)
      text += (text.empty()        ? ""
               : s.beside_previous ? "+"
                                   : " ") +
              plan().kernels[static_cast<std::size_t>(s.kernel)].name;
    return text;
  }
};

TEST(LaunchTogether, DelaysWhatWaitsForNothing) {
  Bundled w;
  const int in = w.buffer(Role::input, 0);
  std::vector<int> outs;
  outs.reserve(5);
  for (int i = 0; i < 5; ++i) outs.push_back(w.buffer(Role::output, i));
  w.launch("a", {outs[0], 0}, in, in);
  w.launch("b", {outs[1], 0}, in, in);
  w.launch("a", {outs[2], 0}, in, in);
  w.launch("c", {outs[3], 0}, outs[2], in);
  w.launch("a", {outs[4], 0}, in, in);
  w.run();
  EXPECT_EQ(w.order(), "a+a+a b c");
  for (const tile::Kernel& k : w.plan().kernels) EXPECT_EQ(k.together, k.name == "a" ? 4 : 1) << k.name;
  EXPECT_EQ(w.compiled.kernels[0].note, "one launch with 2 more of its kind");
}

// What a program does to tensors without elements: a launch takes no table of nothing.
TEST(LaunchTogether, KernelsWithoutArgumentsRunByThemselves) {
  Bundled b;
  for (int i = 0; i < 2; ++i) {
    tile::Builder empty("a");
    b.plan().steps.push_back({.kernel = i, .views = {}});
    b.plan().kernels.push_back(empty.finish({{{1, 1}}}));
    b.compiled.kernels.emplace_back();
  }
  b.run();
  EXPECT_EQ(b.order(), "a a");
}

TEST(LaunchTogether, LeavesChainsAsTheyAre) {
  Bundled w;
  int last = w.buffer(Role::input, 0);
  for (int i = 0; i < 4; ++i) {
    const int next = w.buffer(i == 3 ? Role::output : Role::temporary, i == 3 ? 0 : -1);
    w.launch("a", {next, 0}, last, last);
    last = next;
  }
  w.run();
  EXPECT_EQ(w.order(), "a a a a");
}

// Both kinds are launched once.
TEST(LaunchTogether, GathersLevels) {
  Bundled w;
  w.add_levels();
  w.run();
  EXPECT_EQ(w.order(), "a+a+a b+b+b");
  // What they write at once may not share memory.
  std::set<Index> places;
  for (const PlanBuffer& b : w.plan().buffers)
    if (b.role == Role::temporary) places.insert(b.arena_offset);
  EXPECT_EQ(places.size(), 3u);
}

TEST(LaunchTogether, KeepsTemporariesNoLongerThanAllowed) {
  const auto order = [](Index more_bytes) {
    Bundled w;
    w.add_levels();
    w.run(more_bytes);
    return w.order();
  };
  EXPECT_EQ(order(0), "a b a b a b");
  EXPECT_EQ(order(2 * 256), "a+a+a b+b+b");
}

// Parts of one buffer are written at once; what reads it all waits for each of them.
TEST(LaunchTogether, PartsOfABufferDoNotWaitForOneAnother) {
  Bundled w;
  const int in = w.buffer(Role::input, 0), whole = w.buffer(Role::temporary, -1, 3 * kElements),
            out = w.buffer(Role::output, 0);
  for (int i = 0; i < 3; ++i) w.launch("a", {whole, i * kElements}, in, in);
  w.launch("b", {out, 0}, whole, in);
  w.launch("a", {whole, 0}, in, in);  // again, behind the reader
  w.run();
  EXPECT_EQ(w.order(), "a+a+a b a");
}

// An output in an input's memory is written once nothing reads the input any more.
TEST(LaunchTogether, WaitsForReadersOfAnOverwrittenInput) {
  const auto order = [](bool overwrites) {
    Bundled w;
    const int in = w.buffer(Role::input, 0), other = w.buffer(Role::input, 1),
              first = w.buffer(Role::output, 0), second = w.buffer(Role::output, 1);
    w.launch("a", {first, 0}, in, in);
    w.launch("a", {second, 0}, other, other);
    if (overwrites) w.compiled.overwriting.push_back({{1, {0}}, ""});
    w.run();
    return w.order();
  };
  EXPECT_EQ(order(false), "a+a");
  EXPECT_EQ(order(true), "a a");
}

TEST(LaunchTogether, RandomPlansKeepTheOrderOfWhatMeets) {
  std::mt19937 random(20261129);
  int bundled = 0;
  for (int plan = 0; plan < 300; ++plan) {
    Bundled w;
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int i = 0; i < 3; ++i) w.buffer(Role::input, i);
    for (int i = 0; i < 3; ++i) w.buffer(Role::output, i);
    const int buffers = 6 + 1 + below(8);
    while (static_cast<int>(w.plan().buffers.size()) < buffers) w.buffer(Role::temporary, -1, 2 * kElements);
    const int steps = 2 + below(30);
    for (int s = 0; s < steps; ++s) {
      const int out = 3 + below(buffers - 3);
      const Index offset = out >= 6 ? below(2) * kElements : 0;
      w.launch(std::string(1, static_cast<char>('a' + below(3))), {out, offset}, below(buffers),
               below(buffers));
    }
    if (below(2) == 0) w.compiled.overwriting.push_back({{0, {1}}, ""});
    const tile::Plan before = w.plan();
    w.run();
    // Where each step of before is now; steps are told apart by their kernels' numbers.
    std::vector<std::size_t> bundle(before.steps.size());
    std::size_t at = 0;
    for (const PlanStep& s : w.plan().steps) {
      at += s.beside_previous ? 0 : 1;
      bundled += s.beside_previous ? 1 : 0;
      bundle[static_cast<std::size_t>(s.kernel)] = at;
    }
    ASSERT_EQ(w.plan().steps.size(), before.steps.size());
    const auto reach = [&](const tile::ViewBinding& v) {
      const bool overwritten = v.buffer == 1 && !w.compiled.overwriting.empty();
      return std::pair{overwritten ? 3 : v.buffer, v.offset};
    };
    for (std::size_t i = 0; i < before.steps.size(); ++i)
      for (std::size_t j = i + 1; j < before.steps.size(); ++j) {
        bool meet = false;
        for (std::size_t v = 0; v < 3; ++v)
          meet = meet || reach(before.steps[i].views[0]) == reach(before.steps[j].views[v]) ||
                 reach(before.steps[i].views[v]) == reach(before.steps[j].views[0]);
        if (meet) ASSERT_LT(bundle[i], bundle[j]) << "plan " << plan << ": steps " << i << " and " << j;
      }
  }
  EXPECT_GT(bundled, 100);
}

}  // namespace
}  // namespace tilewright::passes
