// What docs/guide/running.md says several threads may do at once, row by row, for the thread sanitizer (make
// tsan); elsewhere these tests see crashes and wrong values.
#include <tilewright/tile/builder.h>
#include <tilewright/tile/schedule.h>
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <optional>
#include <sstream>
#include <thread>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using Floats = std::vector<float>;
const ContextOptions kOneThread{.device = "cpu", .cache_directory = test::kernel_folder(), .threads = 1};

// Runs each of these on a thread of its own, all begun together, `rounds` times; what one throws is a
// failure.
void at_once(const std::vector<std::function<void()>>& works, int rounds = 20) {
  std::barrier begin(std::ssize(works));
  std::vector<std::thread> threads;
  threads.reserve(works.size());
  for (const std::function<void()>& work : works)
    threads.emplace_back([&] {
      begin.arrive_and_wait();
      for (int round = 0; round < rounds; ++round) {
        try {
          work();
        } catch (const std::exception& e) {
          ADD_FAILURE() << e.what();
        }
      }
    });
  for (std::thread& t : threads) t.join();
}

tile::Kernel doubling() {
  tile::Builder k("twice");
  const auto x = k.view("x", DType::f32, {64}), y = k.view("y", DType::f32, {64});
  const tile::Value t = k.load(x, {k.program_id(0) * 64}, {.shape = {64}});
  k.store(y, {k.program_id(0) * 64}, t + t);
  return k.finish({{{64, 64}}});
}

TEST(ThreadsAtOnce, MakeReadPrintAndDrawInOneContext) {
  Context ctx(kOneThread);
  const Tensor shared = ctx.from(Floats{1, 2, 3, 4}, {2, 2});
  alignas(64) Floats memory(64, 5);
  at_once({
      [&] { EXPECT_EQ((ctx.full({4}, 2) + 1.f).to_vector<float>(), Floats(4, 3)); },
      [&] { EXPECT_EQ(sum(shared).item(), 10); },
      [&] {
        std::ostringstream out;
        out << shared << shared.shape();
        EXPECT_EQ(out.str(), to_string(shared) + "[2,2]");
      },
      [&] { EXPECT_LT(max(ctx.rand({8})).item(), 1); },
      [&] { ctx.set_seed(7); },
      [&] { EXPECT_EQ(borrow(ctx, memory.data(), {64}, DType::f32).to_vector<float>()[63], 5); },
      [&] {
        EXPECT_EQ(take(shared, ctx.from<std::int64_t>({1}, {1}), 0).to_vector<float>(), (Floats{3, 4}));
      },
      [&] { ctx.synchronize(); },
  });
}

TEST(ThreadsAtOnce, OpenDevicesOfOneContext) {
  Context ctx(kOneThread);
  const Tensor x = ctx.ones({4});
  const auto there = [&] { EXPECT_EQ(x.to("reference").to("cpu").to_vector<float>()[3], 1); };
  at_once({there, there, [&] { EXPECT_EQ(x.device(), "cpu"); }}, 5);
}

TEST(ThreadsAtOnce, AskACompiledFunctionWhatItIsBesideItsCalls) {
  Context ctx(kOneThread);
  const Tensor x = ctx.ones({64}), y = ctx.empty({64}), longer = ctx.ones({65});
  const auto f = compile([](const Tensor& a) { return exp(a) * 0.f + a; });
  f(x);
  const std::string text = f.report().front().kernels.at(0).source;
  at_once({
              [&] { EXPECT_EQ(f(x).to_vector<float>()[63], 1); },
              [&] { EXPECT_EQ(f(longer).to_vector<float>()[64], 1); },
              [&] { EXPECT_FALSE(f.explain().empty()); },
              [&] {
                for (const KernelReport& k : f.report().front().kernels) EXPECT_FALSE(k.source.empty());
              },
              [&] { f.measure(x); },
              [&] { f.edit(0, text, x); },
              [&] { f.into(y, x); },
          },
          2);
}

TEST(ThreadsAtOnce, CallOneFunctionWithTensorsOfSeveralContexts) {
  const auto f = compile([](const Tensor& a) { return a * 3.f; });
  const auto in_its_own = [&] {
    Context ctx(kOneThread);
    EXPECT_EQ(f(ctx.ones({8})).to_vector<float>()[7], 3);
    EXPECT_FALSE(f.explain().empty());
  };
  at_once({in_its_own, in_its_own, [&] { f.report(); }}, 3);
}

TEST(ThreadsAtOnce, DifferentiateByOneFunction) {
  Context ctx(kOneThread);
  const Tensor x = ctx.full({4}, 3);
  const auto both = value_and_grad([](const Tensor& a) { return sum(a * a); });
  const auto slope = grad([](const Tensor& a) { return sum(a * a * a); });
  at_once({
              [&] { EXPECT_EQ(both(x).second.to_vector<float>()[3], 6); },
              [&] { EXPECT_EQ(both(x).first.item(), 36); },
              [&] { EXPECT_EQ(slope(x).to_vector<float>()[0], 27); },
              [&] { EXPECT_EQ(slope(x).to_vector<float>()[0], 27); },
          },
          5);
}

