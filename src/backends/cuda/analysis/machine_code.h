// What can be seen of a kernel in its machine code alone.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::cuda {

// What touches global memory before a kernel for sm_90 or later waits for the one before it
// (griddepcontrol.wait), and where; empty when nothing does. Such a kernel may start only when the one before
// has ended: compilers move loads of what nobody else writes ahead of the wait (2 loads of 1 kernel in 812,
// NVRTC 13.0). A text of PTX, and code whose instructions are not those of sm_90, wait for nothing that is
// seen here.
std::string access_before_wait(std::string_view cubin);

}  // namespace tilewright::cuda
