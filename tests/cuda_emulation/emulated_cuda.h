// The CUDA backend's kernels on the host: the printed text and the real device headers, translated where they
// are CUDA's own (shared memory, PTX) and compiled by the CPU backend's compiler. Slow and faithful: every
// barrier, shuffle and cluster exchange happens. Machines without a GPU check the meaning of printed kernels
// with it.
#pragma once

#include "backends/backend.h"

namespace tilewright::emulation {

// Prints and lists candidates for `architecture` as the CUDA backend does; memory is the host's. A made-up
// cuBLASLt (fake_cublaslt.h) computes products on the host. Time is made up, too: a launch takes 400 us, a
// library's call 280, or 560 where the depth of the product is below 64.
Result<std::unique_ptr<backends::Backend>> open_emulated_cuda(const std::string& architecture);

// Device text as host C++: `asm("name …" : outputs : inputs)` becomes ptx_name(outputs, inputs), __shared__
// arrays become references into the emulated block's memory.
std::string translate(const std::string& text);

}  // namespace tilewright::emulation
