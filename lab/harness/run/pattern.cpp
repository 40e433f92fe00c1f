// Matching by recursion at each `*`: patterns are a few words typed by a user.
#include "harness/run/pattern.h"

namespace tilewright::lab {

bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() != '*') {
    return !text.empty() && pattern.front() == text.front() && matches(pattern.substr(1), text.substr(1));
  }
  return matches(pattern.substr(1), text) || (!text.empty() && matches(pattern, text.substr(1)));
}

}  // namespace tilewright::lab
