// Masked operations whose unused rows, pages and matrices hold NaN and infinities: results and all gradients
// are those of the same inputs with zeros there, which are numbers.
#pragma once

#include "support/host_values.h"
#include "support/poison_attention.h"

#include <vector>

namespace tilewright::test {

namespace poison {

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

}  // namespace poison

inline std::vector<PoisonCase> poison_cases(DType dtype) {
  using namespace poison;
  std::vector<PoisonCase> cases = {grouped(dtype), ragged(dtype), masked(dtype)};
  for (PoisonCase& c : attention_cases(dtype)) cases.push_back(std::move(c));
  return cases;
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
