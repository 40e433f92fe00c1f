// Random words that lanes of a warp share: attention with dropout, whose kernels draw along the rows of a
// tensor core's accumulator and, of transposed scores, along its columns.
#include "cuda_emulation/kernel_expect.h"

#include "ops/composites.h"
#include "passes/graph/differentiate.h"
#include "passes/pipeline.h"

#include <fmt/format.h>

#include <limits>

namespace tilewright::emulation {
namespace {

ir::Graph gradient_with_dropout(Index length) {
  ir::Graph g("dropout");
  const auto input = [&](const char* name) {
    return ir::Value{&g, g.add_input(name, {DType::bf16, {1, 1, length, 64}})};
  };
  const ir::Value q = input("q"), k = input("k"), v = input("v"), weight = input("weight");
  const ir::Value seed{&g, g.add_input("seed", {DType::i64, {}})};
  const ir::Value scores = ops::matmul(q, ops::swap_axes(k, 2, 3), DType::f32) * 0.125;
  const ir::Value row = ops::iota(g, scores.shape(), 2), column = ops::iota(g, scores.shape(), 3);
  const ir::Value seen = ops::where(ops::le(column, row), scores,
                                    ops::full_like(scores, -std::numeric_limits<double>::infinity()));
  const ir::Value p = ops::cast(ops::dropout(ops::softmax(seen), seed, {.p = 0.25}), DType::bf16);
  g.set_outputs({ops::sum(ops::matmul(p, v, DType::f32) * weight).id});
  return passes::differentiate(g, {0, 1, 2});
}

bool draws(const tile::Kernel& kernel) {
  bool found = false;
  tile::for_each_op(kernel.body,
                    [&](const tile::Op& op) { found = found || op.kind == tile::OpKind::random; });
  return found;
}

// Lengths of which rows begin at whole blocks of the cipher, and one where each begins elsewhere.
TEST(EmulatedRandomWords, AttentionDropsWhatTheReferenceDrops) {
  for (const char* const arch : {"sm_90a", "sm_80"}) {
    const auto backend = open_emulated_cuda(arch).value();
    for (const Index length : {Index{128}, Index{204}, Index{130}}) {
      const passes::Compiled compiled = passes::run_pipeline(gradient_with_dropout(length), backend->target(),
                                                             {.recompute = Recompute::always});
      int drawing = 0;
      for (const tile::Kernel& kernel : compiled.plan.kernels) {
        if (!draws(kernel)) continue;
        ++drawing;
        SCOPED_TRACE(fmt::format("{} length {} {}", arch, length, kernel.name));
        expect_first_right(*backend, kernel);
      }
      EXPECT_EQ(drawing, 2) << arch << " " << length << ": dq, and dk with dv";
    }
  }
}

}  // namespace
}  // namespace tilewright::emulation
