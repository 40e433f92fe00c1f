// A stack of layers x + gelu(x w1) w2 with the mean square of what is left to a target: what pairs around
// training steps differentiate, on tensors and in float64 by plain loops.
#pragma once

#include "pairs/tensor_inputs.h"
#include "pairs/truth.h"

namespace tilewright::lab {

struct MlpSizes {
  Index rows = 0, width = 0, hidden = 0, layers = 0;
  // FLOPs of the products of the loss and of all gradients of weights; the first layer's input has none.
  double flops() const;
  std::string text() const;  // "R512 C256 H1024 L4"
};
// x and target (rows, width), then w1 (width, hidden) and w2 (hidden, width) of each layer: all f32.
std::vector<InputSpec> mlp_inputs(const MlpSizes& sizes);
// "w1.0", …: a tensor like each weight.
std::vector<OutputSpec> like_weights(const MlpSizes& sizes, const std::string& prefix,
                                     const ToleranceRule& rule);

using MlpLayer = std::function<Tensor(const Tensor& x, const Tensor& w1, const Tensor& w2)>;
Tensor mlp_layer(const Tensor& x, const Tensor& w1, const Tensor& w2);
// f32[]; `weights` are those behind x and target.
Tensor mlp_loss(const Tensor& x, const Tensor& target, const std::vector<Tensor>& weights,
                const MlpLayer& layer = mlp_layer);
// The loss and the gradient of each weight.
std::vector<Tensor> mlp_gradient(const Tensor& x, const Tensor& target, const std::vector<Tensor>& weights,
                                 const MlpLayer& layer = mlp_layer);

// What the products' factors are rounded to.
struct FactorRounding {
  double roundoff = 0, underflow = 0;
};
FactorRounding factor_rounding(DType factors);
// The same in float64: the loss, and each gradient.
HostArrays host_mlp_gradient(const HostArrays& in, const MlpSizes& sizes, const FactorRounding& factors,
                             RandomRounding& rounding, ThreadPool& pool);

// How often the pairs round at random.
inline constexpr int kMlpRuns = 6;
// What the pairs' tolerances are: a loss and gradients that are sums of so many terms.
ToleranceRule mlp_rule(const MlpSizes& sizes);
// Knobs "rows", "width", "hidden" and "layers" with these values on the CPU and on a GPU, and what they say.
std::vector<Knob> mlp_knobs(const MlpSizes& cpu, const MlpSizes& cuda);
MlpSizes mlp_sizes(const Knobs& knobs);
// What of a precision's name a cost counts products in: f32, bf16 or f16.
DType factors_of(const std::string& precision);
// The gradient that products of this precision may give, from runs that round at random.
std::vector<Reference> mlp_references(const HostArrays& in, const MlpSizes& sizes,
                                      const std::string& precision, const std::vector<OutputSpec>& outputs,
                                      ThreadPool& pool);
Knob mlp_precision_knob(std::vector<std::string> choices);

}  // namespace tilewright::lab
