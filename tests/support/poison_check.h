// Masked operations whose unused rows, pages and matrices hold NaN and infinities: results and all gradients
// are those of the same inputs with zeros there, which are numbers.
#pragma once

#include "support/host_values.h"
#include "support/limit_check.h"

#include "ops/attention.h"

#include <functional>
#include <string>
#include <vector>

namespace tilewright::test {

struct PoisonCase {
  std::string name;
  std::function<ir::Value(const std::vector<ir::Value>&)> apply;
  std::vector<ir::HostTensor> inputs;
  // For the floats among them: which elements nothing may read.
  std::vector<std::function<bool(std::size_t)>> unused;
};

namespace poison {

inline ir::HostTensor floats(DType dtype, const Shape& shape, int seed) {
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(shape.size()));
  for (Index i = 0; i < shape.size(); ++i)
    numbers.push_back(std::sin(1.7 * static_cast<double>(i) + seed) * 0.75);
  return host_floats(dtype, shape, numbers);
}
inline ir::HostTensor integers(const std::vector<std::int64_t>& numbers) {
  return {.type = {DType::i64, {static_cast<Index>(numbers.size())}}, .f = {}, .i = numbers};
}
inline bool never(std::size_t) { return false; }

inline PoisonCase grouped(DType dtype) {
  // Blocks of 24 rows; two of them are no group's, and group 2 is no block's.
  const Index k = 33, n = 20, each = 24;
  const std::vector<std::int64_t> ids = {1, -1, 0, 3, 1};
  return {"grouped_matmul",
          [](const std::vector<ir::Value>& in) { return ops::grouped_matmul(in[0], in[1], in[2]); },
          {floats(dtype, {5 * each, k}, 1), floats(dtype, {3, k, n}, 2), integers(ids)},
          {[=](std::size_t i) {
             const std::int64_t id = ids[i / static_cast<std::size_t>(k * each)];
             return id < 0 || id > 2;
           },
           [=](std::size_t i) { return i / static_cast<std::size_t>(k * n) == 2; }}};
}

inline PoisonCase ragged(DType dtype) {
  const Index k = 24, n = 17;
  // Group 1 is empty, and rows 150 to 199 are no group's.
  return {"ragged_matmul",
          [](const std::vector<ir::Value>& in) { return ops::ragged_matmul(in[0], in[1], in[2]); },
          {floats(dtype, {200, k}, 1), floats(dtype, {3, k, n}, 2), integers({70, 70, 150})},
          {[=](std::size_t i) { return i / static_cast<std::size_t>(k) >= 150; },
           [=](std::size_t i) { return i / static_cast<std::size_t>(k * n) == 1; }}};
}

inline PoisonCase masked(DType dtype) {
  const Index k = 24, n = 17, rows = 70;
  const std::vector<std::int64_t> counts = {70, 0, 33};
  return {"masked_matmul",
          [](const std::vector<ir::Value>& in) { return ops::masked_matmul(in[0], in[1], in[2]); },
          {floats(dtype, {3, rows, k}, 1), floats(dtype, {3, k, n}, 2), integers(counts)},
          {[=](std::size_t i) {
             const auto row = static_cast<Index>(i) / k;
             return row % rows >= counts[static_cast<std::size_t>(row / rows)];
           },
           [=](std::size_t i) { return i / static_cast<std::size_t>(k * n) == 1; }}};
}

// Keys from a length on are seen by nobody; `pages` long, they lie in pages, in any order.
inline PoisonCase attention(DType dtype, Index queries, bool causal, bool paged) {
  const Index batch = 2, heads = 4, shared = 2, keys = 96, depth = 16, page = 16;
  const std::vector<std::int64_t> lengths = {96 - 16 - 5, 40};
  const Index pages = keys / page;
  const auto apply = [=](const std::vector<ir::Value>& in) {
    ir::Graph& g = *in[0].graph;
    ir::Value k = in[1], v = in[2];
    if (paged) {
      const auto cache = [&](ir::Value x) {
        return ops::swap_axes(ops::reshape(ops::take(x, ops::reshape(in[4], {batch, pages}), 0),
                                           {batch, keys, heads / shared, depth}),
                              1, 2);
      };
      k = cache(k), v = cache(v);
    }
    const ir::Value length = ops::reshape(in[3], {batch, 1, 1, 1}), key = ops::iota(g, {keys}, 0);
    ir::Value mask = ops::lt(key, length);
    if (causal) mask = ops::logical_and(mask, ops::le(key, ops::iota(g, {queries, 1}, 0) + (keys - queries)));
    const ir::Value scores = ops::attention_scores(in[0], ops::seen_keys(k, mask), 0.25);
    return ops::attend(scores, ops::seen_keys(v, mask), {.mask = mask, .result = dtype}).out;
  };
  const Shape cache =
      paged ? Shape{batch * pages, page, heads / shared, depth} : Shape{batch, heads / shared, keys, depth};
  std::vector<std::int64_t> table;
  table.reserve(static_cast<std::size_t>(batch * pages));
  for (Index p = 0; p < batch * pages; ++p) table.push_back((p * 5 + 3) % (batch * pages));
  const auto unused = [=](std::size_t i) {
    const auto at = static_cast<Index>(i);
    if (!paged)
      return at / depth % keys >= lengths[static_cast<std::size_t>(at / (depth * keys * heads / shared))];
    const Index physical = at / (page * (heads / shared) * depth),
                place = at / (heads / shared * depth) % page;
    const auto logical = std::find(table.begin(), table.end(), physical) - table.begin();
    return logical % pages * page + place >= lengths[static_cast<std::size_t>(logical / pages)];
  };
  std::vector<ir::HostTensor> inputs = {floats(dtype, {batch, heads, queries, depth}, 1),
                                        floats(dtype, cache, 2), floats(dtype, cache, 3), integers(lengths)};
  if (paged) inputs.push_back(integers(table));
  return {
      fmt::format("{}attention of {} queries{}", paged ? "paged " : "", queries, causal ? ", causal" : ""),
      apply,
      inputs,
      {never, unused, unused}};
}

}  // namespace poison

