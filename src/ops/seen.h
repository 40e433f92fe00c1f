// Which keys an attention mask leaves to any query, and which queries it leaves any key.
#pragma once

#include "ops/functions.h"

namespace tilewright::ops {

// Keys that some query sees, or queries that see some key, under a mask.
struct Seen {
  // Bools that broadcast to k and v (B, Hkv, Tk, D), or to q (B, H, Tq, D): a position is seen where all
  // hold. Empty where nothing has to be held back.
  std::vector<Value> seen;
  // What `seen` says that no part of the mask says by itself, in a shape that broadcasts to the scores.
  std::optional<Value> condition;

  // x of k and v, or q, with zeros at the positions that are not seen.
  Value used(Value x) const;
  // The same mask with `condition` written into it.
  Value restricted(Value mask) const;
};

// Keys that some query sees which shares a head of k and v. The mask broadcasts to scores (B, H, Tq, Tk).
// Found without looking at a query where comparisons of positions decide, or where the query at the key's own
// place sees it; else a reduction over the queries.
Seen seen_keys(Value mask, const Shape& scores, Index kv_heads);

// Queries that see some key: a query that sees none takes part in d k = dsᵀ·q with ds = 0, which is NaN where
// q is. Queries of a sequence none of whose keys are seen are not held back, since d k is 0 there anyway. The
// forward product needs no choice among the rows of q: simplify takes it away (unmasked_rows).
Seen seeing_queries(Value mask, const Shape& scores, Index kv_heads);

}  // namespace tilewright::ops
