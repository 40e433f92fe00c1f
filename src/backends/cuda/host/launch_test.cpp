// Prepared launches and capture over a fake driver: what reaches the driver's one call.
#include "backends/cuda/host/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/host/fake_driver.h"
#include "backends/cuda/host/graph.h"

namespace tilewright::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Launch : public testing::Test {
 protected:
  Driver driver_ = fake::make();
  Function function_{driver_, reinterpret_cast<api::CUfunction>(0x50)};
  api::CUstream stream_ = reinterpret_cast<api::CUstream>(0x60);
};

TEST_F(Launch, HandsShapeAndArgumentsToTheDriver) {
  Arguments arguments;
  arguments.add(7).add(std::uint64_t{8}).add(9);
  auto made = PreparedLaunch::make(
      function_, {.grid = {10, 2, 1}, .block = {256, 1, 1}, .shared_bytes = 1024}, arguments);
  ASSERT_TRUE(made.ok());
  PreparedLaunch launch = std::move(*made);  // the pointers must survive a move
  fake::state().last_arguments.resize(3);
  ASSERT_TRUE(launch.launch(stream_).ok());
  EXPECT_THAT(fake::state().last_arguments, ElementsAre(7, 8, 9));
  const auto& config = fake::state().last_config;
  EXPECT_EQ(config.grid_x, 10u);
  EXPECT_EQ(config.grid_y, 2u);
  EXPECT_EQ(config.block_x, 256u);
  EXPECT_EQ(config.shared_bytes, 1024u);
  EXPECT_EQ(config.stream, stream_);
  EXPECT_EQ(config.attribute_count, 0u);
  EXPECT_TRUE(fake::state().calls.empty());  // nothing to opt in to
}

TEST_F(Launch, AsksForClustersAndOverlapByAttributes) {
  auto launch = PreparedLaunch::make(
      function_, {.grid = {32, 1, 1}, .block = {128, 1, 1}, .cluster = {16, 1, 1}, .overlap_previous = true},
      {});
  ASSERT_TRUE(launch.ok());
  ASSERT_TRUE(launch->launch(stream_).ok());
  ASSERT_EQ(fake::state().last_attributes.size(), 2u);
  EXPECT_EQ(fake::state().last_attributes[0].id, api::kLaunchClusterDimension);
  EXPECT_EQ(fake::state().last_attributes[0].value.cluster_dim.x, 16u);
  EXPECT_EQ(fake::state().last_attributes[1].id, api::kLaunchProgrammaticStreamSerialization);
  EXPECT_EQ(fake::state().last_attributes[1].value.programmatic_stream_serialization_allowed, 1);
  EXPECT_THAT(fake::state().calls, ElementsAre("set 14 1"));  // more than 8 blocks are not portable
}

TEST_F(Launch, OptsInToLargeSharedMemory) {
  ASSERT_TRUE(PreparedLaunch::make(function_, {.shared_bytes = 200000}, {}).ok());
  EXPECT_THAT(fake::state().calls, ElementsAre("set 8 200000"));
}

TEST_F(Launch, RefusesShapesThatCannotRun) {
  fake::state().max_threads = 512;
  const auto error = [&](const LaunchShape& shape) {
    return PreparedLaunch::make(function_, shape, {}).error().message;
  };
  EXPECT_THAT(error({.block = {1024, 1, 1}}),
              HasSubstr("allows 512 threads a block (32 registers a thread)"));
  EXPECT_THAT(error({.grid = {10, 1, 1}, .cluster = {4, 1, 1}}),
              HasSubstr("grid 10x1x1 block 1x1x1 cluster 4x1x1"));
  EXPECT_THAT(error({.grid = {0, 1, 1}}), HasSubstr("empty"));
  EXPECT_THAT(error({.grid = {1, 70000, 1}}), HasSubstr("65535"));
}

TEST(ArgumentsTest, AlignsEachForItsParameter) {
  Arguments arguments;
  arguments.add('c').add(api::TensorMap{}).add(1.0f);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arguments.address(1)) % 128, 0u);
  EXPECT_EQ(*static_cast<char*>(arguments.address(0)), 'c');
  EXPECT_EQ(*static_cast<float*>(arguments.address(2)), 1.0f);
}

class Capture : public testing::Test {
 protected:
  Driver driver_ = fake::make();
  Result<Context> context_ = Context::open(driver_);
  Result<Stream> stream_ = Stream::create(*context_);
};

TEST_F(Capture, EndsOnTheStreamWhenTheWorkFails) {
  const auto graph =
      CudaGraph::capture(*context_, *stream_, [] { return Status(failure(Failure::Kind::device, "no")); });
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().message, "no");
  EXPECT_THROW((void)CudaGraph::capture(*context_, *stream_, []() -> Status { throw Error("user"); }), Error);
  EXPECT_THAT(fake::state().calls,
              ElementsAre("begin_capture", "end_capture", "begin_capture", "end_capture"));
  EXPECT_EQ(fake::state().live_handles, 2);  // context and stream: the abandoned graphs are gone
}

}  // namespace
}  // namespace tilewright::cuda
