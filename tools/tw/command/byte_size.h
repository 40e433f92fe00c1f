// Sizes in bytes, as users write them.
#pragma once

#include <string>

namespace tilewright::tw {

// "2GiB", "64 MiB", "4096". Throws Error for other texts.
double bytes_of_text(const std::string& text);

}  // namespace tilewright::tw
