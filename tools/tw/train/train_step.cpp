// The step, as one program or as several.
#include "tw/train/train_step.h"

#include <tilewright/tensor/gradient.h>

#include <future>

namespace tilewright::tw {

namespace {

// What the step's functions are made of: they are copied into compiled functions.
struct Parts {
  nn::Optimizer optimizer;
  Index heads = 0;
  double most_norm = 0, dropout = 0, ema = 0;

  // The loss and its gradient; in f16 both are those of the scaled loss.
  std::pair<Tensor, nn::GPT2> gradient(const nn::GPT2& model, const std::optional<nn::LossScale>& scale,
                                       const Tensor& tokens, const Tensor& targets, const Tensor& key) const {
    const auto loss = [&](const nn::GPT2& m) {
      const Tensor own = nn::gpt2_loss(m, tokens, targets, heads, nn::Dropout(key, dropout));
      return scale ? own * scale->scale : own;
    };
    return value_and_grad(loss)(model);
  }

  // The loss, the gradient's norm, and the next state.
  std::tuple<Tensor, Tensor, TrainState> update(const TrainState& s, const Tensor& value,
                                                const nn::GPT2& gradient, const Tensor& rate) const {
    const auto moved = [&](const nn::GPT2& slopes) {
      const auto [clipped, norm] = nn::clip_by_global_norm(slopes, most_norm);
      const auto [model, moments] = optimizer.update(s.model, clipped, s.optimizer, rate);
      TrainState next{model, moments, s.scale, s.average};
      if (s.average) next.average = nn::ema(*s.average, model, ema);
      return std::pair{norm, std::move(next)};
    };
    if (!s.scale) {
      const auto [norm, next] = moved(gradient);
      return {value, norm, next};
    }
    const auto [slopes, finite] = nn::unscaled(gradient, *s.scale);
    auto [norm, next] = moved(slopes);
    next = nn::choose(finite, next, s);  // a step whose gradient is not finite is left out
    next.scale = nn::next_loss_scale(*s.scale, finite);
    return {value / s.scale->scale, norm, next};
  }
};

// The parts as one batch.
StepBatch joined(const std::vector<StepBatch>& parts) {
  std::vector<Tensor> tokens, targets;
  for (const StepBatch& part : parts) {
    tokens.push_back(part.tokens);
    targets.push_back(part.targets);
  }
  return {concat(tokens, 0), concat(targets, 0), parts.front().key};
}

}  // namespace

TrainStep::TrainStep(const TrainRecipe& recipe, const Options& how) : precision_(how.precision) {
  const Parts parts{.optimizer = nn::adamw(recipe.optimizer),
                    .heads = recipe.model.heads,
                    .most_norm = recipe.most_norm,
                    .dropout = recipe.dropout,
                    .ema = how.ema};
  whole_ = [parts](const TrainState& s, const Tensor& tokens, const Tensor& targets, const Tensor& rate,
                   const Tensor& key) {
    const auto [value, gradient] = parts.gradient(s.model, s.scale, tokens, targets, key);
    return parts.update(s, value, gradient, rate);
  };
  // Deterministic: what is resumed has the bits of what was not interrupted.
  const CompileOptions options{
      .precision = how.precision, .deterministic = true, .donate = {0}, .memory_budget = how.memory_budget};
  if (how.parts == 1) {
    compiled_.emplace(whole_, options);
    return;
  }
  const double share = 1 / static_cast<double>(how.parts);
  add_.emplace(
      [parts, share](const Sum& sum, const nn::GPT2& model, const std::optional<nn::LossScale>& scale,
                     const Tensor& tokens, const Tensor& targets, const Tensor& key) {
        const auto [value, gradient] = parts.gradient(model, scale, tokens, targets, key);
        return Sum{nn::accumulate(sum.gradient, gradient, share), sum.loss + value * share};
      },
      options);
  update_.emplace([parts](const TrainState& s, const Sum& sum,
                          const Tensor& rate) { return parts.update(s, sum.loss, sum.gradient, rate); },
                  options);
}

TrainStep::Done TrainStep::operator()(const TrainState& state, const std::vector<StepBatch>& parts,
                                      const Tensor& rate) const {
  Done done;
  if (compiled_) {
    const StepBatch& b = parts.front();
    std::tie(done.loss, done.norm, done.next) = (*compiled_)(state, b.tokens, b.targets, rate, b.key);
    return done;
  }
  Sum sum{nn::no_gradient(state.model), rate * 0.f};
  for (const StepBatch& b : parts) sum = (*add_)(sum, state.model, state.scale, b.tokens, b.targets, b.key);
  std::tie(done.loss, done.norm, done.next) = (*update_)(state, sum, rate);
  return done;
}

void TrainStep::prepare(const TrainState& state, const std::vector<StepBatch>& parts,
                        const Tensor& rate) const {
  const StepBatch& b = parts.front();
  if (compiled_) {
    (void)compiled_->prepare(state, b.tokens, b.targets, rate, b.key);
    return;
  }
  const Sum sum{nn::no_gradient(state.model), rate * 0.f};
  auto update = std::async(std::launch::async, [&] { (void)update_->prepare(state, sum, rate); });
  (void)add_->prepare(sum, state.model, state.scale, b.tokens, b.targets, b.key);
  update.get();
}

std::optional<NonFinite> TrainStep::find_non_finite(const TrainState& state,
                                                    const std::vector<StepBatch>& parts,
                                                    const Tensor& rate) const {
  const StepBatch b = joined(parts);
  return tilewright::find_non_finite(whole_, precision_)(state, b.tokens, b.targets, rate, b.key);
}

}  // namespace tilewright::tw
