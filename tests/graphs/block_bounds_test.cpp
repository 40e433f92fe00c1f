// Masks that compare loaded vectors: a small kernel finds the blocks of keys that each block of queries
// needs.
#include "ops/attention.h"
#include "ops/functions.h"
#include "ops/ops.h"
#include "support/host_values.h"
#include "support/run_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace tilewright::test {
namespace {

using ir::Value;

constexpr Index kBatch = 2, kHeads = 2, kQueries = 300, kKeys = 1100, kDepth = 32;

// Queries (B, 1, Tq, 1) and keys (B, 1, 1, Tk): their ids, and where they stand.
struct BlockPlaces {
  Value query_id, key_id, query, key;
};
using Mask = std::function<Value(const BlockPlaces&)>;

ir::Graph graph_of(const Mask& mask, DType ids) {
  ir::Graph g("documents");
  const auto input = [&](const char* name, DType dtype, const Shape& shape) {
    return Value{&g, g.add_input(name, {dtype, shape})};
  };
  const Value q = input("q", DType::f32, {kBatch, kHeads, kQueries, kDepth}),
              k = input("k", DType::f32, {kBatch, kHeads, kKeys, kDepth}),
              v = input("v", DType::f32, {kBatch, kHeads, kKeys, kDepth}),
              of_queries = input("query_ids", ids, {kBatch, kQueries}),
              of_keys = input("key_ids", ids, {kBatch, kKeys});
  const Shape scores({kBatch, kHeads, kQueries, kKeys});
  const auto all = [&](Value x, const Shape& shape) {
    return ops::broadcast_to(ops::reshape(x, shape), scores);
  };
  const Value sees = mask({all(of_queries, {kBatch, 1, kQueries, 1}), all(of_keys, {kBatch, 1, 1, kKeys}),
                           ops::iota(g, scores, 2), ops::iota(g, scores, 3)});
  const ops::Attended a = ops::attend(ops::attention_scores(q, k, 0.2), v, {.mask = sees});
  g.set_outputs({a.out.id, a.lse.id});
  return g;
}

struct Ids {
  std::vector<std::int64_t> queries, keys;  // of one sequence; those of the next are `step` more
  std::int64_t step = 0;
};

class BlockBounds : public testing::TestWithParam<const char*> {
 protected:
  // Keys from `unseen` on are NaN: whoever walks them shows it. Programs that share the keys: `shared`.
  void check(const Mask& mask, const Ids& ids, Index unseen = kKeys, bool shared = false,
             DType dtype = DType::i64) {
    const ir::Graph g = graph_of(mask, dtype);
    GraphRunner runner(GetParam());
    tile::Target target = runner.device->target();
    target.units = shared ? 64 : 1;
    target.launch_s = shared ? 1e-7 : 1e-4;
    target.predicted_us = nullptr;
    const passes::Compiled compiled = passes::run_pipeline(g, target);
    ASSERT_EQ(compiled.kernels.size(), shared ? 3U : 2U);
    EXPECT_NE(compiled.plan.kernels[0].name.find("_blocks"), std::string::npos);
    std::vector<ir::HostTensor> in = inputs(g, ids);
    const std::vector<ir::HostTensor> want = ops::evaluate(g, in);
    for (std::size_t operand : {1U, 2U})
      for (std::size_t row = 0; row < kBatch * kHeads; ++row)
        for (std::size_t e = static_cast<std::size_t>(unseen * kDepth); e < kKeys * kDepth; ++e)
          in[operand].f[row * kKeys * kDepth + e] = std::numeric_limits<double>::quiet_NaN();
    const std::vector<ir::HostTensor> got = runner.run(compiled, in);
    for (std::size_t o = 0; o < want.size(); ++o)
      for (std::size_t e = 0; e < want[o].f.size(); ++e) {
        const double x = got[o].f[e], y = want[o].f[e];
        if (std::isinf(y) && x == y) continue;
        ASSERT_LE(std::abs(x - y), 4e-6 * (1 + std::abs(y))) << o << " " << e;
      }
  }

