// AnyFunction: a function given as a value, as std::function is. <functional> brings hash tables and
// algorithms with it, a tenth of what a user's source takes to compile.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)
namespace tilewright {

template <class Signature>
class AnyFunction;

namespace detail {

// Whether a type is made of a signature alone, as std::function and AnyFunction are.
template <class F>
constexpr bool kIsOfSignature = false;
template <template <class> class Holder, class R, class... A>
constexpr bool kIsOfSignature<Holder<R(A...)>> = true;

// Whether a callable has nothing to call: a null pointer, an empty std::function or AnyFunction.
template <class F>
bool is_empty(const F& f) {
  if constexpr (std::is_pointer_v<F> || std::is_member_pointer_v<F>)
    return f == nullptr;
  else if constexpr (kIsOfSignature<F> && requires { f.operator bool(); })
    return !f.operator bool();
  else
    return false;
}

// std::invoke() without <functional>: a pointer to a member takes its object first.
template <class F, class... A>
decltype(auto) invoke(F& f, A&&... args) {
  if constexpr (std::is_member_pointer_v<F>)
    return [&f](auto&& object, [[maybe_unused]] auto&&... rest) -> decltype(auto) {
      if constexpr (std::is_member_object_pointer_v<F>)
        return std::forward<decltype(object)>(object).*f;
      else
        return (std::forward<decltype(object)>(object).*f)(std::forward<decltype(rest)>(rest)...);
    }(std::forward<A>(args)...);
  else
    return f(std::forward<A>(args)...);
}

[[noreturn]] void throw_nothing_to_call();

}  // namespace detail

// Anything that can be called with A... and gives an R: a lambda, a function, an object with a call operator,
// a std::function. A copy has a copy of what it was made of. Made of a null pointer or an empty function, it
// is empty, and a call of it throws Error.
template <class R, class... A>
class AnyFunction<R(A...)> {
 public:
  // Empty.
  AnyFunction() = default;
  AnyFunction(std::nullptr_t) {}
  // Holds a copy of f, which is called as f(args...).
  template <class F>
    requires(!std::same_as<F, AnyFunction> && std::copy_constructible<F> &&
             std::is_invocable_r_v<R, F&, A...>)
  AnyFunction(F f) {
    if (detail::is_empty(f)) return;
    held_ = static_cast<void*>(new F(std::move(f)));
    of_ = &kOf<F>;
  }
  // Copies what is held, or takes it.
  AnyFunction(const AnyFunction& other)
      : held_(other.held_ ? other.of_->copy(other.held_) : nullptr), of_(other.of_) {}
  AnyFunction(AnyFunction&& other) noexcept : held_(std::exchange(other.held_, nullptr)), of_(other.of_) {}
  // Lets go of what was held.
  AnyFunction& operator=(AnyFunction other) noexcept {
    std::swap(held_, other.held_);
    std::swap(of_, other.of_);
    return *this;
  }
  ~AnyFunction() {
    if (held_) of_->destroy(held_);
  }

  // Whether there is something to call.
  explicit operator bool() const { return held_ != nullptr; }
  // What is held, called with these arguments. Throws Error where nothing is.
  R operator()(A... args) const {
    if (!held_) detail::throw_nothing_to_call();
    return of_->call(held_, std::forward<A>(args)...);
  }

 private:
  // What is done with a callable whose type is known where the AnyFunction is made.
  struct Actions {
    void* (*copy)(const void* f);
    void (*destroy)(void* f);
    R (*call)(void* f, A&&... args);
  };
  template <class F>
  static constexpr Actions kOf = {
      .copy = [](const void* f) -> void* { return static_cast<void*>(new F(*static_cast<const F*>(f))); },
      .destroy = [](void* f) { delete static_cast<F*>(f); },
      .call = [](void* f, A&&... args) -> R {
        if constexpr (std::is_void_v<R>)
          static_cast<void>(detail::invoke(*static_cast<F*>(f), std::forward<A>(args)...));
        else
          return detail::invoke(*static_cast<F*>(f), std::forward<A>(args)...);
      }};

  void* held_ = nullptr;
  const Actions* of_ = nullptr;
};

}  // namespace tilewright
#pragma GCC visibility pop
