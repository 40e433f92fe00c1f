// Optimizers: what all have in common. Each rule has a file of its own beside this one.
#include <tilewright/nn/optimizer.h>

#include "nn/update_rules.h"
#include "tensor/literals.h"

#include <fmt/format.h>

namespace tilewright::nn {

namespace {

// Zeros where x is: memory and no program, unless they are recorded.
Tensor zeros_beside(const Tensor& x, DType dtype, const Shape& shape, const Location& where) {
  if (const auto memory = tilewright::detail::filled_beside("zeros", x, ir::Type{dtype, shape}, 0, where))
    return *memory;
  const Tensor one = zeros_like(cast(sum(x, {}, Keep::no, where), dtype, where), where);
  return broadcast_to(one, shape, where);
}

bool has_matrix_axes(const NamedTensor& parameter) { return parameter.tensor.rank() >= 2; }

}  // namespace

ParameterFilter matrices() { return has_matrix_axes; }

ParameterFilter hidden_matrices() {
  return [](const NamedTensor& parameter) {
    if (parameter.tensor.rank() != 2) return false;
    for (const char* end : {"wte", "wpe", "embed", "lm_head"})
      if (parameter.name.find(end) != std::string::npos) return false;
    return true;
  };
}

Tensor global_norm(const std::vector<Tensor>& tensors, const Location& where) {
  if (tensors.empty()) throw Error("global_norm: there is no tensor", where);
  // Side by side, not one behind another: kernels of tensors of one shape are launched together.
  std::vector<Tensor> squares;
  squares.reserve(tensors.size());
  for (const Tensor& t : tensors)
    squares.push_back(
        reshape(sum(square(cast(t, DType::f32, where), where), {}, Keep::no, where), {1}, where));
  return sqrt(sum(concat(squares, 0, where), {}, Keep::no, where), where);
}

namespace detail {

namespace {

void check_float(const NamedTensor& parameter, const Location& where) {
  if (!is_float(parameter.tensor.dtype(where)))
    throw Error(fmt::format("Optimizer: parameter {} is {}{}, which has no gradient", parameter.name,
                            name(parameter.tensor.dtype()), to_string(parameter.tensor.shape())),
                where);
}

std::string text_of(const std::vector<SlotType>& slots) {
  std::string text;
  for (const SlotType& slot : slots)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name(slot.dtype), to_string(slot.shape));
  return text.empty() ? "no slots" : text;
}

// The state of another optimizer, or of this one with other options, has other slots.
void check_slots(const UpdateRule& rule, const NamedTensor& parameter, const std::vector<Tensor>& slots,
                 const Location& where) {
  std::vector<SlotType> kept;
  kept.reserve(slots.size());
  for (const Tensor& t : slots) kept.push_back({t.dtype(where), t.shape(where)});
  const std::vector<SlotType> wanted = rule.slot_types(parameter);
  if (kept != wanted)
    throw Error(fmt::format("Optimizer: the state of parameter {} is {}, and this optimizer keeps {}: a "
                            "state goes on with the optimizer whose init() made it, with the same options",
                            parameter.name, text_of(kept), text_of(wanted)),
                where);
}

}  // namespace

Tensor no_steps(const NamedTensors& parameters, const Location& where) {
  if (parameters.empty()) throw Error("Optimizer: there is no parameter", where);
  return zeros_beside(parameters.front().tensor, DType::f32, {}, where);
}

void check_decay(double decay, const Location& where) {
  if (!(decay >= 0 && decay <= 1))
    throw Error(
        fmt::format("ema: a decay of {}; it is a number from 0 (the parameters themselves) to 1", decay),
        where);
}

std::vector<std::vector<Tensor>> first_slots(const UpdateRule& rule, const NamedTensors& parameters,
                                             const Location& where) {
  std::vector<std::vector<Tensor>> slots;
  for (const NamedTensor& parameter : parameters) {
    check_float(parameter, where);
    const std::vector<SlotType> own = rule.slot_types(parameter);
    slots.resize(own.size());
    for (std::size_t s = 0; s < own.size(); ++s)
      slots[s].push_back(zeros_beside(parameter.tensor, own[s].dtype, own[s].shape, where));
  }
  return slots;
}

MovedAll move_all(const UpdateRule& rule, const NamedTensors& parameters, const std::vector<Tensor>& gradient,
                  const std::vector<std::vector<Tensor>>& slots, const Tensor& steps, const Tensor& rate,
                  const Location& where) {
  MovedAll out;
  out.steps = add({steps, where}, {1.0, where}, where);
  out.slots.resize(slots.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const NamedTensor& parameter = parameters[i];
    check_float(parameter, where);
    if (i >= gradient.size() || gradient[i].shape(where) != parameter.tensor.shape(where))
      throw Error(fmt::format("Optimizer: the gradient of parameter {}, {}, is {}", parameter.name,
                              to_string(parameter.tensor.shape()),
                              i < gradient.size() ? to_string(gradient[i].shape()) : "missing"),
                  where);
    std::vector<Tensor> own;
    own.reserve(slots.size());
    for (const auto& slot : slots)
      if (i < slot.size()) own.push_back(slot[i]);
    check_slots(rule, parameter, own, where);
    const Tensor value = cast(parameter.tensor, DType::f32, where);
    const Tensor slope = cast(gradient[i], DType::f32, where);
    const UpdateRule::Moved moved = rule.move({parameter, value, slope, own, rate, out.steps});
    out.values.push_back(cast(moved.value, parameter.tensor.dtype(), where));
    for (std::size_t s = 0; s < slots.size(); ++s) out.slots[s].push_back(moved.slots.at(s));
  }
  return out;
}

}  // namespace detail

}  // namespace tilewright::nn
