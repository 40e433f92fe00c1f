// The loss of logits that are a product: x · wᵀ, whose depth is longer than what a tile holds.
#include "ops/composites.h"
#include "ops/ops.h"
#include "passes/graph/differentiate.h"
#include "support/h200_target.h"
#include "support/host_values.h"
#include "support/run_graph.h"

#include <tilewright/tile/text.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tilewright::test {
namespace {

using ir::Value;

struct LossCase {
  Index rows = 1, classes = 1, depth = 1;
  DType dtype = DType::f32;
};

ir::Graph loss_of(const LossCase& l, ops::Reduction reduction = ops::Reduction::mean) {
  ir::Graph g("loss");
  const Value x{&g, g.add_input("x", {l.dtype, {l.rows, l.depth}})},
      w{&g, g.add_input("w", {l.dtype, {l.classes, l.depth}})},
      labels{&g, g.add_input("labels", {DType::i64, {l.rows}})};
  g.set_outputs({ops::linear_cross_entropy(x, w, labels, {.reduction = reduction}).id});
  return g;
}

std::vector<ir::HostTensor> inputs_of(const LossCase& l, double scale = 1) {
  Random random(7);
  std::vector<ir::HostTensor> in = {
      random_host({l.dtype, {l.rows, l.depth}}, {.low = -scale, .high = scale}, random),
      random_host({l.dtype, {l.classes, l.depth}}, {.low = -0.5, .high = 0.5}, random)};
  ir::HostTensor labels{.type = {DType::i64, {l.rows}}};
  for (Index r = 0; r < l.rows; ++r) labels.i.push_back(r * 37 % l.classes);
  in.push_back(std::move(labels));
  return in;
}

void expect_near(const ir::HostTensor& got, const ir::HostTensor& want, double tolerance) {
  ASSERT_EQ(got.f.size(), want.f.size());
  double largest = 0;
  for (double v : want.f) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < want.f.size(); ++i)
    ASSERT_LE(std::abs(got.f[i] - want.f[i]), tolerance * largest) << i << " of " << want.f[i];
}

class LinearCrossEntropy : public testing::TestWithParam<const char*> {};

// Rows, classes and depth that no block divides; one class; logits that overflow without their maximum.
TEST_P(LinearCrossEntropy, StatisticsOfDeepProductsAreOneLoop) {
  GraphRunner runner(GetParam());
  for (const LossCase& l : {LossCase{70, 1000, 300}, LossCase{1, 517, 1025}, LossCase{300, 259, 257},
                            LossCase{5, 2, 600}, LossCase{33, 640, 768, DType::bf16}})
    for (double scale : {1.0, 40.0}) {
      SCOPED_TRACE(fmt::format("{} rows, {} classes, depth {}, scale {}", l.rows, l.classes, l.depth, scale));
      const ir::Graph g = loss_of(l, ops::Reduction::none);
      const std::vector<ir::HostTensor> in = inputs_of(l, scale);
      tile::Target target = runner.device->target();
      target.memory_bytes_per_s = target.cache_bytes_per_s = target.unit_cache_bytes_per_s =
          1e9;                    // logits are dear
      target.flops_per_s = 2e11;  // on any machine
      target.units = 1;           // and a loop is not shared
      const passes::Compiled compiled = passes::run_pipeline(g, target);
      ASSERT_EQ(compiled.plan.kernels.size(), 1U);
      const tile::Kernel& kernel = compiled.plan.kernels[0];
      int loops = 0;
      tile::for_each_op(kernel.body, [&](const tile::Op& op) { loops += op.kind == tile::OpKind::loop; });
      EXPECT_EQ(loops, 2) << tile::print(kernel);
      expect_near(runner.run(compiled, in)[0], ops::evaluate(g, in)[0], 2e-6);
    }
}

