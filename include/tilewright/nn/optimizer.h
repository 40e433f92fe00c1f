// Optimizers: from parameters and their gradient to the next parameters, in functions that belong inside a
// compiled step. Their state is a tree like any other: donated, saved and read back with the parameters.
#pragma once

#include <tilewright/tensor/functions.h>
#include <tilewright/tensor/tree.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::nn {

// What an optimizer remembers of parameters that are a tree P: how many steps it has made, f32[], and for
// each of its slots (moments, say) a tensor for each parameter, in f32 unless the optimizer's options say
// otherwise: a moment of 8 bits is two slots, codes and scales.
template <class P>
struct OptimizerState {
  Tensor steps;
  std::vector<P> slots;
  TILEWRIGHT_FIELDS(steps, slots)
};

// Which parameters something falls on, by name and shape.
using ParameterFilter = std::function<bool(const NamedTensor& parameter)>;
// Those of two axes or more: weights of products and tables, not biases and norms.
ParameterFilter matrices();
// Matrices whose names have none of "wte", "wpe", "embed", "lm_head": those between a model's ends.
ParameterFilter hidden_matrices();

namespace detail {

// What a slot is for one parameter.
struct SlotType {
  DType dtype = DType::f32;
  Shape shape;
  friend bool operator==(const SlotType&, const SlotType&) = default;
};

// How one parameter is moved. All numbers are f32.
class UpdateRule {
 public:
  struct Step {
    const NamedTensor& parameter;
    const Tensor &value, &gradient;  // in f32
    const std::vector<Tensor>& slots;
    const Tensor& rate;   // f32[]
    const Tensor& steps;  // f32[]: 1 in the first
  };
  struct Moved {
    Tensor value;
    std::vector<Tensor> slots;
  };
  virtual ~UpdateRule() = default;
  // Its slots, which are zeros before the first step.
  virtual std::vector<SlotType> slot_types(const NamedTensor& parameter) const = 0;
  virtual Moved move(const Step& step) const = 0;
};

struct MovedAll {
  std::vector<Tensor> values;
  std::vector<std::vector<Tensor>> slots;  // [slot][parameter]
  Tensor steps;
};
// [slot][parameter], each in memory of its own.
std::vector<std::vector<Tensor>> first_slots(const UpdateRule& rule, const NamedTensors& parameters,
                                             const Location& where);
MovedAll move_all(const UpdateRule& rule, const NamedTensors& parameters, const std::vector<Tensor>& gradient,
                  const std::vector<std::vector<Tensor>>& slots, const Tensor& steps, const Tensor& rate,
                  const Location& where);
Tensor no_steps(const NamedTensors& parameters, const Location& where);
void check_decay(double decay, const Location& where);

template <class P>
P with_leaves(const P& like, std::vector<Tensor> tensors) {
  auto leaves = tilewright::detail::leaves_of(like);
  leaves.tensors = std::move(tensors);
  return tilewright::detail::read_tree<P>(leaves);
}

}  // namespace detail

// An optimizer: sgd(), adamw() and the others below make one. `rate` is a scalar tensor, so that a schedule
// compiles nothing anew; inside compile() it is an argument.
class Optimizer {
 public:
  explicit Optimizer(std::shared_ptr<const detail::UpdateRule> rule) : rule_(std::move(rule)) {}

  // The state before the first step. Throws Error where a parameter is no float tensor.
  template <class P>
    requires tilewright::detail::IsTree<P>
  OptimizerState<P> init(const P& parameters, const Location& where = Location::current()) const {
    const NamedTensors named = named_tensors(parameters);
    OptimizerState<P> state{.steps = detail::no_steps(named, where), .slots = {}};
    for (auto& slot : detail::first_slots(*rule_, named, where))
      state.slots.push_back(detail::with_leaves(parameters, std::move(slot)));
    return state;
  }

  // Parameters and state after a step against the gradient, a tree like the parameters. What is computed in
  // f32 is rounded to the parameters' types. Throws Error where trees or shapes differ, and where the state
  // has other slots than this optimizer keeps.
  template <class P>
    requires tilewright::detail::IsTree<P>
  std::pair<P, OptimizerState<P>> update(const P& parameters, const P& gradient,
                                         const OptimizerState<P>& state, const Tensor& rate,
                                         const Location& where = Location::current()) const {
    std::vector<std::vector<Tensor>> slots;
    slots.reserve(state.slots.size());
    for (const P& slot : state.slots) slots.push_back(tensors_of(slot));
    detail::MovedAll moved = detail::move_all(*rule_, named_tensors(parameters), tensors_of(gradient), slots,
                                              state.steps, rate, where);
    OptimizerState<P> next{.steps = moved.steps, .slots = {}};
    for (auto& slot : moved.slots) next.slots.push_back(detail::with_leaves(parameters, std::move(slot)));
    return {detail::with_leaves(parameters, std::move(moved.values)), std::move(next)};
  }

 private:
  std::shared_ptr<const detail::UpdateRule> rule_;
};

// p ← p - rate · v, v ← momentum · v + g + weight_decay · p (torch.optim.SGD).
struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  ParameterFilter decayed = matrices();
};
// The optimizer Stochastic gradient descent, as its options say.
Optimizer sgd(SgdOptions options = {});

