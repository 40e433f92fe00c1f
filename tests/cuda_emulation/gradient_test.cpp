// The kernels of attention's backward pass, as the compiler writes them, under the schedules CUDA takes
// first.
#include "cuda_emulation/kernel_expect.h"

#include "ops/composites.h"
#include "passes/graph/differentiate.h"
#include "passes/pipeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

namespace tilewright::emulation {
namespace {

// Two query heads share a head of keys; no extent is a whole number of blocks.
ir::Graph attention_gradient(DType dtype) {
  ir::Graph graph("attention");
  const auto input = [&](const char* name, const Shape& shape) {
    return ir::Value{&graph, graph.add_input(name, {dtype, shape})};
  };
  const ir::Value q = input("q", {1, 4, 72, 16}), k = input("k", {1, 2, 100, 16}),
                  v = input("v", {1, 2, 100, 16}), weight = input("weight", {1, 4, 72, 16});
  const auto shared = [](ir::Value x) {
    return ops::reshape(ops::broadcast_to(ops::unsqueeze(x, 2), {1, 2, 2, 100, 16}), {1, 4, 100, 16});
  };
  const ir::Value scores = ops::matmul(q, ops::swap_axes(shared(k), 2, 3), DType::f32) * 0.25;
  const ir::Value p = ops::cast(ops::softmax(scores), dtype);
  const ir::Value out = ops::matmul(p, shared(v), DType::f32);
  graph.set_outputs({ops::sum(out * weight).id});
  return passes::differentiate(graph, {0, 1, 2});
}

TEST(EmulatedGradient, KernelsOfAttentionMatchTheReference) {
  const auto backend = open_emulated_cuda("sm_90a").value();
  for (DType dtype : {DType::f32, DType::bf16}) {
    const passes::Compiled compiled =
        passes::run_pipeline(attention_gradient(dtype), backend->target(), {.recompute = Recompute::always});
    for (const tile::PlanBuffer& buffer : compiled.plan.buffers)
      EXPECT_LE(buffer.elements, 4 * 100 * 16) << "scores are stored";
    for (const tile::Kernel& kernel : compiled.plan.kernels) {
      SCOPED_TRACE(fmt::format("{} {}", name(dtype), kernel.name));
      const auto candidates = backend->candidates(kernel);
      ASSERT_FALSE(candidates.empty());
      expect_right(*backend, kernel, candidates.front().schedule);
    }
  }
}

// Causal, of heads as long as tensor cores take; the lengths are no whole numbers of blocks.
ir::Graph causal_gradient(Index depth) {
  ir::Graph graph("attention");
  const Shape shape{1, 1, 300, depth};
  const auto input = [&](const char* name) {
    return ir::Value{&graph, graph.add_input(name, {DType::bf16, shape})};
  };
  const ir::Value q = input("q"), k = input("k"), v = input("v"), weight = input("weight");
  const ir::Value scores = ops::matmul(q, ops::swap_axes(k, 2, 3), DType::f32) * 0.125;
  const ir::Value row = ops::iota(graph, scores.shape(), 2), column = ops::iota(graph, scores.shape(), 3);
  const ir::Value seen = ops::where(ops::le(column, row), scores,
                                    ops::full_like(scores, -std::numeric_limits<double>::infinity()));
  const ir::Value p = ops::cast(ops::softmax(seen), DType::bf16);
  const ir::Value out = ops::matmul(p, v, DType::f32);
  graph.set_outputs({ops::sum(out * weight).id});
  return passes::differentiate(graph, {0, 1, 2});
}

class EmulatedGradients : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, EmulatedGradients, ::testing::Values("sm_90a", "sm_80"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EmulatedGradients, KeysAndValuesShareALoopOnTensorCores) {
  const std::string architecture = GetParam();
  const auto backend = open_emulated_cuda(architecture).value();
  for (Index depth : {64, 128}) {
    const passes::Compiled compiled =
        passes::run_pipeline(causal_gradient(depth), backend->target(), {.recompute = Recompute::always});
    int shared = 0;
    for (const tile::Kernel& kernel : compiled.plan.kernels) {
      SCOPED_TRACE(fmt::format("{} {}", depth, kernel.name));
      std::size_t dots = 0, sums = 0;
      tile::for_each_op(kernel.body, [&](const tile::Op& op) {
        dots += op.kind == tile::OpKind::dot;
        if (op.kind == tile::OpKind::loop) sums = op.results.size();
      });
      if (dots == 0) continue;
      shared += sums == 2;
      const auto candidates = backend->candidates(kernel);
      ASSERT_FALSE(candidates.empty());
      EXPECT_EQ(dot_unit(candidates.front().schedule),
                architecture == "sm_90a" ? tile::DotUnit::wgmma : tile::DotUnit::mma);
      EXPECT_EQ(candidates.front().refusal, "");
      expect_right(*backend, kernel, candidates.front().schedule);
    }
    EXPECT_EQ(shared, 1) << depth;
  }
}

}  // namespace
}  // namespace tilewright::emulation
