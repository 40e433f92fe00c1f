// value_and_grad(): the function recorded, its derivative written ahead of time, and both run or recorded.
#include "passes/graph/differentiate.h"
#include "tensor/explain.h"
#include "tensor/index_check.h"
#include "tensor/kernel_gradients.h"
#include "tensor/trace.h"

#include <tilewright/tensor/gradient.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

namespace {

void check_scalar(const char* of, const std::vector<Tensor>& results, const Location& where) {
  if (results.empty()) throw Error(fmt::format("{}: the function returned no tensor", of), where);
  const ir::Type& type = results[0].impl()->type;
  if (type.shape.rank() == 0 && is_float(type.dtype)) return;
  throw Error(
      fmt::format("{}: the function's first result is {}, not a float scalar: return a sum or mean of "
                  "it",
                  of, to_string(type)),
      where);
}

// Throws Error where a tensor that a gradient is asked of is of integers.
void check_differentiable(const char* of, const std::vector<int>& wrt, const std::vector<Tensor>& tensors,
                          const GivenNames& names, const Location& where) {
  for (const int number : wrt) {
    const auto i = static_cast<std::size_t>(number);
    if (const ir::Type& type = tensors[i].impl()->type; !is_float(type.dtype))
      throw Error(
          fmt::format("{}: {} is {}, which has no gradient: cast it to a float type before the call, or "
                      "ask for the gradients of other arguments",
                      of, names.of(i), to_string(type)),
          where);
  }
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

ValueAndGradients value_and_grad(const Differentiable& function, const std::vector<int>& wrt,
                                 const Leaves& arguments, const Location& where) {
  const std::vector<Tensor>& args = arguments.tensors;
  const char* of = function.of;
  if (!function.f) throw Error(fmt::format("{}: this function was moved from", of), where);
  GivenNames names{"argument"};
  if (function.names) names.name = [&](std::size_t i) { return function.names(arguments).at(i); };
  check_arguments(of, args, names, where);
  check_differentiable(of, wrt, args, names, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], of, where);
  const std::lock_guard lock(context->mutex);
  check_kept(of, names, args, where);
  // A trace of its own, of shapes only: a host read inside has nothing to read.
  auto trace = std::make_shared<Trace>(Trace::Of::value_and_grad, "forward", where);
  trace->no_breaks =
      "that is differentiated, which is recorded as a whole: return the tensor beside the scalar and "
      "use it after the call";
  Structure structure;
  const ir::Graph joint = at_place(where, [&] {
    const auto users = [&](const std::vector<Tensor>& in) {
      const Opened open(context->mutex);
      return function.f({in, arguments.structure});
    };
    Recorded recorded = record_function(users, args, types_of(args), trace, context);
    for (std::size_t i = 0; i < recorded.results.size(); ++i)
      if (!recorded.results[i].defined())
        throw Error(fmt::format("{}: result {} of the function was never given a value", of, i));
    check_scalar(of, recorded.results, where);
    structure = recorded.structure;
    finish(recorded);
    if (trace->kernels.empty()) return passes::differentiate(trace->graph, wrt);
    return passes::differentiate(with_kernel_gradients(of, *trace, context, where), wrt);
  });
  // What the function captured is an input like its arguments: of the enclosing function, where that recorded
  // it.
  std::vector<Tensor> results = apply(
      of, trace->inputs,
      [&](ir::Graph& into, const std::vector<ir::Value>& inputs) {
        std::vector<ir::Value> all = inline_graph(into, joint, inputs);
        // The first value was only there for gradients to be taken of: it is no result.
        if (!trace->kernels.empty()) all.erase(all.begin());
        return all;
      },
      where);
  // The checks' findings lie between the function's results and the gradients: these go last.
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
