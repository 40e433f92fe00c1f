// Keys that a mask hides from every query and queries from which it hides every key, against looking at all.
#include "ops/seen.h"

#include "ops/ops.h"
#include "ops/rows.h"
#include "support/choices.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tilewright::ops {
namespace {

using ir::HostTensor;

constexpr Index kBatch = 2, kHeads = 4, kShared = 2;

struct At {
  Value query, key;
};

// Comparisons of positions, of lengths, of ids, under and, or and not.
Value random_mask(test::Random& random, const At& at, const std::vector<Value>& in, int depth) {
  const auto number = [&] { return static_cast<Index>(random.below(24)) - 8; };
  if (depth > 0 && random.below(4) != 0) {
    const Value a = random_mask(random, at, in, depth - 1), b = random_mask(random, at, in, depth - 1);
    switch (random.below(3)) {
      case 0:
        return logical_and(a, b);
      case 1:
        return logical_or(a, b);
      default:
        return logical_not(a);
    }
  }
  const Value apart = at.query + number() - at.key;
  switch (random.below(8)) {
    case 0:
      return le(at.key, at.query + number());
    case 1:
      return lt(apart, number());
    case 2:
      return ge(apart, number());
    case 3:
      return gt(at.key * 2 - number(), at.query);
    case 4:
      return eq(apart, number());
    case 5:
      return lt(at.key, reshape(in[0], {kBatch, 1, 1, 1}));
    case 6:
      return eq(take(in[1], at.query, 0), take(in[1], at.key, 0));
    default:
      return ne(apart, number());
  }
}

HostTensor evaluated(const ir::Graph& recorded, Value v, const Shape& shape,
                     const std::vector<HostTensor>& inputs) {
  ir::Graph graph = recorded;  // here, behind whatever `v` added to it
  Value whole = broadcast_to(Value{&graph, v.id}, shape);
  graph.set_outputs({whole.id});
  return evaluate(graph, inputs)[0];
}

// A query is held back only where it sees nothing, and is where another query that shares its keys sees any.
void check_queries(ir::Graph& graph, Value mask, const Shape& scores, const std::vector<HostTensor>& inputs,
                   const HostTensor& all) {
  const Index queries = scores[2], keys = scores[3];
  const Seen found = seeing_queries(mask, scores, kShared);
  ASSERT_EQ(all.i, evaluated(graph, found.restricted(mask), scores, inputs).i);
  const Shape of_queries{kBatch, kHeads, queries, 1};
  std::vector<std::int64_t> kept(static_cast<std::size_t>(of_queries.size()), 1);
  for (const Value& s : found.seen) {
    const HostTensor part = evaluated(graph, s, of_queries, inputs);
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] &= part.i[i];
  }
  const auto sees_any = [&](Index head, Index q) {
    const auto row = all.i.begin() + (head * queries + q) * keys;
    return std::any_of(row, row + keys, [](std::int64_t sees) { return sees != 0; });
  };
  const Index share = kHeads / kShared;
  for (Index head = 0; head < kBatch * kHeads; ++head) {
    bool group_sees = false;
    for (Index h = head / share * share; h < head / share * share + share; ++h)
      for (Index q = 0; q < queries; ++q) group_sees |= sees_any(h, q);
    for (Index q = 0; q < queries; ++q) {
      const bool is_kept = kept[static_cast<std::size_t>(head * queries + q)] != 0;
      if (sees_any(head, q)) {
        ASSERT_TRUE(is_kept) << "head " << head << ", query " << q;
      } else if (group_sees) {
        ASSERT_FALSE(is_kept) << "head " << head << ", query " << q;
      }
    }
  }
}

