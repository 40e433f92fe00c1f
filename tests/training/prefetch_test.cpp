// Batches made ahead: in order, no more than asked for, with their errors, and over cleanly.
#include <gtest/gtest.h>

#include <tilewright/nn/prefetch.h>
#include <tilewright/tilewright.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace tilewright::nn {
namespace {

struct Prefetching : testing::Test {
  Context ctx{{.device = "reference", .cache_directory = ""}};
  Batch numbered(std::uint64_t number) {
    const Tensor t = ctx.full({1, 1}, static_cast<double>(number), DType::i32);
    return {.tokens = t, .targets = t};
  }
};

TEST_F(Prefetching, GivesBatchesInOrderFromTheFirstOn) {
  Prefetch prefetch([&](std::uint64_t number) { return numbered(number); }, {.first = 40});
  for (std::uint64_t number = 40; number < 80; ++number) {
    const PrefetchedBatch next = prefetch.next();
    EXPECT_EQ(next.number, number);
    EXPECT_EQ(next.batch.tokens.item<std::int64_t>(), static_cast<std::int64_t>(number));
    EXPECT_GE(next.waited_s, 0);
  }
}

TEST_F(Prefetching, MakesNoMoreThanMayWait) {
  std::mutex mutex;
  std::condition_variable changed;
  int made = 0;
  Prefetch prefetch(
      [&](std::uint64_t number) {
        const std::lock_guard lock(mutex);
        ++made;
        changed.notify_all();
        return numbered(number);
      },
      {.ahead = 3});
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return made == 3; }));
  // A fourth would come at once.
  EXPECT_FALSE(changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return made > 3; }));
  lock.unlock();
  (void)prefetch.next();
  lock.lock();
  EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return made == 4; }));
}

TEST_F(Prefetching, SaysHowLongItWaited) {
  std::atomic<bool> slow = false;
  Prefetch prefetch([&](std::uint64_t number) {
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return numbered(number);
  });
  slow = true;
  double waited = 0;
  for (int i = 0; i < 8; ++i) waited += prefetch.next().waited_s;  // at most three were made before
  EXPECT_GT(waited, 4 * 0.040);
}

TEST_F(Prefetching, ThrowsWhatMakingABatchThrewInItsPlace) {
  Prefetch prefetch([&](std::uint64_t number) -> Batch {
    if (number == 2) throw Error("no batch 2");
    return numbered(number);
  });
  EXPECT_EQ(prefetch.next().number, 0U);
  EXPECT_EQ(prefetch.next().number, 1U);
  for (int again = 0; again < 2; ++again) {
    try {
      (void)prefetch.next();
      FAIL();
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "no batch 2");
    }
  }
}

TEST_F(Prefetching, EndsWhereverItIs) {
  for (int taken = 0; taken < 4; ++taken) {
    std::atomic<int> inside = 0;
    {
      Prefetch prefetch([&](std::uint64_t number) {
        ++inside;
        Batch batch = numbered(number);
        --inside;
        return batch;
      });
      for (int i = 0; i < taken; ++i) (void)prefetch.next();
      Prefetch moved = std::move(prefetch);
      EXPECT_EQ(moved.next().number, static_cast<std::uint64_t>(taken));
    }
    EXPECT_EQ(inside, 0);
  }
  EXPECT_THROW(Prefetch([&](std::uint64_t number) { return numbered(number); }, {.ahead = 0}), Error);
  EXPECT_THROW(Prefetch({}, {.ahead = 1}), Error);
}

}  // namespace
}  // namespace tilewright::nn
