// TileFunction: a tile kernel written by hand, run on tensors like any other function.
#pragma once

#include <tilewright/tensor/tensor.h>
#include <tilewright/tile/kernel.h>
#include <tilewright/tile/schedule.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

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
TileArg out(const Shape& shape, DType dtype = DType::f32);
TileArg into(Tensor tensor);  // overwrites its elements; other handles of the same tensor see it

class TileFunction {
 public:
  explicit TileFunction(tile::Kernel kernel);
  ~TileFunction();
  TileFunction(TileFunction&&) noexcept;

  // One argument for each view and scalar of the kernel, in their order (f32 and f64 scalars as their
  // values). Returns the tensors made by out(), in view order. Inside compile() the call is a graph break;
  // its results carry no gradient. Throws Error when a count or type differs, when a view reaches outside its
  // tensor, and in value_and_grad() on tensors that are differentiated.
  std::vector<Tensor> operator()(const std::vector<TileArg>& views, const std::vector<double>& scalars = {},
                                 const Location& where = Location::current()) const;
  void use(const tile::Schedule& schedule);  // instead of the device's own choice

  const tile::Kernel& kernel() const;
  std::string source(
      const Tensor& on) const;  // the text that was (or would be) compiled for that tensor's device

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright
