// Sizes in bytes, as users write them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tilewright::tw {

// What --help says of a size.
inline constexpr const char* kSizeForms = "64MiB, 2GiB (of 1024), 40MB, 2GB (of 1000) or bytes";
// "2GiB", "64 MiB", "40MB", "4096": KiB, MiB, GiB and TiB count by 1024, kB, MB, GB and TB by 1000. Throws
// Error for other texts, and for sizes beyond 63 bits.
std::int64_t bytes_of_text(const std::string& text);

// Runs what compiles within `--memory text`. Throws Error in the option's name where no plan fits, with the
// size that would do and `advice`: "as much, or cut its batch by --accumulate N".
void within_memory_option(const std::string& text, const std::string& advice,
                          const std::function<void()>& run);

}  // namespace tilewright::tw
