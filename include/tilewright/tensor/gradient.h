// value_and_grad() and grad(): derivatives of functions, made ahead of time.
#pragma once

#include <tilewright/tensor/signature.h>

#pragma GCC visibility push(default)
namespace tilewright {

namespace detail {

// Several arguments taken apart, and where each begins.
template <std::size_t kCount>
struct ArgumentLeaves {
  Leaves all;
  std::array<std::size_t, kCount + 1> tensors{}, numbers{};
  template <class... A>
  explicit ArgumentLeaves(const A&... arguments) {
    std::size_t next = 0;
    ((Tree<A>::write(arguments, all), ++next, tensors[next] = all.tensors.size(),
      numbers[next] = all.structure.size()),
     ...);
  }
};

// A function that is to be differentiated.
struct Differentiable {
  LeavesFunction f;
  const char* of = "value_and_grad";  // what the user called with it
  ArgumentNames names = nullptr;
};
// What a function returns, and the gradients of its first tensor, a float scalar, with respect to the tensors
// numbered in `wrt`. Throws Error where one of these is of integers.
struct ValueAndGradients {
  Leaves value;
  std::vector<Tensor> gradients;
};
ValueAndGradients value_and_grad(const Differentiable& function, const std::vector<int>& wrt,
                                 const Leaves& arguments, const Location& where);
// Adds first, first + 1, … end - 1.
void add_numbers(std::vector<int>& numbers, std::size_t first, std::size_t end);
// Throws Error where a number is that of no tensor.
void check_numbers(const std::vector<int>& wrt, std::size_t count, const Location& where);

// The next gradient: of an argument whose structure begins at `number`.
template <class T>
T read_gradient(LeavesReader& from, std::size_t number) {
  from.next_number = number;
  return Tree<T>::read(from);
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

// What value_and_grad() gives: a function of the same arguments.
template <class Function, std::size_t... kWith>
class ValueAndGrad;
template <class R, class... A, std::size_t... kWith>
class ValueAndGrad<R(A...), kWith...> {
  static_assert(sizeof...(kWith) > 0 && ((kWith < sizeof...(A)) && ...),
                "value_and_grad<…>: the function has fewer arguments");

 public:
  using Gradient = typename detail::GradientType<std::tuple<A...>, kWith...>::Type;
  using Signature = std::pair<R, Gradient>(A...);
  static_assert((!std::is_arithmetic_v<std::tuple_element_t<kWith, std::tuple<A...>>> && ...),
                "a number has no gradient, as it is a constant of the program: give it as a Tensor");
  explicit ValueAndGrad(detail::Differentiable f) : f_(std::move(f)) {}

  // The results of the function, and the gradient of its value. Throws Error as value_and_grad() says.
  std::pair<R, Gradient> operator()(const A&... arguments,
                                    const Location& where = Location::current()) const {
    const detail::ArgumentLeaves<sizeof...(A)> given(arguments...);
    std::vector<int> wrt;
    (detail::add_numbers(wrt, given.tensors[kWith], given.tensors[kWith + 1]), ...);
    const detail::ValueAndGradients made = detail::value_and_grad(f_, wrt, given.all, where);
    detail::LeavesReader from{made.gradients, given.all.structure};
    R value = detail::read_tree<R>(made.value);
    if constexpr (sizeof...(kWith) == 1)
      return {std::move(value), (detail::read_gradient<Gradient>(from, given.numbers[kWith]), ...)};
    else
      return {std::move(value), Gradient{detail::read_gradient<std::tuple_element_t<kWith, std::tuple<A...>>>(
                                    from, given.numbers[kWith])...}};
  }

 private:
  detail::Differentiable f_;
};

// The same for arguments that are known by their numbers only when the program runs.
template <class Function>
class ValueAndGradOf;
template <class R, class... A>
class ValueAndGradOf<R(A...)> {
  static_assert((std::is_same_v<A, Tensor> && ...) ||
                    std::is_same_v<std::tuple<A...>, std::tuple<std::vector<Tensor>>>,
                "value_and_grad(f, {numbers}) takes functions of Tensors, or of one list of them; of others: "
                "value_and_grad<numbers>(f)");

 public:
  using Signature = std::pair<R, std::vector<Tensor>>(A...);
  ValueAndGradOf(detail::Differentiable f, std::vector<int> wrt) : f_(std::move(f)), wrt_(std::move(wrt)) {}

  // The results of the function, and a gradient of its value for each of the numbers. Throws Error as
  // value_and_grad() says.
  std::pair<R, std::vector<Tensor>> operator()(const A&... arguments,
                                               const Location& where = Location::current()) const {
    const detail::ArgumentLeaves<sizeof...(A)> given(arguments...);
    detail::check_numbers(wrt_, given.all.tensors.size(), where);
    detail::ValueAndGradients made = detail::value_and_grad(f_, wrt_, given.all, where);
    return {detail::read_tree<R>(made.value), std::move(made.gradients)};
  }

 private:
  detail::Differentiable f_;
  std::vector<int> wrt_;
};

namespace detail {
// `of` is what the user called with the function.
template <std::size_t... kWith, class F>
auto differentiated(F f, const char* of, const Location& made) {
  using S = typename SignatureOf<F>::Type;
  static_assert(check_signature(std::type_identity<S>()));
  Differentiable function{as_leaves_function(std::type_identity<S>(), std::move(f), of, made), of,
                          names_of_arguments(std::type_identity<S>())};
  if constexpr (sizeof...(kWith) == 0)
    return ValueAndGrad<S, 0>(std::move(function));
  else
    return ValueAndGrad<S, kWith...>(std::move(function));
}
}  // namespace detail

// A function of the same arguments as f that returns what f returns, and the gradient of its first tensor,
// which must be a float scalar: with respect to the first argument, or to those whose numbers are given. The
// gradient of one argument has its type (tree.h): of a struct of parameters it is such a struct, of tensors
// of the parameters' shapes and types; numbers in it are the argument's own. Of several arguments it is a
// tuple.
//
//   const auto step = value_and_grad([&](const Layer& layer, const Tensor& x) { return loss(layer, x); });
//   const auto [value, gradient] = step(layer, x);           // gradient.weight, gradient.bias
//   const auto [both, slopes] = value_and_grad<0, 1>(f)(x, y);  // std::get<1>(slopes) is y's
//
// It may be called at once or inside compile(), and inside another value_and_grad: tensors that f captures
// are constants for its own derivative, and not for the enclosing function's. f is recorded as a whole, so a
// host read of its values (item, to_vector) is an Error: return them beside the scalar. An Error as well: a
// tensor of integers among those that a gradient is asked of, and a first result that is no float scalar.
template <std::size_t... kWith, class F>
auto value_and_grad(F f, const Location& made = Location::current()) {
  return detail::differentiated<kWith...>(std::move(f), "value_and_grad", made);
}

// A name with overloads, or a template's, is refused by a sentence.
template <class Nothing = void, class F = typename detail::RefusedName<Nothing>::Type>
  requires std::same_as<F, detail::SeveralFunctions>
void value_and_grad(F f, const Location& made = Location::current());
template <class Nothing = void, class F = typename detail::RefusedName<Nothing>::Type>
  requires std::same_as<F, detail::SeveralFunctions>
void grad(F f, const Location& made = Location::current());

// The same of a function of Tensors, or of one list of them, with respect to those that `wrt` numbers; the
// gradients are a list. The call throws Error on a number that is no argument's.
template <class F>
auto value_and_grad(F f, std::vector<int> wrt, const Location& made = Location::current()) {
  using S = typename detail::SignatureOf<F>::Type;
  static_assert(detail::check_signature(std::type_identity<S>()));
  return ValueAndGradOf<S>(
      {detail::as_leaves_function(std::type_identity<S>(), std::move(f), "value_and_grad", made)},
      std::move(wrt));
}

// What grad() gives: a function of the same arguments.
template <class Both>
class Grad;
template <class R, class... A, std::size_t... kWith>
class Grad<ValueAndGrad<R(A...), kWith...>> {
  static_assert(std::is_same_v<R, Tensor>,
                "grad(): the function has other results beside its value: value_and_grad() gives them");
  using Both = ValueAndGrad<R(A...), kWith...>;

 public:
  using Gradient = typename Both::Gradient;
  using Signature = Gradient(A...);
  explicit Grad(Both both) : both_(std::move(both)) {}
  // The gradient of the function's value. Throws Error as value_and_grad() says.
  Gradient operator()(const A&... arguments, const Location& where = Location::current()) const {
    return both_(arguments..., where).second;
  }

 private:
  Both both_;
};

// value_and_grad() of a function that returns its value alone, without the value.
template <std::size_t... kWith, class F>
auto grad(F f, const Location& made = Location::current()) {
  auto both = detail::differentiated<kWith...>(std::move(f), "grad", made);
  return Grad<decltype(both)>(std::move(both));
}

}  // namespace tilewright
#pragma GCC visibility pop
