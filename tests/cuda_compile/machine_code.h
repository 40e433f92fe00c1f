// What can be seen of a kernel in its machine code alone.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::test {

// What touches global memory before a kernel for sm_90 waits for the one before it (griddepcontrol.wait), and
// where; empty when nothing does. Loads of what nobody writes meanwhile need no order:
// that compilers keep them behind the wait is their custom and not their promise.
std::string access_before_wait(std::string_view cubin);

}  // namespace tilewright::test
