// The kernels of attention's backward pass, as the compiler writes them, under the schedules CUDA takes
// first.
#include "cuda_emulation/emulated_cuda.h"

#include "ops/composites.h"
#include "passes/differentiate.h"
#include "passes/pipeline.h"
#include "support/kernel_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::emulation {
namespace {

using ir::Value;

// Two query heads share a head of keys; no extent is a whole number of blocks.
ir::Graph attention_gradient(DType dtype) {
  ir::Graph graph("attention");
  const auto input = [&](const char* name, const Shape& shape) {
    return Value{&graph, graph.add_input(name, {dtype, shape})};
  };
  const Value q = input("q", {1, 4, 72, 16}), k = input("k", {1, 2, 100, 16}),
              v = input("v", {1, 2, 100, 16}), weight = input("weight", {1, 4, 72, 16});
  const auto shared = [](Value x) {
    return ops::reshape(ops::broadcast_to(ops::unsqueeze(x, 2), {1, 2, 2, 100, 16}), {1, 4, 100, 16});
  };
  const Value scores = ops::matmul(q, ops::swap_axes(shared(k), 2, 3), DType::f32) * 0.25;
  const Value p = ops::cast(ops::softmax(scores), dtype);
  const Value out = ops::matmul(p, shared(v), DType::f32);
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
      const auto r = testing::check_kernel(*backend, kernel, candidates.front().schedule,
                                           {.odd_share = 0, .model = {.scale = 2, .flush_subnormals = true}});
      EXPECT_TRUE(r.problem.empty()) << r.problem;
      EXPECT_TRUE(r.refused.empty()) << r.refused;
    }
  }
}

}  // namespace
}  // namespace tilewright::emulation
