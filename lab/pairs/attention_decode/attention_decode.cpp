// attention_decode: one or few queries for each sequence over its long cache of keys and values, which query
// heads share. Every element of the cache is read once: the memory's rate bounds it, if the few queries keep
// enough of the machine busy.
#include "pairs/attention_work.h"
#include "pairs/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace tilewright::lab {

namespace {

// The same work on a cache in pages, which lie in any order.
struct InPages {
  AttentionSizes sizes;
  Index page = 0;
  Index count() const { return sizes.keys / page; }  // of a sequence
  Shape shape() const { return {sizes.batch * count(), page, sizes.kv_heads, sizes.depth}; }
};

std::vector<Index> random_order(Index count) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Index{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  return order;
}

// (P, page, H, D) to (B, H, K, D).
HostArray joined(const HostArray& pages, const HostArray& table, const InPages& in) {
  const AttentionSizes& s = in.sizes;
  HostArray out(pages.size());
  for (Index b = 0; b < s.batch; ++b)
    for (Index k = 0; k < s.keys; ++k) {
      const auto page = static_cast<Index>(table[static_cast<std::size_t>(b * in.count() + k / in.page)]);
      for (Index h = 0; h < s.kv_heads; ++h) {
        const Index from = ((page * in.page + k % in.page) * s.kv_heads + h) * s.depth;
        std::copy_n(pages.begin() + from, s.depth,
                    out.begin() + ((b * s.kv_heads + h) * s.keys + k) * s.depth);
      }
    }
  return out;
}

TensorWorkload in_pages(TensorWorkload w, const InPages& in) {
  w.shape += fmt::format(" pages of {}", in.page);
  for (std::size_t i : {1U, 2U}) w.inputs[i] = normal_input(w.inputs[i].name, in.shape(), w.inputs[i].dtype);
  const std::size_t table = w.inputs.size();
  w.inputs.push_back({"table", DType::i64, Shape{in.sizes.batch, in.count()},
                      [in](Context& context) {
                        return context.from(random_order(in.sizes.batch * in.count()),
                                            {in.sizes.batch, in.count()});
                      },
                      false});
  for (TensorFunction* f : {&w.function, &w.eager})
    *f = [inner = *f, table](const std::vector<Tensor>& x) {
      std::vector<Tensor> whole = x;
      for (std::size_t i : {1U, 2U}) whole[i] = from_pages(x[i], x[table]);
      return inner(whole);
    };
  w.reference = [inner = w.reference, table, in](const HostArrays& x, ThreadPool& pool) {
    HostArrays whole = x;
    for (std::size_t i : {1U, 2U}) whole[i] = joined(x[i], x[table], in);
    return inner(whole, pool);
  };
  w.no_peers = "PyTorch's attention reads no cache in pages";
  return w;
}

Result<PairInstance> make_attention_decode(const Knobs& knobs, LabDevice& device) {
  AttentionWork work =
      attention_work("attention_decode", knobs, knobs.integer("queries"), knobs.integer("keys"));
  work.unit = "GB/s";
  work.mask.causal = knobs.integer("queries") > 1;  // one sees all of the cache anyway
  const Index shortest = knobs.integer("shortest");
  if (shortest > 0) {
    if (shortest > work.sizes.keys || work.mask.causal)
      throw Error("attention_decode: shortest goes with one query, and is at most keys");
    work.mask.lengths = random_lengths(work.sizes.batch, shortest, work.sizes.keys, 1);
  }
  TensorWorkload whole = attention_workload(work);
  if (shortest > 0) whole.no_peers = "peers are timed on caches of one length";
  const Index page = knobs.integer("page");
  if (page == 0) return make_instance(std::move(whole), device);
  if (page < 0 || work.sizes.keys % page != 0)
    throw Error("attention_decode: keys must be a multiple of page");
  return make_instance(in_pages(std::move(whole), {work.sizes, page}), device);
}

}  // namespace

Pair attention_decode_pair() {
  return {
      .name = "attention_decode",
      .doc = "attention of the last queries to a long cache",
      .knobs = {{.name = "batch", .values = {Index{4}}, .doc = "sequences", .cuda_values = {Index{64}}},
                {.name = "heads", .values = {Index{32}}, .doc = "heads of q", .cuda_values = {Index{64}}},
                {.name = "kv_heads",
                 .values = {Index{8}},
                 .doc = "heads of k and v, which query heads share in turn; 0: as many as heads",
                 .least = 0},
                {.name = "depth", .values = {Index{128}}, .doc = "columns of q, k and v"},
                {.name = "queries",
                 .values = {Index{1}},
                 .doc = "rows of q, the last positions of each sequence; causal among themselves"},
                {.name = "keys",
                 .values = {Index{4096}},
                 .doc = "positions in the cache",
                 .cuda_values = {Index{8192}}},
                {.name = "page",
                 .values = {Index{0}},
                 .doc = "positions in a page of the cache, which a table finds; 0: all in one piece",
                 .least = 0},
                {.name = "shortest",
                 .values = {Index{0}},
                 .doc = "sequences' lengths are drawn from this to keys; 0: all are as long as the cache",
                 .least = 0},
                product_dtype_knob()},
      .make = make_attention_decode,
      .tiny = {{"batch=2", "heads=8", "kv_heads=2", "depth=32", "keys=300", "queries=1,3", "dtype=f32,bf16"}},
      .suites = {{"products", {"batch=2", "heads=8", "kv_heads=2", "keys=1024"}}}};
}

}  // namespace tilewright::lab
