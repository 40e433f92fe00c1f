// A training under way: the model, its optimizer, the compiled step, and what is told of it.
#pragma once

#include <tilewright/formats/safetensors.h>
#include <tilewright/nn/host_copy.h>
#include <tilewright/nn/text_data.h>

#include <memory>
#include <string>
#include <vector>

#include "tw/train_cost.h"
#include "tw/train_step.h"
#include "tw/train_watch.h"

namespace tilewright::tw {

// What is known after some steps.
struct TrainReport {
  Index step = 0;  // that many are done
  double train_loss = 0, val_loss = 0, best_val_loss = 0;
  double grad_norm = 0, learning_rate = 0;
  double tokens_per_s = 0;     // of the steps since the last report, without validation and compiling
  double mfu = 0;              // of these, see TrainCost
  double seconds = 0;          // of the training, compiling and validation included
  std::size_t peak_bytes = 0;  // of the device's memory, in this process
};

class TrainRun {
 public:
  struct Options {
    TrainRecipe recipe;
    std::uint64_t seed = 1337;
    Precision precision = Precision::f32;  // of products; parameters and moments are f32
    Index parts = 1;                       // micro-batches of a step
    std::int64_t memory_budget = 0;        // bytes that a step may hold; 0: any number
  };
  // A new model of the text's bytes; nine tenths of the text are learnt, the rest validates. Throws Error
  // where the text is too short for the recipe, and where a batch has no such parts.
  TrainRun(Context& ctx, Options options, const std::string& text);

  Index step() const { return step_; }
  const TrainCost& cost() const { return cost_; }
  // One step; its loss stays on the device. The first one of a process compiles, and is waited for.
  void advance();
  // What came of the steps since this was asked last; waits for them.
  std::vector<StepResult> results();
  // Whether a step went wrong: its loss is no number, or its gradient is none and nothing skips such a step.
  bool is_bad(const StepResult& result) const;
  // The last step whose results were read, without validation.
  TrainReport glance();
  // The same with it: of all steps, whose results were read.
  TrainReport report();
  // What the model writes behind `prompt`: bytes drawn by their probabilities.
  std::string write(const std::string& prompt, Index bytes);

  // Copies the state to the host's memory, where nobody reads the copy before any more.
  std::shared_ptr<const nn::HostCopy> keep();
  const TrainState& state() const { return state_; }
  // What a checkpoint says of itself, and takes up again: to the bit what the training would have been
  // without the interruption. resume() throws Error where it was of another recipe or another text.
  Metadata words() const;
  void resume(const TrainState& state, const Metadata& words, Index step);
  // `seconds` of a training that was interrupted.
  void add_seconds(double seconds) { began_s_ -= seconds; }

  // What a step learnt from, and where that stands in the text.
  std::string batch_text(Index step) const;
  // The first step up to this one whose results or next state are not finite, and the operation of it that
  // made them so: goes back to the last keep(), and computes the steps from there again. It is not to be
  // trained on. Step 0: none was found.
  struct Fault {
    Index step = 0;
    std::optional<NonFinite> found;
  };
  Fault find_fault(Index step);

 private:
  std::vector<StepBatch> batch_of(Index step) const;
  Tensor rate_of(Index step) const;
  Tensor validation_loss();
  double tokens_per_step() const;
  Context& ctx_;
  Options options_;
  std::string text_hash_;
  nn::ByteVocabulary vocabulary_;
  std::vector<std::int32_t> learnt_, held_back_;
  TrainState state_;
  TrainCost cost_;
  std::shared_ptr<nn::HostCopy> kept_ = std::make_shared<nn::HostCopy>();
  Index step_ = 0, kept_step_ = 0;
  double best_ = 1e30;
  struct Pending {
    Index step;
    Tensor loss, norm;
  };
  std::vector<Pending> pending_;
  StepResult last_;
  double began_s_ = 0, reported_s_ = 0, read_s_ = 0;
  Index reported_step_ = 0;
  double tokens_per_s_ = 0;  // as it was known last
  std::optional<TrainStep> one_step_;
  std::optional<Compiled<Tensor(nn::GPT2, Tensor, Tensor)>> validate_;
  std::optional<Compiled<Tensor(nn::GPT2, Tensor)>> logits_;
};

}  // namespace tilewright::tw
