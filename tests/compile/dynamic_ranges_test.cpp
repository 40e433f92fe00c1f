// Ranges of sizes: a third size lowers nothing, and whatever the sizes are, values are those of eager
// execution.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <random>
#include <thread>

#include "support/draws.h"
#include "support/errors.h"
#include "support/kernel_folder.h"
#include "tensor/state.h"

namespace tilewright {
namespace {

using test::expect_says;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

void expect_equal(const Tensors& got, const Tensors& want, const std::string& where) {
  ASSERT_EQ(got.size(), want.size()) << where;
  for (std::size_t o = 0; o < got.size(); ++o) {
    ASSERT_EQ(got[o].shape(), want[o].shape()) << where;
    const std::vector<float> a = got[o].to_vector<float>(), b = want[o].to_vector<float>();
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 2e-5 * (1 + std::fabs(b[i]))) << where << ", result " << o << ", element " << i;
  }
}

class DynamicRanges : public ::testing::TestWithParam<const char*> {
 protected:
  std::size_t lowerings() { return ctx_.state()->device(GetParam()).lowerings; }
  // What a call lowers, when its values are right.
  std::size_t lowered_by(const CompiledList& compiled, const Function& function, const Tensors& args,
                         const std::string& where) {
    const std::size_t before = lowerings();
    const Tensors got = compiled(args);
    const std::size_t lowered = lowerings() - before;
    expect_equal(got, function(args), where);
    return lowered;
  }
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
};

TEST_P(DynamicRanges, AThirdSizeLowersNothing) {
  struct Case {
    const char* name;
    Function function;
    std::function<Tensors(Index)> arguments;
  };
  const Tensor w = ctx_.randn({24, 40}), gain = ctx_.randn({24});
  const std::vector<Case> cases = {
      {"a cache and a row", [](const Tensors& a) -> Tensors { return {concat(a, 0)}; },
       [&](Index n) -> Tensors { return {ctx_.randn({n, 4, 8}), ctx_.randn({1, 4, 8})}; }},
      {"pointwise and a sum of rows",
       [](const Tensors& a) -> Tensors { return {sum(tanh(a[0] * 2.f + 1.f) * a[0], {1})}; },
       [&](Index n) -> Tensors { return {ctx_.randn({n, 24})}; }},
      {"a mean of columns", [](const Tensors& a) -> Tensors { return {mean(a[0] * a[0], {0})}; },
       [&](Index n) -> Tensors { return {ctx_.randn({n, 24})}; }},
      {"captured weights", [w, gain](const Tensors& a) -> Tensors { return {matmul(a[0] * gain, w)}; },
       [&](Index n) -> Tensors { return {ctx_.randn({n, 24})}; }},
  };
  for (const Case& c : cases) {
    const auto compiled = compile(c.function, {.dynamic = {{0, 0}}});
    compiled(c.arguments(100));
    compiled(c.arguments(101));
    const std::string dynamic = compiled.report().front().dynamic;
    EXPECT_NE(dynamic.find("; n0 from "), std::string::npos) << c.name << ": " << dynamic;
    EXPECT_NE(compiled.explain().find("; n0 from "), std::string::npos) << compiled.explain();
    for (const Index n : {102, 103, 105, 107, 115, 200, 201, 333, 77, 101, 100, 67}) {
      const Tensors args = c.arguments(n);
      const std::string where = std::string(c.name) + " at " + std::to_string(n) + ": " + dynamic;
      EXPECT_EQ(lowered_by(compiled, c.function, args, where), 0) << where;
    }
    EXPECT_EQ(compiled.report().size(), 1) << c.name;
  }
}

// What is folded of 1 / n, constants and degrees of freedom is an argument of kernels as well.
TEST_P(DynamicRanges, GradientsOfMeansLowerNothing) {
  const Tensor w = ctx_.randn({24, 10});
  const std::vector<std::pair<const char*, Function>> cases = {
      {"a step",
       [w](const Tensors& a) -> Tensors {
         const auto loss = [&](const Tensor& v) { return 0.9f * mean(square(matmul(a[0], v) / 3.f)); };
         return {w - 0.1f * grad(loss)(w)};
       }},
      {"a weighted mean",
       [](const Tensors& a) -> Tensors {
         return {grad([](const Tensor& x) { return mean(x * tanh(x) * 3.f); })(a[0])};
       }},
      {"a variance", [](const Tensors& a) -> Tensors {
         return {grad([](const Tensor& x) { return sum(var(x, 0, 1)) * 0.7f; })(a[0])};
       }}};
  for (const auto& [name, function] : cases) {
    const auto compiled = compile(function, {.dynamic = {{0, 0}}});
    compiled({ctx_.randn({100, 24})});
    compiled({ctx_.randn({101, 24})});
    for (const Index n : {102, 103, 115, 128, 171, 200, 99, 101})
      EXPECT_EQ(lowered_by(compiled, function, {ctx_.randn({n, 24})}, name), 0)
          << name << " at " << n << ": " << compiled.report().front().dynamic;
    EXPECT_EQ(compiled.report().size(), 1) << name;
  }
}

TEST_P(DynamicRanges, SizesOutsideHaveProgramsOfTheirOwn) {
  const Function function = [](const Tensors& a) -> Tensors { return {softmax(a[0] * 2.f), sum(a[0], {0})}; };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}});
  for (const Index n :
       {40, 41, 42, 0, 1, 2, 3, 7, 8, 16, 41, 700, 701, 64, 128, 2000, 5, 0, 1, 255, 256, 257, 90})
    lowered_by(compiled, function, {ctx_.randn({n, 24})}, std::to_string(n));
  EXPECT_LT(compiled.report().size(), 12);
}

