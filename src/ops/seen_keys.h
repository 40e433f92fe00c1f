// Which keys an attention mask leaves to any query at all.
#pragma once

#include "ops/functions.h"

namespace tilewright::ops {

// A mask that broadcasts to scores (B, H, Tq, Tk), and which keys it hides from every query that shares a
// head of k and v.
struct SeenKeys {
  Value mask;  // the same mask; where `seen` holds keys back, "and seen" is written into it
  // bool (1 or B, 1 or Hkv, Tk, 1) each: a key is seen where all hold. Empty where every key is seen. Found
  // without looking at a query where comparisons of positions decide, or where the query at the key's own
  // place sees it; else a reduction over the queries.
  std::vector<Value> seen;

  // x (B, Hkv, Tk, D) of k or v with zeros at the keys that no query sees.
  Value used(Value x) const;
};
SeenKeys seen_keys(Value mask, const Shape& scores, Index kv_heads);

}  // namespace tilewright::ops
