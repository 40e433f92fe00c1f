// Opening the driver where there is none, and the wrappers over a fake one.
#include "backends/cuda/host/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "backends/cuda/host/context.h"
#include "backends/cuda/host/fake_driver.h"
#include "backends/cuda/host/leaving.h"

namespace tilewright::cuda {
namespace {

using testing::HasSubstr;

TEST(OpenDriver, NamesTheLibraryThatIsMissing) {
  const auto driver = open_driver({.library = "libcuda_of_no_machine.so.1"});
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().kind, Failure::Kind::not_found);
  EXPECT_THAT(driver.error().message, HasSubstr("libcuda_of_no_machine.so.1"));
  EXPECT_THAT(driver.error().message, HasSubstr("NVIDIA GPU and its driver"));
}

TEST(OpenDriver, NamesTheFunctionsThatAnOldDriverLacks) {
  const auto driver = open_driver({.library = "libm.so.6"});  // a library without a single one of them
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().kind, Failure::Kind::unsupported);
  EXPECT_THAT(driver.error().message, HasSubstr("cuLaunchKernelEx"));
  EXPECT_THAT(driver.error().message, HasSubstr("CUDA 12.0"));
}

// The stub of the toolkit exports what a driver of its version does: every name we ask for must be among
// them.
TEST(OpenDriver, FindsEveryFunctionInTheToolkitsStubAndRefusesIt) {
  const std::string stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  const bool present = std::filesystem::exists(stub);
  const auto driver = open_driver({.library = stub});
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().kind, present ? Failure::Kind::device : Failure::Kind::not_found)
      << driver.error().message;
  EXPECT_THAT(driver.error().message, HasSubstr(present ? "stub" : "could not be opened"));
}

TEST(DriverErrors, KeepTheKindOfOutOfMemory) {
  const Driver driver = fake::make();
  EXPECT_TRUE(check(driver, api::kSuccess, "call").ok());
  const auto memory = check(driver, api::kErrorOutOfMemory, "cuMemAlloc");
  EXPECT_EQ(memory.error().kind, Failure::Kind::out_of_memory);
  EXPECT_EQ(memory.error().message, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): as the fake driver says");
  EXPECT_EQ(check(driver, 719, "cuLaunch").error().kind, Failure::Kind::device);
}

TEST(ContextTest, ReadsTheLimitsOfTheDevice) {
  const Driver driver = fake::make();
  auto context = Context::open(driver);
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(context->limits().name, "Fake H200");
  EXPECT_EQ(context->limits().arch().text(), "sm_90a");
  EXPECT_NEAR(context->limits().peak_memory_bytes_per_second(), 4.917e12,
              1e9);  // 3201 MHz, twice a clock, 6144 bits
}

TEST(ContextTest, RefusesADeviceThatIsNotThere) {
  const Driver driver = fake::make();
  const auto context = Context::open(driver, 3);
  ASSERT_FALSE(context.ok());
  EXPECT_EQ(context.error().message, "no CUDA device 3: this machine has 1");
}

TEST(Handles, AreDestroyedOnceEach) {
  const Driver driver = fake::make();
  {
    auto context = Context::open(driver);
    ASSERT_TRUE(context.ok());
    auto stream = Stream::create(*context);
    auto event = Event::create(*context);
    auto second = Event::create(*context);
    ASSERT_TRUE(stream.ok() && event.ok() && second.ok());
    EXPECT_EQ(fake::state().live_handles, 4);
    Event moved = std::move(*event);
    moved = std::move(*second);
    EXPECT_EQ(fake::state().live_handles, 3);
    const Context elsewhere = std::move(*context);
  }
  EXPECT_EQ(fake::state().live_handles, 0);
}

TEST(ForeignMemory, IsTheDevicesOrRefused) {
  const Driver driver = fake::make();
  auto context = Context::open(driver);
  ASSERT_TRUE(context.ok());
  EXPECT_TRUE(check_on_device(*context, 0x7f0000000000).ok());
  EXPECT_EQ(check_on_device(*context, 0x1000).error().message, "0x1000 is memory of the host");
  EXPECT_EQ(check_on_device(*context, 0).error().message, "0x0 is no memory that CUDA knows");
  EXPECT_EQ(check_on_device(*context, api::CUdeviceptr{1} << 48).error().message,
            "0x1000000000000 is memory of cuda:1");
}