TEST_P(DynamicRanges, SizesThatWereEqualMayDiverge) {
  const Function function = [](const Tensors& a) -> Tensors {
    return {concat({a[0], a[1]}, 0) * 3.f, sum(a[1], {0})};
  };
  const auto compiled = compile(function, {.dynamic = {{0, 0}, {1, 0}}});
  const auto call = [&](Index n, Index m) {
    return lowered_by(compiled, function, {ctx_.randn({n, 8}), ctx_.randn({m, 8})},
                      std::to_string(n) + " and " + std::to_string(m));
  };
  call(50, 50);
  call(51, 51);
  EXPECT_EQ(call(52, 52), 0);
  call(53, 90);
  call(54, 31);
  EXPECT_EQ(call(55, 61), 0) << compiled.report().front().dynamic;
  EXPECT_EQ(call(99, 45), 0) << compiled.report().front().dynamic;
  call(44, 44);
  call(8, 200);
  call(1, 200);
  call(200, 0);
}

TEST_P(DynamicRanges, SizesThatDifferByTheSameAreOne) {
  const Function function = [](const Tensors& a) -> Tensors { return {concat({a[0], a[2]}, 0) + a[1]}; };
  const auto compiled = compile(function, {.dynamic = {{0, 0}, {1, 0}}});
  const auto call = [&](Index n) {
    return lowered_by(compiled, function, {ctx_.randn({n, 8}), ctx_.randn({n + 1, 8}), ctx_.randn({1, 8})},
                      std::to_string(n));
  };
  call(50);
  call(51);
  EXPECT_EQ(call(52), 0) << compiled.report().front().dynamic;
  EXPECT_NE(compiled.report().front().dynamic.find("n0+1"), std::string::npos)
      << compiled.report().front().dynamic;
}

TEST_P(DynamicRanges, SizesOfWhichOneIsAlwaysTwiceTheOtherAreOne) {
  const Function function = [](const Tensors& a) -> Tensors {
    return {a[0] + tanh(concat({a[1], a[1]}, 0)), sum(a[1], {0})};
  };
  const auto compiled = compile(function, {.dynamic = {{0, 0}, {1, 0}}});
  const auto call = [&](Index n, Index m) {
    return lowered_by(compiled, function, {ctx_.randn({m, 8}), ctx_.randn({n, 8})}, std::to_string(n));
  };
  call(150, 300);
  call(171, 342);
  for (const Index n : {172, 173, 200, 301, 99}) EXPECT_EQ(call(n, 2 * n), 0);
  const std::string dynamic = compiled.report().front().dynamic;
  EXPECT_NE(dynamic.find("for f32[2 n0,8], f32[n0,8]; n0 from "), std::string::npos) << dynamic;
  test::expect_says([&] { call(50, 99); }, {"100", "99"});  // the function's own mistake
}

TEST_P(DynamicRanges, AFunctionMayGoAnotherWayAtASize) {
  const Function function = [](const Tensors& a) -> Tensors {
    const Index n = a[0].shape()[0];
    if (n % 7 == 0) return {a[0] * 2.f};
    if (n == 73) return {exp(a[0])};
    return {reshape(a[0], {n * 2, 4}) + static_cast<float>(n)};
  };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}});
  for (Index n = 50; n < 90; ++n) lowered_by(compiled, function, {ctx_.randn({n, 8})}, std::to_string(n));
}

// What such a function does at a size is its own affair: it may index its containers, print, or end.
TEST_P(DynamicRanges, AFunctionThatReadsShapesSeesNoSizesButThoseOfCalls) {
  struct Case {
    const char* name;
    std::function<Index(const Tensor&)> read;
    Index factor;
  };
  const std::vector<Case> cases = {
      {"shape()", [](const Tensor& x) { return x.shape()[0]; }, 1},
      {"size()", [](const Tensor& x) { return x.size(); }, 8},
      {"shape() of a result", [](const Tensor& x) { return sum(x, {1}).shape()[0]; }, 1},
      {"shape() in a derivative",
       [](const Tensor& x) {
         Index n = 0;
         const auto loss = [&](const Tensor& a) {
           n = a.shape()[0];
           return sum(a);
         };
         grad(loss)(x);
         return n;
       },
       1},
  };
  for (const Case& c : cases) {
    std::vector<Index> seen, wanted;
    const Function function = [&](const Tensors& a) -> Tensors {
      const Index n = c.read(a[0]) / c.factor;
      seen.push_back(n);
      return {sum(reshape(a[0], {n, 2, 4}), {2})};
    };
    const auto compiled = compile(function, {.dynamic = {{0, 0}}});
    for (const Index n : {50, 51, 52, 53, 54, 50, 60, 100, 54}) {
      seen.clear();
      const Tensor x = ctx_.randn({n, 8});
      const Tensors got = compiled({x});
      for (const Index s : seen) EXPECT_EQ(s, n) << c.name << ": " << compiled.explain();
      EXPECT_LE(seen.size(), 1) << c.name << " at " << n;
      expect_equal(got, {sum(reshape(x, {n, 2, 4}), {2})}, c.name);
    }
    EXPECT_NE(compiled.explain().find("asks for shape() or size()"), std::string::npos) << compiled.explain();
  }
}

TEST_P(DynamicRanges, AFunctionThatReadsShapesSharesKernelsFromTheSecondSizeOn) {
  const Function function = [](const Tensors& a) -> Tensors {
    return {sum(reshape(a[0], {a[0].shape()[0], 2, 4}), {2})};
  };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}});
  const runtime::KernelStore& store = ctx_.state()->device(GetParam()).store;
  for (const Index n : {50, 51, 52, 53, 77, 200}) {
    const Tensor x = ctx_.randn({n, 8});
    const std::size_t before = store.builds();
    compiled({x});
    if (n > 51) {
      EXPECT_EQ(store.builds(), before) << n << ": " << compiled.explain();
    }
  }
}

TEST_P(DynamicRanges, AFunctionMayKnowASizeFromTheHost) {
  Index length = 0;
  const Function function = [&](const Tensors& a) -> Tensors {
    return {sum(a[0], {0}) / static_cast<float>(length), a[0] * (length > 57 ? 2.f : 3.f)};
  };
  const Function counted = [](const Tensors& a) -> Tensors {
    return {a[0] * (a[0].shape()[0] > 57 ? 2.f : 3.f)};
  };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}});
  const Function other = [&](const Tensors& a) -> Tensors { return {a[0] * (length > 57 ? 2.f : 3.f)}; };
  const auto switched = compile(other, {.dynamic = {{0, 0}}});
  for (const Index n : {50, 51, 52, 53, 60, 61, 50, 90, 53}) {
    length = n;
    const Tensors x = {ctx_.randn({n, 8})};
    lowered_by(compiled, function, x, std::to_string(n));
    expect_equal(switched(x), counted(x), std::to_string(n));
  }
}

