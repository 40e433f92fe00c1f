// Layers: their first values, and what they compute.
#include <tilewright/nn/layers.h>

#include <fmt/format.h>

#include <cmath>

namespace tilewright::nn {

namespace {

void check_size(const char* layer, const char* what, Index size, const Location& where) {
  if (size < 1) throw Error(fmt::format("{}: {} is {}, and must be at least 1", layer, what, size), where);
}

Tensor biased(const Tensor& product, const std::optional<Tensor>& bias, const Location& where) {
  return bias ? add({product, where}, {*bias, where}, where) : product;
}

}  // namespace

Tensor normal(Context& ctx, const Shape& shape, double deviation, const Location& where) {
  if (!(deviation >= 0) || std::isinf(deviation))
    throw Error(fmt::format("normal: a deviation of {} is no distance", deviation), where);
  return mul({ctx.randn(shape, DType::f32, where), where}, {deviation, where}, where);
}

Tensor uniform(Context& ctx, const Shape& shape, double bound, const Location& where) {
  if (!(bound >= 0) || std::isinf(bound))
    throw Error(fmt::format("uniform: a bound of {} is no distance", bound), where);
  const Tensor unit = ctx.rand(shape, DType::f32, where);
  return sub({mul({unit, where}, {2 * bound, where}, where), where}, {bound, where}, where);
}

Linear make_linear(Context& ctx, Index in, Index out, bool bias, const Location& where) {
  check_size("make_linear", "in", in, where);
  check_size("make_linear", "out", out, where);
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  Linear layer{.weight = uniform(ctx, {out, in}, bound, where), .bias = {}};
  if (bias) layer.bias = uniform(ctx, {out}, bound, where);
  return layer;
}

Embedding make_embedding(Context& ctx, Index count, Index width, const Location& where) {
  check_size("make_embedding", "count", count, where);
  check_size("make_embedding", "width", width, where);
  return {normal(ctx, {count, width}, 1, where)};
}

LayerNorm make_layer_norm(Context& ctx, Index width, bool bias, const Location& where) {
  check_size("make_layer_norm", "width", width, where);
  LayerNorm layer{.weight = ctx.ones({width}, DType::f32, where), .bias = {}};
  if (bias) layer.bias = ctx.zeros({width}, DType::f32, where);
  return layer;
}

RMSNorm make_rms_norm(Context& ctx, Index width, const Location& where) {
  check_size("make_rms_norm", "width", width, where);
  return {ctx.ones({width}, DType::f32, where)};
}

Tensor apply(const Linear& layer, const Tensor& x, const Location& where) {
  return biased(matmul(x, swap_axes(layer.weight, 0, 1, where), where), layer.bias, where);
}
Tensor apply(const Conv1D& layer, const Tensor& x, const Location& where) {
  return biased(matmul(x, layer.weight, where), layer.bias, where);
}
Tensor apply(const Embedding& layer, const Tensor& tokens, const Location& where) {
  return embedding(layer.weight, tokens, where);
}
Tensor apply(const LayerNorm& layer, const Tensor& x, double epsilon, const Location& where) {
  return layer_norm(x, layer.weight, layer.bias, epsilon, where);
}
Tensor apply(const RMSNorm& layer, const Tensor& x, double epsilon, const Location& where) {
  return rms_norm(x, layer.weight, epsilon, where);
}

Tensor Dropout::next_key(const Location& where) {
  if (!key_) throw Error("Dropout: it has no key, so that nothing is dropped", where);
  // An odd number that spreads neighbouring keys over all 64 bits (Steele et al., SplitMix64); the uses of
  // one key lie behind it.
  constexpr auto kSpread = static_cast<Index>(0x9E3779B97F4A7C15ULL);
  const Tensor spread = mul({*key_, where}, {kSpread, where}, where);
  return add({spread, where}, {uses_++, where}, where);
}

Tensor Dropout::operator()(const Tensor& x, const Location& where) {
  return drops() ? dropout(x, next_key(where), probability_, where) : x;
}

}  // namespace tilewright::nn
