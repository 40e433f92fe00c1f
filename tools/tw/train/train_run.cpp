// A training under way.
#include "tw/train/train_run.h"

#include <tilewright/base/philox.h>
#include <tilewright/nn/checkpoint.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "tw/train/train_seeds.h"

namespace tilewright::tw {

namespace {

double steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

TrainRun::TrainRun(Context& ctx, Options options, TrainData data)
    : ctx_(ctx),
      options_(std::move(options)),
      data_(std::move(data)),
      began_s_(steady_s()),
      reported_s_(began_s_),
      read_s_(began_s_) {
  TrainRecipe& recipe = options_.recipe;
  if (options_.parts < 1 || recipe.rows % options_.parts != 0)
    throw Error(fmt::format("--accumulate {}: recipe '{}' has batches of {} rows, which that does not divide",
                            options_.parts, recipe.name, recipe.rows));
  recipe.model.vocabulary = data_.vocabulary;
  ctx_.set_seed(options_.seed);
  // As one program its kernels are compiled side by side.
  const auto make = tilewright::compile([&](const Tensor&) { return nn::make_gpt2(ctx_, recipe.model); });
  state_.model = make(ctx_.zeros({1}));
  state_.optimizer = nn::adamw(recipe.optimizer).init(state_.model);
  if (options_.precision == Precision::f16) state_.scale = nn::make_loss_scale(ctx_);
  if (options_.ema > 0) state_.average = nn::make_ema(state_.model);
  one_step_.emplace(recipe, TrainStep::Options{.precision = options_.precision,
                                               .parts = options_.parts,
                                               .memory_budget = options_.memory_budget,
                                               .ema = options_.ema});
  const Index heads = recipe.model.heads;
  const CompileOptions compiled{.precision = options_.precision};
  validate_.emplace([heads](const nn::GPT2& m, const Tensor& in,
                            const Tensor& out) { return nn::gpt2_loss(m, in, out, heads); },
                    compiled);
  logits_.emplace([heads](const nn::GPT2& m, const Tensor& in) { return nn::gpt2_logits(m, in, heads); },
                  compiled);
  prepare();
  cost_ = train_cost(ctx_, state_.model, recipe.model, options_.precision);
  keep();
}

// The parts of a batch are its rows, in their order: batch `number` of fewer rows begins where they do.
std::uint64_t TrainRun::number_of(Index step, Index part) const {
  return static_cast<std::uint64_t>((step - 1) * options_.parts + part);
}

StepBatch TrainRun::part_of(const nn::Batch& batch, std::uint64_t number) const {
  const std::uint64_t key = seed_of(options_.seed, Stream::dropout) + number;
  return {batch.tokens, batch.targets,
          ctx_.from(std::vector<std::int64_t>{static_cast<std::int64_t>(key)}, {})};
}

std::vector<StepBatch> TrainRun::batch_of(Index step) const {
  std::vector<StepBatch> parts;
  for (Index part = 0; part < options_.parts; ++part) {
    const std::uint64_t number = number_of(step, part);
    parts.push_back(part_of(data_.learnt(ctx_, options_.recipe.rows / options_.parts, number), number));
  }
  return parts;
}

// batch_of() the next step, made ahead.
std::vector<StepBatch> TrainRun::next_batch() {
  if (!loader_) {
    const Index rows = options_.recipe.rows / options_.parts;
    loader_.emplace(
        [this, rows](std::uint64_t number) { return data_.learnt(ctx_, rows, number); },
        nn::PrefetchOptions{.first = number_of(step_ + 1, 0), .ahead = 2 * static_cast<int>(options_.parts)});
  }
  std::vector<StepBatch> parts;
  for (Index part = 0; part < options_.parts; ++part) {
    const nn::PrefetchedBatch next = loader_->next();
    loader_watch_.waited(next.waited_s);
    parts.push_back(part_of(next.batch, next.number));
  }
  return parts;
}

Tensor TrainRun::rate_of(Index step) const {
  return ctx_.scalar(nn::cosine_rate(options_.recipe.schedule, step - 1));
}

void TrainRun::prepare() {
  // Others of their types will be given to the programs.
  const std::vector<StepBatch> batch = batch_of(1);
  const auto validation = [this, model = judged(), like = batch.front()] {
    (void)validate_->prepare(model, like.tokens, like.targets);
  };
  const auto step = [this, state = state_, batch, rate = rate_of(1)] {
    one_step_->prepare(state, batch, rate);
  };
  preparing_.push_back(std::async(std::launch::async, step));
  preparing_.push_back(std::async(std::launch::async, validation));
}

void TrainRun::advance() {
  for (std::future<void>& each : std::exchange(preparing_, {})) each.get();
  const Index next = step_ + 1;
  TrainStep::Done done = (*one_step_)(state_, next_batch(), rate_of(next));
  state_ = std::move(done.next);
  pending_.push_back({next, std::move(done.loss), std::move(done.norm)});
  step_ = next;
  if (tokens_per_s_ > 0) return;
  (void)pending_.back().loss.item();
  tokens_per_s_ = tokens_per_step() / (steady_s() - reported_s_);
  reported_s_ = steady_s();
  reported_step_ = step_;
  loader_watch_ = {};
}

std::vector<StepResult> TrainRun::results() {
  std::vector<StepResult> results;
  results.reserve(pending_.size());
  const double began_s = steady_s();
  for (const Pending& p : pending_) results.push_back({p.step, p.loss.item(), p.norm.item()});
  pending_.clear();
  if (!results.empty()) last_ = results.back();
  read_s_ = steady_s();
  loader_watch_.computed(read_s_ - began_s);
  return results;
}

bool TrainRun::is_bad(const StepResult& result) const {
  return !std::isfinite(result.loss) || (!state_.scale && !std::isfinite(result.norm));
}

// Computes the loss in the parts of a step, so that it takes no more memory than one. Where the recipe's
// batches are more than there is, each window of what is held back is read once, a few twice to fill a batch.
Tensor TrainRun::validation_loss() {
  const TrainRecipe& recipe = options_.recipe;
  const Index rows = recipe.rows / options_.parts;
  const Index batches = std::min(recipe.validation_batches, ceil_div(data_.held_back_windows, recipe.rows));
  const Index parts = batches * options_.parts;
  Tensor sum;
  for (Index i = 0; i < parts; ++i) {
    const nn::Batch batch = data_.held_back(ctx_, rows, static_cast<std::uint64_t>(i));
    const Tensor loss = (*validate_)(judged(), batch.tokens, batch.targets);
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum / static_cast<double>(parts);
}

double TrainRun::tokens_per_step() const {
  return static_cast<double>(options_.recipe.rows * options_.recipe.model.context);
}

TrainReport TrainRun::glance() {
  if (last_.step > reported_step_)
    tokens_per_s_ =
        static_cast<double>(last_.step - reported_step_) * tokens_per_step() / (read_s_ - reported_s_);
  TrainReport report{
      .step = last_.step,
      .train_loss = last_.loss,
      .best_val_loss = best_,
      .grad_norm = last_.norm,
      .learning_rate = nn::cosine_rate(options_.recipe.schedule, std::max<Index>(last_.step - 1, 0)),
      .tokens_per_s = tokens_per_s_,
      .seconds = steady_s() - began_s_,
      .peak_bytes = ctx_.memory().peak_bytes,
      .loader_wait = loader_watch_.share(read_s_ - reported_s_)};
  report.mfu = cost_.mfu(report.tokens_per_s);
  return report;
}

TrainReport TrainRun::report() {
  TrainReport report = glance();
  report.val_loss = validation_loss().item();
  if (std::isfinite(report.val_loss)) best_ = std::min(best_, report.val_loss);
  report.best_val_loss = best_;
  report.seconds = steady_s() - began_s_;
  report.peak_bytes = ctx_.memory().peak_bytes;
  reported_s_ = steady_s();
  reported_step_ = step_;
  loader_watch_ = {};
  return report;
}

std::string TrainRun::write(Index bytes) {
  TW_CHECK(writes(), "tokens that are no bytes have no text");
  const auto context = static_cast<std::size_t>(options_.recipe.model.context);
  std::vector<std::int32_t> tokens = data_.bytes->encode(data_.beginning);
  const std::size_t start = tokens.size();
  const std::uint64_t seed = seed_of(options_.seed, Stream::writing);
  for (Index i = 0; i < bytes; ++i) {
    // Rows of one length alone: one program. What follows the last byte is not seen by it.
    const std::size_t first = tokens.size() > context ? tokens.size() - context : 0,
                      last = tokens.size() - first;
    std::vector<std::int32_t> row(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
    row.resize(context, 0);
    const Tensor in = ctx_.from(row, {1, options_.recipe.model.context}, DType::i32);
    const Tensor own = (*logits_)(judged(), in)[{0, static_cast<Index>(last) - 1}];
    const std::vector<double> chance = softmax(own).to_vector<double>();
    double left = static_cast<double>(philox4x32(seed, static_cast<std::uint64_t>(i))[0]) * 0x1p-32;
    std::size_t token = 0;
    while (token + 1 < chance.size() && left >= chance[token]) left -= chance[token++];
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  return data_.bytes->decode({tokens.begin() + static_cast<std::ptrdiff_t>(start), tokens.end()});
}

std::shared_ptr<const nn::HostCopy> TrainRun::keep() {
  kept_->take(state_);
  kept_step_ = step_;
  return kept_;
}

Metadata TrainRun::words() const {
  return {{"recipe", options_.recipe.name},
          {"seed", fmt::format("{}", options_.seed)},
          {"compute", std::string(name(options_.precision))},
          {"best_val_loss", fmt::format("{:a}", best_)},
          {"text", data_.hash}};
}

void TrainRun::resume(const TrainState& state, const Metadata& words, Index step) {
  for (const auto& [key, own] : this->words())
    if (const std::string saved = nn::detail::word_of(words, key); key != "best_val_loss" && saved != own) {
      if (key == "text")
        throw Error(
            fmt::format("{} is not the {} that this training learnt from: it was changed since, or is "
                        "another",
                        data_.path, writes() ? "text" : "folder of tokens"));
      throw Error(fmt::format("the checkpoint is of another training: its {} is {}, and this one's is {}",
                              key, saved, own));
    }
  best_ = std::stod(nn::detail::word_of(words, "best_val_loss"));
  // What a file gives is read-only, and a step writes over its state: it gets memory of its own, with the
  // file's bits.
  kept_->take(state);
  state_ = kept_->on(ctx_, state);
  kept_step_ = step_ = reported_step_ = last_.step = step;
  reported_s_ = steady_s();
  loader_.reset();  // it has batches of other steps
}

}  // namespace tilewright::tw
