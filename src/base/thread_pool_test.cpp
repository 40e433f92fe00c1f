// The pool: every index once, nesting, exceptions, several callers, sleeping and waking.
#include <tilewright/base/error.h>
#include <tilewright/base/thread_pool.h>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// A sanitizer's own memory does not fit into a limit on addresses.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TW_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TW_SANITIZED
#endif
#endif

namespace tilewright {
namespace {

// How often each index of [0, count) was run.
std::vector<int> visits(ThreadPool& pool, Index count, Index grain) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
  pool.parallel_for(
      count,
      [&](Index begin, Index end, int worker) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, pool.size());
        EXPECT_LT(begin, end);
        for (Index i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      },
      grain);
  return {seen.begin(), seen.end()};
}

TEST(ThreadPool, RunsEveryIndexOnce) {
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (Index count : {0, 1, 2, 3, 6, 7, 8, 1000}) {
      for (Index grain : {0, 1, 3, 2000}) {
        EXPECT_EQ(visits(pool, count, grain), std::vector<int>(static_cast<std::size_t>(count), 1))
            << threads << " threads, " << count << " by " << grain;
      }
    }
  }
}

TEST(ThreadPool, DefaultSizeIsTheAffinityMask) {
  EXPECT_EQ(ThreadPool().size(), allowed_cpu_count());
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(ThreadPool().size(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(ThreadPool, ACountThatNoMachineHasIsAnError) {
  for (const int threads : {-1, kMostThreads + 1, 100'000}) {
    try {
      ThreadPool pool(threads);
      FAIL() << threads << " threads were started";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(),
                std::to_string(threads) + " threads: give 1 to 4096, or 0 for one on each allowed core");
    }
  }
}

#if !defined(TW_SANITIZED)
// Runs in a process of its own, for it takes the memory that stacks are made of.
void start_more_threads_than_the_system_gives() {
  const rlimit small{Index{1} << 30, Index{1} << 30};  // addresses of 1 GiB hold far fewer than 4096 stacks
  if (setrlimit(RLIMIT_AS, &small) != 0) std::_Exit(3);
  try {
    ThreadPool pool(kMostThreads);
  } catch (const Error& error) {
    ThreadPool fewer(3);  // what was started was ended, and its memory is free again
    std::fputs(error.what(), stderr);
    std::_Exit(fewer.size() == 3 ? 0 : 1);
  }
  std::_Exit(2);
}

TEST(ThreadPoolDeathTest, ThreadsThatTheSystemDoesNotStartAreAnError) {
  EXPECT_EXIT(start_more_threads_than_the_system_gives(), testing::ExitedWithCode(0),
              "4096 threads: the system starts no more than [0-9]+ \\(.*\\); give fewer threads");
}
#endif

TEST(ThreadPool, StaticPartsAreContiguousAndBalanced) {
  ThreadPool pool(3);
  std::mutex mutex;
  std::set<std::pair<Index, Index>> parts;
  pool.parallel_for(10, [&](Index begin, Index end, int) {
    const std::lock_guard lock(mutex);
    parts.emplace(begin, end);
  });
  EXPECT_EQ(parts, (std::set<std::pair<Index, Index>>{{0, 4}, {4, 7}, {7, 10}}));
}

TEST(ThreadPool, WorkersArePinnedToTheirCpu) {
  ThreadPool pool(0);
  pool.parallel_for(1000, [&](Index, Index, int worker) {
    if (worker > 0) {
      EXPECT_EQ(sched_getcpu(), pool.cpu_of(worker));
    }
  });
  EXPECT_EQ(ThreadPool(1, {.pin = false}).cpu_of(0), -1);
}

// The caller is put on a worker's CPU, as a scheduler may: the two must not share it.
TEST(ThreadPool, AWorkerMakesRoomForTheCallerOnItsCpu) {
  ThreadPool pool(0);
  if (pool.size() < 2) GTEST_SKIP() << "one CPU";
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (int worker = 1; worker < pool.size(); ++worker) {
    const int cpu = pool.cpu_of(worker);
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<unsigned>(cpu), &here);
    ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
    pool.parallel_for(1000, [&](Index, Index, int part) {
      if (part > 0) {
        EXPECT_NE(sched_getcpu(), cpu);
      }
    });
    std::set<int> cpus;
    for (int each = 0; each < pool.size(); ++each) cpus.insert(pool.cpu_of(each));
    EXPECT_EQ(static_cast<int>(cpus.size()), pool.size());
    EXPECT_EQ(pool.cpu_of(0), cpu);
  }
  EXPECT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

TEST(ThreadPool, SumsAreVisibleToTheCallerAfterManyRounds) {
  ThreadPool pool(4);
  std::vector<Index> partial(4);  // plain memory: a missing fence is a race that the thread sanitizer sees
  Index total = 0;
  for (Index round = 0; round < 2000; ++round) {
    pool.parallel_for(4, [&](Index begin, Index end, int) {
      for (Index i = begin; i < end; ++i) partial[static_cast<std::size_t>(i)] += round;
    });
    total = partial[0] + partial[1] + partial[2] + partial[3];
  }
  EXPECT_EQ(total, 4 * 1999 * 2000 / 2);
}

TEST(ThreadPool, WakesUpAfterSleeping) {
  ThreadPool pool(3, {.spin_us = 0});
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(visits(pool, 50, 1), std::vector<int>(50, 1));
  }
}

TEST(ThreadPool, NestedCallsRunInlineOnTheSameWorker) {
  ThreadPool pool(3);
  std::atomic<Index> inner{0};
  pool.parallel_for(
      8,
      [&](Index, Index, int outer_worker) {
        const auto thread = std::this_thread::get_id();
        pool.parallel_for(5, [&](Index begin, Index end, int worker) {
          EXPECT_EQ(worker, outer_worker);
          EXPECT_EQ(std::this_thread::get_id(), thread);
          inner += end - begin;
        });
      },
      1);
  EXPECT_EQ(inner, 40);
}

TEST(ThreadPool, ABodyMayUseAnotherPool) {
  ThreadPool outer(2), inner(2);
  std::atomic<Index> sum{0};
  outer.parallel_for(4, [&](Index begin, Index end, int) {
    for (Index i = begin; i < end; ++i) {
      inner.parallel_for(3, [&](Index b, Index e, int) {
        outer.parallel_for(1, [&](Index, Index, int) {});
        sum += e - b;
      });
    }
  });
  EXPECT_EQ(sum, 12);
}

TEST(ThreadPool, ExceptionReachesTheCallerAndThePoolStaysUsable) {
  ThreadPool pool(3);
  for (Index grain : {0, 1}) {
    for (Index bad : {0, 5, 9}) {
      const auto body = [&](Index begin, Index end, int) {
        if (begin <= bad && bad < end) throw std::runtime_error("index " + std::to_string(bad));
      };
      try {
        pool.parallel_for(10, body, grain);
        FAIL() << "did not throw";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), "index " + std::to_string(bad));
      }
      EXPECT_EQ(visits(pool, 10, grain), std::vector<int>(10, 1));
    }
  }
}

