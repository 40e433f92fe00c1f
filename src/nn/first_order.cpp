// Rules without second moments: SGD and Lion.
#include "nn/update_rules.h"

namespace tilewright::nn {

namespace {

class Sgd final : public UpdateRule {
 public:
  explicit Sgd(SgdOptions options) : options_(std::move(options)) {}
  std::vector<SlotType> slot_types(const NamedTensor& parameter) const override {
    if (options_.momentum == 0) return {};
    return {{DType::f32, parameter.tensor.shape()}};
  }
  Moved move(const Step& step) const override {
    Tensor slope = step.gradient;
    if (options_.weight_decay != 0 && options_.decayed(step.parameter))
      slope = slope + step.value * options_.weight_decay;
    if (options_.momentum == 0) return {step.value - step.rate * slope, {}};
    const Tensor velocity = step.slots[0] * options_.momentum + slope;
    const Tensor along = options_.nesterov ? slope + velocity * options_.momentum : velocity;
    return {step.value - step.rate * along, {velocity}};
  }

 private:
  SgdOptions options_;
};

class Lion final : public UpdateRule {
 public:
  explicit Lion(LionOptions options) : options_(std::move(options)) {}
  std::vector<SlotType> slot_types(const NamedTensor& parameter) const override {
    return {{DType::f32, parameter.tensor.shape()}};
  }
  Moved move(const Step& step) const override {
    const Tensor mixed = toward(step.slots[0], step.gradient, 1 - options_.beta1);
    const Tensor value = decayed(step, options_.weight_decay, options_.decayed) - step.rate * sign(mixed);
    return {value, {toward(step.slots[0], step.gradient, 1 - options_.beta2)}};
  }

 private:
  LionOptions options_;
};

}  // namespace

Optimizer sgd(SgdOptions options) { return Optimizer(std::make_shared<Sgd>(std::move(options))); }
Optimizer lion(LionOptions options) { return Optimizer(std::make_shared<Lion>(std::move(options))); }

}  // namespace tilewright::nn