TEST_P(DynamicRanges, SizesThatAlternateAreRecordedOnce) {
  int recorded = 0;
  const Function function = [&](const Tensors& a) -> Tensors {
    ++recorded;
    return {a[0] * 2.f + 1.f};
  };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}});
  for (const Index n : {50, 51, 52, 53}) compiled({ctx_.zeros({n, 8})});
  const int before = recorded;
  for (int i = 0; i < 20; ++i) compiled({ctx_.zeros({51 + i % 3, 8})});
  EXPECT_EQ(recorded, before);
}

TEST_P(DynamicRanges, ADonatedArgumentHasAProgramForItsSize) {
  const Function function = [](const Tensors& a) -> Tensors { return {a[0] * 2.f + 1.f}; };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}, .donate = {0}});
  for (const Index n : {50, 51, 52, 53, 52, 50, 60}) {
    const Tensors x = {ctx_.randn({n, 8})};
    const Tensors want = function(x), out = {ctx_.zeros({n, 8})};
    compiled.into(out, x);
    expect_equal(out, want, std::to_string(n));
    expect_equal(compiled(x), want, std::to_string(n));
  }
}

TEST_P(DynamicRanges, AFunctionMayThrowAtSomeSizes) {
  const Function function = [](const Tensors& a) -> Tensors {
    if (a[0].shape()[0] > 60) throw std::runtime_error("too long");
    return {a[0] * 2.f};
  };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}});
  for (const Index n : {50, 51, 52, 60, 55})
    lowered_by(compiled, function, {ctx_.randn({n, 8})}, std::to_string(n));
  EXPECT_THROW(compiled({ctx_.randn({61, 8})}), std::runtime_error);
}

TEST_P(DynamicRanges, AFunctionMayCallItselfAtOtherSizes) {
  std::shared_ptr<CompiledList> self;
  const Function function = [&](const Tensors& a) -> Tensors {
    const Index n = a[0].shape()[0];
    if (n < 30) return {sum(a[0], {0})};
    return {(*self)({slice(a[0], 0, {0, n / 2})})[0] + sum(a[0], {0})};
  };
  const Function plain = [](const Tensors& a) -> Tensors {
    Tensor all = sum(a[0], {0});
    for (Index n = a[0].shape()[0]; n >= 30;) {
      n /= 2;
      all = all + sum(slice(a[0], 0, {0, n}), {0});
    }
    return {all};
  };
  self = std::make_shared<CompiledList>(function, CompileOptions{.dynamic = {{0, 0}}});
  for (const Index n : {50, 51, 52, 53, 20, 21, 22, 130, 131, 132, 54, 23})
    lowered_by(*self, plain, {ctx_.randn({n, 8})}, std::to_string(n));
}

TEST_P(DynamicRanges, CapturedTensorsMayChangeWithASize) {
  const Tensor one = ctx_.randn({8}), other = ctx_.randn({8});
  const Function function = [=](const Tensors& a) -> Tensors {
    return {a[0] * (a[0].size() > 500 ? one : other)};
  };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}});
  for (const Index n : {50, 51, 52, 60, 63, 64, 70, 61, 100, 55})
    lowered_by(compiled, function, {ctx_.randn({n, 8})}, std::to_string(n));
}

TEST_P(DynamicRanges, AnIndexOutOfRangeIsToldWithItsSizes) {
  Context ctx{{.device = GetParam(), .cache_directory = test::kernel_folder(), .check = true}};
  const auto compiled =
      compile([](const Tensor& table, const Tensor& index) { return embedding(table, index); },
              {.dynamic = {{0, 0}, {1, 0}}});
  const auto call = [&](Index rows, Index n, std::int64_t last) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(n), 1);
    index.back() = last;
    return compiled(ctx.randn({rows, 8}), ctx.from(index, {n}));
  };
  call(30, 40, 29);
  call(31, 43, 30);
  call(37, 45, 36);
  expect_says([&] { call(35, 47, 35); }, {"index 35 at [46] of [47]", "[0, 35)"});
  call(36, 47, 35);
}

TEST_P(DynamicRanges, OutputsMayBeWhatIsRead) {
  const Function function = [](const Tensors& a) -> Tensors { return {a[0] * 2.f + 1.f}; };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}});
  for (Index n = 50; n < 60; ++n) {
    const Tensors x = {ctx_.randn({n, 8})};
    const Tensors want = function(x);
    expect_equal(compiled(x), want, std::to_string(n));
    const Tensors out = {ctx_.zeros({n, 8})};
    compiled.into(out, x);
    expect_equal(out, want, std::to_string(n));
    compiled.into(x, x);
    expect_equal(x, want, std::to_string(n));
  }
}