// The gradient in chunks of the classes: a value of rows × classes is nowhere, and the products that read a
// piece do so before the next one is computed.
TEST_P(LinearCrossEntropy, GradientsAreComputedInChunks) {
  GraphRunner runner(GetParam());
  for (const LossCase& l : {LossCase{600, 1500, 260}, LossCase{257, 1030, 300, DType::bf16}}) {
    SCOPED_TRACE(fmt::format("{} rows, {} classes, depth {}", l.rows, l.classes, l.depth));
    const ir::Graph g = passes::differentiate(loss_of(l), {0, 1});
    const std::vector<ir::HostTensor> in = inputs_of(l);
    const passes::Compiled compiled =
        passes::run_pipeline(g, runner.device->target(), {.recompute = Recompute::always});
    EXPECT_NE(compiled.fusion.recomputing.find("in chunks"), std::string::npos)
        << compiled.fusion.recomputing;
    for (const tile::PlanBuffer& b : compiled.plan.buffers)
      if (b.role == tile::PlanBuffer::Role::temporary) {
        EXPECT_LE(b.elements, l.rows * 768) << "as large as the logits";
      }
    // dw is written where it is wanted: no buffer holds a part of it, no kernel puts them together.
    for (const tile::Kernel& kernel : compiled.plan.kernels)
      EXPECT_EQ(kernel.name.find("cast"), std::string::npos) << tile::print(kernel);
    const auto got = runner.run(compiled, in), want = ops::evaluate(g, in);
    // bf16: what the products read is rounded, by 2^-9 of a term; and what is stored.
    const double tolerance = l.dtype == DType::bf16 ? 2 * 0x1p-9 : 4e-6;
    for (std::size_t o = 0; o < want.size(); ++o) expect_near(got[o], want[o], o == 0 ? 2e-6 : tolerance);
  }
}

// Logits of passages, whose matrix of classes is the table of the embedding as well, as a language model has
// them, and the gradient of their loss.
ir::Graph gradient_of_passages(Index passages, Index tokens, const LossCase& l) {
  ir::Graph loss("loss");
  const Value table{&loss, loss.add_input("table", {DType::f32, {l.classes, l.depth}})},
      ids{&loss, loss.add_input("tokens", {DType::i64, {passages, tokens}})},
      labels{&loss, loss.add_input("labels", {DType::i64, {passages, tokens}})};
  const Value x = ops::cast(ops::layer_norm(ops::take(table, ids, 0), {}, {}), l.dtype);
  const Value logits = ops::matmul(x, ops::transpose(ops::cast(table, l.dtype), {1, 0}));
  loss.set_outputs({ops::cross_entropy(ops::cast(logits, DType::f32), labels).id});
  return passes::differentiate(loss, {0});
}

// They and their gradient are computed by some passages at a time.
TEST_P(LinearCrossEntropy, GradientsOfPassagesAreComputedInPieces) {
  constexpr Index kPassages = 6, kTokens = 50, kClasses = 700, kDepth = 260;
  GraphRunner runner(GetParam());
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const ir::Graph g =
        gradient_of_passages(kPassages, kTokens, {.classes = kClasses, .depth = kDepth, .dtype = dtype});
    Random random(7);
    std::vector<ir::HostTensor> in = {
        random_host({DType::f32, {kClasses, kDepth}}, {.low = -0.5, .high = 0.5}, random)};
    for (const Index step : {37, 11}) {
      ir::HostTensor numbers{.type = {DType::i64, {kPassages, kTokens}}};
      for (Index r = 0; r < kPassages * kTokens; ++r) numbers.i.push_back(r * step % kClasses);
      in.push_back(std::move(numbers));
    }
    const passes::Compiled compiled =
        passes::run_pipeline(g, runner.device->target(), {.recompute = Recompute::always});
    EXPECT_NE(compiled.fusion.recomputing.find("pieces of its rows"), std::string::npos)
        << compiled.fusion.recomputing;
    for (const tile::PlanBuffer& b : compiled.plan.buffers)
      if (b.role == tile::PlanBuffer::Role::temporary) {
        EXPECT_LE(b.elements, std::max(kPassages * kTokens * kClasses / 2, kClasses * kDepth))
            << "as large as the logits";
      }
    const auto got = runner.run(compiled, in), want = ops::evaluate(g, in);
    // bf16: logits and what the products read are rounded, each by 2^-9 of itself.
    const double tolerance = dtype == DType::bf16 ? 2 * 0x1p-9 : 4e-6;
    for (std::size_t o = 0; o < want.size(); ++o) expect_near(got[o], want[o], tolerance);
  }
}

