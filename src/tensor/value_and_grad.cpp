// value_and_grad(): the function recorded, its derivative written ahead of time, and both run or recorded.
#include "passes/graph/differentiate.h"
#include "tensor/explain.h"
#include "tensor/index_check.h"
#include "tensor/trace.h"

#include <tilewright/tensor/gradient.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

namespace {
void check_scalar(const std::vector<Tensor>& results, const Location& where) {
  if (results.empty()) throw Error("value_and_grad: the function returned no tensor", where);
  const ir::Type& type = results[0].impl()->type;
  if (type.shape.rank() == 0 && is_float(type.dtype)) return;
  throw Error(
      fmt::format("value_and_grad: the function's first result is {}, not a float scalar: return a sum "
                  "or mean of it",
                  to_string(type)),
      where);
}

}  // namespace

void add_numbers(std::vector<int>& numbers, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) numbers.push_back(static_cast<int>(i));
}

void check_numbers(const std::vector<int>& wrt, std::size_t count, const Location& where) {
  for (const int i : wrt)
    if (i < 0 || static_cast<std::size_t>(i) >= count)
      throw Error(fmt::format("value_and_grad: argument {} out of range, {} given", i, count), where);
}

std::size_t first_without_gradient(const std::vector<int>& wrt, const std::vector<Tensor>& tensors) {
  const auto is_bad = [&](int i) {
    const Tensor& t = tensors[static_cast<std::size_t>(i)];
    return t.defined() && !is_float(t.impl()->type.dtype);
  };
  return static_cast<std::size_t>(std::find_if(wrt.begin(), wrt.end(), is_bad) - wrt.begin());
}

void throw_no_gradient(std::size_t argument, const std::string& path, const Tensor& tensor,
                       const Location& where) {
  throw Error(
      fmt::format("value_and_grad: argument {}{}{} is {}, which has no gradient: cast it to a float type "
                  "before the call, or ask for the gradients of other arguments",
                  argument, path.empty() ? "" : ": ", path, to_string(tensor.impl()->type)),
      where);
}

ValueAndGradients value_and_grad(const LeavesFunction& f, const std::vector<int>& wrt,
                                 const Leaves& arguments, const Location& where) {
  const std::vector<Tensor>& args = arguments.tensors;
  if (!f) throw Error("value_and_grad: this function was moved from", where);
  check_arguments("value_and_grad", args, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "value_and_grad", where);
  const std::lock_guard lock(context->mutex);
  // A trace of its own, of shapes only: a host read inside has nothing to read.
  auto trace = std::make_shared<Trace>(Trace::Of::value_and_grad, "forward", where);
  trace->no_breaks =
      "that is differentiated, which is recorded as a whole: return the tensor beside the scalar and "
      "use it after the call";
  Structure structure;
  const ir::Graph joint = at_place(where, [&] {
    const auto users = [&](const std::vector<Tensor>& in) {
      const Opened open(context->mutex);
      return f({in, arguments.structure});
    };
    Recorded recorded = record_function(users, args, types_of(args), trace, context);
    for (std::size_t i = 0; i < recorded.results.size(); ++i)
      if (!recorded.results[i].defined())
        throw Error(fmt::format("value_and_grad: result {} of the function was never given a value", i));
    check_scalar(recorded.results, where);
    structure = recorded.structure;
    finish(recorded);
    return passes::differentiate(trace->graph, wrt);
  });
  // What the function captured is an input like its arguments: of the enclosing function, where that recorded
  // it.
  std::vector<Tensor> results = apply(
      "value_and_grad", trace->inputs,
      [&](ir::Graph& into, const std::vector<ir::Value>& inputs) {
        return inline_graph(into, joint, inputs);
      },
      where);
  // What checks found lies between the function's results and the gradients.
  std::rotate(results.end() - static_cast<std::ptrdiff_t>(wrt.size() + 2 * trace->checks.size()),
              results.end() - static_cast<std::ptrdiff_t>(wrt.size()), results.end());
  settle(trace->checks, results);
  const auto first_gradient = results.end() - static_cast<std::ptrdiff_t>(wrt.size());
  ValueAndGradients made{{{}, std::move(structure)},
                         {std::make_move_iterator(first_gradient), std::make_move_iterator(results.end())}};
  results.erase(first_gradient, results.end());
  made.value.tensors = std::move(results);
  return made;
}

}  // namespace tilewright::detail
