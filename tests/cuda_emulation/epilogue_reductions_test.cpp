// What a GPU would run where the tiles of a product are reduced as they are stored.
#include "cuda_emulation/kernel_expect.h"

#include "ops/composites.h"
#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include <functional>

namespace tilewright::emulation {
namespace {

class EmulatedStatistics : public ::testing::Test {
 protected:
  // All schedules on tensor cores of the one kernel with dots, and the best of each that finishes what it
  // leaves.
  void check(const std::function<std::vector<ir::Value>(ir::Graph&)>& make, std::size_t kernels) {
    ir::Graph graph("epilogue_reductions");
    std::vector<ir::NodeId> outputs;
    for (const ir::Value& v : make(graph)) outputs.push_back(v.id);
    graph.set_outputs(outputs);
    tile::Target target = backend_->target();
    target.units = 2;     // which the programs fill
    target.launch_s = 0;  // else so small a product is rather computed twice, in one kernel
    target.predicted_us = nullptr;
    const passes::Compiled compiled = passes::run_pipeline(graph, target);
    ASSERT_EQ(compiled.plan.kernels.size(), kernels);
    for (const tile::Kernel& kernel : compiled.plan.kernels) {
      bool dots = false;
      tile::for_each_op(kernel.body,
                        [&](const tile::Op& op) { dots = dots || op.kind == tile::OpKind::dot; });
      int taken = 0;
      for (const backends::Candidate& c : backend_->candidates(kernel)) {
        if (!c.refusal.empty() || (dots && dot_unit(c.schedule) != tile::DotUnit::wgmma) ||
            (!dots && taken > 0))
          continue;
        expect_right(*backend_, kernel, c.schedule);
        ++taken;
      }
      EXPECT_GT(taken, 0) << kernel.name;
    }
  }

  static ir::Value input(ir::Graph& graph, const char* name, const Shape& shape, DType dtype = DType::bf16) {
    return {&graph, graph.add_input(name, {dtype, shape})};
  }

  std::unique_ptr<backends::Backend> backend_ = open_emulated_cuda("sm_90a").value();
};

TEST_F(EmulatedStatistics, OfRowsColumnsAndAll) {
  for (const ops::Axes& axes : {ops::Axes{1}, ops::Axes{0}, ops::Axes{0, 1}})
    check(
        [&](ir::Graph& g) {
          const ir::Value y = ops::matmul(input(g, "a", {300, 200}), input(g, "b", {200, 520}), DType::f32);
          return std::vector{ops::cast(y, DType::bf16), ops::max(ops::abs(y), axes)};
        },
        2);
}

TEST_F(EmulatedStatistics, OfAGateOfTwoProducts) {
  check(
      [&](ir::Graph& g) {
        const ir::Value x = input(g, "x", {300, 200});
        const ir::Value gate = ops::matmul(x, input(g, "a", {200, 264}), DType::f32),
                        up = ops::matmul(x, input(g, "b", {200, 264}), DType::f32);
        const ir::Value y = ops::silu(gate) * up;
        return std::vector{ops::cast(y, DType::bf16), ops::max(ops::abs(y), {1}), ops::sum(y, {0})};
      },
      3);
}

// A tile holds all rows of both products.
TEST_F(EmulatedStatistics, OfAGateWhoseColumnsAreNormalised) {
  check(
      [&](ir::Graph& g) {
        const ir::Value x = input(g, "x", {60, 200});
        const ir::Value gate = ops::matmul(x, input(g, "a", {200, 264}), DType::f32),
                        up = ops::matmul(x, input(g, "b", {200, 264}), DType::f32);
        return std::vector{ops::cast(ops::softmax(ops::silu(gate) * up, 0), DType::bf16)};
      },
      1);
}

// Every block of 128 columns is divided by its largest: the tile holds it.
TEST_F(EmulatedStatistics, OfBlocksThatAreScaledByThem) {
  check(
      [&](ir::Graph& g) {
        const ir::Value y = ops::reshape(
            ops::matmul(input(g, "a", {200, 72}), input(g, "b", {72, 384}), DType::f32), {200, 3, 128});
        const ir::Value scale = ops::max(ops::abs(y), {2}, ops::Keep::yes) * (1 / 448.0) + 1e-12;
        return std::vector{
            ops::reshape(ops::cast(y / ops::broadcast_to(scale, y.shape()), DType::f8e4m3), {200, 384}),
            ops::reshape(scale, {200, 3})};
      },
      1);
}

TEST_F(EmulatedStatistics, OfRowsThatATileHolds) {
  check(
      [&](ir::Graph& g) {
        const ir::Value y = ops::matmul(input(g, "a", {200, 72}), input(g, "b", {72, 80}), DType::f32);
        return std::vector{ops::cast(ops::softmax(y, -1), DType::bf16)};
      },
      1);
}

}  // namespace
}  // namespace tilewright::emulation
