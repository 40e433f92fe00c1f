// Error of the math headers over all 2^32 floats, against the bounds that tile/prim.h states.
#include <cstring>

#include <fmt/format.h>

#include "backends/cuda/gpu_tests/gpu.h"
#include "tilewright/base/philox.h"
#include "tilewright/tile/prim.h"

namespace tilewright::cuda {
namespace {

struct Worst {
  float error = 0;
  float argument = 0;
};

Worst sweep(Gpu& gpu, const Module& module, const std::string& kernel) {
  const Buffer worst = gpu.upload(std::vector<std::uint64_t>{0});
  Arguments arguments;
  arguments.add(worst.address());
  gpu.launch(must(module.function(kernel)), {.grid = {2048, 1, 1}, .block = {256, 1, 1}}, arguments);
  const std::uint64_t packed = gpu.download<std::uint64_t>(worst, 1)[0];
  const std::uint32_t parts[] = {static_cast<std::uint32_t>(packed >> 32),
                                 static_cast<std::uint32_t>(packed)};
  Worst out;
  std::memcpy(&out.error, &parts[0], 4);
  std::memcpy(&out.argument, &parts[1], 4);
  return out;
}

TEST(GpuMath, KeepsTheBoundsOfThePrimitivesForEveryFloat) {
  auto& gpu = Gpu::open();
  const Module module = gpu.compile(embedded::gpu_test_math);
  for (const char* name : {"exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "erf",
                           "sqrt", "rsqrt", "div", "reciprocal", "sigmoid", "floor", "round"}) {
    const Worst worst = sweep(gpu, module, std::string(name) + "_ulp");
    const double bound = tile::info(*tile::parse_prim(name)).ulp;
    fmt::print("{{\"test\":\"ulp\",\"function\":\"{}\",\"worst\":{:.4f},\"at\":{:.9g},\"bound\":{}}}\n", name,
               worst.error, worst.argument, bound);
    EXPECT_LE(worst.error, bound) << name << " at " << worst.argument;
  }
}

TEST(GpuMath, TheFastSetKeepsAQuarterUnitOfBf16ForEveryFloat) {
  auto& gpu = Gpu::open();
  const Module module = gpu.compile(embedded::gpu_test_math);
  for (const char* name :
       {"exp", "exp2", "log", "log2", "sin", "cos", "tanh", "sigmoid", "sqrt", "rsqrt", "reciprocal"}) {
    const Worst worst = sweep(gpu, module, std::string("fast_") + name);
    fmt::print("{{\"test\":\"fast\",\"function\":\"{}\",\"worst\":{:.3g},\"at\":{:.9g},\"bound\":{:.3g}}}\n",
               name, worst.error, worst.argument, 0x1p-10);
    EXPECT_LE(worst.error, 0x1p-10f) << name << " at " << worst.argument;
  }
}

TEST(GpuPhilox, GivesTheWordsOfTheHost) {
  auto& gpu = Gpu::open();
  const Module module = gpu.compile(embedded::gpu_test_philox);
  const std::uint64_t cases[][2] = {
      {0, 0}, {1, 4}, {0xdeadbeefcafebabeull, 0x3fffffff0ull}, {~0ull, (1ull << 62) + 8}};
  for (const auto& [seed, first] : cases) {
    constexpr std::size_t kWords = 4 * 256 * 8;
    const Buffer out = gpu.poisoned<std::uint32_t>(kWords);
    Arguments arguments;
    arguments.add(seed).add(first).add(out.address());
    gpu.launch(must(module.function("words")), {.grid = {8, 1, 1}, .block = {256, 1, 1}}, arguments);
    const auto got = gpu.download<std::uint32_t>(out, kWords);
    for (std::size_t i = 0; i < kWords; ++i) {
      const std::uint64_t counter = first + i;
      ASSERT_EQ(got[i], philox4x32(seed, counter >> 2)[counter & 3]) << seed << " " << counter;
    }
  }
}

}  // namespace
}  // namespace tilewright::cuda