// Moments of the gradient, each corrected for its start; the decay is beside the gradient, p ← p (1 - rate ·
// weight_decay) (Loshchilov and Hutter, arXiv 1711.05101).
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  ParameterFilter decayed = matrices();
  // What both moments are stored in: f32, bf16, or f8e4m3, which is 8 bits by blocks (eight_bit.h), in 8, 4
  // or 2.03 bytes a parameter. They are computed in f32 and rounded once a step; to 8 bits stochastically, by
  // the step's number, and that of the squares by its root.
  DType moments = DType::f32;
  // The type of the squares' moment, where it is to be another: bf16 beside f8e4m3, say (FP8-LM, arXiv
  // 2310.18313).
  std::optional<DType> second_moments = {};
};
// The optimizer AdamW, as its options say. Throws Error where moments are of another type; where they are
// bf16 and a beta is so near 1 (above 0.996) that its average no longer falls: what it moves by in a step is
// rounded away; where they are of 8 bits and a beta above 0.99 would add up too many roundings; and where a
// beta is not in [0, 1) or epsilon is negative.
Optimizer adamw(AdamWOptions options = {}, const Location& where = Location::current());

// The sign of a mix of momentum and gradient (Chen et al., arXiv 2302.06675).
struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;
  ParameterFilter decayed = matrices();
};
// The optimizer Lion, as its options say.
Optimizer lion(LionOptions options = {});

// Momentum whose matrix is made orthogonal by five Newton–Schulz steps in bf16 (Jordan et al., 2024), times
// √max(1, rows / columns), for the parameters of `orthogonal`; the others are moved by AdamW.
struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;
  int iterations = 5;
  ParameterFilter orthogonal = hidden_matrices();
  AdamWOptions others = {};   // its `moments` are those of the others alone
  double rate_of_others = 1;  // times the rate
};
// The optimizer Muon beside AdamW, as its options say. Throws Error as adamw() for `others`.
Optimizer muon(MuonOptions options = {}, const Location& where = Location::current());

// Second moments of a matrix as those of its rows and columns, steps in proportion to a parameter's own size,
// rate at most 1/√steps of it (Shazeer and Stern, arXiv 1804.04235, as torch.optim.Adafactor).
struct AdafactorOptions {
  double beta2_decay = -0.8;
  double epsilon = 1e-3;  // of a parameter's root mean square
  double clip = 1;        // of an update's root mean square
  double weight_decay = 0;
  ParameterFilter decayed = matrices();
};
// The optimizer Adafactor, as its options say.
Optimizer adafactor(AdafactorOptions options = {});

// --- gradients and averages

// √Σ of all squares of all tensors, f32[].
Tensor global_norm(const std::vector<Tensor>& tensors, const Location& where = Location::current());
// The tree scaled so that its global norm is `most` where it is more; and the norm it had, f32[]
// (torch.nn.utils.clip_grad_norm_).
template <class P>
  requires tilewright::detail::IsTree<P>
std::pair<P, Tensor> clip_by_global_norm(const P& gradient, double most,
                                         const Location& where = Location::current()) {
  const Tensor norm = global_norm(tensors_of(gradient), where);
  const Tensor scale = minimum({most / (norm + 1e-6), where}, {1.0, where}, where);
  return {map_tensors([&](const Tensor& g) { return cast(g * scale, g.dtype(), where); }, gradient), norm};
}
// Gradients of micro-batches, added up to that of one large batch. The sum before the first of them: zeros of
// the parameters' shapes, in f32.
template <class P>
  requires tilewright::detail::IsTree<P>
P no_gradient(const P& parameters, const Location& where = Location::current()) {
  return map_tensors([&](const Tensor& p) { return zeros_like(cast(p, DType::f32, where), where); },
                     parameters);
}
// sum + share · gradient, in the sum's types. Of N micro-batches of one size, each with a loss that is a mean
// and a share of 1/N, the sum is the gradient of the mean over all of them.
template <class P>
  requires tilewright::detail::IsTree<P>
P accumulate(const P& sum, const P& gradient, double share, const Location& where = Location::current()) {
  return map_tensors([&](const Tensor& s, const Tensor& g) { return s + cast(g, s.dtype(), where) * share; },
                     sum, gradient, where);
}

// The exponential moving average of weights, which is validated and kept in their place. The one before the
// first step: the parameters, in f32.
template <class P>
  requires tilewright::detail::IsTree<P>
P make_ema(const P& parameters, const Location& where = Location::current()) {
  return map_tensors([&](const Tensor& p) { return cast(p, DType::f32, where) + 0.f; }, parameters);
}
// decay · average + (1 - decay) · parameters, in the average's types. Throws Error where the decay is outside
// [0, 1], and where the trees differ.
template <class P>
  requires tilewright::detail::IsTree<P>
P ema(const P& average, const P& parameters, double decay, const Location& where = Location::current()) {
  detail::check_decay(decay, where);
  return map_tensors(
      [&](const Tensor& a, const Tensor& p) { return a + (cast(p, a.dtype(), where) - a) * (1 - decay); },
      average, parameters, where);
}

}  // namespace tilewright::nn
#pragma GCC visibility pop
