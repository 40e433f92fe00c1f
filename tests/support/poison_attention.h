// Attention under every kind of mask that hides some keys from every query, or every key from some queries:
// what k and v, or q, hold there is never multiplied.
#pragma once

#include "support/attention_graph.h"
#include "support/poison_case.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::test::poison {

// Two sequences; four heads of q share two of k and v.
inline constexpr Index kBatch = 2, kHeads = 4, kShared = 2, kKeys = 96, kDepth = 16, kPage = 32;

// A mask of scores, from tensors of its own; and which keys it hides from every query that shares them.
struct HidingMask {
  std::string name;
  Index queries = 24;
  std::vector<ir::HostTensor> tensors;
  std::function<ir::Value(const Positions& at, const std::vector<ir::Value>& tensors)> mask;
  std::function<bool(Index batch, Index kv_head, Index key)> hidden;
  // Which queries see no key of a sequence that others see keys of; none unless given.
  std::function<bool(Index batch, Index query)> blind = [](Index, Index) { return false; };
};

inline ir::HostTensor numbers(DType dtype, const Shape& shape, const std::function<Index(Index)>& of) {
  ir::HostTensor out{.type = {dtype, shape}, .f = {}, .i = {}};
  for (Index i = 0; i < shape.size(); ++i) out.i.push_back(of(i));
  return out;
}

inline HidingMask lengths(Index queries) {
  const std::vector<Index> of = {kKeys - 21, 40};
  return {"lengths",
          queries,
          {numbers(DType::i64, {kBatch}, [=](Index b) { return of[static_cast<std::size_t>(b)]; })},
          [](const Positions& at, const std::vector<ir::Value>& t) {
            return ops::lt(at.key, ops::reshape(t[0], {kBatch, 1, 1, 1}));
          },
          [=](Index b, Index, Index key) { return key >= of[static_cast<std::size_t>(b)]; }};
}

// Lengths that queries look back from, as in a chunk of a prefill.
inline HidingMask causal_lengths(Index queries) {
  HidingMask m = lengths(queries);
  m.name = "causal, lengths";
  m.mask = [queries, of = m.mask](const Positions& at, const std::vector<ir::Value>& t) {
    return ops::logical_and(of(at, t), ops::le(at.key, at.query + (kKeys - queries)));
  };
  return m;
}

// More keys than the last query sees.
inline HidingMask causal(Index queries) {
  return {"causal",
          queries,
          {},
          [](const Positions& at, const std::vector<ir::Value>&) { return ops::le(at.key, at.query); },
          [=](Index, Index, Index key) { return key >= queries; }};
}

inline HidingMask window(Index queries) {
  const Index offset = 50, before = 7;
  return {"window",
          queries,
          {},
          [=](const Positions& at, const std::vector<ir::Value>&) {
            const ir::Value distance = at.query + offset - at.key;
            return ops::logical_and(ops::le(distance, before), ops::ge(distance, 0));
          },
          [=](Index, Index, Index key) { return key < offset - before || key >= offset + queries; }};
}

// The first keys, or those near a query: between the two lie some that nobody sees.
inline HidingMask prefix_or_window() {
  return {"prefix or window",
          24,
          {},
          [](const Positions& at, const std::vector<ir::Value>&) {
            const ir::Value far =
                ops::logical_or(ops::gt(at.query + 40 - at.key, 5), ops::gt(at.key, at.query + 40));
            return ops::logical_or(ops::lt(at.key, 9), ops::logical_not(far));
          },
          [](Index, Index, Index key) { return key >= 9 && (key < 35 || key > 63); }};
}

// Keys of the documents 3 and -1, which no query is of; `causal` beside them, by the same numbers.
inline HidingMask documents(bool causal) {
  const auto key_id = [](Index b, Index key) { return key % 7 == 5 ? -1 : (key / 20 + b) % 4; };
  const auto query_id = [](Index i) { return i / 9 % 3; };
  return {causal ? "documents, causal" : "documents",
          24,
          {numbers(DType::i64, {24}, query_id),
           numbers(DType::i64, {kBatch, kKeys}, [=](Index i) { return key_id(i / kKeys, i % kKeys); })},
          [=](const Positions& at, const std::vector<ir::Value>& t) {
            const ir::Value mine = ops::take(t[0], at.query, 0);
            const ir::Value same = ops::eq(mine, ops::reshape(t[1], {kBatch, 1, 1, kKeys}));
            return causal ? ops::logical_and(same, ops::le(at.key, at.query + 72)) : same;
          },
          [=](Index b, Index, Index key) {
            for (Index q = 0; q < 24; ++q)
              if (query_id(q) == key_id(b, key) && (!causal || key <= q + 72)) return false;
            return true;
          }};
}

// A tensor of bools, of each head by itself (the heads of a group see other keys) or of all.
inline HidingMask tensor(bool by_head) {
  const Index heads = by_head ? kHeads : 1, queries = 24;
  const auto sees = [=](Index b, Index h, Index q, Index key) {
    return (q + 3 * key + h) % 5 != 0 && key % (by_head && h % 2 == 1 ? 9 : 6) != 2 + b;
  };
  return {by_head ? "bools of heads" : "bools",
          queries,
          {numbers(DType::boolean, {kBatch, heads, queries, kKeys},
                   [=](Index i) {
                     return sees(i / (heads * queries * kKeys), i / (queries * kKeys) % heads,
                                 i / kKeys % queries, i % kKeys);
                   })},
          [](const Positions&, const std::vector<ir::Value>& t) { return t[0]; },
          [=](Index b, Index kv, Index key) {
            for (Index h = 0; h < (by_head ? kHeads / kShared : 1); ++h)
              for (Index q = 0; q < queries; ++q)
                if (sees(b, by_head ? kv * (kHeads / kShared) + h : 0, q, key)) return false;
            return true;
          }};
}

