// Sorts: a network over shared memory, along rows and down columns of tiles of every length; and rows longer
// than a block sorts, in runs that are merged.
#include "cuda_emulation/kernel_expect.h"

#include "ops/functions.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "support/host_values.h"
#include "support/limit_check.h"
#include "support/run_graph.h"

#include <tilewright/tile/builder.h>

#include <array>
#include <cmath>
#include <limits>

namespace tilewright::emulation {
namespace {

using tile::Builder;
using tile::Kernel;
using tile::Schedule;
using tile::View;

struct Sort {
  DType dtype = DType::f32;
  Index rows = 1, columns = 1;
  int axis = 1;
  Order order = Order::ascending;
};

Kernel sort_kernel(const Sort& s) {
  Builder k("sort");
  const View x = k.view("x", s.dtype, {2, s.rows, s.columns}),
             y = k.view("y", DType::i32, {2, s.rows, s.columns});
  const tile::Value program = k.program_id(0);
  const tile::Value tile = k.load(x, {program, 0, 0}, {.shape = {s.rows, s.columns}});
  const DType wide = compute_dtype(s.dtype);
  k.store(y, {program, 0, 0}, k.argsort(wide == s.dtype ? tile : k.cast(tile, wide), s.axis, s.order));
  return k.finish({{{2, 1}}});
}

Schedule threads_of(int threads, int threads_per_row) {
  return {.threads = threads, .kind = tile::ElementLoops{.threads_per_row = threads_per_row}};
}

class Sorts : public ::testing::Test {
 protected:
  std::unique_ptr<backends::Backend> backend_ = open_emulated_cuda("sm_90a").value();
};

TEST_F(Sorts, AreRightUnderEverySpread) {
  for (const DType dtype : {DType::bf16, DType::i64})
    for (const auto& [rows, columns] : {std::pair<Index, Index>{1, 100}, {37, 8}, {5, 33}, {64, 1}})
      for (const int axis : {0, 1})
        for (const Schedule& s : {threads_of(32, 1), threads_of(64, 64), threads_of(256, 8)}) {
          if (s.threads / 4 > rows * columns) continue;
          SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(rows) + " by " +
                       std::to_string(columns) + ", axis " + std::to_string(axis) + ", " + to_string(s));
          expect_right(*backend_, sort_kernel({dtype, rows, columns, axis, Order::descending}), s);
        }
}

TEST_F(Sorts, OfEveryLengthAreRight) {
  for (const Index length : {2, 3, 31, 32, 33, 127, 1000, 4096})
    for (const Order order : {Order::ascending, Order::descending}) {
      SCOPED_TRACE(length);
      expect_first_right(*backend_, sort_kernel({.columns = length, .order = order}));
    }
}

// Elements in an order that is known: ties, infinities, NaN and both zeros among them.
TEST_F(Sorts, OfLongAxesAreRight) {
  test::GraphRunner runner("emulated:sm_90a");
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const auto& [dtype, shape, axis] : {std::tuple<DType, Shape, Index>{DType::f32, {4097}, 0},
                                           {DType::f32, {50000}, 0},
                                           {DType::bf16, {2, 9001}, 1},
                                           {DType::i64, {5000, 3}, 0}})
    for (const Order order : {Order::ascending, Order::descending}) {
      SCOPED_TRACE(std::string(name(dtype)) + to_string(shape));
      ir::Graph graph("long");
      const ir::Value x{&graph, graph.add_input("x", {dtype, shape})};
      graph.set_outputs({ops::argsort(x, axis, order).id, ops::sort(x, axis, order).id});
      std::vector<double> numbers(static_cast<std::size_t>(shape.size()));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = static_cast<double>(i * 7919 % 1013) - 500;
        if (is_float(dtype) && i % 11 == 0)
          numbers[i] = std::array{kInf, -kInf, std::nan(""), -0.0, 0.0}[i / 11 % 5];
      }
      const std::vector<ir::HostTensor> inputs = {
          is_float(dtype) ? test::host_floats(dtype, shape, numbers)
                          : ir::HostTensor{{dtype, shape}, {}, {numbers.begin(), numbers.end()}}};
      const auto got = runner.run(passes::run_pipeline(graph, runner.device->target()), inputs),
                 want = ops::evaluate(graph, inputs);
      for (std::size_t i : {0u, 1u}) EXPECT_EQ(test::difference(got[i], want[i], {0, 0}), "");
    }
}

}  // namespace
}  // namespace tilewright::emulation
