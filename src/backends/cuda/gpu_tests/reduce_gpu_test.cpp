// Reductions of the device headers against the host, group by group and thread by thread.
#include <algorithm>
#include <cmath>
#include <random>

#include "backends/cuda/gpu_tests/gpu.h"

namespace tilewright::cuda {
namespace {

struct Inputs {
  std::vector<float> x;
  std::vector<int> k;
};

// Random, with ties everywhere, a NaN in every seventh group of `group`, infinities in others.
Inputs make_inputs(std::size_t count, std::size_t group) {
  std::mt19937 random(1234);
  Inputs in;
  for (std::size_t i = 0; i < count; ++i) {
    in.x.push_back(static_cast<float>(static_cast<int>(random() % 201) - 100) / 8.f);
    in.k.push_back(static_cast<int>(random()));
  }
  for (std::size_t g = 0; g * group < count; ++g) {
    if (g % 7 == 3) in.x[g * group + random() % group] = NAN;
    if (g % 7 == 5) in.x[g * group + random() % group] = INFINITY;
  }
  return in;
}

bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

struct Outputs {
  std::vector<float> sum, product, largest, smallest;
  std::vector<int> arg, scanned, total;
  std::vector<double> wide;
};

Outputs run_block(Gpu& gpu, const Function& function, const Inputs& in, unsigned threads) {
  const std::size_t n = in.x.size();
  const Buffer x = gpu.upload(in.x), k = gpu.upload(in.k);
  const Buffer sum = gpu.poisoned<float>(n), product = gpu.poisoned<float>(n),
               largest = gpu.poisoned<float>(n), smallest = gpu.poisoned<float>(n),
               arg = gpu.poisoned<int>(n), scanned = gpu.poisoned<int>(n), total = gpu.poisoned<int>(n),
               wide = gpu.poisoned<double>(n);
  Arguments arguments;
  for (const Buffer* b : {&x, &k, &sum, &product, &largest, &smallest, &arg, &scanned, &total, &wide})
    arguments.add(b->address());
  gpu.launch(function, {.grid = {static_cast<unsigned>(n) / threads, 1, 1}, .block = {threads, 1, 1}},
             arguments);
  return {gpu.download<float>(sum, n),      gpu.download<float>(product, n), gpu.download<float>(largest, n),
          gpu.download<float>(smallest, n), gpu.download<int>(arg, n),       gpu.download<int>(scanned, n),
          gpu.download<int>(total, n),      gpu.download<double>(wide, n)};
}

// What a group's threads should have got.
struct Expected {
  double sum = 0, product = 1;
  float largest = -INFINITY, smallest = INFINITY;
  int arg = 0;
  unsigned total = 0;
};

Expected expect_group(const float* x, const int* k, std::size_t group) {
  Expected e;
  for (std::size_t i = 0; i < group; ++i) {
    e.sum += x[i];
    e.product *= 1. + x[i] * 0x1p-10;
    if (std::isnan(x[i]) || x[i] > e.largest) e.largest = std::isnan(e.largest) ? e.largest : x[i];
    if (std::isnan(x[i]) || x[i] < e.smallest) e.smallest = std::isnan(e.smallest) ? e.smallest : x[i];
    const float best = x[static_cast<std::size_t>(e.arg)];
    if (!std::isnan(best) && (std::isnan(x[i]) || x[i] > best)) e.arg = static_cast<int>(i);
    e.total += static_cast<unsigned>(k[i]);
  }
  return e;
}

void check_close(double got, double want, double tolerance, const std::string& where) {
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(got)) << where;
  } else if (std::isinf(want)) {
    ASSERT_EQ(got, want) << where;
  } else {
    ASSERT_NEAR(got, want, tolerance) << where;
  }
}

