// Kernels that differ in numbers: one kernel for both, with parameters in their place.
#pragma once

#include <tilewright/tile/kernel.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::passes {

// Thrown by both functions: the kernels differ in more than numbers.
struct Differs {
  std::string what;
};

struct GeneralKernel {
  tile::Kernel kernel;
  std::vector<std::int64_t> arguments;  // that make it the first kernel, behind those which that had
};

// `first` with scalar parameters where `second` has another number. Scalar constants of i64, f32 and f64,
// extents, strides and grids may differ.
GeneralKernel general_kernel(const tile::Kernel& first, const tile::Kernel& second);

// The arguments that make a general kernel this one, behind those which this one has.
std::vector<std::int64_t> arguments_of(const tile::Kernel& general, const tile::Kernel& kernel);

}  // namespace tilewright::passes
