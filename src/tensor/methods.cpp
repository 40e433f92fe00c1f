// Tensor's methods that are functions: each calls the one of its name.
#include "tensor/state.h"

#include <tilewright/tensor/composites.h>

#include <fmt/format.h>

namespace tilewright {

#define TW_FUNCTION(f) \
  Tensor Tensor::f(const Location& where) const { return tilewright::f(*this, where); }
#define TW_COMPOSITE_OF(f, parameter, usual, ...)                   \
  Tensor Tensor::f(double parameter, const Location& where) const { \
    return tilewright::f(*this, parameter, where);                  \
  }
#include <tilewright/ops/unary.def>

#define TW_REDUCTION(f)                                                        \
  Tensor Tensor::f(const Axes& axes, Keep keep, const Location& where) const { \
    return tilewright::f(*this, axes, keep, where);                            \
  }
#include <tilewright/tensor/reductions.def>

Tensor Tensor::var(const Axes& axes, Index ddof, Keep keep, const Location& where) const {
  return tilewright::var(*this, axes, ddof, keep, where);
}
Tensor Tensor::std(const Axes& axes, Index ddof, Keep keep, const Location& where) const {
  return tilewright::std(*this, axes, ddof, keep, where);
}
Tensor Tensor::norm(const Axes& axes, Keep keep, const Location& where) const {
  return tilewright::norm(*this, axes, keep, where);
}
Tensor Tensor::argmax(Index axis, Keep keep, const Location& where) const {
  return tilewright::argmax(*this, axis, keep, where);
}
Tensor Tensor::argmin(Index axis, Keep keep, const Location& where) const {
  return tilewright::argmin(*this, axis, keep, where);
}
#define TW_SCAN(f) \
  Tensor Tensor::f(Index axis, const Location& where) const { return tilewright::f(*this, axis, where); }
#include <tilewright/tensor/scans.def>

Tensor Tensor::sort(Index axis, Order order, const Location& where) const {
  return tilewright::sort(*this, axis, order, where);
}
Tensor Tensor::argsort(Index axis, Order order, const Location& where) const {
  return tilewright::argsort(*this, axis, order, where);
}
std::pair<Tensor, Tensor> Tensor::topk(Index k, Index axis, const Location& where) const {
  return tilewright::topk(*this, k, axis, where);
}
Tensor Tensor::softmax(Index axis, const Location& where) const {
  return tilewright::softmax(*this, axis, where);
}
Tensor Tensor::log_softmax(Index axis, const Location& where) const {
  return tilewright::log_softmax(*this, axis, where);
}
Tensor Tensor::clamp(double low, double high, const Location& where) const {
  return tilewright::clamp(*this, low, high, where);
}
Tensor Tensor::pow(const Arg& exponent, const Location& where) const {
  return tilewright::pow(*this, exponent, where);
}
Tensor Tensor::matmul(const Tensor& b, const Location& where) const {
  return tilewright::matmul(*this, b, where);
}
Tensor Tensor::to(DType dtype, const Location& where) const { return cast(*this, dtype, where); }
Tensor Tensor::reshape(const Shape& shape, const Location& where) const {
  return tilewright::reshape(*this, shape, where);
}
Tensor Tensor::flatten(Index first, Index last, const Location& where) const {
  return tilewright::flatten(*this, first, last, where);
}
Tensor Tensor::transpose(const std::vector<Index>& perm, const Location& where) const {
  return tilewright::transpose(*this, perm, where);
}
Tensor Tensor::T(const Location& where) const {
  check_defined("T", where);
  if (const Shape& shape = detail::shape_of(*this); shape.rank() != 2)
    throw Error(fmt::format("T: {} is no matrix: mT() exchanges the last two axes, transpose(x, perm) any",
                            to_string(shape)),
                where);
  return detail::alias("T", [&] { return tilewright::transpose(*this, {1, 0}, where); });
}
Tensor Tensor::mT(const Location& where) const { return tilewright::swap_axes(*this, -2, -1, where); }
Tensor Tensor::swap_axes(Index a, Index b, const Location& where) const {
  return tilewright::swap_axes(*this, a, b, where);
}
Tensor Tensor::broadcast_to(const Shape& shape, const Location& where) const {
  return tilewright::broadcast_to(*this, shape, where);
}
Tensor Tensor::unsqueeze(Index axis, const Location& where) const {
  return tilewright::unsqueeze(*this, axis, where);
}
Tensor Tensor::squeeze(Index axis, const Location& where) const {
  return tilewright::squeeze(*this, axis, where);
}

}  // namespace tilewright
