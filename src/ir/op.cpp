// The row of inputs and the columns that mean "none".
#include "ir/op.h"

namespace tilewright::ir {

std::vector<std::optional<Value>> no_gradient(std::span<const Value> operands, const Attrs&, Value, Value) {
  return std::vector<std::optional<Value>>(operands.size());
}

tile::Value structural(tile::Builder&, std::span<const tile::Value>, const Attrs&) {
  throw std::logic_error("internal error: a structural op is lowered by its class, not by its row");
}

namespace {
// Inputs get their type from Graph::add_input and their value from the caller of evaluate.
Type infer_input(std::span<const Type>, const Attrs&) {
  throw Error("input: inputs are declared in the graph's signature");
}
HostTensor eval_input(std::span<const HostTensor* const>, const Attrs&, const Type&) {
  throw std::logic_error("internal error: an input has no value of its own");
}
}  // namespace

constexpr Op input_op{.name = "input",
                      .arity = 0,
                      .kind = OpClass::input,
                      .doc = "A value given at the call.",
                      .infer = infer_input,
                      .eval = eval_input,
                      .vjp = no_gradient,
                      .lower = structural};

}  // namespace tilewright::ir