TEST_P(DynamicRanges, RandomNumbersAreThoseOfACallWithoutRanges) {
  const auto noise = [this](const Tensor& x) { return x + ctx_.randn({4}); };
  const auto ranged = compile(noise, {.dynamic = {{0, 0}}});
  for (Index n = 20; n < 26; ++n) {
    const Tensor x = ctx_.zeros({n, 4});
    ctx_.set_seed(static_cast<std::uint64_t>(n));
    const std::vector<float> got = ranged(x).to_vector<float>();
    ctx_.set_seed(static_cast<std::uint64_t>(n));
    EXPECT_EQ(got, compile(noise)(x).to_vector<float>()) << n;
  }
}

TEST_P(DynamicRanges, SeveralThreadsCallSeveralSizes) {
  const Function function = [](const Tensors& a) -> Tensors {
    return {softmax(a[0]), sum(a[0] * a[0], {0})};
  };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}});
  std::vector<Tensors> x, want;
  for (Index n = 60; n < 84; ++n) {
    x.push_back({ctx_.randn({n, 12})});
    want.push_back(function(x.back()));
  }
  constexpr std::size_t kSteps[] = {1, 5, 7, 11};  // through all of them in four orders
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::vector<std::vector<Tensors>> got(4, std::vector<Tensors>(x.size()));
  for (std::size_t t = 0; t < got.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round)
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::size_t which = (i * kSteps[t] + t) % x.size();
          got[t][which] = compiled(x[which]);
        }
    });
  for (std::thread& t : threads) t.join();
  for (const auto& of_thread : got)
    for (std::size_t i = 0; i < x.size(); ++i) expect_equal(of_thread[i], want[i], std::to_string(i));
}

// Threads that record, open ranges, give programs other sizes and write over arguments meanwhile.
TEST_P(DynamicRanges, GrowingSizesOfSeveralThreads) {
  constexpr std::size_t kThreads = 4, kCalls = 30;
  std::atomic<unsigned> runs = 0;
  const auto function_with = [&runs](const Tensor& gain, bool slowly) -> Function {
    return [&runs, gain, slowly](const Tensors& a) -> Tensors {
      if (slowly) std::this_thread::sleep_for(std::chrono::microseconds(++runs * 37 % 200));
      const Tensor x = tanh(a[0] * gain);
      return {x * 2.f, sum(x * x, {0}), concat({x, a[1]}, 0)};
    };
  };
  struct Call {
    Index n = 0;
    std::vector<float> x;
    Tensors got;
  };
  const std::vector<float> gain = ctx_.randn({12}).to_vector<float>();
  std::vector<std::vector<Call>> calls(kThreads, std::vector<Call>(kCalls));
  std::mt19937 random(11);
  for (std::vector<Call>& of_thread : calls) {
    Index n = 40;
    for (Call& call : of_thread) {
      call.n = n += static_cast<Index>(random() % 4);
      call.x = ctx_.randn({n, 12}).to_vector<float>();
    }
  }
  const auto compiled = compile(function_with(ctx_.from(gain, {12}), true), {.dynamic = {{0, 0}}});
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kCalls; ++i) {
        Call& call = calls[t][i];
        const Tensors args = {ctx_.from(call.x, {call.n, 12}), ctx_.ones({1, 12})};
        const std::size_t way = (i + t) % 3;
        if (way == 0) {
          call.got = compiled(args);
          continue;
        }
        call.got = {way == 1 ? ctx_.empty({call.n, 12}) : args[0], ctx_.empty({12}),
                    ctx_.empty({call.n + 1, 12})};
        compiled.into(call.got, args);
      }
    });
  for (std::thread& t : threads) t.join();
  Context alone({.device = GetParam(), .cache_directory = test::kernel_folder()});
  const Function function = function_with(alone.from(gain, {12}), false);
  for (std::size_t t = 0; t < kThreads; ++t)
    for (std::size_t i = 0; i < kCalls; ++i) {
      const Call& call = calls[t][i];
      expect_equal(call.got, function({alone.from(call.x, {call.n, 12}), alone.ones({1, 12})}),
                   fmt::format("thread {}, call {}, {} rows", t, i, call.n));
    }
  EXPECT_NE(compiled.explain().find("; n0 from "), std::string::npos) << compiled.explain();
}

