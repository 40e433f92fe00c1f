// attention_decode: one or few queries for each sequence over its long cache of keys and values, which query
// heads share. Every element of the cache is read once: the memory's rate bounds it, if the few queries keep
// enough of the machine busy.
#include "pairs/attention_work.h"
#include "pairs/pairs.h"

namespace tilewright::lab {

namespace {

Result<PairInstance> make(const Knobs& knobs, LabDevice& device) {
  AttentionWork work =
      attention_work("attention_decode", knobs, knobs.integer("queries"), knobs.integer("keys"));
  work.unit = "GB/s";
  work.mask.causal = knobs.integer("queries") > 1;  // one sees all of the cache anyway
  return make_instance(attention_workload(work), device);
}

}  // namespace

Pair attention_decode_pair() {
  return {.name = "attention_decode",
          .doc = "attention of the last queries to a long cache",
          .knobs = {{.name = "batch", .values = {Index{4}}, .doc = "sequences", .cuda_values = {Index{64}}},
                    {.name = "heads", .values = {Index{32}}, .doc = "heads of q", .cuda_values = {Index{64}}},
                    {.name = "kv_heads",
                     .values = {Index{8}},
                     .doc = "heads of k and v, which query heads share in turn; 0: as many as heads"},
                    {.name = "depth", .values = {Index{128}}, .doc = "columns of q, k and v"},
                    {.name = "queries",
                     .values = {Index{1}},
                     .doc = "rows of q, the last positions of each sequence; causal among themselves"},
                    {.name = "keys",
                     .values = {Index{4096}},
                     .doc = "positions in the cache",
                     .cuda_values = {Index{8192}}},
                    product_dtype_knob()},
          .make = make};
}

}  // namespace tilewright::lab