// GPT-2's last layer on an H200, fused by cost: rows in pieces that are each computed once. Without pieces it
// takes 2.5 GB.
TEST(LinearCrossEntropyForms, LogitsAreInMemoryForSomeRowsAtATime) {
  const ir::Graph g = passes::differentiate(loss_of({8192, 50304, 768, DType::bf16}), {0, 1});
  const passes::Compiled pieces = passes::run_pipeline(g, h200_target());
  EXPECT_NE(pieces.fusion.recomputing.find("in 4 pieces of its rows"), std::string::npos)
      << pieces.fusion.recomputing;
  EXPECT_LT(static_cast<double>(pieces.plan.arena_bytes), 0.8e9);
}

// Llama 3's, whose gradient's sums over rows would take as much as the logits, and one of fewer rows, whose
// logits are not many bytes: the logits are computed twice. Without pieces they take 6.3 and 1.2 GB.
TEST(LinearCrossEntropyForms, LogitsAreNeverInMemory) {
  struct Case {
    LossCase loss;
    double most_bytes;
  };
  for (const Case& c :
       {Case{{4096, 50304, 768, DType::bf16}, 140e6}, Case{{8192, 128256, 4096, DType::bf16}, 1.5e9}}) {
    const passes::Compiled compiled =
        passes::run_pipeline(passes::differentiate(loss_of(c.loss), {0, 1}), h200_target());
    EXPECT_LE(static_cast<double>(compiled.plan.arena_bytes), c.most_bytes) << compiled.fusion.recomputing;
    int deep = 0;
    for (std::size_t i = 0; i < compiled.plan.kernels.size(); ++i) {
      const tile::Kernel& kernel = compiled.plan.kernels[i];
      int dots = 0, loops = 0;
      tile::for_each_op(kernel.body, [&](const tile::Op& op) {
        dots += op.kind == tile::OpKind::dot;
        loops += op.kind == tile::OpKind::loop;
      });
      EXPECT_TRUE(dots == 0 || compiled.kernels[i].cost.dots.on_matrix_units) << kernel.name;
      deep += dots > 0 && loops > dots;
    }
    EXPECT_EQ(deep, 1) << "the loss is one loop over the classes";
    const passes::Compiled stored = passes::run_pipeline(passes::differentiate(loss_of(c.loss), {0, 1}),
                                                         h200_target(), {.recompute = Recompute::never});
    EXPECT_GT(static_cast<double>(stored.plan.arena_bytes), 1e9);
  }
}

// 32 passages of GPT-2 on an H200, fused by cost. The logits are 3.3 GB, a piece of them an eighth, whose
// gradient takes its place; beside it are the table's sums and the activations.
TEST(LinearCrossEntropyForms, LogitsOfPassagesArePiecesThatAreOverwritten) {
  const ir::Graph g = gradient_of_passages(32, 1024, {.classes = 50304, .depth = 768, .dtype = DType::bf16});
  const passes::Compiled pieces = passes::run_pipeline(g, h200_target());
  EXPECT_NE(pieces.fusion.recomputing.find("in 8 pieces of its rows"), std::string::npos)
      << pieces.fusion.recomputing;
  const passes::Compiled whole = passes::run_pipeline(g, h200_target(), {.recompute = Recompute::never});
  EXPECT_GT(static_cast<double>(whole.plan.arena_bytes), 3.2e9);
  EXPECT_LT(static_cast<double>(pieces.plan.arena_bytes), 1e9);
}

INSTANTIATE_TEST_SUITE_P(Devices, LinearCrossEntropy, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright::test
