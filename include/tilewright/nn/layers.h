// Layers: structs of parameters, and functions that apply them. Parameters are named as PyTorch's modules and
// the public checkpoints name them, so that named_tensors() and with_tensors() meet those files.
#pragma once

#include <tilewright/tensor/functions.h>
#include <tilewright/tensor/tree.h>

#include <optional>

#pragma GCC visibility push(default)
namespace tilewright::nn {

// y = x · weightᵀ + bias; weight (out, in), bias (out): torch.nn.Linear.
struct Linear {
  Tensor weight;
  std::optional<Tensor> bias;
  TILEWRIGHT_FIELDS(weight, bias)
};
// The same with weight (in, out), as GPT-2's checkpoints have it: transformers' Conv1D.
struct Conv1D {
  Tensor weight;
  std::optional<Tensor> bias;
  TILEWRIGHT_FIELDS(weight, bias)
};
// Rows by number; weight (count, width).
struct Embedding {
  Tensor weight;
  TILEWRIGHT_FIELDS(weight)
};
// weight and bias (width).
struct LayerNorm {
  Tensor weight;
  std::optional<Tensor> bias;
  TILEWRIGHT_FIELDS(weight, bias)
};
// weight (width).
struct RMSNorm {
  Tensor weight;
  TILEWRIGHT_FIELDS(weight)
};

#define TW_HERE const Location& where = Location::current()

// Layers with their usual first values, on the Context's device, in f32: those of torch.nn, uniform within
// ±1/√in for linear ones, normal for embeddings, ones and zeros for norms. Throws Error on sizes below 1.
Linear make_linear(Context& ctx, Index in, Index out, bool bias = true, TW_HERE);
Embedding make_embedding(Context& ctx, Index count, Index width, TW_HERE);
LayerNorm make_layer_norm(Context& ctx, Index width, bool bias = true, TW_HERE);
RMSNorm make_rms_norm(Context& ctx, Index width, TW_HERE);

// x (.., in) gives (.., out); tokens (..) give (.., width); norms are over the last axis. Throws Error where
// sizes do not fit, in the name of the operation.
Tensor apply(const Linear& layer, const Tensor& x, TW_HERE);
Tensor apply(const Conv1D& layer, const Tensor& x, TW_HERE);
Tensor apply(const Embedding& layer, const Tensor& tokens, TW_HERE);
Tensor apply(const LayerNorm& layer, const Tensor& x, double epsilon = 1e-5, TW_HERE);
Tensor apply(const RMSNorm& layer, const Tensor& x, double epsilon = 1e-5, TW_HERE);

// Numbers of a normal distribution around 0, f32. Throws Error where the deviation is negative or no number.
Tensor normal(Context& ctx, const Shape& shape, double deviation, TW_HERE);
// Numbers between -bound and bound, equally likely, f32. Throws Error where the bound is negative or no
// number.
Tensor uniform(Context& ctx, const Shape& shape, double bound, TW_HERE);

// Where and whether activations are dropped: each use of a key has its own mask, and the same key gives the
// same masks on every device. Without a key nothing is dropped, as for validation.
class Dropout {
 public:
  Dropout() = default;
  // `key`: i64[], a number of the step. Throws Error, when it is used, on a probability outside [0, 1).
  Dropout(Tensor key, double probability) : key_(std::move(key)), probability_(probability) {}
  bool drops() const { return key_ && probability_ > 0; }
  double probability() const { return probability_; }
  // The key of the next use: a mix of the step's and the number of the use.
  Tensor next_key(TW_HERE);
  Tensor operator()(const Tensor& x, TW_HERE);

 private:
  std::optional<Tensor> key_;
  double probability_ = 0;
  Index uses_ = 0;
};

// A tree with its float tensors in another type: masters of f32 as the bf16 that products multiply. Gradients
// flow back into the tree's own types.
template <class T>
  requires tilewright::detail::IsTree<T>
T cast_tree(const T& tree, DType dtype, TW_HERE) {
  return map_tensors([&](const Tensor& t) { return is_float(t.dtype()) ? cast(t, dtype, where) : t; }, tree);
}

#undef TW_HERE

}  // namespace tilewright::nn
#pragma GCC visibility pop
