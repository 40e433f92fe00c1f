// Threads that use one Context: what is recorded belongs to the thread that runs the function, and no thread
// waits for another's function to return.
#include <tilewright/tile/builder.h>
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <future>
#include <latch>
#include <optional>
#include <utility>

#include "support/errors.h"
#include "support/kernel_folder.h"
#include "tensor/state.h"

namespace tilewright {
namespace {

const ContextOptions kHere{.device = "cpu", .cache_directory = test::kernel_folder()};

// What `f` gives or throws on a thread of its own, which the caller waits for.
template <class F>
auto on_another_thread(const F& f) {
  return std::async(std::launch::async, f).get();
}

const std::vector<std::string> kWanted = {"was used on another thread", "give other threads tensors",
                                          "called at", "threads_test.cpp:"};

TEST(Threads, RecordedTensorsBelongToTheOneThatRunsTheFunction) {
  Context ctx(kHere);
  tile::Builder k("twice");
  const auto x = k.view("x", DType::f32, {64}), y = k.view("y", DType::f32, {64});
  const tile::Value t = k.load(x, {k.program_id(0) * 64}, {.shape = {64}});
  k.store(y, {k.program_id(0) * 64}, t + t);
  const TileFunction twice(k.finish({{{64, 64}}}));
  const auto plus = compile([](const Tensor& a) { return a + 1.f; });
  const Tensor one = ctx.ones({64}), number = ctx.ones({});
  const std::vector<std::function<Tensor(const Tensor&)>> uses = {
      [](const Tensor& a) { return a + 1.f; },
      [](const Tensor& a) { return exp(a); },
      [&](const Tensor& a) { return one + a; },
      [&](const Tensor& a) { return plus(a); },
      [&](const Tensor& a) { return take(a, ctx.from<std::int64_t>({0}, {1}), 0); },
      [&](const Tensor& a) { return twice({a, out({64})}).at(0); },
      [&](const Tensor& a) { return ctx.scalar(a.to_vector<float>()[0]); },
      [&](const Tensor& a) {
        plus.into({ctx.ones({64})}, {a});
        return a;
      },
      [&](const Tensor& a) {
        return value_and_grad([&](const Tensor& b) { return sum(a * b); })(number).first;
      },
  };
  for (std::size_t i = 0; i < uses.size(); ++i) {
    SCOPED_TRACE(i);
    const auto use = [&](const Tensor& a) { return on_another_thread([&] { return sum(uses[i](a)); }); };
    test::expect_says([&] { compile(use)(one); }, kWanted);
    test::expect_says([&] { value_and_grad(use)(one); }, kWanted);
  }
}

TEST(Threads, RecordedTensorsThatWereReadBelongToTheOneThatRunsTheFunction) {
  Context ctx(kHere);
  const auto f = compile([](const Tensor& x) {
    x.item();
    return on_another_thread([&] { return x + 1.f; });
  });
  test::expect_says([&] { f(ctx.ones({1})); }, kWanted);
}

TEST(Threads, RunTensorsWithMemoryWhileAnotherRecords) {
  Context ctx(kHere);
  const Tensor w = ctx.full({4}, 3);
  const auto twice = compile([](const Tensor& x) { return x * 2.f; });
  const auto others = [&] {
    const Tensor square = value_and_grad([](const Tensor& x) { return sum(x * x); })(w).first;
    return twice(w) + square + ctx.ones({4}) + 0 * ctx.rand({4});
  };
  const auto f = compile([&](const Tensor& x) { return x + on_another_thread(others); });
  EXPECT_EQ(f(ctx.ones({4})).to_vector<float>()[3], 1 + 6 + 36 + 1);
  EXPECT_EQ(f.report().at(0).draws, 0) << "the other thread drew at once";
  const auto g = value_and_grad([&](const Tensor& x) { return sum(x * on_another_thread(others)); });
  EXPECT_EQ(g(w).second.to_vector<float>()[3], 6 + 36 + 1);
  const auto broken = compile([&](const Tensor& x) { return x + on_another_thread(others) * x.item(); });
  for (int call = 0; call < 2; ++call) EXPECT_EQ(broken(ctx.ones({1})).to_vector<float>()[3], 1 + 6 + 36 + 1);
}

TEST(Threads, RecordDifferentFunctionsAtOnce) {
  Context ctx(kHere);
  const Tensor x = ctx.full({2}, 3), y = ctx.full({3}, 5);
  std::barrier both(2);
  const auto f = compile([&](const Tensor& a) {
    both.arrive_and_wait();
    const Tensor b = exp(a) * 0.f + a;
    both.arrive_and_wait();
    return grad([&](const Tensor& c) { return sum(b * c); })(b);
  });
  const auto g = value_and_grad([&](const Tensor& a) {
    both.arrive_and_wait();
    const Tensor b = a * a;
    both.arrive_and_wait();
    return sum(b);
  });
  auto other = std::async(std::launch::async, [&] { return g(y).second.to_vector<float>(); });
  EXPECT_EQ(f(x).to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(other.get(), (std::vector<float>{10, 10, 10}));
}

TEST(Threads, RecordOneFunctionAtOnceAndShareItsProgram) {
  Context ctx(kHere);
  std::barrier both(2);
  std::atomic<int> runs = 0;
  const auto f = compile([&](const Tensor& a) {
    ++runs;
    both.arrive_and_wait();
    return a + ctx.rand({2}) * 0.f;
  });
  const Tensor x = ctx.full({2}, 3);
  auto other = std::async(std::launch::async, [&] { return f(x).to_vector<float>(); });
  EXPECT_EQ(f(x).to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(other.get(), (std::vector<float>{3, 3}));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(f.report().size(), 1U);
}

// What a compilation waits for, which asks for prices of kernels.
std::latch *priced = nullptr, *go_on = nullptr;
double price_that_waits(const tile::Kernel&, const tile::Target&) {
  static std::atomic<bool> first = true;
  if (first.exchange(false)) {
    priced->count_down();
    go_on->wait();
  }
  return 1;
}

// Would the Context be locked meanwhile, its other users would wait for ever.
TEST(Threads, CompileWhileOthersUseTheContext) {
  Context ctx(kHere);
  const Tensor x = ctx.full({2}, 3), y = ctx.full({4}, 5);
  const auto waits = compile([](const Tensor& a) { return exp(a) * 0.f + a * 2.f; });
  const auto another = compile([](const Tensor& a) { return a * a + 1.f; });
  std::latch begun(1), done(1);
  priced = &begun, go_on = &done;
  detail::DeviceState& device = ctx.state()->device("cpu");
  const tile::KernelTime usual = std::exchange(device.target.predicted_us, price_that_waits);
  auto result = std::async(std::launch::async, [&] { return waits(x).to_vector<float>(); });
  begun.wait();
  auto same = std::async(std::launch::async, [&] { return waits(x).to_vector<float>(); });
  EXPECT_EQ((y + 1.f).to_vector<float>(), std::vector<float>(4, 6));
  EXPECT_EQ(another(y).to_vector<float>(), std::vector<float>(4, 26));
  done.count_down();
  EXPECT_EQ(result.get(), (std::vector<float>{6, 6}));
  EXPECT_EQ(same.get(), (std::vector<float>{6, 6}));
  EXPECT_EQ(waits.report().size(), 1U);
  device.target.predicted_us = usual;
}

// What one thread compiles another one waits for.
TEST(Threads, CompileAGraphOnce) {
  Context ctx(kHere);
  const Tensor x = ctx.full({2}, 3);
  const auto make = [] { return compile([](const Tensor& a) { return exp(a) * 0.f + a * 3.f; }); };
  const auto f = make(), g = make();
  detail::DeviceState& device = ctx.state()->device("cpu");
  const std::size_t before = device.lowerings;
  std::barrier both(2);
  const auto call = [&](const auto& of) {
    both.arrive_and_wait();
    return of(x).template to_vector<float>();
  };
  auto other = std::async(std::launch::async, [&] { return call(g); });
  EXPECT_EQ(call(f), (std::vector<float>{9, 9}));
  EXPECT_EQ(other.get(), (std::vector<float>{9, 9}));
  EXPECT_EQ(device.lowerings, before + 1);
}

TEST(Threads, DrawNumbersThatNoOtherDrawsWhileOneRecords) {
  Context ctx(kHere);
  std::optional<Tensor> theirs;
  const auto f = compile([&](const Tensor& x) {
    Tensor mine = x + ctx.rand({16});
    if (!theirs) theirs = on_another_thread([&] { return ctx.rand({16}); });
    return mine;
  });
  const std::vector<float> first = f(ctx.zeros({16})).to_vector<float>();
  EXPECT_NE(first, theirs->to_vector<float>());
  EXPECT_NE(first, f(ctx.zeros({16})).to_vector<float>());
}

}  // namespace
}  // namespace tilewright