TEST(SeenKeys, AreThoseThatSomeQuerySees) {
  test::Random random(7);
  int held_back = 0, by_positions = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const Index queries = 1 + static_cast<Index>(random.below(9)),
                keys = 1 + static_cast<Index>(random.below(9));
    ir::Graph graph("mask");
    std::vector<HostTensor> inputs;
    std::vector<Value> in;
    for (const Index count : {kBatch, std::max(queries, keys)}) {
      HostTensor t{.type = {DType::i64, {count}}, .f = {}, .i = {}};
      for (Index i = 0; i < count; ++i) t.i.push_back(static_cast<Index>(random.below(6)));
      in.push_back({&graph, graph.add_input("x" + std::to_string(in.size()), t.type)});
      inputs.push_back(t);
    }
    const At at{iota(graph, {queries, 1}, 0), iota(graph, {keys}, 0)};
    const Shape scores{kBatch, kHeads, queries, keys};
    const Value mask = random_mask(random, at, in, 3);
    const Seen found = seen_keys(mask, scores, kShared);
    const HostTensor all = evaluated(graph, mask, scores, inputs),
                     same = evaluated(graph, found.restricted(mask), scores, inputs);
    ASSERT_EQ(all.i, same.i) << "trial " << trial;
    const Shape of_keys{kBatch, kShared, keys, 1};
    std::vector<std::int64_t> seen(static_cast<std::size_t>(of_keys.size()), 1);
    for (const Value& s : found.seen) {
      const HostTensor part = evaluated(graph, s, of_keys, inputs);
      for (std::size_t i = 0; i < seen.size(); ++i) seen[i] &= part.i[i];
    }
    for (Index b = 0; b < kBatch; ++b)
      for (Index h = 0; h < kShared; ++h)
        for (Index k = 0; k < keys; ++k) {
          std::int64_t any = 0;
          for (Index each = 0; each < kHeads / kShared; ++each)
            for (Index q = 0; q < queries; ++q)
              any |= all.i[static_cast<std::size_t>(((b * kHeads + h * 2 + each) * queries + q) * keys + k)];
          ASSERT_EQ(seen[static_cast<std::size_t>((b * kShared + h) * keys + k)], any)
              << "trial " << trial << ", key " << k;
        }
    check_queries(graph, mask, scores, inputs, all);
    const bool reduces = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                     [](const ir::Node& n) { return n.op == &kAny; });
    held_back += !found.seen.empty();
    by_positions += !found.seen.empty() && !reduces;
  }
  EXPECT_GT(held_back, 100);
  EXPECT_GT(by_positions, 50) << "queries are looked at one by one where positions say it";
}

// What the usual masks cost: nothing.
TEST(SeenKeys, AreAllOfThemUnderMasksByWhichEachQuerySeesItsOwnKey) {
  ir::Graph graph("mask");
  const Value ids{&graph, graph.add_input("ids", {DType::i64, {kBatch, 64}})};
  const Value query = iota(graph, {64, 1}, 0), key = iota(graph, {64}, 0);
  const auto id = [&](Value position) {  // tensor/attention.cpp: element()
    const Value batch = iota(graph, {kBatch, 1, 1, 1}, 0);
    const Value inside = logical_and(ge(position, 0), lt(position, 64));
    return take(reshape(ids, {-1}), where(inside, batch * 64 + position, -1), 0);
  };
  const Value causal = le(key, query), near = logical_and(le(query - key, 9), ge(query - key, 0)),
              documents = eq(id(query), id(key));
  for (const Value& mask : {causal, near, documents, logical_and(causal, documents),
                            logical_and(documents, near), logical_or(lt(key, 5), causal)}) {
    EXPECT_TRUE(seen_keys(mask, {kBatch, kHeads, 64, 64}, kShared).seen.empty());
    EXPECT_TRUE(seeing_queries(mask, {kBatch, kHeads, 64, 64}, kShared).seen.empty());
  }
  // Causality with lengths: a query sees the first key, unless its sequence has none.
  const Value lengths{&graph, graph.add_input("lengths", {DType::i64, {kBatch}})};
  const Value within = lt(key, reshape(lengths, {kBatch, 1, 1, 1}));
  EXPECT_TRUE(seeing_queries(logical_and(causal, within), {kBatch, kHeads, 64, 64}, kShared).seen.empty());
  EXPECT_TRUE(seeing_queries(within, {kBatch, kHeads, 64, 64}, kShared).seen.empty());
  // The last queries of a longer cache: all of its keys, or a window of them.
  const Value few = iota(graph, {8, 1}, 0) + 56;
  EXPECT_TRUE(seen_keys(le(key, few), {kBatch, kHeads, 8, 64}, kShared).seen.empty());
  EXPECT_EQ(
      seen_keys(logical_and(le(key, few), gt(key, few - 20)), {kBatch, kHeads, 8, 64}, kShared).seen.size(),
      1U);
  for (const ir::Node& n : graph.nodes()) EXPECT_NE(n.op, &kAny);
}

}  // namespace
}  // namespace tilewright::ops
