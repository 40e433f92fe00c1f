// Attention as a workload.
#include "pairs/attention_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace tilewright::lab {

namespace {

constexpr std::size_t kDocuments = 5;  // input
std::size_t lengths_input(const AttentionWork& w) { return kDocuments + (w.mask.documents.empty() ? 0 : 1); }

Index offset_of(const AttentionSizes& s) { return s.keys - s.queries; }

InputSpec positions(std::string name, Index first, Index count) {
  return {std::move(name), DType::i64, Shape{count},
          [first, count](Context& context) { return context.arange(count) + first; }, false};
}

Tensor as_written(const std::vector<Tensor>& in, const AttentionWork& w) {
  const Tensor keys = repeat_heads(in[1], w.sizes.heads), values = repeat_heads(in[2], w.sizes.heads);
  const Tensor scores = matmul(in[0], swap_axes(keys, 2, 3)) * w.sizes.scale();  // (B, H, Q, K)
  return matmul(softmax(masked(scores, w, in)), values);
}

std::string heads_text(const AttentionSizes& s) {
  return s.heads == s.kv_heads ? fmt::format("H{}", s.heads) : fmt::format("H{}/{}", s.heads, s.kv_heads);
}

}  // namespace

std::string AttentionMask::text() const {
  std::string text;
  if (!documents.empty()) text += fmt::format(" {} documents", documents.back() + 1);
  if (window > 0)
    text += fmt::format(" window {}", window);
  else if (causal)
    text += " causal";
  if (!lengths.empty()) {
    const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
    text += fmt::format(" lengths {} to {}", *least, *most);
  }
  return text;
}

namespace {

SeenKeys seen_keys(const AttentionSizes& s, const AttentionMask& mask, Index length) {
  SeenKeys seen;
  for (Index q = 0; q < s.queries; ++q) {
    const Index place = q + offset_of(s);
    KeyRange keys{0, length};
    if (mask.causal || mask.window > 0) keys.end = std::min(length, place + 1);
    if (mask.window > 0) keys.begin = std::max(keys.begin, place + 1 - mask.window);
    if (!mask.documents.empty()) {
      const auto own = std::equal_range(mask.documents.begin(), mask.documents.end(),
                                        mask.documents[static_cast<std::size_t>(place)]);
      keys.begin = std::max(keys.begin, own.first - mask.documents.begin());
      keys.end = std::min(keys.end, own.second - mask.documents.begin());
    }
    seen.push_back(keys);
  }
  return seen;
}

}  // namespace

std::vector<SeenKeys> seen_keys(const AttentionSizes& s, const AttentionMask& mask) {
  if (mask.lengths.empty()) return {seen_keys(s, mask, s.keys)};
  std::vector<SeenKeys> seen;
  seen.reserve(mask.lengths.size());
  for (Index length : mask.lengths) seen.push_back(seen_keys(s, mask, length));
  return seen;
}

std::vector<Index> random_lengths(Index count, Index shortest, Index longest, Index seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::vector<Index> lengths;
  lengths.reserve(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i)
    lengths.push_back(shortest +
                      static_cast<Index>(random() % static_cast<std::uint64_t>(longest - shortest + 1)));
  return lengths;
}