TEST(ThreadsAtOnce, RunReadAndScheduleOneKernel) {
  TileFunction twice(doubling());
  Context ctx(kOneThread);
  const Tensor x = ctx.ones({64}), gradient = ctx.full({64}, 2);
  at_once({
              [&] { EXPECT_EQ(twice({x, out({64})}).at(0).to_vector<float>()[63], 2); },
              [&] {
                Context own(kOneThread);
                EXPECT_EQ(twice({own.ones({64}), out({64})}).at(0).to_vector<float>()[63], 2);
              },
              [&] { EXPECT_FALSE(twice.source(x).empty()); },
              [&] { twice.use({.kind = tile::CpuLoops{.unroll = 2}}); },
              [&] { twice.set_gradient([&](const TileCall&) { return std::vector{gradient}; }); },
              [&] { EXPECT_EQ(twice.kernel().views.size(), 2U); },
          },
          3);
}

TEST(ThreadsAtOnce, ShareATensorByManyHandlesAndLetThemGo) {
  Context ctx(kOneThread);
  for (int round = 0; round < 20; ++round) {
    std::optional<Tensor> first = ctx.full({16}, 4);
    std::array<Tensor, 3> handles = {*first, *first, *first};
    std::vector<std::function<void()>> works;
    works.reserve(handles.size() + 1);
    for (Tensor& own : handles)
      works.push_back([&own] {
        const Tensor copy = own;
        EXPECT_EQ(copy.size(), 16);
        EXPECT_EQ(copy.to_vector<float>()[15], 4);
        own = Tensor();
      });
    works.push_back([&first] { first.reset(); });
    at_once(works, 1);
  }
}

// One variable is read by all.
TEST(ThreadsAtOnce, ReadOneHandle) {
  Context ctx(kOneThread);
  const Tensor x = ctx.full({16}, 4);
  const auto reads = [&] {
    // Copies of handles are what is tried. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
    const Tensor y = x;
    EXPECT_EQ((y + x).shape(), x.shape());
    EXPECT_EQ(x.dtype(), DType::f32);
    EXPECT_EQ(x.device(), "cpu");
  };
  at_once({reads, reads, reads});
}

TEST(ThreadsAtOnce, LetGoOfForeignMemoryAnywhere) {
  Context ctx(kOneThread);
  std::atomic<int> gone = 0;
  constexpr int kTensors = 8;
  for (int i = 0; i < kTensors; ++i) {
    const auto memory = std::make_shared<std::array<float, 64>>();
    const std::shared_ptr<void> owner(memory->data(), [&, memory](void*) { ++gone; });
    std::optional<Tensor> borrowed =
        borrow(ctx, memory->data(), {64}, DType::f32, {.copy = Copy::if_needed, .owner = owner});
    dlpack::ManagedTensorVersioned* exported = to_dlpack(*borrowed);
    at_once({[&] { borrowed.reset(); }, [&] { exported->deleter(exported); },
             [&] { EXPECT_EQ((ctx.ones({4}) + 1.f).to_vector<float>()[0], 2); }},
            1);
  }
  EXPECT_EQ(gone, kTensors);
}

// While a function is recorded, it may let another thread give away what it was called with.
TEST(ThreadsAtOnce, GiveAwayWhatARecordedFunctionIsCalledWith) {
  Context ctx(kOneThread);
  const Tensor x = ctx.ones({64});
  const auto moved = compile([](const Tensor& a) { return a + 1.f; }, {.donate = {0}});
  const auto late = compile([&](const Tensor& a) {
    std::thread([&] { moved(x); }).join();
    return a * 2.f;
  });
  test::expect_says([&] { late(x); }, {"compile: argument 0 was donated to", "threads_at_once_test.cpp"});
  const Tensor z = ctx.ones({32});
  const auto also_late = compile([&](const Tensor& a) {
    std::thread([&] { moved(z); }).join();
    return a * 3.f;
  });
  test::expect_says([&] { also_late.into(ctx.zeros({32}), z); }, {"into: argument 0 was donated to"});
}

// One thread gives a tensor away, which is no use of the others' (running.md): these get its values or an
// Error.
TEST(ThreadsAtOnce, UseWhatAnotherGivesAway) {
  Context ctx(kOneThread);
  const auto moved = compile([](const Tensor& a) { return a + 1.f; }, {.donate = {0}});
  moved(ctx.ones({256}));
  TileFunction twice(doubling());
  const auto other = compile([](const Tensor& a) { return a * 2.f; });
  for (int round = 0; round < 30; ++round) {
    const Tensor x = ctx.ones({64});
    const auto use = [](const std::function<float()>& f, float want) {
      return [f, want] {
        try {
          EXPECT_EQ(f(), want);
        } catch (const Error& e) {
          EXPECT_NE(std::string(e.what()).find("was donated to"), std::string::npos) << e.what();
        }
      };
    };
    at_once(
        {use([&] { return moved(x).to_vector<float>()[0]; }, 2),
         use([&] { return x.to_vector<float>()[0]; }, 1),
         use([&] { return (x + 2.f).to_vector<float>()[0]; }, 3),
         use([&] { return other(x).to_vector<float>()[0]; }, 2),
         use([&] { return grad([](const Tensor& a) { return sum(a * 5.f); })(x).to_vector<float>()[0]; }, 5),
         use([&] { return twice({x, out({64})}).at(0).to_vector<float>()[0]; }, 2),
         use(
             [&] {
               dlpack::ManagedTensorVersioned* m = to_dlpack(x);
               m->deleter(m);
               return 0.f;
             },
             0)},
        1);
  }
}

}  // namespace
}  // namespace tilewright
