// find_non_finite(): which operation of a function made the first NaN or infinity of its results.
#pragma once

#include <tilewright/passes/graph/precision.h>
#include <tilewright/tensor/functions.h>
#include <tilewright/tensor/signature.h>

#include <optional>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright {

// Numbers of one value of a program.
struct ValueRange {
  std::string what;            // "f32[12,64] of exp", "f32[65,128], argument 0, .wte.weight"
  double least = 0, most = 0;  // of those that are finite; 0 where none is
  Index elements = 0, nans = 0, infinities = 0;
};

struct NonFinite {
  std::string operation;  // "exp"; of an argument "argument 0, .wte.weight": it came in with it
  std::string location;   // "model.cpp:41", the line of the operation; empty for an argument
  ValueRange value;
  std::vector<ValueRange> operands;
};
// In a sentence: "exp (model.cpp:41) made an infinity in 3 of 768 elements of f32[12,64]; its operand …".
std::string to_string(const NonFinite& found);

namespace detail {
// A function that is looked into, as it is compiled.
struct CheckedFunction {
  LeavesFunction f;
  Precision precision = Precision::f32;
};
std::optional<NonFinite> find_non_finite(const CheckedFunction& function, const Leaves& arguments,
                                         const ArgumentNames& names, const Location& where);
}  // namespace detail

// What find_non_finite() gives: a function of the same arguments.
template <class Function>
class NonFiniteFinder;
template <class R, class... A>
class NonFiniteFinder<R(A...)> {
 public:
  using Signature = R(A...);
  explicit NonFiniteFinder(detail::CheckedFunction f) : f_(std::move(f)) {}
  // The first operation that made a result NaN or infinite; nothing where all results are finite. Throws
  // Error as find_non_finite() says.
  std::optional<NonFinite> operator()(const A&... args, const Location& where = Location::current()) const {
    detail::Leaves leaves;
    (detail::Tree<A>::write(args, leaves), ...);
    return detail::find_non_finite(f_, leaves, detail::names_of_arguments(std::type_identity<R(A...)>()),
                                   where);
  }

 private:
  detail::CheckedFunction f_;
};

// A function of the same arguments as f that looks into all values on f's way: op by op on the host, each in
// float64, rounded to its own type. Of the operations from which a NaN or an infinity came into a result it
// tells the first: one whose value has a NaN, or an infinity, and whose operands have none. What does not
// reach a result (masked scores) does not count, and an infinity that the function wrote down as a number is
// meant. A compiled function computes narrow floats wider inside its kernels, and may be finite where this
// finds one. `precision`: CompileOptions::precision of the function that is to be understood, whose products
// are rounded so here. It takes long: a second for some billion multiply-adds. Throws Error as compile() and
// its functions do, and for a host read inside.
//
//   if (const auto found = find_non_finite(step)(model, batch)) fmt::print("{}", to_string(*found));
template <class F>
auto find_non_finite(F f, Precision precision = Precision::f32, const Location& made = Location::current()) {
  using S = typename detail::SignatureOf<F>::Type;
  static_assert(detail::check_signature(std::type_identity<S>()));
  return NonFiniteFinder<S>(detail::CheckedFunction{
      detail::as_leaves_function(std::type_identity<S>(), std::move(f), "find_non_finite", made), precision});
}

}  // namespace tilewright
#pragma GCC visibility pop
