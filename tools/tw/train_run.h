// A training under way: the model, its optimizer, the compiled step, and the folder that keeps all of it.
#pragma once

#include <tilewright/nn/loss_scale.h>
#include <tilewright/nn/text_data.h>
#include <tilewright/tensor/compile.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tw/train_recipe.h"

namespace tilewright::tw {

// What is kept between steps, and in a checkpoint.
struct TrainState {
  nn::GPT2 model;
  nn::OptimizerState<nn::GPT2> optimizer;
  std::optional<nn::LossScale> scale;  // of f16
  TILEWRIGHT_FIELDS(model, optimizer, scale)
};

// What is known after some steps.
struct TrainReport {
  Index step = 0;  // that many are done
  double train_loss = 0, val_loss = 0, best_val_loss = 0;
  double gradient_norm = 0, rate = 0;
  double tokens_per_s = 0;     // of the steps since the last report, validation left out
  double seconds = 0;          // of this process, compiling and validation included
  std::size_t peak_bytes = 0;  // of the device's memory, so far
};

class TrainRun {
 public:
  struct Options {
    TrainRecipe recipe;
    std::uint64_t seed = 1337;
    DType compute = DType::f32;  // of products; parameters and moments are f32
  };
  // A new model of the text's bytes; nine tenths of the text are learnt, the rest validates. Throws Error
  // where the text is too short for the recipe.
  TrainRun(Context& ctx, Options options, const std::string& text);

  Index step() const { return step_; }
  // One step; its loss stays on the device.
  void advance();
  // Reads the last step's loss and validates. Throws std::runtime_error where the loss is no number, with the
  // step and the places of its batch.
  TrainReport report();
  // What the model writes behind `prompt`: bytes drawn by their probabilities.
  std::string write(const std::string& prompt, Index bytes);

  // Saves and takes up again: to the bit what it would have been without the interruption. load() throws
  // Error where the file is no checkpoint of this recipe and this text.
  void save(const std::string& path) const;
  void load(const std::string& path);

 private:
  Tensor validation_loss();
  double now_s() const;
  Context& ctx_;
  Options options_;
  std::string text_hash_;
  nn::ByteVocabulary vocabulary_;
  std::vector<std::int32_t> learnt_, held_back_;
  TrainState state_;
  nn::Optimizer optimizer_;
  Index step_ = 0;
  double best_ = 1e30;
  Tensor loss_, norm_;
  double began_s_ = 0, reported_s_ = 0;
  Index reported_step_ = 0;
  using Signature = std::tuple<Tensor, Tensor, TrainState>(TrainState, Tensor, Tensor, Tensor, Tensor);
  std::optional<Compiled<Signature>> compiled_;
  std::optional<Compiled<Tensor(nn::GPT2, Tensor, Tensor)>> validate_;
  std::optional<Compiled<Tensor(nn::GPT2, Tensor)>> logits_;
};

}  // namespace tilewright::tw
