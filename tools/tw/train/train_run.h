// A training under way: the model, its optimizer, the compiled step, and what is told of it.
#pragma once

#include <tilewright/formats/safetensors.h>
#include <tilewright/nn/host_copy.h>
#include <tilewright/nn/prefetch.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "tw/train/train_cost.h"
#include "tw/train/train_data.h"
#include "tw/train/train_step.h"
#include "tw/train/train_watch.h"

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
  double loader_wait = 0;      // the share of these steps' time in which there was no batch, see LoaderWatch
};

class TrainRun {
 public:
  struct Options {
    TrainRecipe recipe;
    std::uint64_t seed = 1337;
    Precision precision = Precision::f32;  // of products; parameters are f32
    Index parts = 1;                       // micro-batches of a step
    std::int64_t memory_budget = 0;        // bytes that a step may hold; 0: any number
    double ema = 0;                        // the decay of an average that is validated and writes; 0: none
  };
  // A new model of the data's tokens. Throws Error where a batch has no such parts. It stays where it is: a
  // thread makes its batches.
  TrainRun(Context& ctx, Options options, TrainData data);
  TrainRun(const TrainRun&) = delete;
  TrainRun& operator=(const TrainRun&) = delete;

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
  // Whether the run's tokens are bytes, which write() can write.
  bool writes() const { return data_.bytes.has_value(); }
  // What the model writes behind the text's first byte: bytes drawn by their probabilities.
  std::string write(Index bytes);

  // Copies the state to the host's memory, where nobody reads the copy before any more.
  std::shared_ptr<const nn::HostCopy> keep();
  const TrainState& state() const { return state_; }
  // What a checkpoint says of itself, and takes up again: to the bit what the training would have been
  // without the interruption. resume() throws Error where it was of another recipe or other data.
  Metadata words() const;
  void resume(const TrainState& state, const Metadata& words, Index step);
  // `seconds` of a training that was interrupted.
  void add_seconds(double seconds) { began_s_ -= seconds; }

  // What a step learnt from, and where that stands in the data.
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
  std::uint64_t number_of(Index step, Index part) const;
  // A part's batch with its key.
  StepBatch part_of(const nn::Batch& batch, std::uint64_t number) const;
  // Begins to compile the programs of the training, side by side; advance() waits for them.
  void prepare();
  std::vector<StepBatch> batch_of(Index step) const;
  std::vector<StepBatch> next_batch();
  Tensor rate_of(Index step) const;
  Tensor validation_loss();
  // What is validated, and writes.
  const nn::GPT2& judged() const { return state_.average ? *state_.average : state_.model; }
  double tokens_per_step() const;
  Context& ctx_;
  Options options_;
  const TrainData data_;
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
  LoaderWatch loader_watch_;
  std::optional<TrainStep> one_step_;
  std::optional<Compiled<Tensor(nn::GPT2, Tensor, Tensor)>> validate_;
  std::optional<Compiled<Tensor(nn::GPT2, Tensor)>> logits_;
  std::optional<nn::Prefetch> loader_;        // from the next step on; its thread uses what stands before it
  std::vector<std::future<void>> preparing_;  // as do these
};

}  // namespace tilewright::tw
