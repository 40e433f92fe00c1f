// The compiled step of a training: forward, gradient, clipping and update, donated in place; with several
// micro-batches a program that adds up gradients, and one that updates.
#pragma once

#include <tilewright/nn/loss_scale.h>
#include <tilewright/tensor/compile.h>
#include <tilewright/tensor/non_finite.h>

#include <optional>
#include <vector>

#include "tw/train/train_recipe.h"

namespace tilewright::tw {

// What is kept between steps, and in a checkpoint.
struct TrainState {
  nn::GPT2 model;
  nn::OptimizerState<nn::GPT2> optimizer;
  std::optional<nn::LossScale> scale;  // of f16
  std::optional<nn::GPT2> average;     // of the models of all steps, which is validated in their place
  TILEWRIGHT_FIELDS(model, optimizer, scale, average)
};

// What a step learns from, or a part of it.
struct StepBatch {
  Tensor tokens, targets;  // (rows, time), i32
  Tensor key;              // i64[], of dropout
};

class TrainStep {
 public:
  struct Options {
    Precision precision = Precision::f32;  // of products
    Index parts = 1;                       // micro-batches of a step
    std::int64_t memory_budget = 0;        // bytes that it may hold; 0: any number
    double ema = 0;                        // the decay of the average, where a state has one
  };
  TrainStep(const TrainRecipe& recipe, const Options& options);

  struct Done {
    Tensor loss, norm;  // f32[]: the mean of all parts, and the gradient's norm before it is clipped
    TrainState next;
  };
  // One step; the state's memory becomes that of the next.
  Done operator()(const TrainState& state, const std::vector<StepBatch>& parts, const Tensor& rate) const;
  // Compiles what a step of such a state and such parts runs, its programs side by side; takes nothing.
  void prepare(const TrainState& state, const std::vector<StepBatch>& parts, const Tensor& rate) const;
  // The operation that made the first NaN or infinity of this step, found op by op on the host. The state
  // stays. Of several parts the first of which one is.
  std::optional<NonFinite> find_non_finite(const TrainState& state, const std::vector<StepBatch>& parts,
                                           const Tensor& rate) const;

 private:
  using Whole = std::tuple<Tensor, Tensor, TrainState>(TrainState, Tensor, Tensor, Tensor, Tensor);
  struct Sum {
    nn::GPT2 gradient;
    Tensor loss;
    TILEWRIGHT_FIELDS(gradient, loss)
  };
  using Add = Sum(Sum, nn::GPT2, std::optional<nn::LossScale>, Tensor, Tensor, Tensor);
  using Update = std::tuple<Tensor, Tensor, TrainState>(TrainState, Sum, Tensor);
  Precision precision_;
  std::function<Whole> whole_;
  std::optional<Compiled<Whole>> compiled_;
  std::optional<Compiled<Add>> add_;
  std::optional<Compiled<Update>> update_;
};

}  // namespace tilewright::tw
