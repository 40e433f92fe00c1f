// A program as a function of its inputs.
#include "programs/program.h"

#include <tilewright/tensor/gradient.h>

namespace tilewright::programs {

namespace {

std::vector<Tensor> run_statements(const Program& program, const std::vector<Tensor>& inputs,
                                   const Literals& literals) {
  Values values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[program.inputs[i].name] = inputs[i];
  for (const Statement& statement : program.statements)
    values[statement.result] = evaluate(statement, values, literals);
  std::vector<Tensor> results;
  results.reserve(program.results.size());
  for (const std::string& name : program.results) results.push_back(values.at(name));
  return results;
}

// f with all inputs but those in `wrt` captured: the usual training step.
std::vector<Tensor> gradients_of_captured(const detail::ListFunction& f, const std::vector<int>& wrt,
                                          const std::vector<Tensor>& inputs) {
  std::vector<Tensor> free;
  std::vector<int> places;
  for (const int i : wrt) {
    places.push_back(static_cast<int>(free.size()));
    free.push_back(inputs[static_cast<std::size_t>(i)]);
  }
  const auto of_free = [&](const std::vector<Tensor>& args) {
    std::vector<Tensor> all = inputs;
    for (std::size_t i = 0; i < wrt.size(); ++i) all[static_cast<std::size_t>(wrt[i])] = args[i];
    return f(all);
  };
  return tensors_of(value_and_grad(of_free, places)(free));
}

}  // namespace

detail::ListFunction function_of(const Program& program, const Literals& literals) {
  detail::ListFunction f = [&program, &literals](const std::vector<Tensor>& inputs) {
    return run_statements(program, inputs, literals);
  };
  if (program.wanted == Program::Wanted::values) return f;
  const auto derivative = [&program](const detail::ListFunction& g) -> detail::ListFunction {
    return [&program, g](const std::vector<Tensor>& inputs) {
      if (program.how.count("closure") != 0) return gradients_of_captured(g, program.wrt, inputs);
      return tensors_of(value_and_grad(g, program.wrt)(inputs));
    };
  };
  f = derivative(f);
  if (program.wanted == Program::Wanted::gradient) return f;
  return derivative([f](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
    const std::vector<Tensor> first = f(inputs);
    Tensor squares = sum(square(first.at(1)));
    for (std::size_t i = 2; i < first.size(); ++i) squares = squares + sum(square(first[i]));
    return {squares};
  });
}

}  // namespace tilewright::programs