void check_block(const Inputs& in, const Outputs& out, std::size_t group, unsigned threads) {
  for (std::size_t g = 0; g < in.x.size(); g += group) {
    const Expected e = expect_group(&in.x[g], &in.k[g], group);
    unsigned running = 0;
    for (std::size_t i = g; i < g + group; ++i) {
      const auto where = "group " + std::to_string(group) + " in blocks of " + std::to_string(threads) +
                         ", element " + std::to_string(i);
      check_close(out.sum[i], e.sum, 1e-6 * 12.5 * static_cast<double>(group), where);
      check_close(out.product[i], e.product, 1e-6 * static_cast<double>(group) * std::fabs(e.product), where);
      check_close(out.wide[i], e.sum, 1e-13 * 12.5 * static_cast<double>(group), where);
      ASSERT_TRUE(same(out.largest[i], e.largest)) << where;
      ASSERT_TRUE(same(out.smallest[i], e.smallest)) << where;
      ASSERT_EQ(out.arg[i], e.arg) << where;
      running += static_cast<unsigned>(in.k[i]);
      ASSERT_EQ(static_cast<unsigned>(out.scanned[i]), running) << where;
      ASSERT_EQ(static_cast<unsigned>(out.total[i]), e.total) << where;
    }
  }
}

TEST(GpuReduce, BlocksAndGroupsAgreeWithTheHost) {
  auto& gpu = Gpu::open();
  const Module module = gpu.compile(embedded::gpu_test_reduce);
  const std::pair<unsigned, unsigned> block_and_group[] = {
      {32, 1},   {64, 4},    {32, 32},   {256, 32},  {64, 64},   {256, 64},   {96, 96},
      {384, 96}, {384, 128}, {160, 160}, {960, 160}, {256, 256}, {1024, 256}, {1024, 1024}};
  for (const auto& [threads, group] : block_and_group) {
    const Function function = must(module.function("reduce_" + std::to_string(group)));
    const Inputs in = make_inputs(std::size_t{threads} * 37, group);
    check_block(in, run_block(gpu, function, in, threads), group, threads);
  }
}

TEST(GpuReduce, IsTheSameBitForBitEveryTime) {
  auto& gpu = Gpu::open();
  const Module module = gpu.compile(embedded::gpu_test_reduce);
  const Function function = must(module.function("reduce_1024"));
  const Inputs in = make_inputs(1024 * 200, 1024 * 200);
  const auto first = run_block(gpu, function, in, 1024).sum;
  for (int i = 0; i < 5; ++i) {
    const auto again = run_block(gpu, function, in, 1024).sum;
    EXPECT_TRUE(std::equal(first.begin(), first.end(), again.begin(), same));
  }
}

TEST(GpuReduce, ClustersAgreeWithTheHost) {
  auto& gpu = Gpu::open();
  if (!gpu.context.limits().clusters) return;  // no such hardware before sm_90
  const Module module = gpu.compile(embedded::gpu_test_cluster);
  for (unsigned blocks : {2u, 4u, 8u, 16u}) {
    const std::size_t group = std::size_t{256} * blocks, n = group * 30;
    Inputs in = make_inputs(n, group);
    const Buffer x = gpu.upload(in.x), sum = gpu.poisoned<float>(n), largest = gpu.poisoned<float>(n),
                 arg = gpu.poisoned<int>(n);
    Arguments arguments;
    for (const Buffer* b : {&x, &sum, &largest, &arg}) arguments.add(b->address());
    const Function function = must(module.function("reduce_" + std::to_string(blocks)));
    gpu.launch(function, {.grid = {blocks * 30, 1, 1}, .block = {256, 1, 1}, .cluster = {blocks, 1, 1}},
               arguments);
    const auto sums = gpu.download<float>(sum, n), most = gpu.download<float>(largest, n);
    const auto args = gpu.download<int>(arg, n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t g = i / group * group;
      static thread_local Expected e;
      if (i == g) e = expect_group(&in.x[g], &in.k[g], group);
      const auto where = std::to_string(blocks) + " blocks, element " + std::to_string(i);
      check_close(sums[i], e.sum, 1e-6 * 12.5 * static_cast<double>(group), where);
      ASSERT_TRUE(same(most[i], e.largest)) << where;
      const float* first = &in.x[g];
      const auto better = [](float a, float b) {
        return std::isnan(a) ? !std::isnan(b) : !std::isnan(b) && a < b;
      };
      ASSERT_EQ(args[i], static_cast<int>(std::min_element(first, first + group, better) - first)) << where;
    }
  }
}

}  // namespace
}  // namespace tilewright::cuda
