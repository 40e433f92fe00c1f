// Sizes are those of the lab (lab/pairs) or of a layer like them.
#include "golden/flagships.h"

#include "ops/composites.h"
#include "passes/graph/differentiate.h"
#include "support/attention_graph.h"

#include <numeric>

namespace tilewright {

using ir::Graph;
using ir::Value;

namespace {

struct FlagshipGraph {
  Graph graph;
  explicit FlagshipGraph(const char* name) : graph(name) {}
  Value input(const char* name, DType dtype, const Shape& shape) {
    return {&graph, graph.add_input(name, {dtype, shape})};
  }
  Value bf16(const char* name, const Shape& shape) { return input(name, DType::bf16, shape); }
  Graph give(std::initializer_list<Value> outputs) {
    std::vector<ir::NodeId> ids;
    for (const Value& v : outputs) ids.push_back(v.id);
    graph.set_outputs(ids);
    return std::move(graph);
  }
};

struct Heads {
  Value q, k, v;
  test::Positions at;
};
Heads heads_of(FlagshipGraph& p, const Shape& shape) {
  const Value q = p.bf16("q", shape), k = p.bf16("k", shape), v = p.bf16("v", shape);
  return {q, k, v, test::positions(q, k)};
}

Graph attention_causal() {
  FlagshipGraph p("attention_causal");
  const Heads h = heads_of(p, {1, 16, 4096, 128});
  return p.give({test::attention_graph(h.q, h.k, h.v, ops::le(h.at.key, h.at.query))});
}

Graph attention_window() {
  FlagshipGraph p("attention_window");
  const Heads h = heads_of(p, {1, 16, 16384, 128});
  const Value distance = h.at.query - h.at.key;
  return p.give({test::attention_graph(h.q, h.k, h.v,
                                       ops::logical_and(ops::le(distance, 1023), ops::ge(distance, 0)))});
}

Graph attention_documents() {
  FlagshipGraph p("attention_documents");
  const Heads h = heads_of(p, {1, 16, 16384, 128});
  const Value ids = p.input("ids", DType::i64, {16384});
  const Value same = ops::eq(ops::take(ids, h.at.query, 0), ops::take(ids, h.at.key, 0));
  return p.give(
      {test::attention_graph(h.q, h.k, h.v, ops::logical_and(ops::le(h.at.key, h.at.query), same))});
}

Graph attention_backward() {
  FlagshipGraph p("attention_backward");
  const Heads h = heads_of(p, {1, 16, 4096, 128});
  const Value y = test::attention_graph(h.q, h.k, h.v, ops::le(h.at.key, h.at.query));
  const Value of = p.bf16("of", y.shape());
  const Value loss = ops::sum(ops::cast(y, DType::f32) * ops::cast(of, DType::f32));
  Graph gradients = passes::differentiate(p.give({loss}), {0, 1, 2});
  const std::vector<ir::NodeId>& all = gradients.outputs();
  gradients.set_outputs({all.begin() + 1, all.end()});  // without the loss
  return gradients;
}

// One query for each of 16 sequences, whose caches lie in pages: none of them is as long as its table.
Graph decode_pages() {
  FlagshipGraph p("decode_pages");
  const Index batch = 16, keys = 8192, page = 64, pages = keys / page;
  const Value q = p.bf16("q", {batch, 64, 1, 128}), k = p.bf16("k", {batch * pages, page, 8, 128}),
              v = p.bf16("v", {batch * pages, page, 8, 128}), table = p.input("table", DType::i64, {batch, pages}),
              lengths = p.input("lengths", DType::i64, {batch});
  const Value key = ops::iota(p.graph, {keys}, 0);
  return p.give({test::attention_graph(q, test::pages_graph(k, table), test::pages_graph(v, table),
                                       ops::lt(key, ops::reshape(lengths, {batch, 1, 1, 1})))});
}

Graph gemm_bias_gelu() {
  FlagshipGraph p("gemm_bias_gelu");
  const Value x = p.bf16("x", {8192, 768}), w = p.bf16("w", {768, 3072}), b = p.bf16("b", {3072});
  const Value sum = ops::matmul(x, w, DType::f32) + ops::cast(b, DType::f32);
  return p.give({ops::cast(ops::gelu(sum, ops::Gelu::tanh), DType::bf16)});
}

Graph fp8_blocks() {
  FlagshipGraph p("fp8_blocks");
  const Value a = p.input("a", DType::f8e4m3, {4096, 4096}), b = p.input("b", DType::f8e4m3, {4096, 4096}),
              scale_a = p.input("scale_a", DType::f32, {4096, 32}),
              scale_b = p.input("scale_b", DType::f32, {32, 32});
  return p.give({ops::cast(ops::scaled_matmul(a, scale_a, b, scale_b), DType::bf16)});
}

Graph int4() {
  FlagshipGraph p("int4");
  const Value x = p.bf16("x", {64, 4096}), w = p.input("w", DType::i8, {4096, 2048}),
              scales = p.bf16("scales", {32, 4096});
  return p.give({ops::quantized_matmul(x, ops::unpack_int4(w), scales)});
}

Graph split_k() {
  FlagshipGraph p("split_k");
  return p.give({ops::matmul(p.bf16("a", {128, 8192}), p.bf16("b", {8192, 4096}))});
}

// A block of GPT-2: width 768, 12 heads, 1024 positions, two passages.
Graph gpt2_block() {
  FlagshipGraph p("gpt2_block");
  const Index batch = 2, time = 1024, heads = 12, c = 768;
  const Value x = p.bf16("x", {batch, time, c});
  const auto weight = [&](const char* name, const Shape& shape) { return p.bf16(name, shape); };
  const Value ln1w = weight("ln1w", {c}), ln1b = weight("ln1b", {c}), qkvw = weight("qkvw", {c, 3 * c}),
              qkvb = weight("qkvb", {3 * c}), ow = weight("ow", {c, c}), ob = weight("ob", {c}),
              ln2w = weight("ln2w", {c}), ln2b = weight("ln2b", {c}), fcw = weight("fcw", {c, 4 * c}),
              fcb = weight("fcb", {4 * c}), pw = weight("pw", {4 * c, c}), pb = weight("pb", {c});
  const Value qkv = ops::matmul(ops::layer_norm(x, ln1w, ln1b), qkvw) + qkvb;
  const auto part = [&](Index i) {
    const Value one = ops::slice_axis(qkv, 2, {i * c, (i + 1) * c});
    return ops::transpose(ops::reshape(one, {batch, time, heads, c / heads}), {0, 2, 1, 3});
  };
  const Value q = part(0), k = part(1), v = part(2);
  const test::Positions at = test::positions(q, k);
  const Value mixed = test::attention_graph(q, k, v, ops::le(at.key, at.query));
  const Value after =
      x + ops::matmul(ops::reshape(ops::transpose(mixed, {0, 2, 1, 3}), {batch, time, c}), ow) + ob;
  const Value wide = ops::gelu(ops::matmul(ops::layer_norm(after, ln2w, ln2b), fcw) + fcb, ops::Gelu::tanh);
  return p.give({after + ops::matmul(wide, pw) + pb});
}

constexpr Flagship kFlagships[] = {{"attention_causal", attention_causal},
                                   {"attention_window", attention_window},
                                   {"attention_documents", attention_documents},
                                   {"attention_backward", attention_backward},
                                   {"decode_pages", decode_pages},
                                   {"gemm_bias_gelu", gemm_bias_gelu},
                                   {"fp8_blocks", fp8_blocks},
                                   {"int4", int4},
                                   {"split_k", split_k},
                                   {"gpt2_block", gpt2_block}};

}  // namespace

std::span<const Flagship> flagships() { return kFlagships; }

}  // namespace tilewright