TEST(ForeignMemory, OwnersLeaveWhenTheWorkBeforeIsDone) {
  const Driver driver = fake::make();
  auto context = Context::open(driver);
  ASSERT_TRUE(context.ok());
  auto stream = Stream::create(*context);
  ASSERT_TRUE(stream.ok());
  const auto owner = std::make_shared<int>(0);
  Leaving leaving;
  fake::state().events_done = false;
  leaving.add(owner, *context, *stream);
  EXPECT_TRUE(leaving.take_done().empty());
  EXPECT_EQ(owner.use_count(), 2) << "the work may still use what it keeps";
  fake::state().events_done = true;
  EXPECT_EQ(leaving.take_done().size(), 1U);
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_TRUE(leaving.take_done().empty()) << "once";
}

TEST(Streams, OfOthersAreUsedAndNotDestroyed) {
  const Driver driver = fake::make();
  auto context = Context::open(driver);
  ASSERT_TRUE(context.ok());
  auto* theirs = reinterpret_cast<api::CUstream>(0x5000);
  fake::state().streams[theirs] = context->get();
  const int handles = fake::state().live_handles;
  {
    const auto stream = Stream::borrow(*context, theirs);
    ASSERT_TRUE(stream.ok());
    EXPECT_EQ(stream->get(), theirs);
    EXPECT_EQ(Stream::borrow(*context, nullptr)->get(), nullptr) << "the legacy default stream";
  }
  EXPECT_EQ(fake::state().live_handles, handles);
}

TEST(Streams, OfAnotherContextOrOfEachThreadAreRefused) {
  const Driver driver = fake::make();
  auto context = Context::open(driver);
  ASSERT_TRUE(context.ok());
  auto* elsewhere = reinterpret_cast<api::CUstream>(0x5000);
  fake::state().streams[elsewhere] = reinterpret_cast<api::CUcontext>(0x9000);
  EXPECT_THAT(Stream::borrow(*context, elsewhere).error().message,
              HasSubstr("stream 0x5000 is not of the primary context of cuda:0"));
  EXPECT_THAT(Stream::borrow(*context, reinterpret_cast<api::CUstream>(2)).error().message,
              HasSubstr("another one on each thread"));
  EXPECT_FALSE(Stream::borrow(*context, reinterpret_cast<api::CUstream>(0x6000)).ok());
}

TEST(Entering, LeavesWhatWasCurrentBefore) {
  const Driver driver = fake::make();
  auto context = Context::open(driver);
  ASSERT_TRUE(context.ok());
  auto* theirs = reinterpret_cast<api::CUcontext>(0x9000);
  fake::state().current = theirs;
  {
    const auto entered = Entered::enter(*context);
    ASSERT_TRUE(entered.ok());
    EXPECT_EQ(fake::state().current, context->get());
    const auto again = Entered::enter(*context);
    ASSERT_TRUE(again.ok());
  }
  EXPECT_EQ(fake::state().current, theirs);
  EXPECT_EQ(fake::state().calls.size(), 2U) << "once there and once back";
  fake::state().current = nullptr;
  {
    const auto entered = Entered::enter(*context);
  }
  EXPECT_EQ(fake::state().current, context->get()) << "the next call finds it there";
}

TEST(Streams, WaitForOneAnotherAndTheHostForNone) {
  const Driver driver = fake::make();
  auto context = Context::open(driver);
  ASSERT_TRUE(context.ok());
  auto stream = Stream::create(*context);
  ASSERT_TRUE(stream.ok());
  auto* legacy = reinterpret_cast<api::CUstream>(1);
  EXPECT_TRUE(order(*context, stream->get(), legacy).ok());
  EXPECT_EQ(fake::state().calls, std::vector<std::string>{"wait 0x1"});
}

}  // namespace
}  // namespace tilewright::cuda