// No query sees any key.
inline HidingMask nothing() {
  return {"nothing",
          24,
          {},
          [](const Positions& at, const std::vector<ir::Value>&) { return ops::gt(at.key, at.query + 200); },
          [](Index, Index, Index) { return true; }};
}

// Sequences that begin after padding: the queries in it see nothing.
inline HidingMask padding_before() {
  const auto start = [](Index b) { return b == 0 ? Index{13} : Index{2}; };
  return {"padding before",
          40,
          {numbers(DType::i64, {kBatch}, start)},
          [](const Positions& at, const std::vector<ir::Value>& t) {
            return ops::logical_and(ops::ge(at.key, ops::reshape(t[0], {kBatch, 1, 1, 1})),
                                    ops::le(at.key, at.query));
          },
          [=](Index b, Index, Index key) { return key < start(b) || key >= 40; },
          [=](Index b, Index query) { return query < start(b); }};
}

// More queries than a causal mask with a negative offset leaves keys.
inline HidingMask causal_late() {
  return {"causal, late",
          40,
          {},
          [](const Positions& at, const std::vector<ir::Value>&) { return ops::le(at.key, at.query - 11); },
          [](Index, Index, Index key) { return key >= 29; },
          [](Index, Index query) { return query < 11; }};
}

// Documents of the queries, some of which no key is of.
inline HidingMask query_documents() {
  const auto of_query = [](Index i) { return i % 5; };
  return {"documents of queries",
          40,
          {numbers(DType::i64, {40}, of_query),
           numbers(DType::i64, {kBatch, kKeys}, [](Index i) { return i % 3; })},
          [](const Positions& at, const std::vector<ir::Value>& t) {
            return ops::eq(ops::take(t[0], at.query, 0), ops::reshape(t[1], {kBatch, 1, 1, kKeys}));
          },
          [](Index, Index, Index) { return false; },
          [=](Index, Index query) { return of_query(query) > 2; }};
}

inline PoisonCase attention(DType dtype, const HidingMask& mask, bool paged) {
  const Index pages = kKeys / kPage;
  const auto apply = [=](const std::vector<ir::Value>& in) {
    ir::Value k = in[1], v = in[2];
    if (paged) {
      const ir::Value table = ops::reshape(in[3], {kBatch, pages});
      k = pages_graph(k, table), v = pages_graph(v, table);
    }
    const std::vector<ir::Value> tensors(in.begin() + (paged ? 4 : 3), in.end());
    return attention_graph(in[0], k, v, mask.mask(positions(in[0], k), tensors));
  };
  const Shape cache =
      paged ? Shape{kBatch * pages, kPage, kShared, kDepth} : Shape{kBatch, kShared, kKeys, kDepth};
  const auto physical = [](Index p) { return (p * 5 + 3) % (kBatch * (kKeys / kPage)); };
  const auto unused = [=](std::size_t i) {
    const auto at = static_cast<Index>(i);
    if (!paged)
      return mask.hidden(at / (kDepth * kKeys * kShared), at / (kDepth * kKeys) % kShared,
                         at / kDepth % kKeys);
    const Index page = at / (kPage * kShared * kDepth), place = at / (kShared * kDepth) % kPage;
    Index logical = 0;
    while (physical(logical) != page) ++logical;
    return mask.hidden(logical / pages, at / kDepth % kShared, logical % pages * kPage + place);
  };
  const auto blind = [=](std::size_t i) {
    const Index row = static_cast<Index>(i) / kDepth;
    return mask.blind(row / (kHeads * mask.queries), row % mask.queries);
  };
  std::vector<ir::HostTensor> inputs = {floats(dtype, {kBatch, kHeads, mask.queries, kDepth}, 1),
                                        floats(dtype, cache, 2), floats(dtype, cache, 3)};
  if (paged) inputs.push_back(numbers(DType::i64, {kBatch * pages}, physical));
  inputs.insert(inputs.end(), mask.tensors.begin(), mask.tensors.end());
  return {fmt::format("{}attention of {} queries, {}", paged ? "paged " : "", mask.queries, mask.name),
          apply,
          inputs,
          {blind, unused, unused}};
}

inline std::vector<PoisonCase> attention_cases(DType dtype) {
  std::vector<PoisonCase> cases;
  for (const HidingMask& m : {lengths(1), causal_lengths(24), window(24)})
    cases.push_back(attention(dtype, m, true));
  for (const HidingMask& m : {lengths(1), causal_lengths(24), causal(24), window(1), window(24),
                              prefix_or_window(), documents(false), documents(true), tensor(false),
                              tensor(true), nothing(), padding_before(), causal_late(), query_documents()})
    cases.push_back(attention(dtype, m, false));
  return cases;
}

}  // namespace tilewright::test::poison
