// Lesson 5: a matrix product, from naive to pipelined.
//
// c (M, N) = a (M, K) · b (K, N), written as tile kernels. What decides the speed is how often an operand's
// element is used once it has come from memory: a program that makes one row of c uses each element of b
// once, one that makes a block of BM × BN uses each element of a BN times and each of b BM times. The last
// steps change only the schedule: the kernel says what is computed, the schedule how a device does it.
//
//   lesson [device] [size]      default: cpu 512; cuda:0 4096 shows the steps of a GPU
#include <fmt/core.h>

#include <tilewright/tile/schedule.h>
#include <tilewright/tilewright.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace tw = tilewright;
namespace tile = tilewright::tile;
using tw::Index;

// One row of c, BN columns of it at a time.
tile::Kernel rows_kernel(tw::DType dtype, Index size, Index bn) {
  tile::Builder k("gemm_rows");
  auto a = k.view("a", dtype, {size, size}), b = k.view("b", dtype, {size, size}),
       c = k.view("c", dtype, {size, size});
  tile::Value column = k.program_id(0) * bn, row = k.program_id(1);
  tile::Value sum = k.loop(0, size, 1, {k.literal(tw::DType::f32, 0.0, {bn})},
                           [&](tile::Value p, const std::vector<tile::Value>& carried) {
                             tile::Value x = k.cast(k.load(a, {row, p}), tw::DType::f32);  // a scalar
                             tile::Value y = k.load(b, {p, column}, {.shape = {bn}, .fill = 0});
                             return std::vector{carried[0] + x * k.cast(y, tw::DType::f32)};
                           })[0];
  k.store(c, {row, column}, k.cast(sum, dtype), {.bounded = true});
  return k.finish({{{size, bn}}, {{size, 1}}});
}

struct Blocks {
  Index rows, columns, depth;
};

// A block of c: the loop walks blocks of a and b along K, and `dot` adds their product.
tile::Kernel blocks_kernel(tw::DType dtype, Index size, Blocks block) {
  tile::Builder k("gemm_blocks");
  auto a = k.view("a", dtype, {size, size}), b = k.view("b", dtype, {size, size}),
       c = k.view("c", dtype, {size, size});
  k.constant("BM", block.rows), k.constant("BN", block.columns), k.constant("BK", block.depth);
  tile::Value column = k.program_id(0) * block.columns, row = k.program_id(1) * block.rows;
  tile::Value sum =
      k.loop(0, size, block.depth, {k.literal(tw::DType::f32, 0.0, {block.rows, block.columns})},
             [&](tile::Value p, const std::vector<tile::Value>& carried) {
               tile::Value x = k.load(a, {row, p}, {.shape = {block.rows, block.depth}, .fill = 0});
               tile::Value y = k.load(b, {p, column}, {.shape = {block.depth, block.columns}, .fill = 0});
               return std::vector{k.dot(x, y, carried[0])};
             })[0];
  k.store(c, {row, column}, k.cast(sum, dtype), {.bounded = true});
  return k.finish({{{size, block.columns}}, {{size, block.rows}}});
}

// The largest difference from the float64 product over a few rows, in units of the bound for sums of K terms.
double worst_error(const tw::Tensor& a, const tw::Tensor& b, const tw::Tensor& c, Index size) {
  const std::vector<double> as = cast(a, tw::DType::f64).to_vector<double>(),
                            bs = cast(b, tw::DType::f64).to_vector<double>(),
                            cs = cast(c, tw::DType::f64).to_vector<double>();
  const double stored = c.dtype() == tw::DType::bf16 ? 0x1p-8 : 0x1p-23;  // a rounding of the result
  double worst = 0;
  for (const Index row : {Index{0}, size / 3, size - 1}) {
    for (Index column = 0; column < size; ++column) {
      double sum = 0, magnitude = 0;
      for (Index p = 0; p < size; ++p) {
        const double term =
            as[static_cast<std::size_t>(row * size + p)] * bs[static_cast<std::size_t>(p * size + column)];
        sum += term, magnitude += std::abs(term);
      }
      const double bound = stored * std::abs(sum) + static_cast<double>(size) * 0x1p-24 * magnitude;
      worst = std::max(worst, std::abs(cs[static_cast<std::size_t>(row * size + column)] - sum) / bound);
    }
  }
  return worst;
}

