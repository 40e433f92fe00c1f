// attention: softmax(scale · q · kᵀ) · v for each head, optionally causal. Its floor is that of one kernel
// that never stores the scores: q, k, v and the result once. Eager: the same by plain ops, the scores in
// memory.
#include "pairs/attention_work.h"
#include "pairs/pairs.h"

namespace tilewright::lab {

namespace {

Result<PairInstance> make_attention(const Knobs& knobs, LabDevice& device) {
  const Index queries = knobs.integer("queries"), keys = knobs.integer("keys");
  AttentionWork work = attention_work("attention", knobs, queries, keys == 0 ? queries : keys);
  work.mask.causal = knobs.text("causal") == "yes";
  TensorWorkload w = attention_workload(work);
  w.sweep = {.axis = "sequence length",
             .value = static_cast<double>(work.sizes.keys),
             .series = attention_series(work)};
  return make_instance(std::move(w), device);
}

}  // namespace

Pair attention_pair() {
  std::vector<Knob> knobs = {batch_knob(1)};
  for (Knob& knob : head_knobs(12, 48, 64, 64)) knobs.push_back(std::move(knob));
  knobs.push_back({.name = "queries",
                   .values = {Index{2048}},
                   .doc = "rows of q",
                   // Up to where the scores of 48 heads no longer fit 141 GB.
                   .cuda_values = {Index{512}, Index{1024}, Index{2048}, Index{4096}, Index{8192},
                                   Index{16384}, Index{32768}}});
  knobs.push_back(
      {.name = "keys", .values = {Index{0}}, .doc = "rows of k and of v; 0: as many as queries", .least = 0});
  knobs.push_back(causal_knob("no"));
  knobs.push_back(product_dtype_knob());
  knobs.back().choices.insert(knobs.back().choices.end(), {DType::f8e4m3, DType::f8e5m2});
  return {.name = "attention",
          .doc = "softmax(q kT / sqrt(depth)) v of each head",
          .knobs = std::move(knobs),
          .make = make_attention,
          .tiny = {{"heads=2", "queries=70", "keys=70,150", "depth=19", "causal=no,yes", "dtype=f32,bf16"},
                   {"heads=6", "kv_heads=2", "queries=33", "keys=0,70", "depth=32", "causal=yes"},
                   {"heads=2", "queries=33", "keys=170", "depth=32", "causal=no,yes", "dtype=f8e4m3,f8e5m2"}},
          .suites = {{"quick", {"queries=512", "keys=512"}},
                     {"products", {"heads=4", "queries=256", "causal=no,yes"}}}};
}

}  // namespace tilewright::lab
