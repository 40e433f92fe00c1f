// Keys that no query sees, in blocks which tensor cores read from shared memory: the rounds that hold some of
// them write zeros in their place first, and no round else does.
#include "cuda_emulation/emulated_cuda.h"
#include "support/poison_check.h"

#include <tilewright/tile/schedule.h>

namespace tilewright::test {
namespace {

// Masks that leave each of two sequences a part of 512 keys, which ends inside a block; or each query the 200
// keys before it, so that no query sees the first keys.
struct LongMask {
  const char* name;
  Index queries;
  bool window = false, paged = false;
};

PoisonCase long_attention(const LongMask& m) {
  constexpr Index kBatch = 2, kShared = 1, kKeys = 512, kDepth = 64, kPage = 64;
  const Index heads = m.queries == 1 ? 8 : 2;  // rows of a decode step's product
  const auto length = [](Index b) { return b == 0 ? Index{470} : Index{301}; };
  const auto apply = [=](const std::vector<ir::Value>& in) {
    ir::Value k = in[1], v = in[2];
    if (m.paged) {
      const ir::Value table = ops::reshape(in[4], {kBatch, kKeys / kPage});
      k = pages_graph(k, table), v = pages_graph(v, table);
    }
    const Positions at = positions(in[0], k);
    ir::Value mask = ops::lt(at.key, ops::reshape(in[3], {kBatch, 1, 1, 1}));
    const ir::Value distance = at.query + (kKeys - m.queries) - at.key;
    if (m.window)
      mask = ops::logical_and(mask, ops::logical_and(ops::le(distance, 330), ops::ge(distance, 0)));
    return attention_graph(in[0], k, v, mask);
  };
  const auto hidden = [=](Index b, Index key) {
    return key >= length(b) || (m.window && key < kKeys - m.queries - 330);
  };
  const auto unused = [=](std::size_t i) {
    const auto at = static_cast<Index>(i);
    if (!m.paged) return hidden(at / (kDepth * kKeys * kShared), at / kDepth % kKeys);
    const Index page = at / (kPage * kDepth) % (kBatch * kKeys / kPage);  // in their own order
    return hidden(page / (kKeys / kPage), page % (kKeys / kPage) * kPage + at / kDepth % kPage);
  };
  const Shape cache =
      m.paged ? Shape{kBatch * kKeys / kPage, kPage, kShared, kDepth} : Shape{kBatch, kShared, kKeys, kDepth};
  std::vector<ir::HostTensor> inputs = {poison::floats(DType::bf16, {kBatch, heads, m.queries, kDepth}, 1),
                                        poison::floats(DType::bf16, cache, 2),
                                        poison::floats(DType::bf16, cache, 3),
                                        poison::numbers(DType::i64, {kBatch}, length)};
  if (m.paged)
    inputs.push_back(poison::numbers(DType::i64, {kBatch * kKeys / kPage}, [](Index i) { return i; }));
  return {m.name, apply, inputs, {poison::never, unused, unused}};
}

class UsedParts : public ::testing::TestWithParam<const char*> {};

TEST_P(UsedParts, OfBlocksAreMultipliedOnly) {
  const auto backend = emulation::open_emulated_cuda(GetParam()).value();
  GraphRunner runner(std::string("emulated:") + GetParam());
  for (const LongMask& m : {LongMask{"decode", 1}, LongMask{"decode from pages", 1, false, true},
                            LongMask{"prefill", 70}, LongMask{"window", 70, true}}) {
    SCOPED_TRACE(m.name);
    const PoisonCase c = long_attention(m);
    expect_unpoisoned(
        c,
        [&](const ir::Graph& graph, std::span<const ir::HostTensor> in) {
          return runner.run(passes::run_pipeline(graph, runner.device->target()), in);
        },
        0.05);
    ir::Graph graph("attention");
    std::vector<ir::Value> values;
    values.reserve(c.inputs.size());
    for (const ir::HostTensor& t : c.inputs)
      values.push_back({&graph, graph.add_input("x" + std::to_string(values.size()), t.type)});
    graph.set_outputs({c.apply(values).id});
    tile::Target target = backend->target();
    target.predicted_us = nullptr;  // by which so few queries are rather several kernels
    const passes::Compiled compiled = passes::run_pipeline(graph, target);
    ASSERT_EQ(compiled.fusion.groups.size(), 1U);  // perhaps of several parts, which a second kernel adds
    const backends::Candidate best = backend->candidates(compiled.plan.kernels[0]).front();
    const std::string text = backend->print(compiled.plan.kernels[0], best.schedule).value().text;
    EXPECT_NE(text.find("zero_unused<"), std::string::npos) << to_string(best.schedule) << text;
    // The last loop is that of whole blocks.
    EXPECT_LT(text.rfind("zero_unused<"), text.rfind("for (i64 ")) << text;
  }
}
INSTANTIATE_TEST_SUITE_P(Architectures, UsedParts, ::testing::Values("sm_90a", "sm_80"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright::test
