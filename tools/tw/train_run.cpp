// A training under way.
#include "tw/train_run.h"

#include <tilewright/base/hash.h>
#include <tilewright/base/philox.h>
#include <tilewright/nn/checkpoint.h>
#include <tilewright/nn/layers.h>
#include <tilewright/tensor/gradient.h>

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <stdexcept>

namespace tilewright::tw {

namespace {

// Streams of random numbers of one seed: each use has its own.
enum class Stream : std::uint64_t { batches = 1, validation, dropout, writing };
std::uint64_t seed_of(std::uint64_t seed, Stream stream) {
  const auto words = philox4x32(seed, static_cast<std::uint64_t>(stream) << 32);
  return std::uint64_t{words[0]} << 32 | words[1];
}

double steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What the loss is computed from: parameters in the type of the products.
nn::GPT2 computing(const nn::GPT2& model, DType compute) {
  return compute == DType::f32 ? model : nn::cast_tree(model, compute);
}

}  // namespace

TrainRun::TrainRun(Context& ctx, Options options, const std::string& text)
    : ctx_(ctx),
      options_(std::move(options)),
      text_hash_(to_hex(hash_bytes(text))),
      vocabulary_(text),
      optimizer_(nn::adamw(options_.recipe.optimizer)),
      began_s_(steady_s()),
      reported_s_(began_s_) {
  TrainRecipe& recipe = options_.recipe;
  const auto length = static_cast<std::size_t>(recipe.model.context);
  const std::size_t least = 10 * (length + 1);
  if (text.size() < least)
    throw Error(
        fmt::format("the text has {} bytes; recipe '{}' needs at least {}: ten times its context of {}",
                    text.size(), recipe.name, least, length));
  const std::vector<std::int32_t> tokens = vocabulary_.encode(text);
  const auto cut = tokens.begin() + static_cast<std::ptrdiff_t>(tokens.size() * 9 / 10);
  learnt_.assign(tokens.begin(), cut);
  held_back_.assign(cut, tokens.end());
  recipe.model.vocabulary = vocabulary_.size();
  ctx_.set_seed(options_.seed);
  state_.model = nn::make_gpt2(ctx_, recipe.model);
  state_.optimizer = optimizer_.init(state_.model);
  if (options_.compute == DType::f16) state_.scale = nn::make_loss_scale(ctx_);

  const Index heads = recipe.model.heads;
  const DType compute = options_.compute;
  const double most = recipe.most_norm, dropout = recipe.dropout;
  const auto step = [optimizer = optimizer_, heads, compute, most, dropout](
                        const TrainState& s, const Tensor& tokens_in, const Tensor& targets,
                        const Tensor& rate, const Tensor& key) {
    const auto loss = [&](const nn::GPT2& m) {
      const Tensor own =
          nn::gpt2_loss(computing(m, compute), tokens_in, targets, heads, nn::Dropout(key, dropout));
      return s.scale ? own * s.scale->scale : own;
    };
    const auto update = [&](const nn::GPT2& gradient) {
      const auto [clipped, norm] = nn::clip_by_global_norm(gradient, most);
      const auto [model, moments] = optimizer.update(s.model, clipped, s.optimizer, rate);
      return std::pair{norm, TrainState{model, moments, s.scale}};
    };
    const auto [value, gradient] = value_and_grad(loss)(s.model);
    if (!s.scale) {
      const auto [norm, next] = update(gradient);
      return std::tuple{value, norm, next};
    }
    const auto [slopes, finite] = nn::unscaled(gradient, *s.scale);
    auto [norm, next] = update(slopes);
    next = nn::choose(finite, next, s);  // a step whose gradient is not finite is left out
    next.scale = nn::next_loss_scale(*s.scale, finite);
    return std::tuple{value / s.scale->scale, norm, next};
  };
  // Deterministic: what is resumed has the bits of what was not interrupted.
  compiled_.emplace(step, CompileOptions{.deterministic = true, .donate = {0}});
  validate_.emplace([heads, compute](const nn::GPT2& m, const Tensor& in, const Tensor& out) {
    return nn::gpt2_loss(computing(m, compute), in, out, heads);
  });
  logits_.emplace([heads, compute](const nn::GPT2& m, const Tensor& in) {
    return cast(nn::gpt2_logits(computing(m, compute), in, heads), DType::f32);
  });
}

double TrainRun::now_s() const { return steady_s() - began_s_; }

void TrainRun::advance() {
  const TrainRecipe& recipe = options_.recipe;
  const auto number = static_cast<std::uint64_t>(step_);
  const nn::Batch batch = nn::random_batch(ctx_, learnt_, recipe.rows, recipe.model.context,
                                           seed_of(options_.seed, Stream::batches), number);
  const Tensor rate = ctx_.scalar(nn::cosine_rate(recipe.schedule, step_));
  const std::uint64_t key = seed_of(options_.seed, Stream::dropout) + number;
  const Tensor key_of_step = ctx_.from(std::vector<std::int64_t>{static_cast<std::int64_t>(key)}, {});
  std::tie(loss_, norm_, state_) = (*compiled_)(state_, batch.tokens, batch.targets, rate, key_of_step);
  ++step_;
}

Tensor TrainRun::validation_loss() {
  const TrainRecipe& recipe = options_.recipe;
  Tensor sum;
  for (Index i = 0; i < recipe.validation_batches; ++i) {
    const nn::Batch batch =
        nn::random_batch(ctx_, held_back_, recipe.rows, recipe.model.context,
                         seed_of(options_.seed, Stream::validation), static_cast<std::uint64_t>(i));
    const Tensor loss = (*validate_)(state_.model, batch.tokens, batch.targets);
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum / static_cast<double>(recipe.validation_batches);
}

TrainReport TrainRun::report() {
  const TrainRecipe& recipe = options_.recipe;
  TrainReport report{.step = step_,
                     .train_loss = loss_.item(),
                     .gradient_norm = norm_.item(),
                     .rate = nn::cosine_rate(recipe.schedule, std::max<Index>(step_ - 1, 0))};
  const double steps_s = steady_s() - reported_s_;
  if (!std::isfinite(report.train_loss))
    throw std::runtime_error(
        fmt::format("step {}: the loss is {}; the batch of that step is number {} of seed {}. A lower rate "
                    "or --precision f32 "
                    "may help; the last checkpoint is as it was",
                    step_, report.train_loss, step_ - 1, options_.seed));
  report.tokens_per_s =
      static_cast<double>((step_ - reported_step_) * recipe.rows * recipe.model.context) / steps_s;
  report.val_loss = validation_loss().item();
  best_ = std::min(best_, report.val_loss);
  report.best_val_loss = best_;
  report.seconds = now_s();
  report.peak_bytes = ctx_.memory().peak_bytes;
  reported_s_ = steady_s();
  reported_step_ = step_;
  return report;
}

std::string TrainRun::write(const std::string& prompt, Index bytes) {
  const auto context = static_cast<std::size_t>(options_.recipe.model.context);
  std::vector<std::int32_t> tokens = vocabulary_.encode(prompt);
  const std::size_t start = tokens.size();
  const std::uint64_t seed = seed_of(options_.seed, Stream::writing);
  for (Index i = 0; i < bytes; ++i) {
    // Rows of one length alone: one program. What follows the last byte is not seen by it.
    const std::size_t first = tokens.size() > context ? tokens.size() - context : 0,
                      last = tokens.size() - first;
    std::vector<std::int32_t> row(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
    row.resize(context, 0);
    const Tensor in = ctx_.from(row, {1, options_.recipe.model.context}, DType::i32);
    const Tensor own = (*logits_)(state_.model, in)[{0, static_cast<Index>(last) - 1}];
    const std::vector<double> chance = softmax(own).to_vector<double>();
    double left = static_cast<double>(philox4x32(seed, static_cast<std::uint64_t>(i))[0]) * 0x1p-32;
    std::size_t token = 0;
    while (token + 1 < chance.size() && left >= chance[token]) left -= chance[token++];
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  return vocabulary_.decode({tokens.begin() + static_cast<std::ptrdiff_t>(start), tokens.end()});
}

void TrainRun::save(const std::string& path) const {
  nn::save_checkpoint(path, state_,
                      {{"recipe", options_.recipe.name},
                       {"step", fmt::format("{}", step_)},
                       {"seed", fmt::format("{}", options_.seed)},
                       {"compute", std::string(name(options_.compute))},
                       {"best_val_loss", fmt::format("{:a}", best_)},
                       {"text", text_hash_}});
}

void TrainRun::load(const std::string& path) {
  auto loaded = nn::load_checkpoint(ctx_, path, state_);
  const auto check = [&](const char* what, const std::string& own) {
    if (loaded.word(what) != own)
      throw Error(
          fmt::format("{}: its {} is {}, and this training's is {}", path, what, loaded.word(what), own));
  };
  check("recipe", options_.recipe.name);
  check("seed", fmt::format("{}", options_.seed));
  check("compute", std::string(name(options_.compute)));
  check("text", text_hash_);
  step_ = std::stoll(loaded.word("step"));
  best_ = std::stod(loaded.word("best_val_loss"));
  // What the file gives is read-only, and a step writes over its state.
  state_ = map_tensors([](const Tensor& t) { return t + 0.f; }, loaded.tree);
  reported_step_ = step_;
  reported_s_ = steady_s();
}

}  // namespace tilewright::tw
