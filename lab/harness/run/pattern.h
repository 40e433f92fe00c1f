// Patterns by which the user names pairs and rows: `softmax*`.
#pragma once

#include <string_view>

namespace tilewright::lab {

// `*` stands for any run of characters; the pattern covers the whole text.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace tilewright::lab
