// Several contexts in one process: compiled functions and hand-written kernels serve each with programs of
// its own, and outlive any of them.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

const ContextOptions kHere{.device = "cpu", .cache_directory = test::kernel_folder()};
const ContextOptions kNoCache{
    .device = "cpu", .cache_directory = test::kernel_folder(), .threads = 1, .isa = "baseline"};

TEST(Contexts, HaveSpecialisationsOfTheirOwn) {
  Context here(kHere), plain(kNoCache);
  const auto f = compile([](const Tensor& x) { return exp(x) + 1.f; });
  f(here.ones({64}));
  EXPECT_EQ(f(plain.zeros({64})).to_vector<float>()[5], 2.f);
  ASSERT_EQ(f.report().size(), 2u);
  EXPECT_EQ(f.report()[0].reason, "argument 0 is of another Context");
  EXPECT_NE(f.report()[0].kernels.at(0).source.find("4 lanes"), std::string::npos) << "plain x86-64";
  f(here.ones({64}));
  EXPECT_EQ(f.report().size(), 2u) << "each is found again";
}

// Threads with tensors of their own Contexts, of sizes that change: a result is of the size that was given.
template <class Run>
int wrong_from_two_threads(const Run& run) {
  constexpr int kCalls = 3000, kSizes = 6;
  std::atomic<int> wrong = 0;
  const auto call = [&] {
    Context ctx(kNoCache);
    for (int i = 0; i < kCalls; ++i) {
      const Index n = 8 + i / 2 % kSizes;
      try {
        const std::vector<float> y = run(ctx.ones({n, 4})).template to_vector<float>();
        wrong += std::ssize(y) != n * 4 || y[3] != static_cast<float>(n) ? 1 : 0;
      } catch (const Error&) {
        ++wrong;
      }
    }
  };
  std::thread other(call);
  call();
  other.join();
  return wrong;
}

TEST(Contexts, OfSeveralThreadsCallOneFunction) {
  const auto f = compile([](const Tensor& x) { return sum(x, {0}, Keep::yes) + x - 1.f; });
  EXPECT_EQ(wrong_from_two_threads(f), 0);
  EXPECT_GE(f.report().size(), 6U);
}

TEST(Contexts, ThatAreGoneTakeTheirSpecialisationsWithThem) {
  const auto f = compile([](const Tensor& x) { return exp(x) + 1.f; });
  {
    Context gone(kHere);
    f(gone.ones({64}));
  }
  Context plain(kNoCache);
  EXPECT_EQ(f(plain.zeros({64})).to_vector<float>()[5], 2.f);
  EXPECT_EQ(f.report().size(), 1u);
}

TEST(Contexts, DoNotMix) {
  Context here(kHere), plain(kNoCache);
  const Tensor captured = here.ones({4}), x = here.ones({4}), other = plain.ones({4});
  const std::vector<std::string> wanted = {"of two Contexts, both on cpu", "contexts_test.cpp:"};
  test::expect_says([&] { x + other; }, wanted);
  const auto add_captured = compile([&](const Tensor& t) { return t + captured; });
  EXPECT_EQ(add_captured(x).to_vector<float>()[0], 2.f);
  test::expect_says([&] { add_captured(other); }, wanted);
  const auto add_both = compile([](const Tensor& a, const Tensor& b) { return a + b; });
  add_both(x, x);
  test::expect_says([&] { add_both(x, other); }, wanted);
}

TEST(Contexts, OfSeveralThreadsRunOneKernelByHand) {
  for (int trial = 0; trial < 5; ++trial) {
    tile::Builder k("twice");
    const auto x = k.view("x", DType::f32, {64}), y = k.view("y", DType::f32, {64});
    const tile::Value t = k.load(x, {k.program_id(0) * 64}, {.shape = {64}});
    k.store(y, {k.program_id(0) * 64}, t + t);
    const TileFunction twice(k.finish({{{64, 64}}}));
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    constexpr int kThreads = 4;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        Context ctx(kNoCache);
        right += twice({ctx.ones({64}), out({64})}).at(0).to_vector<float>()[63] == 2.f ? 1 : 0;
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(right, kThreads);
  }
}

TEST(Contexts, RunKernelsByHandEachWithItsOwn) {
  tile::Builder k("twice");
  const auto x = k.view("x", DType::f32, {64}), y = k.view("y", DType::f32, {64});
  const tile::Value t = k.load(x, {k.program_id(0) * 64}, {.shape = {64}});
  k.store(y, {k.program_id(0) * 64}, t + t);
  const TileFunction twice(k.finish({{{64, 64}}}));
  for (const ContextOptions& options : {kHere, kNoCache, kHere}) {
    Context ctx(options);
    const Tensor one = ctx.ones({64});
    EXPECT_EQ(twice({one, out({64})}).at(0).to_vector<float>()[63], 2.f);
    EXPECT_EQ(twice.source(one).find("4 lanes") != std::string::npos,
              options.isa == "baseline" || ctx.ones({1}).device() != "cpu")
        << twice.source(one);
  }
}

}  // namespace
}  // namespace tilewright
