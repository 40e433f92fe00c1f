// What an exception says in the words of those who use the product, without what only its authors can use.
#pragma once

#include <exception>
#include <string>

namespace tilewright {

// The text of a foreign exception: "[json.exception.type_error.302] type must be …" without the part in
// brackets; of text that is no JSON only where it stops being JSON, without the parser's state.
inline std::string plain_message(const std::exception& error) {
  std::string text = error.what();
  const auto tag = text.find("] ");
  if (text.starts_with("[") && tag != std::string::npos) text = text.substr(tag + 2);
  const std::string syntax = "parse error at ";
  const auto colon = text.find(": ");
  if (!text.starts_with(syntax) || colon == std::string::npos) return text;
  const std::string place = text.substr(syntax.size(), colon - syntax.size());
  if (text.find("unexpected end of input") == std::string::npos) return "it is no JSON from " + place + " on";
  return place == "line 1, column 1" ? "it is empty" : "its JSON ends too early, at " + place;
}

// An Error's text without the " (at file.cpp:41)" at its end, where that is a line of our own.
inline std::string without_place(const std::exception& error) {
  const std::string text = error.what();
  const auto at = text.rfind(" (at ");
  const bool last =
      at != std::string::npos && text.ends_with(")") && text.find(' ', at + 5) == std::string::npos;
  return last ? text.substr(0, at) : text;
}

}  // namespace tilewright
