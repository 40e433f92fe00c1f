// Attention with its masks, its gradients, and rotary embeddings.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sweep/families.h"
#include "sweep/families/parts.h"

namespace tilewright::sweep {

void rotary(Draft& d) {
  const bool halves = d.choose.chance(0.6);
  const Index depth = d.choose.one_of(std::vector<Index>{32, 64, 64, 80, 128, 128});
  const double rows = std::max(1.0, d.elements(0.45) / static_cast<double>(depth));
  const Index heads = std::max(Index{1}, static_cast<Index>(std::min(d.sizes.log_uniform(1, 65), rows)));
  const Index time = d.sizes.extent(std::max(1.0, std::min(8192.0, rows / static_cast<double>(heads))));
  const Index batch = std::max(Index{1}, static_cast<Index>(rows / static_cast<double>(heads * time)));
  const std::string x = d.input("x", Shape({batch, heads, time, depth}));
  if (halves) {  // as of GPT-NeoX and Llama: x cos + rotate_half(x) sin
    const std::string cos = d.input("cos", Shape({time, depth})), sin = d.input("sin", Shape({time, depth}));
    const std::string half = std::to_string(depth / 2);
    const std::string low = d.add("slice", {x}, {{"axis", "3"}, {"stop", half}});
    const std::string high = d.add("slice", {x}, {{"axis", "3"}, {"start", half}});
    const std::string rotated = d.add("concat", {d.add("neg", {high}), low}, {{"axis", "-1"}});
    d.results({d.add("add", {d.add("mul", {x, cos}), d.add("mul", {rotated, sin})})});
    return;
  }
  const std::string cos = d.input("cos", Shape({time, depth / 2})),
                    sin = d.input("sin", Shape({time, depth / 2}));
  const std::string even = d.add("slice", {x}, {{"axis", "3"}, {"start", "0"}, {"step", "2"}});
  const std::string odd = d.add("slice", {x}, {{"axis", "3"}, {"start", "1"}, {"step", "2"}});
  const std::string a = d.add("sub", {d.add("mul", {even, cos}), d.add("mul", {odd, sin})});
  const std::string b = d.add("add", {d.add("mul", {even, sin}), d.add("mul", {odd, cos})});
  d.results({d.add("reshape", {d.add("stack", {a, b}, {{"axis", "-1"}})},
                   {{"shape", list(std::vector<Index>{batch, heads, time, depth})}})});
}

namespace {

// What is scored, in float64 as well, must fit a GPU beside its gradients.
constexpr double kMostScores = 1 << 28;

AttentionShape drawn_attention(Draft& d, double elements, bool decoding) {
  AttentionShape at;
  at.depth = d.choose.weighted<Index>({{64, 3}, {128, 3}, {32, 1}, {80, 0.7}, {96, 0.5}, {256, 0.3}});
  const auto groups = d.choose.weighted<Index>({{1, 2}, {2, 0.5}, {4, 1}, {8, 0.5}});
  const double rows = std::max(4.0, elements / static_cast<double>(at.depth));
  const double time = std::min({d.sizes.log_uniform(16, 8193), rows / 2});
  at.keys = d.sizes.extent(std::max(1.0, time));
  at.queries = decoding ? d.choose.one_of(std::vector<Index>{1, 1, 1, 4}) : at.keys;
  at.queries = std::min(at.queries, at.keys);
  const double per_head = decoding ? 2.0 * static_cast<double>(at.keys) / static_cast<double>(groups)
                                   : static_cast<double>(at.keys) * (2 + 2.0 / static_cast<double>(groups));
  const double scores = static_cast<double>(at.queries) * static_cast<double>(at.keys);
  const double all_heads = std::max(1.0, std::min(rows / per_head, kMostScores / scores));
  const double kv = std::max(1.0, all_heads / static_cast<double>(groups));
  at.kv_heads = std::max(Index{1}, static_cast<Index>(std::min(kv, d.sizes.log_uniform(1, 17))));
  at.heads = at.kv_heads * groups;
  at.batch = std::max(Index{1}, static_cast<Index>(all_heads / static_cast<double>(at.heads)));
  return at;
}

MaskKind drawn_mask(Draft& d, bool decoding) {
  if (decoding) return d.choose.weighted<MaskKind>({{MaskKind::none, 1}, {MaskKind::lengths, 1}});
  return d.choose.weighted<MaskKind>(
      {{MaskKind::none, 1}, {MaskKind::causal, 2}, {MaskKind::window, 0.8}, {MaskKind::lengths, 0.8}});
}

Shape q_shape(const AttentionShape& at) { return Shape({at.batch, at.heads, at.queries, at.depth}); }
Shape kv_shape(const AttentionShape& at) { return Shape({at.batch, at.kv_heads, at.keys, at.depth}); }

}  // namespace

void attention(Draft& d) {
  const bool decoding = d.choose.chance(0.25);
  const MaskKind mask = drawn_mask(d, decoding);
  const AttentionShape at = drawn_attention(d, d.elements(), decoding);
  const std::string q = d.input("q", q_shape(at)), k = d.input("k", kv_shape(at)),
                    v = d.input("v", kv_shape(at));
  d.results({attention_of(d, q, k, v, at, mask)});
}

void attention_gradient(Draft& d) {
  const MaskKind mask = drawn_mask(d, false);
  const AttentionShape at = drawn_attention(d, d.elements(0.35), false);
  const std::string q = d.input("q", q_shape(at)), k = d.input("k", kv_shape(at)),
                    v = d.input("v", kv_shape(at));
  d.gradients(mse_loss(d, attention_of(d, q, k, v, at, mask), q_shape(at)), {q, k, v});
}

}  // namespace tilewright::sweep
