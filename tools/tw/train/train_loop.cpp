// The loop.
#include "tw/train/train_loop.h"

#include <tilewright/perf/cost.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <stdexcept>

#include "base/interrupt.h"
#include "base/plain_message.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const TrainReport& r) {
  return {{"step", r.step},
          {"train_loss", r.train_loss},
          {"val_loss", r.val_loss},
          {"best_val_loss", r.best_val_loss},
          {"grad_norm", r.grad_norm},
          {"learning_rate", r.learning_rate},
          {"tokens_per_s", r.tokens_per_s},
          {"mfu", r.mfu},
          {"seconds", r.seconds},
          {"peak_bytes", r.peak_bytes},
          {"loader_wait", r.loader_wait}};
}

std::string to_text(const TrainReport& r) {
  return fmt::format(
      "step {:5}  train {:.4f}  val {:.4f}  best {:.4f}  norm {:6.3f}  rate {:.2e}  {:8.0f} tokens/s  mfu "
      "{:4.1f} %  {:.1f} s{}\n",
      r.step, r.train_loss, r.val_loss, r.best_val_loss, r.grad_norm, r.learning_rate, r.tokens_per_s,
      100 * r.mfu, r.seconds, loader_text(r.loader_wait));
}

// NaN has no sign.
std::string number_text(double number) { return std::isnan(number) ? "NaN" : fmt::format("{:.4g}", number); }

// What `keep` does with the folder; that it cannot be written is nobody's mistake in asking.
template <class Keep>
void in_folder(const Keep& keep) {
  try {
    keep();
  } catch (const Error& error) {
    throw std::runtime_error(without_place(error));
  }
}

}  // namespace

std::string TrainLoop::progress_text() {
  const TrainReport r = training_.glance();
  const Index last = options_.recipe.schedule.steps;
  if (r.tokens_per_s == 0) return fmt::format("step {} of {}, compiling", training_.step(), last);
  const auto tokens_left =
      static_cast<double>((last - training_.step()) * options_.recipe.rows * options_.recipe.model.context);
  return fmt::format(
      "step {} of {}, loss {:.3f}, {:.0f} tokens/s, mfu {:.1f} %, {}B, norm {:.3f}, rate {:.2e}, {}{}",
      training_.step(), last, r.train_loss, r.tokens_per_s, 100 * r.mfu,
      perf::with_prefix(static_cast<double>(r.peak_bytes)), r.grad_norm, r.learning_rate,
      time_left_text(tokens_left / r.tokens_per_s), loader_text(r.loader_wait));
}

void TrainLoop::stop_at_fault(const std::string& what, Index step) {
  std::string text = fmt::format("{}\n  {}", what, training_.batch_text(step));
  // A step with finite numbers may leave others: then the next step is the one in which they are found.
  const TrainRun::Fault fault = training_.find_fault(step + 1);
  if (fault.found)
    text += fmt::format("\n  the first operation that made a NaN or an infinity, in step {}: {}", fault.step,
                        to_string(*fault.found));
  else
    text += "\n  no operation of it makes a NaN or an infinity by itself: only the compiled step does";
  if (options_.folder != nullptr)
    text += fmt::format("\n  the checkpoints in {} are of steps before", options_.folder->path());
  throw std::runtime_error(text + "\n  a lower --rate, or --precision f32, may help");
}

// Looks at the steps done: throws where one went wrong.
void TrainLoop::look() {
  for (const StepResult& result : training_.results()) {
    if (training_.is_bad(result))
      stop_at_fault(fmt::format("step {}: the loss is {}, the gradient's norm {}", result.step,
                                number_text(result.loss), number_text(result.norm)),
                    result.step);
    const std::optional<LossWatch::Spike> spike = watch_.add(result);
    if (!spike) continue;
    const std::string text = fmt::format("{}\n  {}", to_string(*spike), training_.batch_text(result.step));
    if (options_.stop_on_spike) throw std::runtime_error(text + "\n  stopped, as --stop-on-spike says");
    if (!options_.output.quiet) fmt::print(stderr, "tw train: {}\n", text);
  }
}

void TrainLoop::save(bool is_best) {
  if (options_.folder == nullptr) {
    training_.keep();
    return;
  }
  nn::CheckpointFolder& checkpoints = options_.folder->checkpoints();
  in_folder([&] { checkpoints.wait(); });  // nobody reads the copy any more
  checkpoints.save(training_.keep(), training_.step(), {.words = training_.words(), .is_best = is_best});
  saved_step_ = training_.step();
}

void TrainLoop::report() {
  const TrainReport report = training_.report();
  if (!std::isfinite(report.val_loss))
    stop_at_fault(fmt::format("step {}: behind it the validation loss is {}", report.step,
                              number_text(report.val_loss)),
                  report.step);
  options_.write(options_.output.as_json() ? to_json(report).dump() + "\n" : to_text(report));
  if (options_.folder != nullptr) in_folder([&] { options_.folder->log(to_json(report).dump()); });
  save(report.val_loss <= report.best_val_loss);
}

bool TrainLoop::run() {
  const InterruptGuard guard;
  ProgressLine progress("tw train", options_.output.progress());
  const Index last = options_.recipe.schedule.steps;
  while (training_.step() < last && !InterruptGuard::interrupted()) {
    // Results are read now and then: reading waits for the device.
    if (progress.is_due()) {
      look();
      progress.step(progress_text());
    }
    if (options_.folder != nullptr) in_folder([&] { options_.folder->checkpoints().check(); });
    training_.advance();
    if (training_.step() % options_.recipe.report_every != 0 && training_.step() != last) continue;
    progress.clear();
    look();
    report();
  }
  progress.clear();
  look();
  if (saved_step_ != training_.step()) save(false);
  if (options_.folder != nullptr) in_folder([&] { options_.folder->checkpoints().wait(); });
  return training_.step() >= last;
}

}  // namespace tilewright::tw
