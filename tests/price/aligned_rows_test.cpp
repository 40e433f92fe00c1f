// Operands of products that are copied into rows that begin lines of the cache, by what backends predict.
#include "passes/fuse/aligned_rows.h"

#include "backends/cuda/cuda_backend.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "ops/stored_rows.h"
#include "passes/graph/simplify.h"
#include "passes/pipeline.h"
#include "passes/store/materialize.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::test {
namespace {

ir::Graph parsed(const std::string& text) { return ir::parse(text, ops::all_ops()).value(); }

ir::Graph product(Index m, Index n, Index k, const std::string& dtype) {
  return parsed(fmt::format(R"(graph @g(%a: {0}[{1},{3}], %b: {0}[{3},{2}]) -> {0}[{1},{2}] {{
  %2 = matmul %a, %b : {0}[{1},{2}]
  return %2
}}
)",
                            dtype, m, n, k));
}

passes::Compiled compiled(const ir::Graph& graph, const char* arch) {
  return passes::run_pipeline(graph, cuda::CudaBackend::open({.compile_only = arch}).value()->target());
}

// Elements of a buffer that no value has.
Index padding(const passes::Compiled& c) {
  Index more = 0;
  for (const ir::Node& n : c.graph.nodes())
    if (ops::has_pitch(n)) more += ops::stored_shape(n).size() - n.type.shape.size();
  return more;
}

TEST(AlignedRows, OfLargeProductsAreCopied) {
  const passes::Compiled c = compiled(product(5000, 5000, 5000, "bf16"), "sm_90a");
  ASSERT_GT(padding(c), 0);
  EXPECT_EQ(padding(c) % (5000 * (5056 - 5000)), 0);
  // The product reads what the copies left.
  const std::vector<tile::ViewParam>& views = c.plan.kernels.back().views;
  EXPECT_TRUE(std::any_of(views.begin(), views.end(),
                          [](const tile::ViewParam& v) { return v.strides[0] == tile::Dim{5056, -1}; }));
}

TEST(AlignedRows, OfOddOnesAreCopiedForEveryTypeThatMatrixUnitsTake) {
  for (const char* arch : {"sm_80", "sm_90a"})
    for (const char* dtype : {"bf16", "f16"})
      EXPECT_GT(padding(compiled(product(1001, 3333, 777, dtype), arch)), 0) << arch << " " << dtype;
}

TEST(AlignedRows, SmallProductsAndAlignedOnesAreLeftAlone) {
  EXPECT_EQ(padding(compiled(product(33, 65, 77, "bf16"), "sm_90a")), 0);
  EXPECT_EQ(padding(compiled(product(4096, 4096, 4096, "bf16"), "sm_90a")), 0);
}

// Who computes an operand writes its rows apart, and no copy is made of it; what is a result stays dense.
TEST(AlignedRows, AreWrittenByWhatComputesThem) {
  const passes::Compiled c = compiled(
      parsed(R"(graph @g(%x: bf16[4096,1024], %w: bf16[1024,5001], %v: bf16[5001,4096]) -> bf16[4096,4096] {
  %3 = matmul %x, %w : bf16[4096,5001]
  %4 = tanh %3 : bf16[4096,5001]
  %5 = matmul %4, %v : bf16[4096,4096]
  return %5
}
)"),
      "sm_90a");
  bool between = false;
  for (const tile::PlanBuffer& b : c.plan.buffers) {
    if (b.role == tile::PlanBuffer::Role::temporary) between = between || b.elements == 4096 * 5056;
    if (b.role == tile::PlanBuffer::Role::output) {
      EXPECT_EQ(b.elements, 4096 * 4096);
    }
  }
  EXPECT_TRUE(between);
}

TEST(AlignedRows, OfAResultAreDense) {
  const passes::Compiled c = compiled(
      parsed(
          R"(graph @g(%x: bf16[4096,1024], %w: bf16[1024,5001], %v: bf16[5001,4096]) -> (bf16[4096,5001], bf16[4096,4096]) {
  %3 = matmul %x, %w : bf16[4096,5001]
  %4 = matmul %3, %v : bf16[4096,4096]
  return %3, %4
}
)"),
      "sm_90a");
  for (const tile::PlanBuffer& b : c.plan.buffers)
    if (b.role == tile::PlanBuffer::Role::output && b.position == 0) {
      EXPECT_EQ(b.elements, 4096 * 5001);
    }
}

}  // namespace
}  // namespace tilewright::test
