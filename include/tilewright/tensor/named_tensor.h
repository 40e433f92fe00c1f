// Tensors by name, as trees and files hold them.
#pragma once

#include <tilewright/base/list.h>
#include <tilewright/tensor/tensor.h>

#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
using NamedTensors = List<NamedTensor>;

// The tensor of this name; throws Error where there is none.
const Tensor& at(const NamedTensors& tensors, const std::string& name,
                 const Location& where = Location::current());
Tensor at(NamedTensors&& tensors, const std::string& name, const Location& where = Location::current());

}  // namespace tilewright
#pragma GCC visibility pop
