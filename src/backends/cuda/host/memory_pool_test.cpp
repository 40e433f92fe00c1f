// The caching pool over a fake driver.
#include "backends/cuda/host/memory_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "backends/cuda/host/fake_driver.h"

namespace tilewright::cuda {
namespace {

using testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20;

class Pool : public testing::Test {
 protected:
  Driver driver_ = fake::make(256 * kMiB);
  Result<Context> context_ = Context::open(driver_);
  Result<Stream> a_ = Stream::create(*context_);
  Result<Stream> b_ = Stream::create(*context_);
};

TEST_F(Pool, ServesAFreedBlockAgainWithoutTheDriver) {
  MemoryPool pool(*context_);
  api::CUdeviceptr first = 0;
  for (int i = 0; i < 10; ++i) {
    auto buffer = pool.allocate(3 * kMiB, a_->get());
    ASSERT_TRUE(buffer.ok());
    if (i == 0) first = buffer->address();
    EXPECT_EQ(buffer->address(), first);
    EXPECT_EQ(buffer->size_bytes(), 3 * kMiB);
  }
  EXPECT_EQ(pool.stats().driver_allocations, 1u);
  EXPECT_EQ(pool.stats().in_use_bytes, 0u);
  EXPECT_EQ(pool.stats().requests, 10u);
}

TEST_F(Pool, GivesNothingForNoBytes) {
  MemoryPool pool(*context_);
  auto buffer = pool.allocate(0, a_->get());
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(buffer->address(), 0u);
  EXPECT_EQ(pool.stats().reserved_bytes, 0u);
}

TEST_F(Pool, MergesFreedNeighboursIntoOneBlock) {
  MemoryPool pool(*context_);
  std::vector<Buffer> buffers;
  buffers.reserve(4);
  for (int i = 0; i < 4; ++i) buffers.push_back(*pool.allocate(16 * kMiB, a_->get()));
  const auto start = buffers[0].address();
  EXPECT_EQ(pool.stats().driver_allocations, 1u);  // all cut from one 64 MiB segment
  buffers[2].reset();
  buffers[0].reset();
  buffers[1].reset();
  buffers[3].reset();
  auto whole = pool.allocate(64 * kMiB, a_->get());
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->address(), start);
  EXPECT_EQ(pool.stats().driver_allocations, 1u);
}

TEST_F(Pool, KeepsSmallRequestsOutOfLargeSegments) {
  MemoryPool pool(*context_);
  auto small = pool.allocate(100, a_->get());
  auto large = pool.allocate(2 * kMiB, a_->get());
  ASSERT_TRUE(small.ok() && large.ok());
  EXPECT_EQ(pool.stats().driver_allocations, 2u);
  EXPECT_EQ(pool.stats().in_use_bytes, 512 + 2 * kMiB);
}

TEST_F(Pool, DoesNotShareFreedMemoryBetweenStreams) {
  MemoryPool pool(*context_);
  api::CUdeviceptr first = 0;
  {
    auto buffer = pool.allocate(2 * kMiB, a_->get());
    first = buffer->address();
  }
  auto other = pool.allocate(2 * kMiB, b_->get());
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->address(), first);
}

TEST_F(Pool, GivesCachedSegmentsBackBeforeItFails) {
  MemoryPool pool(*context_);
  {
    auto buffer = pool.allocate(200 * kMiB, a_->get());
  }  // cached now, for stream a
  auto other = pool.allocate(180 * kMiB, b_->get());
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_EQ(pool.stats().reserved_bytes, 180 * kMiB);
  EXPECT_EQ(fake::state().allocated_bytes(), 180 * kMiB);
}

TEST_F(Pool, SaysWhatIsWantedInUseAndFreeWhenMemoryIsOut) {
  MemoryPool pool(*context_);
  auto held = pool.allocate(100 * kMiB, a_->get());
  const auto wanted = pool.allocate(200 * kMiB, a_->get());
  ASSERT_FALSE(wanted.ok());
  EXPECT_EQ(wanted.error().kind, Failure::Kind::out_of_memory);
  EXPECT_EQ(
      wanted.error().message,
      "out of device memory on Fake H200: wanted 200.00 MiB, 100.00 MiB in use, 0 bytes cached by the pool, "
      "156.00 MiB of 256.00 MiB free on the device");
  EXPECT_TRUE(pool.allocate(150 * kMiB, a_->get()).ok());  // and it goes on
}

TEST_F(Pool, StaysWithinItsLimit) {
  MemoryPool pool(*context_, {.limit_bytes = 70 * kMiB});
  auto held = pool.allocate(3 * kMiB, a_->get());
  const auto wanted = pool.allocate(80 * kMiB, a_->get());
  ASSERT_FALSE(wanted.ok());
  EXPECT_THAT(wanted.error().message, HasSubstr("the pool's limit is 70.00 MiB"));
  EXPECT_LE(fake::state().allocated_bytes(), 70 * kMiB);
}

TEST_F(Pool, TrimsAndEndsWithoutLeaks) {
  {
    MemoryPool pool(*context_);
    auto kept = pool.allocate(1000, a_->get());
    {
      auto dropped = pool.allocate(100 * kMiB, a_->get());
    }
    ASSERT_TRUE(pool.trim().ok());
    EXPECT_EQ(fake::state().allocated_bytes(), 2 * kMiB);  // the small segment is in use
  }
  EXPECT_EQ(fake::state().allocated_bytes(), 0u);
}

// Random requests over two streams: live blocks never overlap, and all memory returns.
TEST_F(Pool, NeverHandsOutTheSameByteTwice) {
  MemoryPool pool(*context_);
  std::mt19937 random(7);
  std::vector<Buffer> live;
  for (int i = 0; i < 5000; ++i) {
    if (live.size() > 40 || (!live.empty() && random() % 2 == 0)) {
      const std::size_t at = random() % live.size();
      std::swap(live[at], live.back());
      live.pop_back();
      continue;
    }
    const std::size_t bytes = std::size_t{1} << (random() % 22);
    auto made = pool.allocate(bytes + random() % bytes, (random() % 2 == 0 ? a_ : b_)->get());
    ASSERT_TRUE(made.ok()) << made.error().message;
    for (const auto& other : live) {
      ASSERT_TRUE(made->address() + made->size_bytes() <= other.address() ||
                  other.address() + other.size_bytes() <= made->address());
    }
    ASSERT_EQ(made->address() % 512, 0u);
    live.push_back(std::move(*made));
  }
  live.clear();
  EXPECT_EQ(pool.stats().in_use_bytes, 0u);
  ASSERT_TRUE(pool.trim().ok());
  EXPECT_EQ(fake::state().allocated_bytes(), 0u);
}

}  // namespace
}  // namespace tilewright::cuda
