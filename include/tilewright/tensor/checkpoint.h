// checkpoint(): a function whose intermediate values gradients compute again, for less memory.
#pragma once

#include <tilewright/tensor/signature.h>

#pragma GCC visibility push(default)
namespace tilewright {

namespace detail {

// A function that is to be checkpointed.
struct Recomputable {
  LeavesFunction f;
};
// What the function gives, its values marked as those that gradients make again.
Leaves checkpointed(const Recomputable& function, const Leaves& arguments, const Location& where);

}  // namespace detail

// What checkpoint() gives: a function of the same arguments.
template <class Function>
class Checkpointed;
template <class R, class... A>
class Checkpointed<R(A...)> {
 public:
  using Signature = R(A...);
  explicit Checkpointed(detail::Recomputable f) : f_(std::move(f)) {}
  // What the function returns. Throws Error as the function does.
  R operator()(const A&... arguments, const Location& where = Location::current()) const {
    detail::Leaves leaves;
    (detail::Tree<A>::write(arguments, leaves), ...);
    return detail::read_tree<R>(detail::checkpointed(f_, leaves, where));
  }

 private:
  detail::Recomputable f_;
};

// A function of the same arguments, of any shapes and types, that returns what f returns. Inside
// value_and_grad() and grad() what f computes of its arguments is not kept from the way forward to the way
// back, but made again there, all of it in front of the first kernel that reads some of it: f's arguments and
// results are kept, and what f computes of captured tensors alone. The gradients are those without it;
// kernels end where f does, so that sums may be added up in another order. Where a layer is checkpointed each
// time it is called, the values of one layer are there at a time:
//
//   const auto layer = checkpoint([&](const Block& block, const Tensor& x) { return apply(block, x); });
//   for (const Block& block : model.blocks) x = layer(block, x);
//
// It is what CompileOptions::memory_budget does with launches that it chooses itself: the launches are
// repeated, and explain() says how many and what they are predicted to take. No kernel computes values of f
// together with others. Outside of gradients, and inside of another checkpointed function, f is called as it
// is. Kernels serve no other sizes (CompileOptions::dynamic). Throws Error as f does.
template <class F>
auto checkpoint(F f, const Location& made = Location::current()) {
  using S = typename detail::SignatureOf<F>::Type;
  static_assert(detail::check_signature(std::type_identity<S>()));
  return Checkpointed<S>(detail::Recomputable{
      detail::as_leaves_function(std::type_identity<S>(), std::move(f), "checkpoint", made)});
}

}  // namespace tilewright
#pragma GCC visibility pop
