// Optimizer updates, feed-forward layers and transformer blocks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sweep/families.h"
#include "sweep/families/parts.h"

namespace tilewright::sweep {

namespace {

// torch.optim's own lines for one tensor (AdamW of decoupled decay, step 10), with results instead of updates
// in place.
void adamw(Draft& d, const Shape& shape) {
  const std::string p = d.input("p", shape), g = d.input("g", shape, {.deviation = 0.1});
  const std::string m = d.input("m", shape, {.deviation = 0.1});
  const std::string v = d.input("v", shape, {.kind = Holds::Kind::positive, .deviation = 0.1});
  const std::string m1 = d.ours("add", {d.ours("mul", {m, "0.9"}), d.ours("mul", {g, "0.1"})});
  d.torch(m1, "torch.lerp(m, g, 0.1)");
  const std::string v1 =
      d.ours("add", {d.ours("mul", {v, "0.999"}), d.ours("mul", {d.ours("square", {g}), "0.001"})});
  d.torch(v1, "(v * 0.999).addcmul_(g, g, value=0.001)");
  const std::string root = d.ours("add", {d.ours("mul", {d.ours("sqrt", {v1}), "10.0"}), "0.00001"});
  d.torch(root, fmt::format("({}.sqrt() * 10.0).add_(0.00001)", v1));
  const std::string step = d.ours("mul", {d.ours("div", {m1, root}), "0.0015"});
  const std::string p1 = d.ours("sub", {d.ours("mul", {p, "0.99999"}), step});
  d.torch(p1, fmt::format("torch.addcdiv(p * 0.99999, {}, {}, value=-0.0015)", m1, root));
  d.results({p1, m1, v1});
}

void momentum(Draft& d, const Shape& shape) {
  const std::string p = d.input("p", shape), g = d.input("g", shape), b = d.input("buffer", shape);
  const std::string b1 = d.ours("add", {d.ours("mul", {b, "0.9"}), g});
  d.torch(b1, "(buffer * 0.9).add_(g)");
  const std::string p1 = d.ours("sub", {p, d.ours("mul", {b1, "0.01"})});
  d.torch(p1, fmt::format("p.add({}, alpha=-0.01)", b1));
  d.results({p1, b1});
}

}  // namespace

void optimizer(Draft& d) {
  const bool adam = d.choose.chance(0.7);
  const auto rank = static_cast<int>(d.choose.integer(1, 2));
  const Shape shape = d.sizes.shape(d.elements(adam ? 1.0 / 7 : 0.2), rank);
  if (adam)
    adamw(d, shape);
  else
    momentum(d, shape);
}

namespace {

struct Layer {
  Index tokens, width, hidden;
};

Layer layer_of(Draft& d, double elements, double matrices) {
  Layer l{};
  // Weights are some of it, activations the rest.
  const double weights = elements * (0.2 + 0.5 * d.sizes.unit());
  l.width = d.sizes.extent(std::max(4.0, std::sqrt(weights / (4 * matrices))));
  l.hidden = d.choose.chance(0.7) ? 4 * l.width : d.sizes.extent(2.7 * static_cast<double>(l.width));
  const double used = matrices * static_cast<double>(l.width * l.hidden);
  l.tokens = d.sizes.extent(std::max(1.0, (elements - used) / static_cast<double>(2 * l.width)));
  return l;
}

// The feed-forward part, on x (.., width); adds the weights' names to `by`.
std::string feed_forward(Draft& d, const std::string& x, const Layer& l, bool gated,
                         const std::string& activation, std::vector<std::string>& by) {
  if (gated) {
    const std::string gate = d.add("silu", {linear(d, x, "w_gate", l.hidden, l.width)});
    const std::string up = linear(d, x, "w_up", l.hidden, l.width);
    by.insert(by.end(), {"w_gate", "w_up", "w_down"});
    return linear(d, d.add("mul", {gate, up}), "w_down", l.width, l.hidden);
  }
  const std::string h = d.add(activation, {linear(d, x, "w_up", l.hidden, l.width, "b_up")});
  by.insert(by.end(), {"w_up", "b_up", "w_down", "b_down"});
  return linear(d, h, "w_down", l.width, l.hidden, "b_down");
}

void feed_forward_program(Draft& d, bool gradient) {
  const bool gated = d.choose.chance(0.4), normed = d.choose.chance(0.4), of_x = d.choose.chance(0.6);
  const auto activation = d.choose.weighted<std::string>({{"gelu", 1}, {"gelu_tanh", 1}, {"relu", 1}});
  const Layer l = layer_of(d, d.elements(gradient ? 0.4 : 1), gated ? 3 : 2);
  const std::string x = d.input("x", Shape({l.tokens, l.width}));
  std::vector<std::string> by;
  std::string y = x;
  if (normed) {
    y = last_axis_norm(d, x, l.width, gated);
    by = norm_weights(gated);
  }
  y = feed_forward(d, y, l, gated, activation, by);
  if (normed) y = d.add("add", {x, y});
  if (of_x) by.push_back(x);
  if (gradient)
    d.gradients(mse_loss(d, y, Shape({l.tokens, l.width})), by);
  else
    d.results({y});
}

// Pre-norm: x + attention(norm(x)), then x + feed_forward(norm(x)).
void block_program(Draft& d, bool gradient) {
  const bool modern = d.choose.chance(0.5), causal = d.choose.chance(0.8);
  const Index depth = d.choose.one_of(std::vector<Index>{32, 64, 64, 128});
  const double elements = d.elements(gradient ? 0.35 : 0.9);
  const double weights = elements * (0.2 + 0.4 * d.sizes.unit());
  const Index heads =
      std::max(Index{1}, Index{std::lround(std::sqrt(weights / 12) / static_cast<double>(depth))});
  Layer l{};
  l.width = heads * depth;
  l.hidden = modern ? round_up(8 * l.width / 3, 8) : 4 * l.width;
  const double used = 4.0 * static_cast<double>(l.width * l.width) +
                      (modern ? 3.0 : 2.0) * static_cast<double>(l.width * l.hidden);
  const double tokens = std::max(8.0, (elements - used) / static_cast<double>(2 * l.width));
  const Index time = d.sizes.extent(
      std::min({d.sizes.log_uniform(32, 4097), tokens, std::sqrt(1e9 / static_cast<double>(heads))}));
  const Index batch = std::max(Index{1}, static_cast<Index>(tokens / static_cast<double>(time)));
  AttentionShape at{
      .batch = batch, .heads = heads, .kv_heads = heads, .queries = time, .keys = time, .depth = depth};
  const Shape shape({batch, time, l.width});
  const std::string x = d.input("x", shape);
  std::vector<std::string> by = norm_weights(modern, "1");
  const std::string normed = last_axis_norm(d, x, l.width, modern, "1");
  const auto heads_of = [&](const std::string& t) {
    const std::string parts =
        d.add("reshape", {t}, {{"shape", list(std::vector<Index>{batch, time, heads, depth})}});
    return d.add("swap_axes", {parts}, {{"a", "1"}, {"b", "2"}});
  };
  std::string q, k, v;
  if (modern) {
    q = heads_of(linear(d, normed, "w_q", l.width, l.width));
    k = heads_of(linear(d, normed, "w_k", l.width, l.width));
    v = heads_of(linear(d, normed, "w_v", l.width, l.width));
    by.insert(by.end(), {"w_q", "w_k", "w_v"});
  } else {
    const std::string qkv = linear(d, normed, "w_qkv", 3 * l.width, l.width, "b_qkv");
    const auto part = [&](Index i) {
      return heads_of(d.add("slice", {qkv},
                            {{"axis", "2"},
                             {"start", std::to_string(i * l.width)},
                             {"stop", std::to_string((i + 1) * l.width)}}));
    };
    q = part(0);
    k = part(1);
    v = part(2);
    by.insert(by.end(), {"w_qkv", "b_qkv"});
  }
  std::string mixed = attention_of(d, q, k, v, at, causal ? MaskKind::causal : MaskKind::none);
  mixed = d.add("swap_axes", {mixed}, {{"a", "1"}, {"b", "2"}});
  mixed = d.add("reshape", {mixed}, {{"shape", list(shape)}});
  mixed = linear(d, mixed, "w_o", l.width, l.width, modern ? "" : "b_o");
  by.emplace_back("w_o");
  if (!modern) by.emplace_back("b_o");
  const std::string middle = d.add("add", {x, mixed});
  const std::string second = last_axis_norm(d, middle, l.width, modern, "2");
  for (const std::string& name : norm_weights(modern, "2")) by.push_back(name);
  const std::string y = d.add("add", {middle, feed_forward(d, second, l, modern, "gelu", by)});
  if (gradient)
    d.gradients(mse_loss(d, y, shape), by);
  else
    d.results({y});
}

}  // namespace

void mlp(Draft& d) { feed_forward_program(d, false); }
void mlp_gradient(Draft& d) { feed_forward_program(d, true); }
void block(Draft& d) { block_program(d, false); }
void block_gradient(Draft& d) { block_program(d, true); }

}  // namespace tilewright::sweep
