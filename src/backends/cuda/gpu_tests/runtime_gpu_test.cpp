// The plumbing on a real device: limits, pool, copies, launches, graphs.
#include <gmock/gmock.h>

#include <numeric>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/gpu_tests/gpu.h"
#include "backends/cuda/host/graph.h"

namespace tilewright::cuda {
namespace {

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.f);
  return values;
}

TEST(GpuContext, ReportsAPlausibleDevice) {
  const auto& limits = Gpu::open().context.limits();
  EXPECT_GE(limits.compute_major, 8);
  EXPECT_GT(limits.multiprocessors, 0);
  EXPECT_GE(limits.shared_bytes_per_block, 48 * 1024);
  EXPECT_GT(limits.l2_bytes, 1 << 20);
  const auto memory = must(Gpu::open().context.memory_info());
  EXPECT_GT(memory.free_bytes, 0u);
  EXPECT_LE(memory.free_bytes, memory.total_bytes);
}

TEST(GpuContext, NamesTheArchitectureOfABinaryItCannotLoad) {
  auto& gpu = Gpu::open();
  const auto module = Module::load(gpu.context, std::string_view("not a cubin at all\0", 19));
  ASSERT_FALSE(module.ok());
  EXPECT_THAT(module.error().message, ::testing::HasSubstr(gpu.context.limits().arch().text()));
}

TEST(GpuCopy, BringsBackWhatWasSent) {
  auto& gpu = Gpu::open();
  // Below one staging piece, exactly one, and several with a rest.
  for (std::size_t count :
       {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20, (std::size_t{5} << 20) + 3}) {
    const auto sent = ramp(count);
    const Buffer buffer = gpu.upload(sent);
    EXPECT_EQ(gpu.download<float>(buffer, count), sent) << count;
  }
}

TEST(GpuCopy, FillsAndCopiesOnTheDevice) {
  auto& gpu = Gpu::open();
  const Buffer a = gpu.poisoned<unsigned>(1000), b = gpu.poisoned<unsigned>(1000);
  must(fill(gpu.driver, a.address(), {0x01020304, 4}, 4000, gpu.stream.get()));
  must(copy_on_device(gpu.driver, b.address(), a.address(), 4000, gpu.stream.get()));
  EXPECT_EQ(gpu.download<unsigned>(b, 1000), std::vector<unsigned>(1000, 0x01020304));
  must(fill(gpu.driver, a.address(), {0xbeef, 2}, 4000, gpu.stream.get()));
  EXPECT_EQ(gpu.download<unsigned>(a, 1000), std::vector<unsigned>(1000, 0xbeefbeef));
}

TEST(GpuBackend, WorksOnTheStreamThatIsGiven) {
  auto& gpu = Gpu::open();
  const auto stream = reinterpret_cast<backends::StreamHandle>(gpu.stream.get());
  const auto backend = must(CudaBackend::open({.stream = stream}));
  EXPECT_EQ(backend->stream_handle(), stream);
  constexpr std::size_t kBytes = std::size_t{256} << 20;  // about 60 us of filling
  void* memory = must(backend->allocate(kBytes));
  const auto address = reinterpret_cast<api::CUdeviceptr>(memory);
  for (unsigned i = 1; i <= 20; ++i) must(fill(gpu.driver, address, {i, 4}, kBytes, gpu.stream.get()));
  unsigned last = 0;
  must(backend->copy(&last, static_cast<char*>(memory) + kBytes - 4, 4, backends::CopyKind::device_to_host));
  EXPECT_EQ(last, 20U) << "after everything that the stream's owner has launched";
  backend->release(memory, kBytes);
}

TEST(GpuCopy, FillsByPatternsOfEightBytes) {
  auto& gpu = Gpu::open();
  constexpr std::uint64_t kBits = 0x0123456789abcdef;
  for (const std::size_t count : {1, 1000, 8192, 100001}) {
    const Buffer a = gpu.poisoned<std::uint64_t>(count + 1);
    const std::uint64_t behind = gpu.download<std::uint64_t>(a, count + 1).back();
    must(fill(gpu.driver, a.address(), {kBits, 8}, 8 * count, gpu.stream.get()));
    std::vector<std::uint64_t> want(count, kBits);
    want.push_back(behind);
    EXPECT_EQ(gpu.download<std::uint64_t>(a, count + 1), want) << count;
  }
}