std::vector<Index> random_documents(Index length, Index count, Index seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::vector<Index> places;  // where documents begin; the same place twice is an empty document, drawn again
  while (static_cast<Index>(places.size()) < std::min(count, length) - 1) {
    const Index place = 1 + static_cast<Index>(random() % static_cast<std::uint64_t>(length - 1));
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  std::sort(places.begin(), places.end());
  std::vector<Index> ids;
  ids.reserve(static_cast<std::size_t>(length));
  for (Index i = 0; i < length; ++i)
    ids.push_back(std::upper_bound(places.begin(), places.end(), i) - places.begin());
  return ids;
}

void check_attention_work(const AttentionWork& w) {
  const AttentionSizes& s = w.sizes;
  const auto refuse = [&](const char* why) { throw Error(fmt::format("{}: {}", w.target, why)); };
  if (std::min({s.batch, s.heads, s.kv_heads, s.queries, s.keys, s.depth}) < 1)
    refuse("sizes are at least 1");
  if (s.heads % s.kv_heads != 0) refuse("heads must be a multiple of kv_heads");
  if (!w.mask.none() && s.queries > s.keys)
    refuse("a mask needs at least as many keys as queries: the first would see none");
}

std::vector<InputSpec> attention_inputs(const AttentionWork& w) {
  const AttentionSizes& s = w.sizes;
  std::vector<InputSpec> inputs = {normal_input("q", s.of_queries(), w.dtype),
                                   normal_input("k", s.of_keys(), w.dtype),
                                   normal_input("v", s.of_keys(), w.dtype)};
  if (w.mask.none()) return inputs;
  inputs.push_back(positions("query_positions", offset_of(s), s.queries));
  inputs.push_back(positions("key_positions", 0, s.keys));
  if (!w.mask.documents.empty())
    inputs.push_back({"documents", DType::i64, Shape{s.keys},
                      [ids = w.mask.documents](Context& context) {
                        return context.from(ids, {static_cast<Index>(ids.size())});
                      },
                      false});
  if (!w.mask.lengths.empty())
    inputs.push_back({"lengths", DType::i64, Shape{s.batch},
                      [lengths = w.mask.lengths](Context& context) {
                        return context.from(lengths, {static_cast<Index>(lengths.size())});
                      },
                      false});
  return inputs;
}

MaskFunction mask_function(const AttentionWork& w, const std::vector<Tensor>& in) {
  const Index offset = offset_of(w.sizes);
  std::vector<MaskFunction> parts;
  if (w.mask.window > 0)
    parts.push_back(window_mask(w.mask.window - 1, 0, offset));
  else if (w.mask.causal)
    parts.push_back(causal_mask(offset));
  if (!w.mask.documents.empty()) parts.push_back(document_mask(in[kDocuments]));
  if (!w.mask.lengths.empty()) parts.push_back(prefix_mask(in[lengths_input(w)]));
  if (parts.empty()) return {};
  return parts.size() == 1 ? parts[0] : all_of(parts);
}

Tensor masked(const Tensor& scores, const AttentionWork& w, const std::vector<Tensor>& in) {
  if (w.mask.none()) return scores;
  const Tensor query = unsqueeze(in[3], 1), key = unsqueeze(in[4], 0);  // (Q, 1), (1, K)
  Tensor sees;
  const auto also = [&](const Tensor& part) { sees = sees.defined() ? logical_and(sees, part) : part; };
  if (w.mask.causal || w.mask.window > 0) also(query >= key);
  if (w.mask.window > 0) also(query - key < w.mask.window);
  if (!w.mask.documents.empty()) also(unsqueeze(in[kDocuments], 1) == unsqueeze(in[kDocuments], 0));
  if (!w.mask.lengths.empty()) also(key < reshape(in[lengths_input(w)], {w.sizes.batch, 1, 1, 1}));
  return where(sees, scores, -std::numeric_limits<float>::infinity());
}

Tensor repeat_heads(const Tensor& x, Index heads) {
  const Shape& s = x.shape();
  if (s[1] == heads) return x;
  return reshape(broadcast_to(unsqueeze(x, 2), {s[0], s[1], heads / s[1], s[2], s[3]}),
                 {s[0], heads, s[2], s[3]});
}

std::vector<std::pair<std::string, std::string>> attention_parameters(const AttentionWork& w) {
  return {{"causal", w.mask.causal || w.mask.window > 0 ? "yes" : "no"},
          {"window", fmt::format("{}", w.mask.window)},
          {"documents", w.mask.documents.empty() ? "no" : "yes"}};
}

std::string attention_series(const AttentionWork& w) {
  return fmt::format("B{} {} D{}{}", w.sizes.batch, heads_text(w.sizes), w.sizes.depth, w.mask.text());
}

TensorWorkload attention_workload(const AttentionWork& work) {
  check_attention_work(work);
  const AttentionSizes& s = work.sizes;
  const std::vector<SeenKeys> seen = seen_keys(s, work.mask);
  const std::string lengths =
      s.queries == s.keys ? fmt::format("T{}", s.keys) : fmt::format("Q{} K{}", s.queries, s.keys);
  TensorWorkload w{
      .target = work.target,
      .shape = fmt::format("B{} {} {} D{}{}", s.batch, heads_text(s), lengths, s.depth, work.mask.text()),
      .dtype = std::string(name(work.dtype))};
  w.inputs = attention_inputs(work);
  // Sums of 8-bit products are stored wider.
  const DType out = is_f8(work.dtype) ? DType::bf16 : work.dtype;
  // Roundings of exp and of what is around it, as softmax counts them.
  w.outputs = {{"y", out, s.of_queries(), {.storage = out, .reduction = s.depth + s.keys, .operations = 12}}};
  // The mask is arithmetic on places: its inputs are traffic of no one who knows that. Nor are keys behind a
  // sequence's length.
  std::vector<InputSpec> read(w.inputs.begin(), w.inputs.begin() + 3);
  if (!work.mask.lengths.empty()) {
    const Index keys = std::accumulate(work.mask.lengths.begin(), work.mask.lengths.end(), Index{0});
    read[1].shape = read[2].shape = {1, s.kv_heads, keys, s.depth};
  }
  w.cost = product_cost(read, w.outputs, attention_flops(s, seen), work.dtype);
  w.unit = work.unit;
  w.function = [work, out](const std::vector<Tensor>& in) {
    return std::vector{cast(attention(in[0], in[1], in[2], {.mask = mask_function(work, in)}), out)};
  };
  w.eager = [work, out](const std::vector<Tensor>& in) {
    return std::vector{cast(as_written(in, work), out)};
  };
  w.peer_parameters = attention_parameters(work);
  const ErrorScale scale(w.outputs[0].rule, s.of_queries().size());
  const WeightRounding rounding = is_f8(work.dtype) ? rounding_of_f8(work.dtype, out) : WeightRounding{};
  w.reference = [s, seen, scale, rounding](const HostArrays& in, ThreadPool& pool) {
    return attention_reference(in, s, seen, scale, pool, kMostReferenceFlops, rounding);
  };
  return w;
}

Knob causal_knob(std::string value) {
  return {.name = "causal",
          .values = {std::move(value)},
          .doc = "yes: each query sees the keys up to its own place, the last all",
          .choices = {std::string("yes"), std::string("no")}};
}

Knob batch_knob(Index value) { return {.name = "batch", .values = {value}, .doc = "sequences"}; }

std::vector<Knob> head_knobs(Index heads, Index cuda_heads, Index depth, Index cuda_depth) {
  return {{.name = "heads", .values = {heads}, .doc = "heads of q", .cuda_values = {cuda_heads}},
          {.name = "kv_heads",
           .values = {Index{0}},
           .doc = "heads of k and v, which query heads share in turn; 0: as many as heads",
           .least = 0},
          {.name = "depth", .values = {depth}, .doc = "columns of q, k and v", .cuda_values = {cuda_depth}}};
}

AttentionWork attention_work(std::string target, const Knobs& knobs, Index queries, Index keys) {
  const Index heads = knobs.integer("heads"), kv_heads = knobs.integer("kv_heads");
  AttentionWork work;
  work.target = std::move(target);
  work.sizes = {.batch = knobs.integer("batch"),
                .heads = heads,
                .kv_heads = kv_heads == 0 ? heads : kv_heads,
                .queries = queries,
                .keys = keys,
                .depth = knobs.integer("depth")};
  work.dtype = knobs.dtype("dtype");
  return work;
}

}  // namespace tilewright::lab
