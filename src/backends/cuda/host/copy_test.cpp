// Copies through pinned memory, on a driver whose copies run when the host waits.
#include "backends/cuda/host/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "backends/cuda/host/fake_driver.h"

namespace tilewright::cuda {
namespace {

using Bytes = std::vector<unsigned char>;

struct StagedCopies : testing::Test {
  static constexpr std::size_t kPiece = 4096;
  Driver driver = fake::make();
  Context context = Context::open(driver).value();
  Stream stream = Stream::create(context).value();
  Staging staging = Staging::create(context, {.piece_bytes = kPiece, .pieces = 3}).value();

  static Bytes counted(std::size_t size, int from) {
    Bytes bytes(size);
    std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(from));
    return bytes;
  }
  void upload(Bytes& to, const Bytes& from) {
    Bytes spent = from;  // what was uploaded may be written over at once
    ASSERT_TRUE(
        staging.upload(reinterpret_cast<api::CUdeviceptr>(to.data()), spent.data(), spent.size(), stream)
            .ok());
    std::fill(spent.begin(), spent.end(), 0);
  }
  static auto waits() {
    const std::vector<std::string>& calls = fake::state().calls;
    return std::count(calls.begin(), calls.end(), "wait for an event");
  }
};

// A training step uploads a batch, a key and a rate: would each wait for the one before, the host would be no
// more than a step ahead of the device.
TEST_F(StagedCopies, SmallUploadsDoNotWaitForOneAnother) {
  std::vector<Bytes> to(3 * kPiece / 256, Bytes(100));
  for (std::size_t i = 0; i < to.size(); ++i) upload(to[i], counted(100, static_cast<int>(i)));
  EXPECT_EQ(waits(), 0);
  Bytes last(4);
  upload(last, counted(4, 77));
  EXPECT_EQ(waits(), 1) << "all pieces are full";
  fake::run_copies();
  for (std::size_t i = 0; i < to.size(); ++i) EXPECT_EQ(to[i], counted(100, static_cast<int>(i))) << i;
  EXPECT_EQ(last, counted(4, 77));
}

TEST_F(StagedCopies, LargeOnesGoRoundThePieces) {
  Bytes small(10), large(5 * kPiece + 123), back(large.size());
  upload(small, counted(10, 3));
  upload(large, counted(large.size(), 5));
  EXPECT_GT(waits(), 0);
  ASSERT_TRUE(
      staging.download(back.data(), reinterpret_cast<api::CUdeviceptr>(large.data()), large.size(), stream)
          .ok());
  EXPECT_EQ(small, counted(10, 3));
  EXPECT_EQ(large, counted(large.size(), 5));
  EXPECT_EQ(back, large);
  upload(small, counted(10, 9));
  fake::run_copies();
  EXPECT_EQ(small, counted(10, 9));
}

}  // namespace
}  // namespace tilewright::cuda
