// The device headers under device/, embedded: what generated kernels #include as "tw_cuda/math.cuh" and so
// on.
#pragma once

#include <span>
#include <string_view>

namespace tilewright::cuda {

struct DeviceHeader {
  const char* name;       // "tw_cuda/math.cuh"
  std::string_view text;  // ends with a NUL that is not counted
};
std::span<const DeviceHeader> device_headers();

}  // namespace tilewright::cuda
