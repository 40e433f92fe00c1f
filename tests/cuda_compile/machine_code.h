// What can be seen of a kernel in its machine code alone.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::test {

// Of a kernel for sm_90 that waits for the one before (griddepcontrol.wait): empty when nothing touches
// global memory before that, else what does, and where. Loads of what nobody writes meanwhile need no order:
// that compilers keep them behind the wait is their custom and not their promise.
std::string access_before_wait(std::string_view cubin);

}  // namespace tilewright::test
