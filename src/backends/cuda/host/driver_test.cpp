// Opening the driver where there is none, and the wrappers over a fake one.
#include "backends/cuda/host/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "backends/cuda/host/context.h"
#include "backends/cuda/host/fake_driver.h"

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

}  // namespace
}  // namespace tilewright::cuda
