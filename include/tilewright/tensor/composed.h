// What functions are written with that are written in others (composites.h, and a user's own): composed()
// makes one operation of what a body does, alias() gives a function another name.
#pragma once

#include <tilewright/tensor/functions.h>

#include <string_view>

#pragma GCC visibility push(default)
namespace tilewright {

namespace detail {
// Refers to a function that makes a tensor of tensors, and that outlives the reference.
class Body {
 public:
  template <class F>
  Body(const F& function)
      : function_(&function), call_([](const void* f, const std::vector<Tensor>& operands) {
          return (*static_cast<const F*>(f))(operands);
        }) {}
  Tensor operator()(const std::vector<Tensor>& operands) const { return call_(function_, operands); }

 private:
  const void* function_;
  Tensor (*call_)(const void*, const std::vector<Tensor>&);
};

// What `body` makes of stand-ins for the operands, as one operation called `name` that stands at `where`. The
// body uses the tensors it is given and no others, reads none of their elements, and may run several times.
// Numbers that it is written with are constants of the program: another number compiles anew.
Tensor composed(const char* name, const std::vector<Tensor>& operands, const Location& where,
                const Body& body);

// Throws an Error of a part of `name` (an op of a composite, the memory of its result) as one of `name`: in
// the place of the part's name, "max: axis 5 ..", stands that of the function the user called. To be called
// where `error` was caught.
[[noreturn]] void rename_error(std::string_view name, const Error& error);

// What `call` gives, a function that has another name: its errors begin with `name`.
template <class Call>
Tensor alias(const char* name, const Call& call) {
  try {
    return call();
  } catch (const Error& e) {
    rename_error(name, e);
  }
}

// The type that statistics of x are computed in: f64 for f64 and i64, else f32; and what they are given in:
// x's own, f32 for integers.
inline DType wide_type(const Tensor& x) {
  return x.dtype() == DType::f64 || x.dtype() == DType::i64 ? DType::f64 : DType::f32;
}
inline DType statistic_type(const Tensor& x) { return is_float(x.dtype()) ? x.dtype() : DType::f32; }

// sqrt(x) with the gradient 0 at 0, where that of sqrt() is infinite.
inline Tensor root(const Tensor& x) {
  const Tensor is_zero = x == 0.0;
  return where(is_zero, 0.0, sqrt(where(is_zero, 1.0, x)));
}
}  // namespace detail

}  // namespace tilewright
#pragma GCC visibility pop
