// Programs that are in no pair of the lab, as a user would write them with the library's functions: norms
// over groups and batches, reductions over the first axis, rotary embeddings, products off the usual tiles,
// optimizer updates, and blocks of networks with their gradients. What the compiler makes of them was found
// slow from outside; they are watched here.
#include "support/training_step.h"

#include "ops/composites.h"
#include "passes/graph/differentiate.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>

#include "replay/corpus.h"

namespace tilewright::replay {

namespace {

using ir::Graph;
using ir::Value;

// A graph under construction: inputs by name and type.
class Program {
 public:
  Value input(const std::string& name, DType dtype, const Shape& shape) {
    return {&graph_, graph_.add_input(name, {dtype, shape})};
  }
  Graph& graph() { return graph_; }
  Graph finish(const std::vector<Value>& outputs) {
    std::vector<ir::NodeId> ids;
    ids.reserve(outputs.size());
    for (const Value& v : outputs) ids.push_back(v.id);
    graph_.set_outputs(ids);
    return std::move(graph_);
  }
  // The loss and its gradients by the inputs `wrt`.
  Graph finish_with_gradients(Value loss, const std::vector<int>& wrt) {
    graph_.set_outputs({loss.id});
    return passes::differentiate(graph_, wrt);
  }

 private:
  Graph graph_{"program"};
};

// Σ y·g in f32: gradients by what y is made of, for a given gradient of y.
Value weighted_sum(Value y, Value g) { return ops::sum(ops::cast(y, DType::f32) * ops::cast(g, DType::f32)); }

Graph softmax_over_first_axis(DType dtype, Index rows, Index columns) {
  Program p;
  return p.finish({ops::softmax(p.input("x", dtype, {rows, columns}), 0)});
}

// Rotary position embedding with halves (J. Su et al., RoFormer, 2021): x·cos + (−x₂, x₁)·sin.
Value rotated(Value x, Value cos, Value sin) {
  const Index depth = x.shape()[x.shape().rank() - 1], axis = x.shape().rank() - 1;
  const Value low = ops::slice_axis(x, axis, {0, depth / 2}),
              high = ops::slice_axis(x, axis, {depth / 2, depth});
  return x * cos + ops::concat({-high, low}, axis) * sin;
}

Graph rotary_embedding(DType dtype, const Shape& shape) {
  Program p;
  const Shape table{shape[2], shape[3]};
  return p.finish(
      {rotated(p.input("x", dtype, shape), p.input("cos", dtype, table), p.input("sin", dtype, table))});
}

Graph group_norm(DType dtype, const Shape& shape, Index groups) {
  Program p;
  const Value x = p.input("x", dtype, shape), gamma = p.input("gamma", dtype, {1, shape[1], 1, 1}),
              beta = p.input("beta", dtype, {1, shape[1], 1, 1});
  const Value grouped = ops::cast(ops::reshape(x, {shape[0], groups, -1}), DType::f32);
  const Value centred = grouped - ops::mean(grouped, {2}, ops::Keep::yes);
  const Value scaled = centred * ops::rsqrt(ops::mean(centred * centred, {2}, ops::Keep::yes) + 1e-5);
  return p.finish({ops::cast(ops::reshape(scaled, shape) * gamma + beta, dtype)});
}

Graph batch_norm_relu(DType dtype, const Shape& shape) {
  Program p;
  const Value x = p.input("x", dtype, shape), gamma = p.input("gamma", dtype, {1, shape[1], 1, 1}),
              beta = p.input("beta", dtype, {1, shape[1], 1, 1});
  const Value mean = ops::mean(x, {0, 2, 3}, ops::Keep::yes),
              variance = ops::var(x, {0, 2, 3}, {.keep = ops::Keep::yes});
  return p.finish({ops::maximum((x - mean) * ops::rsqrt(variance + 1e-5) * gamma + beta, 0.0)});
}

Graph product(DType dtype, Index m, Index n, Index k) {
  Program p;
  return p.finish({ops::matmul(p.input("a", dtype, {m, k}), p.input("b", dtype, {k, n}))});
}

// I. Loshchilov, F. Hutter, Decoupled Weight Decay Regularization, 2019.
std::vector<Value> adamw_step(Value w, Value g, Value m, Value v) {
  const Value first = m * 0.9 + g * 0.1, second = v * 0.999 + g * g * 0.001;
  const Value change = first * 1.1 / (ops::sqrt(second * 1.01) + 1e-8) + w * 0.1;
  return {w - change * 6e-4, first, second};
}

Graph adamw(Index n) {
  Program p;
  const Value w = p.input("w", DType::f32, {n}), g = p.input("g", DType::f32, {n}),
              m = p.input("m", DType::f32, {n}), v = p.input("v", DType::f32, {n});
  return p.finish(adamw_step(w, g, m, v));
}

// The last piece of a gradient, added to the ones before, and the update of what it is of: w (m, n), d (k,
// m), x (k, n).
Graph product_with_adamw(Index m, Index n, Index k) {
  Program p;
  const Value w = p.input("w", DType::f32, {m, n}), first = p.input("first", DType::f32, {m, n}),
              second = p.input("second", DType::f32, {m, n}), sum = p.input("sum", DType::f32, {m, n}),
              d = p.input("d", DType::bf16, {k, m}), x = p.input("x", DType::bf16, {k, n});
  const Value g = ops::matmul(ops::transpose(d, {1, 0}), x, DType::f32) + sum;
  return p.finish(adamw_step(w, g, first, second));
}

// A gradient to which a product is added in place, piece by piece: x_i (k, m), d_i (k, n).
Graph accumulated_products(Index m, Index n, Index k, int pieces) {
  Program p;
  Value sum;
  for (int i = 0; i < pieces; ++i) {
    const Value x = p.input(fmt::format("x{}", i), DType::bf16, {k, m}),
                d = p.input(fmt::format("d{}", i), DType::bf16, {k, n});
    const Value product = ops::matmul(ops::transpose(x, {1, 0}), d, DType::f32);
    sum = i == 0 ? product : sum + product;
  }
  return p.finish({sum});
}

Graph embedding_gradient(DType dtype, Index tokens, Index vocabulary, Index channels) {
  Program p;
  const Value table = p.input("table", dtype, {vocabulary, channels}),
              index = p.input("index", DType::i64, {tokens}), g = p.input("g", dtype, {tokens, channels});
  return p.finish_with_gradients(weighted_sum(ops::embedding(table, index), g), {0});
}

Graph mlp_with_gradients(DType dtype, Index rows, Index channels, Index wide) {
  Program p;
  const Value x = p.input("x", dtype, {rows, channels}), w1 = p.input("w1", dtype, {channels, wide}),
              b1 = p.input("b1", dtype, {wide}), w2 = p.input("w2", dtype, {wide, channels}),
              b2 = p.input("b2", dtype, {channels}), g = p.input("g", dtype, {rows, channels});
  const Value y = ops::matmul(ops::gelu(ops::matmul(x, w1) + b1, ops::Gelu::tanh), w2) + b2;
  return p.finish_with_gradients(weighted_sum(y, g), {0, 1, 2, 3, 4});
}

Value causal_attention(Value q, Value k, Value v) {  // (B, H, T, D) each
  const Shape& shape = q.shape();
  const Shape square{shape[2], shape[2]};
  const Value scores =
      ops::matmul(q, ops::swap_axes(k, 2, 3)) * (1 / std::sqrt(static_cast<double>(shape[3])));
  const Value past = ops::ge(ops::iota(*q.graph, square, 0), ops::iota(*q.graph, square, 1));
  return ops::matmul(ops::softmax(ops::where(past, scores, -std::numeric_limits<double>::infinity())), v);
}

Graph attention_with_gradients(DType dtype, const Shape& shape) {
  Program p;
  const Value q = p.input("q", dtype, shape), k = p.input("k", dtype, shape), v = p.input("v", dtype, shape),
              g = p.input("g", dtype, shape);
  return p.finish_with_gradients(weighted_sum(causal_attention(q, k, v), g), {0, 1, 2});
}

struct LlamaBlock {
  Index batch, time, channels, heads, wide;
  bool gradients;
};

// H. Touvron et al., LLaMA, 2023: RMS norms, rotary embeddings, SwiGLU.
Graph llama_block(const LlamaBlock& s, DType dtype) {
  Program p;
  const Index depth = s.channels / s.heads, c = s.channels;
  const Value x = p.input("x", dtype, {s.batch, s.time, c}), n1 = p.input("n1", dtype, {c}),
              n2 = p.input("n2", dtype, {c});
  const Value wq = p.input("wq", dtype, {c, c}), wk = p.input("wk", dtype, {c, c}),
              wv = p.input("wv", dtype, {c, c}), wo = p.input("wo", dtype, {c, c}),
              gate = p.input("gate", dtype, {c, s.wide}), up = p.input("up", dtype, {c, s.wide}),
              down = p.input("down", dtype, {s.wide, c});
  const Value cos = p.input("cos", dtype, {s.time, depth}), sin = p.input("sin", dtype, {s.time, depth}),
              g = p.input("g", dtype, {s.batch, s.time, c});
  const auto heads = [&](Value y) {
    return ops::transpose(ops::reshape(y, {s.batch, s.time, s.heads, depth}), {0, 2, 1, 3});
  };
  const Value h = ops::rms_norm(x, n1);
  const Value q = rotated(heads(ops::matmul(h, wq)), cos, sin),
              k = rotated(heads(ops::matmul(h, wk)), cos, sin);
  const Value mixed = causal_attention(q, k, heads(ops::matmul(h, wv)));
  const Value y = x + ops::matmul(ops::reshape(ops::transpose(mixed, {0, 2, 1, 3}), x.shape()), wo);
  const Value f = ops::rms_norm(y, n2);
  const Value out = y + ops::matmul(ops::silu(ops::matmul(f, gate)) * ops::matmul(f, up), down);
  if (!s.gradients) return p.finish({out});
  return p.finish_with_gradients(weighted_sum(out, g), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

}  // namespace

std::vector<CorpusEntry> user_program_entries() {
  constexpr DType f32 = DType::f32, bf16 = DType::bf16;
  std::vector<CorpusEntry> out;
  const auto add = [&](const std::string& name, std::function<Graph()> graph) {
    out.push_back(graph_entry("user/" + name, std::move(graph)));
  };
  add("gpt2_training_step layers=12 B32 bf16",
      [] { return graph_of(test::TrainingStep{.layers = 12, .batch = 32, .compute = bf16}); });
  add("gpt2_training_step layers=12 B32 bf16 checkpointed", [] {
    return graph_of(test::TrainingStep{.layers = 12, .batch = 32, .compute = bf16, .checkpointed = true});
  });
  add("llama_block B4 T2048 C2048 H16 bf16 gradients", [] {
    return llama_block(
        {.batch = 4, .time = 2048, .channels = 2048, .heads = 16, .wide = 5632, .gradients = true}, bf16);
  });
  add("llama_block B4 T2048 C2048 H16 bf16", [] {
    return llama_block(
        {.batch = 4, .time = 2048, .channels = 2048, .heads = 16, .wide = 5632, .gradients = false}, bf16);
  });
  add("attention H16 T4096 D128 causal bf16 gradients",
      [] { return attention_with_gradients(bf16, {1, 16, 4096, 128}); });
  add("mlp 8192x1024x4096 bf16 gradients", [] { return mlp_with_gradients(bf16, 8192, 1024, 4096); });
  add("softmax axis=0 8192x4096 f32", [] { return softmax_over_first_axis(f32, 8192, 4096); });
  add("softmax axis=0 300x70000 bf16", [] { return softmax_over_first_axis(bf16, 300, 70000); });
  add("rotary 8x32x2048x128 bf16", [] { return rotary_embedding(bf16, {8, 32, 2048, 128}); });
  add("rotary 2x16x1024x128 f32", [] { return rotary_embedding(f32, {2, 16, 1024, 128}); });
  add("group_norm 64x512x32x32 groups=32 bf16", [] { return group_norm(bf16, {64, 512, 32, 32}, 32); });
  add("batch_norm_relu 64x256x56x56 f32", [] { return batch_norm_relu(f32, {64, 256, 56, 56}); });
  add("gemm 5000x5000x5000 bf16", [] { return product(bf16, 5000, 5000, 5000); });
  add("gemm 1001x3333x777 bf16", [] { return product(bf16, 1001, 3333, 777); });
  add("adamw 124000000 f32", [] { return adamw(124000000); });
  add("product_with_adamw 50304x768x4096 bf16", [] { return product_with_adamw(50304, 768, 4096); });
  add("accumulated_products 50304x768x4096 bf16 pieces=3",
      [] { return accumulated_products(50304, 768, 4096, 3); });
  add("embedding_gradient 16384 of 50304x768 bf16",
      [] { return embedding_gradient(bf16, 16384, 50304, 768); });
  return out;
}

}  // namespace tilewright::replay
