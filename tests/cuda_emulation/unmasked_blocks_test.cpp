// Attention within documents, as the compiler writes it for tensor cores: whichever blocks the small kernel
// names, its rounds with and without the mask are walked as the tile IR says.
#include "cuda_emulation/kernel_expect.h"

#include "ops/attention.h"
#include "ops/functions.h"
#include "passes/pipeline.h"

#include <algorithm>

namespace tilewright::emulation {
namespace {

constexpr Index kWholeHeads = 40, kWholeQueries = 400, kWholeKeys = 1000, kWholeDepth = 64;

enum class Causal : bool { no, yes };

// Two kernels.
passes::Compiled documents(DType ids, Causal causal, const tile::Target& target) {
  ir::Graph g("documents");
  const auto input = [&](const char* name, Index length) {
    return ir::Value{&g, g.add_input(name, {DType::bf16, {1, kWholeHeads, length, kWholeDepth}})};
  };
  const ir::Value q = input("q", kWholeQueries), k = input("k", kWholeKeys), v = input("v", kWholeKeys);
  const Shape scores{1, kWholeHeads, kWholeQueries, kWholeKeys};
  const auto ids_of = [&](const char* name, Index length, const Shape& shape) {
    const ir::Value given{&g, g.add_input(name, {ids, {length}})};
    return ops::broadcast_to(ops::reshape(given, shape), scores);
  };
  ir::Value sees = ops::eq(ids_of("query_ids", kWholeQueries, {1, 1, kWholeQueries, 1}),
                           ids_of("key_ids", kWholeKeys, {1, 1, 1, kWholeKeys}));
  if (causal == Causal::yes)
    sees = ops::logical_and(sees, ops::le(ops::iota(g, scores, 3), ops::iota(g, scores, 2) + 600));
  const ops::Attended a = ops::attend(ops::attention_scores(q, k, 0.125), v, {.mask = sees});
  g.set_outputs({a.out.id, a.lse.id});
  return passes::run_pipeline(g, target);
}

// Integers of the views named so.
void set_range(const tile::Kernel& kernel, test::ParityOptions& options, std::string_view part, double low,
               double high) {
  for (std::size_t v = 0; v < kernel.views.size(); ++v)
    if (kernel.views[v].name.find(part) != std::string::npos)
      options.ranges[static_cast<int>(v)] = {low, high};
}

class EmulatedDocuments : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<backends::Backend> backend_ = open_emulated_cuda(GetParam()).value();
  tile::DotUnit unit_ = std::string_view(GetParam()) == "sm_90a" ? tile::DotUnit::wgmma : tile::DotUnit::mma;
};
INSTANTIATE_TEST_SUITE_P(Architectures, EmulatedDocuments, ::testing::Values("sm_90a", "sm_80"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EmulatedDocuments, BlocksOfEachKindAreWalked) {
  for (const Causal causal : {Causal::no, Causal::yes}) {
    const passes::Compiled compiled = documents(DType::i64, causal, backend_->target());
    ASSERT_EQ(compiled.plan.kernels.size(), 2u);
    tile::Kernel kernel = compiled.plan.kernels[1];
    EXPECT_EQ(std::count_if(kernel.body.ops.begin(), kernel.body.ops.end(),
                            [](const tile::Op& op) { return op.kind == tile::OpKind::loop; }),
              2);
    const auto candidates = backend_->candidates(kernel);
    ASSERT_FALSE(candidates.empty());
    EXPECT_EQ(dot_unit(candidates[0].schedule), unit_);
    kernel.grid[2] = {{tile::Dim{1}, 1}};  // one head says what 40 do
    test::ParityOptions options = as_printed();
    set_range(kernel, options, "ids", 0, 1);
    for (const std::uint64_t seed : {1, 2}) {
      SCOPED_TRACE(seed);
      options.seed = seed;
      set_range(kernel, options, "blocks", -1, 9);  // some outside, some with nothing between them
      expect_right(*backend_, kernel, candidates[0].schedule, options);
    }
    set_range(kernel, options, "blocks", 0, 0);
    expect_right(*backend_, kernel, candidates[0].schedule, options);
  }
}

TEST_P(EmulatedDocuments, BlocksAreFound) {
  for (const DType ids : {DType::i64, DType::i32})
    for (const Causal causal : {Causal::no, Causal::yes}) {
      const passes::Compiled compiled = documents(ids, causal, backend_->target());
      ASSERT_EQ(compiled.plan.kernels.size(), 2u);
      const tile::Kernel& kernel = compiled.plan.kernels[0];
      test::ParityOptions options = as_printed();
      for (const double most : {0, 1, 100}) {
        set_range(kernel, options, "ids", 0, most);
        expect_right(*backend_, kernel, backend_->candidates(kernel).at(0).schedule, options);
      }
    }
}

}  // namespace
}  // namespace tilewright::emulation
