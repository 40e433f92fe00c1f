// The devices that test programs may name: the library's, and the GPU emulated on the host.
#pragma once

#include "runtime/device.h"

#include <memory>
#include <string>

namespace tilewright::test {

// "cpu", "cuda:0", "reference"; or "emulated:sm_90a", "emulated:sm_80": the CUDA backend whose kernels run on
// the host (tests/cuda_emulation/), from the folder `emulated` beside the program. Throws Error.
std::shared_ptr<runtime::Device> open_device(const std::string& name, const std::string& isa = "");

// Tests count a program's kernels on the CPU for machines with AVX-512: on narrower ones products take longer
// beside memory, and small values are stored between kernels instead.
bool has_avx512();

}  // namespace tilewright::test
