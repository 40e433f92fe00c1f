// AdamW, and Muon, which moves by AdamW what it does not make orthogonal.
#include "nn/moment.h"
#include "nn/update_rules.h"

#include <tilewright/base/error.h>
#include <tilewright/tensor/composites.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tilewright::nn {

namespace {

DType type_of_squares(const AdamWOptions& options) {
  return options.second_moments.value_or(options.moments);
}

class AdamW final : public UpdateRule {
 public:
  explicit AdamW(AdamWOptions options)
      : options_(std::move(options)),
        first_(Moment::Of::gradients, options_.moments, 0),
        second_(Moment::Of::squares, type_of_squares(options_), first_.slots()) {}
  std::size_t slots() const { return first_.slots() + second_.slots(); }
  std::vector<SlotType> slot_types(const NamedTensor& parameter) const override {
    return both(first_.types(parameter), second_.types(parameter));
  }
  Moved move(const Step& step) const override {
    const Tensor first = toward(first_.read(step.slots), step.gradient, 1 - options_.beta1);
    const Tensor second = toward(second_.read(step.slots), square(step.gradient), 1 - options_.beta2);
    // 1 - beta^steps; in f32 the difference itself would lose half of its digits at first.
    const Tensor started1 = -expm1(step.steps * std::log(options_.beta1));
    const Tensor started2 = -expm1(step.steps * std::log(options_.beta2));
    const Tensor along = first / (sqrt(second) / sqrt(started2) + options_.epsilon);
    const Tensor value = decayed(step, options_.weight_decay, options_.decayed);
    return {value - step.rate / started1 * along,
            both(first_.written(first, step), second_.written(second, step))};
  }

 private:
  template <class Slots>
  static Slots both(Slots first, const Slots& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }
  AdamWOptions options_;
  Moment first_, second_;
};

// The matrix with its singular values brought near 1: a quintic of it, several times (coefficients of
// Jordan).
Tensor orthogonalized(const Tensor& matrix, int iterations) {
  constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315, kLeastNorm = 1e-7;
  const Shape& shape = matrix.shape();
  const bool tall = shape[0] > shape[1];
  Tensor x = cast(tall ? matrix.T() : matrix, DType::bf16);
  x = x / maximum(norm(x), kLeastNorm);
  for (int i = 0; i < iterations; ++i) {
    const Tensor gram = matmul(x, x.T());
    x = x * kLinear + matmul(gram * kCubic + matmul(gram, gram) * kQuintic, x);
  }
  return cast(tall ? x.T() : x, DType::f32);
}

class Muon final : public UpdateRule {
 public:
  explicit Muon(MuonOptions options) : options_(std::move(options)), others_(options_.others) {}
  // Both kinds of parameters have as many slots; those of an orthogonal one behind the first stay 0.
  std::vector<SlotType> slot_types(const NamedTensor& parameter) const override {
    if (!is_orthogonal(parameter)) return others_.slot_types(parameter);
    std::vector<SlotType> slots(others_.slots());
    slots[0].shape = parameter.tensor.shape();
    return slots;
  }
  Moved move(const Step& step) const override {
    if (!is_orthogonal(step.parameter)) {
      const Tensor rate = step.rate * options_.rate_of_others;
      return others_.move({step.parameter, step.value, step.gradient, step.slots, rate, step.steps});
    }
    const Tensor momentum = toward(step.slots[0], step.gradient, 1 - options_.momentum);
    const Tensor along = options_.nesterov ? toward(step.gradient, momentum, options_.momentum) : momentum;
    const Shape& shape = step.value.shape();
    const double scale =
        std::sqrt(std::max(1.0, static_cast<double>(shape[0]) / static_cast<double>(shape[1])));
    const Tensor value = step.value * (1.0 - step.rate * options_.weight_decay);
    std::vector<Tensor> slots = step.slots;
    slots[0] = momentum;
    return {value - step.rate * (orthogonalized(along, options_.iterations) * scale), std::move(slots)};
  }

 private:
  bool is_orthogonal(const NamedTensor& parameter) const {
    return parameter.tensor.rank() == 2 && options_.orthogonal(parameter);
  }
  MuonOptions options_;
  AdamW others_;
};

void check_numbers(const char* of, const AdamWOptions& options, const Location& where) {
  for (const auto& [called, beta] : {std::pair{"beta1", options.beta1}, {"beta2", options.beta2}})
    if (!(beta >= 0 && beta < 1))
      throw Error(fmt::format("{}: {} is {}; it is at least 0 and below 1", of, called, beta), where);
  if (!(options.epsilon >= 0))
    throw Error(fmt::format("{}: epsilon is {}; it is at least 0", of, options.epsilon), where);
}

void check_moments(const char* of, const AdamWOptions& options, const Location& where) {
  check_numbers(of, options, where);
  check_moment(of, "beta1", options.beta1, options.moments, where);
  check_moment(of, "beta2", options.beta2, type_of_squares(options), where);
}

}  // namespace

Optimizer adamw(AdamWOptions options, const Location& where) {
  check_moments("adamw", options, where);
  return Optimizer(std::make_shared<AdamW>(std::move(options)));
}
Optimizer muon(MuonOptions options, const Location& where) {
  check_moments("muon", options.others, where);
  return Optimizer(std::make_shared<Muon>(std::move(options)));
}

}  // namespace tilewright::nn
