// A whole file as text.
#pragma once

#include <tilewright/base/error.h>

#include <string>

namespace tilewright {

// Also of a pipe or a device, up to its end. A Failure, not_found or io, says the path and why it cannot be
// read: that it is a folder, for one.
Result<std::string> read_file(const std::string& path);

}  // namespace tilewright
