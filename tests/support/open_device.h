// The devices that test programs may name: the library's, and the GPU emulated on the host.
#pragma once

#include "runtime/device.h"

#include <memory>
#include <string>

namespace tilewright::test {

// "cpu", "cuda:0", "reference"; or "emulated:sm_90a", "emulated:sm_80": the CUDA backend whose kernels run on
// the host (tests/cuda_emulation/), from the folder `emulated` beside the program. Throws Error.
std::shared_ptr<runtime::Device> open_device(const std::string& name, const std::string& isa = "");

// How many kernels more than on machines with AVX-512 a program with products may have on this CPU: where
// products take longer beside memory, small values are stored between them instead.
std::size_t kernels_more_on_this_cpu();

}  // namespace tilewright::test
