// Adafactor: second moments of a matrix as a column times a row.
#include "nn/update_rules.h"

#include <limits>

namespace tilewright::nn {

namespace {

Tensor root_mean_square(const Tensor& x) { return sqrt(mean(square(x))); }

class Adafactor final : public UpdateRule {
 public:
  explicit Adafactor(AdafactorOptions options) : options_(std::move(options)) {}
  // A matrix has the moments of its rows and of its columns; others have one for each element, and nothing.
  std::vector<SlotType> slot_types(const NamedTensor& parameter) const override {
    const Shape& shape = parameter.tensor.shape();
    if (shape.rank() < 2) return {{DType::f32, shape}, {}};
    std::vector<SlotType> slots(2, {DType::f32, shape});
    slots[0].shape[shape.rank() - 1] = 1;
    slots[1].shape[shape.rank() - 2] = 1;
    return slots;
  }
  Moved move(const Step& step) const override {
    constexpr double kLeast = std::numeric_limits<float>::epsilon();
    const Tensor share = pow(step.steps, options_.beta2_decay);
    const Tensor squares = square(step.gradient);
    Tensor moment;
    std::vector<Tensor> slots = step.slots;
    if (step.value.rank() < 2) {
      moment = slots[0] = slots[0] + (squares - slots[0]) * share;
    } else {
      slots[0] = slots[0] + (mean(squares, -1, Keep::yes) - slots[0]) * share;
      slots[1] = slots[1] + (mean(squares, -2, Keep::yes) - slots[1]) * share;
      moment = slots[0] * slots[1] / maximum(mean(slots[0], -2, Keep::yes), kLeast);
    }
    const Tensor along = step.gradient / sqrt(maximum(moment, kLeast * kLeast));
    const Tensor most = minimum(step.rate, 1.0 / sqrt(step.steps));
    const Tensor size = maximum(root_mean_square(step.value), options_.epsilon) * most;
    const Tensor scale = size / maximum(root_mean_square(along) / options_.clip, 1.0);
    return {decayed(step, options_.weight_decay, options_.decayed) - scale * along, std::move(slots)};
  }

 private:
  AdafactorOptions options_;
};

}  // namespace

Optimizer adafactor(AdafactorOptions options) {
  return Optimizer(std::make_shared<Adafactor>(std::move(options)));
}

}  // namespace tilewright::nn
