// Statements for both sides, and the text they become.
#include "sweep/draft.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace tilewright::sweep {

std::string list(const std::vector<Index>& numbers) { return fmt::format("{}", fmt::join(numbers, ",")); }

Draft::Draft(const std::string& family, std::uint64_t seed, const Aim& aim)
    : choose(family + " structure", seed), sizes(family + " sizes", seed), bytes_(aim.bytes) {
  drawn_.family = family;
  drawn_.seed = seed;
  drawn_.dtype = aim.dtype;
  drawn_.program.calls.emplace_back();
}

double Draft::elements(double share) const {
  return std::max(1.0, bytes_ * share / static_cast<double>(size_bytes(drawn_.dtype)));
}

std::string Draft::input(const std::string& name, const Shape& shape, const Holds& holds) {
  drawn_.program.inputs.push_back(
      {name, holds.kind == Holds::Kind::integers ? DType::i64 : drawn_.dtype, shape});
  drawn_.holds.push_back(holds);
  return name;
}

std::string Draft::integers(const std::string& name, const Shape& shape, Index past, Index least) {
  return input(name, shape, {.kind = Holds::Kind::integers, .least = least, .past = past});
}

std::string Draft::weight(const std::string& name, const Shape& shape, Index k) {
  return input(name, shape, {.deviation = 1 / std::sqrt(static_cast<double>(k))});
}

std::string Draft::factor(const std::string& name, Index n) {
  return input(name, Shape({n}), {.mean = 1, .deviation = 0.1});
}

std::string Draft::addend(const std::string& name, Index n) {
  return input(name, Shape({n}), {.deviation = 0.1});
}

std::string Draft::ours(const std::string& op, const std::vector<std::string>& operands,
                        const Options& options) {
  const std::string name = fmt::format("v{}", values_++);
  drawn_.program.statements.push_back({name, op, operands, options});
  return name;
}

std::string Draft::add(const std::string& op, const std::vector<std::string>& operands,
                       const Options& options) {
  const std::string name = ours(op, operands, options);
  torch(name, torch_expression(drawn_.program.statements.back()));
  return name;
}

std::string Draft::widened(const std::string& x) {
  return dtype() == DType::f32 ? x : ours("cast", {x}, {{"dtype", "f32"}});
}

std::string Draft::narrowed(const std::string& x) {
  return dtype() == DType::f32 ? x : ours("cast", {x}, {{"dtype", std::string(name(dtype()))}});
}

void Draft::torch(const std::string& name, const std::string& expression) {
  torch_line(fmt::format("{} = {}", name, expression));
}

void Draft::torch_line(const std::string& line) { lines_.push_back(line); }

void Draft::torch_helper(const std::string& text) {
  if (std::find(helpers_.begin(), helpers_.end(), text) == helpers_.end()) helpers_.push_back(text);
}

bool Draft::is_input(const std::string& name) const {
  return std::any_of(drawn_.program.inputs.begin(), drawn_.program.inputs.end(),
                     [&](const programs::Input& input) { return input.name == name; });
}

std::size_t Draft::place_of(const std::string& input) const {
  for (std::size_t i = 0; i < drawn_.program.inputs.size(); ++i)
    if (drawn_.program.inputs[i].name == input) return i;
  TW_CHECK(false, "the input was declared");
  return 0;
}

void Draft::results(const std::vector<std::string>& names) { drawn_.program.results = names; }

void Draft::gradients(const std::string& name, const std::vector<std::string>& by) {
  drawn_.program.results = {name};
  drawn_.program.wanted = programs::Program::Wanted::gradient;
  for (const std::string& input : by) drawn_.program.wrt.push_back(static_cast<int>(place_of(input)));
}

void Draft::reads_of(const std::string& input, double elements) {
  drawn_.read_elements.emplace_back(place_of(input), elements);
}

Drawn Draft::finish() {
  // A gradient has two products for each one of the loss.
  if (wants_gradients()) drawn_.unseen_flops *= 3;
  std::vector<std::string> parameters;
  parameters.reserve(drawn_.program.inputs.size());
  for (const programs::Input& input : drawn_.program.inputs) parameters.push_back(input.name);
  std::string text;
  for (const std::string& helper : helpers_) text += helper + "\n\n";
  text += fmt::format("def program({}):\n", fmt::join(parameters, ", "));
  for (const std::string& line : lines_) text += fmt::format("    {}\n", line);
  text += fmt::format("    return {}\n", fmt::join(drawn_.program.results, ", "));
  if (wants_gradients()) text += fmt::format("\ngradients_of = [{}]\n", fmt::join(drawn_.program.wrt, ", "));
  drawn_.torch = text;
  return drawn_;
}

std::string Drawn::command() const {
  return fmt::format("tw bench sweep --seed {} --count 1 --family {}{}", seed, family, arguments);
}

std::string Drawn::shapes() const {
  std::string text;
  for (const programs::Input& input : program.inputs)
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", input.name, to_string(input.shape));
  return text;
}

std::string Drawn::text() const {
  return fmt::format("# {}   ({})\n{}\n{}\n", command(), name(dtype), programs::to_text(program), torch);
}

}  // namespace tilewright::sweep