  static std::vector<ir::HostTensor> inputs(const ir::Graph& g, const Ids& ids) {
    Random random(3);
    std::vector<ir::HostTensor> out;
    for (ir::NodeId id : g.inputs()) {
      ir::HostTensor t{.type = g.type(id)};
      if (is_float(t.type.dtype)) t = random_host(t.type, {.low = -2, .high = 2}, random);
      const auto& values = t.type.shape[1] == kQueries ? ids.queries : ids.keys;
      for (Index b = 0; !is_float(t.type.dtype) && b < kBatch; ++b)
        for (std::int64_t value : values) t.i.push_back(value + b * ids.step);
      out.push_back(std::move(t));
    }
    return out;
  }
};

Ids ids_of(const std::function<std::int64_t(Index)>& query, const std::function<std::int64_t(Index)>& key,
           std::int64_t step = 0) {
  Ids ids{.queries = {}, .keys = {}, .step = step};
  for (Index i = 0; i < kQueries; ++i) ids.queries.push_back(query(i));
  for (Index i = 0; i < kKeys; ++i) ids.keys.push_back(key(i));
  return ids;
}

Value same(const BlockPlaces& p) { return ops::eq(p.query_id, p.key_id); }

TEST_P(BlockBounds, LeaveTheBlocksOfDocuments) {
  const auto document = [](Index i) { return i / 200; };
  check(same, ids_of(document, document), 768);
  check(same, ids_of(document, document, 5), 768);
  check([](const BlockPlaces& p) { return ops::logical_and(same(p), ops::le(p.key, p.query)); },
        ids_of(document, document), 512);
  check(same, ids_of(document, document), 768, true);
}

TEST_P(BlockBounds, HoldWhatIdsInAnyOrderNeed) {
  std::mt19937 random{7};
  const auto scattered = [&](Index) { return static_cast<std::int64_t>(random() % 3); };
  check(same, ids_of(scattered, [](Index i) { return i / 300; }));
  check(same, ids_of([](Index i) { return i / 100; }, scattered));
  // Nobody's documents: rows of nothing.
  check(same, ids_of([](Index i) { return i / 100; }, [](Index i) { return 2 + i / 200; }), 512);
  check(same, ids_of([](Index i) { return i; }, [](Index) { return -1; }), 0);
}

TEST_P(BlockBounds, TakeAnyIntegers) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                         kMost = std::numeric_limits<std::int64_t>::max();
  const auto extreme = [](Index i) {
    return i % 3 == 0 ? kLeast + i / 200 : i % 3 == 1 ? kMost - i / 200 : i / 200;
  };
  check(same, ids_of(extreme, extreme));
  check(same, ids_of([](Index i) { return i / 200 - 3; }, [](Index i) { return i / 200 - 3; }), 768, false,
        DType::i32);
}

TEST_P(BlockBounds, OfRangesAndComplementsOfData) {
  // The id of a query is where its keys end.
  check([](const BlockPlaces& p) { return ops::lt(p.key, p.query_id); },
        ids_of([](Index i) { return 2 * i; }, [](Index i) { return i; }), 768);
  check(
      [](const BlockPlaces& p) {
        return ops::logical_not(ops::ge(p.key + p.key_id, p.query_id * 2 + p.query));
      },
      ids_of([](Index i) { return i / 3; }, [](Index i) { return i; }), 512);
  // A document, and what all see; keys that a flag leaves.
  check([](const BlockPlaces& p) { return ops::logical_or(same(p), ops::lt(p.key, 30)); },
        ids_of([](Index i) { return i / 200; }, [](Index i) { return i / 200; }), 768);
  check([](const BlockPlaces& p) { return ops::ne(p.key_id, 0); },
        ids_of([](Index) { return 0; }, [](Index i) { return i < 500 ? i % 2 : 0; }), 512);
}

INSTANTIATE_TEST_SUITE_P(Devices, BlockBounds, testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright::test
