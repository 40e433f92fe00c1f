// attention_window: each query sees the last `window` keys up to its own place. What lies outside is neither
// read nor computed by who knows the mask: the work grows with the window, not with the length.
#include "pairs/attention_work.h"
#include "pairs/pairs.h"

namespace tilewright::lab {

namespace {

Result<PairInstance> make_attention_window(const Knobs& knobs, LabDevice& device) {
  const Index length = knobs.integer("length");
  AttentionWork work = attention_work("attention_window", knobs, length, length);
  work.mask.causal = true;
  work.mask.window = knobs.integer("window");
  if (work.mask.window < 0) throw Error("attention_window: window is at least 1, or 0 for all keys before");
  return make_instance(attention_workload(work), device);
}

}  // namespace

Pair attention_window_pair() {
  std::vector<Knob> knobs = {batch_knob(1)};
  for (Knob& knob : head_knobs(4, 16, 64, 128)) knobs.push_back(std::move(knob));
  knobs.push_back(
      {.name = "length", .values = {Index{4096}}, .doc = "positions", .cuda_values = {Index{16384}}});
  knobs.push_back({.name = "window",
                   .values = {Index{256}, Index{0}},
                   .doc = "keys that a query sees, its own place the last; 0: all before it, for comparison",
                   .cuda_values = {Index{1024}, Index{0}},
                   .least = 0});
  knobs.push_back(product_dtype_knob());
  return {.name = "attention_window",
          .doc = "attention to a sliding window of keys",
          .knobs = std::move(knobs),
          .make = make_attention_window,
          .tiny = {{"heads=2", "length=150", "window=1,40,0", "depth=16", "dtype=f32,bf16"}},
          .suites = {{"products", {"length=1024", "window=128,0"}}}};
}

}  // namespace tilewright::lab