TEST(ThreadPool, CallersTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int> inside{0};
  std::atomic<Index> sum{0};
  const auto call = [&] {
    for (int round = 0; round < 200; ++round) {
      pool.parallel_for(2, [&](Index begin, Index end, int) {
        EXPECT_LE(++inside, pool.size());
        sum += end - begin;
        --inside;
      });
    }
  };
  std::thread other(call);
  call();
  other.join();
  EXPECT_EQ(sum, 800);
}

TEST(ThreadPool, RawFunctionsNeedNoTemplate) {
  ThreadPool pool(2);
  std::vector<int> data(100, 1);
  const ThreadPool::PlainBody twice = [](void* context, Index begin, Index end) {
    for (Index i = begin; i < end; ++i) static_cast<int*>(context)[i] *= 2;
  };
  pool.run(twice, data.data(), 100, 7);
  EXPECT_EQ(data, std::vector<int>(100, 2));
}

TEST(ThreadPool, ConstAndTemporaryFunctionsAreTaken) {
  ThreadPool pool(2);
  std::atomic<Index> sum{0};
  const auto add = [&](Index begin, Index end, int) { sum += end - begin; };
  pool.parallel_for(10, add);
  pool.parallel_for(10, [&](Index begin, Index end, int) { sum += end - begin; });
  EXPECT_EQ(sum, 20);
}

}  // namespace
}  // namespace tilewright
