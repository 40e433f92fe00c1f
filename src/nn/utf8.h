// Text as UTF-8, whatever bytes it comes as.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::nn {

// The text itself where it is well-formed UTF-8; else a copy, kept in `storage`, with U+FFFD for each maximal
// part of a character (Unicode 15, section 3.9, "U+FFFD Substitution of Maximal Subparts").
std::string_view well_formed(std::string_view text, std::string& storage);

}  // namespace tilewright::nn