TEST_P(DynamicRanges, EachContextHasItsOwn) {
  const Function function = [](const Tensors& a) -> Tensors { return {exp(a[0]) + 1.f}; };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}});
  for (Index n = 20; n < 24; ++n) lowered_by(compiled, function, {ctx_.randn({n, 4})}, "first");
  {
    Context other{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
    for (Index n = 20; n < 24; ++n) {
      const Tensors x = {other.randn({n, 4})};
      expect_equal(compiled(x), function(x), "second");
      const Tensors y = {ctx_.randn({n, 4})};
      expect_equal(compiled(y), function(y), "first again");
    }
  }
  lowered_by(compiled, function, {ctx_.randn({30, 4})}, "first, alone again");
}

TEST_P(DynamicRanges, ManySizesKeepFewPrograms) {
  const Function function = [](const Tensors& a) -> Tensors {
    return {transpose(a[0], {1, 0}) * 2.f + sum(a[0])};
  };
  const auto compiled = compile(function, {.dynamic = {{0, 0}}});
  for (Index n = 2; n < 600; ++n) compiled({ctx_.zeros({n, 6})});
  EXPECT_LE(compiled.report().size(), 24) << compiled.explain();
}

// A function of two sizes that a seed draws: chains of operations on x (n, 6) and y (m, 6).
Function drawn(unsigned seed, const Tensor& square, const Tensor& row) {
  return [=](const Tensors& a) -> Tensors {
    std::mt19937 random(seed);
    const auto any = [&](unsigned below) { return random() % below; };
    Tensor x = a[0], y = a[1];
    Tensors out;
    for (unsigned i = 0, count = 2 + any(5); i < count; ++i) {
      switch (any(14)) {
        case 0:
          x = tanh(x) * 2.f;
          break;
        case 1:
          x = x + row;
          break;
        case 2:
          x = matmul(x, square) * 0.3f;
          break;
        case 3:
          x = softmax(x);
          break;
        case 4:
          x = softmax(transpose(x, {1, 0})), x = transpose(x, {1, 0});
          break;
        case 5:
          x = concat({x, y}, 0);
          break;
        case 6:
          x = slice(x, 0, {1});
          break;
        case 7:
          x = pad(x, 0, 2, 1, 0.5);
          break;
        case 8:
          x = x - mean(x, {0});
          break;
        case 9:
          x = layer_norm(x, row, {});
          break;
        case 10:
          out.push_back(sum(x, {0}));
          break;
        case 11:
          out.push_back(max(x, {1}));
          break;
        case 12:
          x = matmul(softmax(matmul(x, transpose(y, {1, 0})) * 0.2f), y);
          break;
        default:
          y = where(y > 0.f, y, y * 0.1f);
          break;
      }
    }
    out.push_back(x);
    return out;
  };
}

TEST_P(DynamicRanges, DrawnFunctionsHaveEagerValuesAtEverySize) {
  const char* from = std::getenv("TILEWRIGHT_RANGE_SEEDS");  // the first of more of them
  const unsigned count = from ? 12 : static_cast<unsigned>(test::draws(4));
  const unsigned first = from ? static_cast<unsigned>(std::stoul(from)) : 1;
  const Tensor square = ctx_.randn({6, 6}), row = ctx_.randn({6});
  for (unsigned seed = first; seed < first + count; ++seed) {
    const Function function = drawn(seed, square, row);
    const auto compiled = compile(function, {.dynamic = {{0, 0}, {1, 0}}});
    std::mt19937 random(seed);
    const bool equal = random() % 2 == 0;
    Index n = 20 + random() % 60, m = equal ? n : 20 + random() % 60;
    for (int call = 0; call < 14; ++call) {
      lowered_by(compiled, function, {ctx_.randn({n, 6}), ctx_.randn({m, 6})},
                 "seed " + std::to_string(seed) + " at " + std::to_string(n) + ", " + std::to_string(m));
      if (HasFatalFailure()) return;
      n = call % 5 == 4 ? 2 + random() % 200 : n + 1;
      m = equal && call < 9 ? n : call % 4 == 3 ? 2 + random() % 200 : m + 1;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DynamicRanges, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
