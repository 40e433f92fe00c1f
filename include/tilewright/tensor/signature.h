// What a function of the user's takes and gives: found from its type, or from what it can be called with.
#pragma once

#include <tilewright/base/any_function.h>
#include <tilewright/tensor/tree.h>

#pragma GCC visibility push(default)
namespace tilewright::detail {

template <class R, class... A>
struct Plain {
  using Type = std::remove_cvref_t<R>(std::remove_cvref_t<A>...);
};

// What a call operator takes and gives, from the type of the pointer to it.
template <class Pointer>
struct CallOperator;
template <class C, class R, class... A>
struct CallOperator<R (C::*)(A...)> : Plain<R, A...> {};
template <class C, class R, class... A>
struct CallOperator<R (C::*)(A...) const> : Plain<R, A...> {};
template <class C, class R, class... A>
struct CallOperator<R (C::*)(A...) noexcept> : Plain<R, A...> {};
template <class C, class R, class... A>
struct CallOperator<R (C::*)(A...) const noexcept> : Plain<R, A...> {};

template <class F>
concept NamesSignature = requires { typename F::Signature; };  // Compiled, and what value_and_grad() gives
template <class F>
concept HasOneCallOperator = requires { &F::operator(); };

// How many Tensors a function with parameters of any type (`auto`) takes; kNoArity where it is not one
// number.
inline constexpr std::size_t kNoArity = static_cast<std::size_t>(-1), kMostParameters = 16;
template <class F, class... T>
constexpr std::size_t generic_arity() {
  if constexpr (sizeof...(T) == 0)
    return generic_arity<F, const Tensor&>();
  else if constexpr (std::is_invocable_v<const F&, T...>)
    return std::is_invocable_v<const F&, T..., const Tensor&> ? kNoArity : sizeof...(T);
  else if constexpr (sizeof...(T) < kMostParameters)
    return generic_arity<F, T..., const Tensor&>();
  else
    return kNoArity;
}
template <std::size_t>
struct OneOf {
  using Type = Tensor;
};
template <class F, std::size_t... I>
auto generic_signature(std::index_sequence<I...>) -> std::type_identity<std::remove_cvref_t<
    std::invoke_result_t<const F&, const typename OneOf<I>::Type&...>>(typename OneOf<I>::Type...)> {
  return {};
}

template <class F>
constexpr auto signature_of_generic() {
  static_assert(
      generic_arity<F>() != kNoArity,
      "compile() and value_and_grad() cannot tell what this function takes: it is no function of Tensors, or "
      "takes any number of them. Say it: compile<Tensor(Tensor, Tensor)>(f)");
  if constexpr (generic_arity<F>() != kNoArity)
    return generic_signature<F>(std::make_index_sequence<generic_arity<F>()>());
  else
    return std::type_identity<Tensor(Tensor)>();
}

template <class F>
struct SignatureOf {
  using Type = typename decltype(signature_of_generic<F>())::type;
};
template <NamesSignature F>
struct SignatureOf<F> {
  using Type = typename F::Signature;
};
template <class F>
  requires(HasOneCallOperator<F> && !NamesSignature<F>)
struct SignatureOf<F> : CallOperator<decltype(&F::operator())> {};
template <class R, class... A>
struct SignatureOf<R (*)(A...)> : Plain<R, A...> {};
template <class R, class... A>
struct SignatureOf<R (*)(A...) noexcept> : Plain<R, A...> {};
// The library's own functions take the user's line last: compile(tilewright::exp).
template <class R, class A>
struct SignatureOf<R (*)(A, const Location&)> : Plain<R, A> {};
template <class R, class A, class B>
struct SignatureOf<R (*)(A, B, const Location&)> : Plain<R, A, B> {};
// A member function takes its object first.
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...) const> : Plain<R, C, A...> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...) const noexcept> : Plain<R, C, A...> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...)> : Plain<R, C, A...> {};  // refused: it must be const