TEST(GpuPool, FailsWithAMessageWhenTheDeviceIsFull) {
  auto& gpu = Gpu::open();
  const auto wanted = gpu.pool.allocate(std::size_t{1} << 42, gpu.stream.get());
  ASSERT_FALSE(wanted.ok());
  EXPECT_EQ(wanted.error().kind, Failure::Kind::out_of_memory);
  EXPECT_THAT(wanted.error().message, ::testing::HasSubstr("wanted 4096.00 GiB"));
  EXPECT_TRUE(gpu.pool.allocate(1000, gpu.stream.get()).ok());
}

class GpuLaunch : public ::testing::Test {
 protected:
  static constexpr int kCount = 100000;
  Gpu& gpu_ = Gpu::open();
  Module module_ = gpu_.compile(embedded::gpu_test_simple);
  Function scale_ = must(module_.function("scale"));
  std::vector<float> x_ = ramp(kCount);
  Buffer in_ = gpu_.upload(x_);
  Buffer out_ = gpu_.poisoned<float>(kCount);

  PreparedLaunch prepare(const Function& function, const Buffer& from, const Buffer& to, float a, float b,
                         bool overlap = false) {
    Arguments arguments;
    arguments.add(from.address()).add(to.address()).add(a).add(b).add(kCount);
    return must(PreparedLaunch::make(
        function, {.grid = {(kCount + 255) / 256, 1, 1}, .block = {256, 1, 1}, .overlap_previous = overlap},
        arguments));
  }
  void expect_output(const Buffer& buffer, float a, float b) {
    const auto got = gpu_.download<float>(buffer, kCount);
    for (int i = 0; i < kCount; ++i)
      ASSERT_EQ(got[static_cast<std::size_t>(i)], static_cast<float>(i) * a + b) << i;
  }
};

TEST_F(GpuLaunch, Computes) {
  auto launch = prepare(scale_, in_, out_, 2.f, 1.f);
  must(launch.launch(gpu_.stream.get()));
  expect_output(out_, 2.f, 1.f);
}

TEST_F(GpuLaunch, ReportsWhatTheKernelOccupies) {
  const auto attributes = must(scale_.attributes());
  EXPECT_GT(attributes.registers, 0);
  EXPECT_EQ(attributes.local_bytes, 0);
  EXPECT_EQ(attributes.max_threads, 1024);
  EXPECT_GE(must(scale_.blocks_per_multiprocessor(256, 0)), 4);
}

TEST_F(GpuLaunch, NamesAKernelThatIsNotThere) {
  const auto missing = module_.function("shrink");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, ::testing::HasSubstr("kernel \"shrink\""));
}

TEST_F(GpuLaunch, CapturedGraphDoesWhatTheStreamDid) {
  const Buffer middle = gpu_.poisoned<float>(kCount);
  const Function overlapped = must(module_.function("scale_overlapped"));
  const bool overlap = gpu_.context.limits().compute_major >= 9;
  auto first = prepare(scale_, in_, middle, 2.f, 0.f);
  auto second = prepare(overlapped, middle, out_, 1.f, 5.f, overlap);
  const auto work = [&]() -> Status {
    if (auto status = first.launch(gpu_.stream.get()); !status) return status;
    return second.launch(gpu_.stream.get());
  };
  const auto graph = must(CudaGraph::capture(gpu_.context, gpu_.stream, work));
  const auto exec = must(graph.instantiate());
  for (int replay = 0; replay < 3; ++replay) must(exec.launch(gpu_.stream.get()));
  expect_output(out_, 2.f, 5.f);
  must(work());  // and the plain stream agrees
  expect_output(out_, 2.f, 5.f);
}

TEST_F(GpuLaunch, EventsMeasure) {
  const auto start = must(Event::create(gpu_.context, Event::Timing::on));
  const auto end = must(Event::create(gpu_.context, Event::Timing::on));
  auto launch = prepare(scale_, in_, out_, 3.f, 0.f);
  must(start.record(gpu_.stream.get()));
  must(launch.launch(gpu_.stream.get()));
  must(end.record(gpu_.stream.get()));
  gpu_.synchronize();
  EXPECT_TRUE(must(end.done()));
  EXPECT_GT(must(end.elapsed_ms_since(start)), 0.f);
}

}  // namespace
}  // namespace tilewright::cuda
