// What an exception of another library says, without the tags that only its authors can use.
#pragma once

#include <exception>
#include <string>

namespace tilewright {

// "[json.exception.parse_error.101] parse error at line 1, …" without the part in brackets.
inline std::string plain_message(const std::exception& error) {
  const std::string text = error.what();
  const auto end = text.find("] ");
  return text.starts_with("[") && end != std::string::npos ? text.substr(end + 2) : text;
}

}  // namespace tilewright