// Stands for the type of a function where a name says several, of which a template can deduce none.
struct SeveralFunctions;
// Says so in a sentence, by what takes SeveralFunctions: a parameter that nobody gives makes it wait for a
// call.
template <class Nothing>
constexpr bool kIsOneFunction = false;
template <class Nothing>
struct RefusedName {
  static_assert(
      kIsOneFunction<Nothing>,
      "the name says several functions (it is overloaded, or a template): call the one that is meant "
      "in a lambda, compile([](const Tensor& x) { return sum(x); })");
  using Type = SeveralFunctions;
};

[[noreturn]] void throw_empty_function(const char* of, const Location& where);

// A function of a list of tensors.
using ListFunction = AnyFunction<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Whether a function takes the user's line behind these arguments.
template <class F, class... A>
constexpr bool takes_line() {
  if constexpr (NamesSignature<F> || std::is_pointer_v<F>)
    return std::is_invocable_v<const F&, const A&..., const Location&>;
  else
    return false;
}

// The result of a call whose arguments are made in their order: between braces they are, between parentheses
// not.
template <class R>
struct Called {
  R result;
  // `made`: the line on which f became what is called, for the errors of functions that would tell their own.
  template <class F, class... A>
  Called(const Location& made, const F& f, const A&... args)
      : result([&]() -> R {
          if constexpr (takes_line<F, A...>())
            return f(args..., made);
          else
            return invoke(f, args...);
        }()) {}
};

// A function of trees as one of their leaves.
using LeavesFunction = AnyFunction<Leaves(const Leaves&)>;

// What errors call each tensor of a function's arguments: "argument 2, .layers[3].w". Null: they are
// arguments themselves, "argument 2".
using ArgumentNames = std::vector<std::string> (*)(const Leaves&);
// The paths of an argument's tensors, those from the `first` on, as errors say them.
void name_argument(Paths& paths, std::size_t argument, std::size_t first);
template <class R, class... A>
constexpr ArgumentNames names_of_arguments(std::type_identity<R(A...)>) {
  if constexpr ((std::is_same_v<A, Tensor> && ...) ||
                std::is_same_v<std::tuple<A...>, std::tuple<std::vector<Tensor>>>)
    return nullptr;
  else
    return [](const Leaves& leaves) {
      LeavesReader from{leaves.tensors, leaves.structure};
      Paths paths;
      Leaves again{{}, {}, &paths};
      std::size_t argument = 0, first = 0;
      ((Tree<A>::write(Tree<A>::read(from), again), name_argument(paths, argument++, first),
        first = paths.tensors.size()),
       ...);
      return paths.tensors;
    };
}

// Says in a sentence what the library cannot use of a function.
template <class R, class... A>
constexpr bool check_signature(std::type_identity<R(A...)>) {
  static_assert(!std::is_void_v<R>,
                "the function must return what it computes: a Tensor or a tree of Tensors (tree.h)");
  static_assert(std::is_void_v<R> || IsTree<R>,
                "the function's result is no tree of Tensors: a struct needs TILEWRIGHT_FIELDS(…) (tree.h)");
  static_assert(
      (IsTree<A> && ...),
      "a parameter of the function is no tree of Tensors: let a lambda of the Tensors call it, or give a "
      "struct its TILEWRIGHT_FIELDS(…) (tree.h)");
  static_assert(!((std::is_arithmetic_v<A> || std::is_enum_v<A>) && ...),
                "the function takes no Tensor: one among its arguments says where it runs");
  return true;
}

// `of` is what the user called with it.
template <class R, class... A, class F>
LeavesFunction as_leaves_function(std::type_identity<R(A...)>, F f, const char* of, const Location& where) {
  static_assert(std::is_invocable_v<const F&, const A&...> || takes_line<F, A...>(),
                "the function must be const, and take its parameters by value or by reference to const");
  static_assert(std::is_copy_constructible_v<F>,
                "the function must be copyable: let it hold what cannot be copied by a std::shared_ptr");
  if (is_empty(f)) throw_empty_function(of, where);
  return [f = std::move(f), where](const Leaves& leaves) {
    LeavesReader from{leaves.tensors, leaves.structure};
    return leaves_of<R>(Called<R>{where, f, Tree<A>::read(from)...}.result);
  };
}

}  // namespace tilewright::detail
#pragma GCC visibility pop
