// TileFunction: a tile kernel written by hand, run on tensors like any other function.
#pragma once

#include <tilewright/base/any_function.h>
#include <tilewright/tensor/tensor.h>
#include <tilewright/tile/kernel.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::tile {
struct Schedule;  // tile/schedule.h
}
namespace tilewright {

// What a view of the kernel stands for: a tensor that is read, a new tensor that is written, or one written
// in place.
struct TileArg {
  TileArg(Tensor read) : tensor(std::move(read)) {}
  Tensor tensor;
  Shape shape;  // of the new tensor
  DType dtype = DType::f32;
  bool written = false, is_new = false;

 private:
  friend TileArg out(const Shape& shape, DType dtype);
  friend TileArg into(Tensor tensor);
  TileArg() = default;
};
// A new tensor, for a view that is written.
TileArg out(const Shape& shape, DType dtype = DType::f32);
TileArg into(Tensor tensor);  // overwrites its elements; other handles of the same tensor see it

// A call of a kernel, and the gradients of what it made: what its own gradient is made of.
struct TileCall {
  std::vector<Tensor> read;       // that were given, in the order of their views
  std::vector<Tensor> made;       // by out(), in the order of their views
  std::vector<Tensor> gradients;  // of the value that is differentiated, by each of `made`, of the same type;
                                  // not defined for integers
  std::vector<double> scalars;
};
// The gradients by each of TileCall::read, of the same types; one that is not defined is 0.
using TileGradient = AnyFunction<std::vector<Tensor>(const TileCall&)>;

// A kernel as a function of tensors. It is compiled at its first call on a device of a Context, and kept.
class TileFunction {
 public:
  // Throws Error on a kernel that is none: one that was moved from, or changed and not well formed since.
  explicit TileFunction(tile::Kernel kernel, const Location& where = Location::current());
  ~TileFunction();
  TileFunction(TileFunction&&) noexcept;  // any use of the one that was moved from throws Error

  // One argument for each view and scalar of the kernel, in their order (f32 and f64 scalars as their
  // values; i64 ones must be whole). Returns the tensors made by out(), in view order. Inside compile() the
  // call is a graph break. Throws Error when a count or type differs, when a view reaches outside its tensor,
  // when no view is given a tensor, whose device it would run on, and in value_and_grad() on tensors that are
  // differentiated, where it has no gradient (set_gradient()).
  std::vector<Tensor> operator()(const std::vector<TileArg>& views, const std::vector<double>& scalars = {},
                                 const Location& where = Location::current()) const;
  // The same of a kernel that may have no tensor among its arguments: fill(ctx, {out({8})}) runs on the
  // Context's own device. Throws Error on tensors of another Context as well.
  std::vector<Tensor> operator()(const Context& context, const std::vector<TileArg>& views,
                                 const std::vector<double>& scalars = {},
                                 const Location& where = Location::current()) const;
  // Instead of the device's own choice.
  void use(const tile::Schedule& schedule, const Location& where = Location::current());
  // How it is differentiated from now on: value_and_grad() then runs the kernel as it records the function,
  // and calls `gradient` with what came of it, which may run other kernels. It is called without a lock, on
  // the thread that differentiates. What stands before the kernel is computed once more for each kernel of
  // the function. Throws Error where `gradient` is empty; the call throws it on into(), and where the
  // gradients are not as many, or not of the types of the tensors read; value_and_grad() inside another one
  // throws it: there is no second derivative.
  void set_gradient(TileGradient gradient, const Location& where = Location::current());

  // What it was made of.
  const tile::Kernel& kernel(const Location& where = Location::current()) const&;
  tile::Kernel kernel(const Location& where = Location::current()) &&;
  // The text that was (or would be) compiled for that tensor's device.
  std::string source(const Tensor& on, const Location& where = Location::current()) const;

 private:
  struct State;
  State& state(const Location& where) const;
  struct Call;
  std::vector<Tensor> run(const Call& call) const;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright
#pragma GCC visibility pop
