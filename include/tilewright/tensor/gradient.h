// value_and_grad() and grad(): derivatives of functions, made ahead of time.
#pragma once

#include <tilewright/tensor/signature.h>

#pragma GCC visibility push(default)
namespace tilewright {

namespace detail {

// What a function returns, and the gradients of its first tensor, a float scalar, with respect to the tensors
// numbered in `wrt`. `name_of` says what the user calls one of the arguments' tensors.
struct ValueAndGradients {
  Leaves value;
  std::vector<Tensor> gradients;
};
using NameOfTensor = std::function<std::string(std::size_t)>;
ValueAndGradients value_and_grad(const LeavesFunction& f, const std::vector<int>& wrt, const Leaves& arguments,
                                 const NameOfTensor& name_of, const Location& where);
// Throws Error where a number in `wrt` is that of no argument.
void check_wrt(const std::vector<int>& wrt, std::size_t arguments, const Location& where);

template <class... A>
std::string name_of_tensor(std::size_t number, const A&... arguments) {
  std::vector<std::string> names;
  std::size_t argument = 0;
  (Tree<A>::name("", arguments,
                 [&](const std::string& path, const Tensor&) { names.push_back(argument_name(argument, path)); }),
   ...);
  return names.at(number);
}

template <class Arguments, std::size_t... kWith>
struct GradientType {
  using Type = std::tuple<std::tuple_element_t<kWith, Arguments>...>;
};
template <class Arguments, std::size_t kOne>
struct GradientType<Arguments, kOne> {
  using Type = std::tuple_element_t<kOne, Arguments>;
};

}  // namespace detail
