// The headers that generated kernels include ("tw_cpu/exp.h"), as texts inside the library.
#pragma once

#include <span>
#include <string_view>

namespace tilewright::cpu {

struct DeviceHeader {
  std::string_view name, text;
};

// The headers in the order of their names. compile_cpp offers all of them to every source; a text costs time
// only where included.
std::span<const DeviceHeader> device_headers();

}  // namespace tilewright::cpu
