// Text as a word of a POSIX shell.
#pragma once

#include <string>

namespace tilewright::tw {

// The text in single quotes, where it stands for itself.
inline std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace tilewright::tw
