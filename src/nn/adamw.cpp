// AdamW, and Muon, which moves by AdamW what it does not make orthogonal.
#include "nn/update_rules.h"

#include <tilewright/tensor/composites.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilewright::nn {

namespace {

class AdamW final : public UpdateRule {
 public:
  explicit AdamW(AdamWOptions options) : options_(std::move(options)) {}
  std::vector<Tensor> first_slots(const NamedTensor& parameter) const override {
    const auto empty = [&] { return cast(empty_slot(parameter), options_.moments); };
    return {empty(), empty()};  // each in memory of its own, so that both can be donated
  }
  Moved move(const Step& step) const override {
    const auto wide = [&](std::size_t slot) { return cast(step.slots[slot], DType::f32); };
    const Tensor first = toward(wide(0), step.gradient, 1 - options_.beta1);
    const Tensor second = toward(wide(1), square(step.gradient), 1 - options_.beta2);
    // 1 - beta^steps; in f32 the difference itself would lose half of its digits at first.
    const Tensor started1 = -expm1(step.steps * std::log(options_.beta1));
    const Tensor started2 = -expm1(step.steps * std::log(options_.beta2));
    const Tensor along = first / (sqrt(second) / sqrt(started2) + options_.epsilon);
    const Tensor value = decayed(step, options_.weight_decay, options_.decayed);
    return {value - step.rate / started1 * along,
            {cast(first, options_.moments), cast(second, options_.moments)}};
  }

 private:
  AdamWOptions options_;
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
  // Both kinds of parameters have as many slots; the second of an orthogonal one stays empty.
  std::vector<Tensor> first_slots(const NamedTensor& parameter) const override {
    if (!is_orthogonal(parameter)) return others_.first_slots(parameter);
    return {empty_slot(parameter), zeros_like(sum(cast(parameter.tensor, DType::f32)))};
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
    return {value - step.rate * (orthogonalized(along, options_.iterations) * scale),
            {momentum, step.slots[1]}};
  }

 private:
  bool is_orthogonal(const NamedTensor& parameter) const {
    return parameter.tensor.rank() == 2 && options_.orthogonal(parameter);
  }
  MuonOptions options_;
  AdamW others_;
};

// bf16 has f32's range, which the squares of small gradients need.
void check_moments(const char* of, const AdamWOptions& options, const Location& where) {
  const DType type = options.moments;
  if (type != DType::f32 && type != DType::bf16)
    throw Error(fmt::format("{}: moments in {}; f32 and bf16 have the range for them", of, name(type)),
                where);
  if (type == DType::f32) return;
  // An average of nothing falls by 1 - beta of itself; by less than half a unit of its last digit it stays.
  const double most = 1 - unit_roundoff(type);
  for (const auto& [beta, called] : {std::pair{options.beta1, "beta1"}, {options.beta2, "beta2"}})
    if (beta > most)
      throw Error(
          fmt::format("{}: {} is {} and moments are bf16, in which an average that moves by {:.2g} of "
                      "itself a step stays where it is: a beta of at most {:.3f}, 0.95 say, or moments "
                      "in f32",
                      of, called, beta, 1 - beta, most),
          where);
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