struct Step {
  std::string what;
  std::optional<tile::Kernel> kernel;           // none: compile()'s own
  std::optional<tile::Schedule> schedule = {};  // none: the device's own choice
};

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cpu";
  const bool gpu = device != "cpu" && device != "reference";
  const Index size = argc > 2 ? std::atoll(argv[2]) : gpu ? 4096 : 512;
  const tw::DType dtype = gpu ? tw::DType::bf16 : tw::DType::f32;
  tw::Context ctx({.device = device});

  std::vector<Step> steps;
  steps.push_back({"a row a program", rows_kernel(dtype, size, 256)});
  if (gpu) steps.push_back({"blocks of 16 x 16", blocks_kernel(dtype, size, {16, 16, 16})});
  steps.push_back({"blocks of 64 x 64", blocks_kernel(dtype, size, {64, 64, 32})});
  if (gpu) {
    // Tensor cores: first fed by the threads, through shared memory that they fill themselves (cp.async) …
    steps.push_back({"128 x 128, mma.sync", blocks_kernel(dtype, size, {128, 128, 64})});
    steps.back().schedule = {.threads = 256, .kind = tile::MmaDot{.stages = 3}};
    // Then by the copy engine: a warpgroup of its own keeps a ring of blocks full while two others
    // multiply.
    for (const int stages : {2, 4}) {
      steps.push_back(
          {fmt::format("128 x 256, wgmma, ring of {}", stages), blocks_kernel(dtype, size, {128, 256, 64})});
      steps.back().schedule = {.threads = 256, .kind = tile::WgmmaDot{.stages = stages}};
    }
    // Programs in groups: those that run at the same time read the same blocks, which the L2 cache then
    // holds.
    steps.push_back({"the same in groups of 16", blocks_kernel(dtype, size, {128, 256, 64})});
    steps.back().schedule = {.threads = 256, .kind = tile::WgmmaDot{.stages = 4, .group_m = 16}};
  } else {
    // On the CPU a block of b is packed into panels that stay in the cache; 6 rows by a few vectors of c in
    // registers.
    steps.push_back({"blocks of 128 x 256 x 256", blocks_kernel(dtype, size, {128, 256, 256})});
  }
  steps.push_back({"matmul() by compile()", std::nullopt});

  const tw::Tensor a = cast(ctx.randn({size, size}), dtype), b = cast(ctx.randn({size, size}), dtype);
  auto compiled = tw::compile([](const tw::Tensor& x, const tw::Tensor& y) { return matmul(x, y); });
  bool right = true;
  fmt::print("{}: {} x {} x {}, {}\n", device, size, size, size, tw::name(dtype));
  for (const Step& step : steps) {
    std::optional<tw::TileFunction> by_hand;
    if (step.kernel) by_hand.emplace(*step.kernel);
    if (step.schedule) by_hand->use(*step.schedule);
    tw::Tensor c;
    const auto run = [&] {
      c = by_hand ? (*by_hand)({a, b, tw::out({size, size}, dtype)}).at(0) : compiled(a, b);
    };
    run();
    const double error = worst_error(a, b, c, size);
    right = right && error <= 1;
    std::vector<double> seconds;
    for (int round = 0; round < 9; ++round) {
      ctx.synchronize();
      const auto start = std::chrono::steady_clock::now();
      run();
      ctx.synchronize();
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::nth_element(seconds.begin(), seconds.begin() + 4, seconds.end());
    const double flops =
        2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
    fmt::print("  {:28} {:9.1f} GFLOP/s, error {:.2f} of its bound\n", step.what, flops / seconds[4] / 1e9,
               error);
  }
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