inline std::vector<PoisonCase> poison_cases(DType dtype) {
  using namespace poison;
  return {grouped(dtype),
          ragged(dtype),
          masked(dtype),
          attention(dtype, 1, false, false),
          attention(dtype, 24, true, false),
          attention(dtype, 1, false, true),
          attention(dtype, 24, true, true)};
}

// The op's result and, of a loss that weighs its elements, the gradients to all float inputs.
inline void expect_unpoisoned(const PoisonCase& c, const RunGraph& run, double tolerance) {
  SCOPED_TRACE(c.name);
  ir::Graph graph("poison");
  std::vector<ir::Value> values;
  std::vector<int> wrt;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    values.push_back({&graph, graph.add_input(fmt::format("x{}", i), c.inputs[i].type)});
    if (is_float(c.inputs[i].type.dtype)) wrt.push_back(static_cast<int>(i));
  }
  const ir::Value y = c.apply(values);
  graph.set_outputs({y.id});
  ir::Graph weighed = graph;
  const ir::Value z{&weighed, y.id};
  const ir::Value place = ops::reshape(ops::iota(weighed, {z.shape().size()}, 0), z.shape());
  weighed.set_outputs({ops::sum(ops::cast(z, DType::f32) * ops::cos(ops::cast(place, DType::f32))).id, z.id});
  const ir::Graph gradients = passes::differentiate(weighed, wrt);

  std::vector<ir::HostTensor> clean = c.inputs, poisoned = c.inputs;
  for (std::size_t i = 0; i < c.unused.size(); ++i)
    for (std::size_t e = 0; e < clean[i].f.size(); ++e)
      if (c.unused[i](e)) {
        clean[i].f[e] = 0;
        poisoned[i].f[e] = e % 3 == 0 ? kNaN : e % 3 == 1 ? kInf : -kInf;
      }
  for (const ir::Graph* g : {static_cast<const ir::Graph*>(&graph), &gradients}) {
    const auto want = ops::evaluate(*g, clean), got = run(*g, poisoned);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t o = 0; o < got.size(); ++o) {
      // The loss, a number, is the sum of as many as there are results.
      double largest = 0, sum = 0;
      for (double w : want[o].f) largest = std::max(largest, std::abs(w));
      for (double w : want.size() > 1 ? want[1].f : want[0].f) sum += std::abs(w);
      if (want[o].f.size() == 1) largest = sum;
      EXPECT_EQ(difference(got[o], want[o], {tolerance, tolerance * largest}), "")
          << "output " << o << (g == &graph ? "" : " of the gradient");
    }
  }
}

}  // namespace tilewright::test
