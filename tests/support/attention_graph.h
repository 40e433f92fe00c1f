// attention() as a graph, for tests that print graphs or run them on a device.
#pragma once

#include "ops/attention.h"
#include "ops/seen.h"

#include <cmath>

namespace tilewright::test {

// Attention as tensor/attention.cpp writes it: q (B, H, Tq, D), k, v (B, Hkv, Tk, D), a mask that broadcasts
// to (B, H, Tq, Tk).
inline ir::Value attention_graph(ir::Value q, ir::Value k, ir::Value v, std::optional<ir::Value> mask) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape()[3]));
  if (mask) {
    const Shape scores{q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]};
    const ops::Seen keys = ops::seen_keys(*mask, scores, k.shape()[1]),
                    queries = ops::seeing_queries(*mask, scores, k.shape()[1]);
    q = queries.used(q), k = keys.used(k), v = keys.used(v);
    mask = queries.restricted(keys.restricted(*mask));
  }
  return ops::attend(ops::attention_scores(q, k, scale), v, {.mask = mask, .result = q.dtype()}).out;
}

// Numbers of queries (Tq, 1) and keys (Tk).
struct Positions {
  ir::Value query, key;
};
inline Positions positions(ir::Value q, ir::Value k) {
  return {ops::iota(*q.graph, {q.shape()[2], 1}, 0), ops::iota(*q.graph, {k.shape()[2]}, 0)};
}

// Pages (P, S, Hkv, D) that a table (B, N) names, as (B, Hkv, N · S, D).
inline ir::Value pages_graph(ir::Value pages, ir::Value table) {
  const Shape &p = pages.shape(), &t = table.shape();
  const ir::Value picked = ops::take(pages, table, 0);
  return ops::swap_axes(ops::reshape(picked, {t[0], t[1] * p[1], p[2], p[3]}), 1, 2);
}

}  // namespace tilewright::test
