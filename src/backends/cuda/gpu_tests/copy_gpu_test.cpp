// The memory and asynchronous-copy headers: every way of copying moves every byte.
#include <random>

#include "backends/cuda/gpu_tests/gpu.h"

namespace tilewright::cuda {
namespace {

std::vector<unsigned char> random_bytes(std::size_t count) {
  std::mt19937 random(5);
  std::vector<unsigned char> out(count);
  for (auto& byte : out) byte = static_cast<unsigned char>(random());
  return out;
}

std::vector<unsigned char> copied_by(const std::string& kernel, const std::vector<unsigned char>& bytes,
                                     LaunchShape shape) {
  auto& gpu = Gpu::open();
  const Module module = gpu.compile(embedded::gpu_test_copy);
  const Buffer from = gpu.upload(bytes), to = gpu.poisoned<unsigned char>(bytes.size());
  Arguments arguments;
  arguments.add(from.address()).add(to.address()).add(static_cast<std::uint64_t>(bytes.size()));
  gpu.launch(must(module.function(kernel)), shape, arguments);
  return gpu.download<unsigned char>(to, bytes.size());
}

TEST(GpuCopyKernels, MoveEveryByte) {
  const auto bytes = random_bytes((std::size_t{3} << 20) + 16 * 77);
  for (const char* kernel :
       {"copy_normal_4", "copy_in_turn_4", "copy_constant_2", "copy_constant_4", "copy_constant_8"}) {
    EXPECT_TRUE(copied_by(kernel, bytes, {.grid = {50, 1, 1}, .block = {512, 1, 1}}) == bytes) << kernel;
  }
  EXPECT_TRUE(copied_by("copy_async", bytes, {.grid = {50, 1, 1}, .block = {256, 1, 1}}) == bytes);
}

TEST(GpuCopyKernels, TheCopyEngineMovesEveryByte) {
  if (Gpu::open().context.limits().compute_major < 9) return;  // no such hardware before sm_90
  const auto bytes = random_bytes(16384 * 331);
  EXPECT_TRUE(copied_by("copy_bulk", bytes,
                        {.grid = {40, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 4 * 16384}) == bytes);
}

TEST(GpuCopyKernels, NarrowAccessesTouchTheirBytesOnly) {
  const auto bytes = random_bytes(32 * 1000);
  auto want = bytes;
  for (std::size_t i = 31; i < want.size(); i += 32) want[i] = 0xfa;  // the poison stays
  EXPECT_TRUE(copied_by("copy_widths", bytes, {.grid = {10, 1, 1}, .block = {128, 1, 1}}) == want);
}

}  // namespace
}  // namespace tilewright::cuda
