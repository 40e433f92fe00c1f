// Code: C++ text as it is written, line by line with its indentation, and how types and literals are spelled.
#pragma once

#include <tilewright/tile/kernel.h>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cpu {

class Code {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    add(fmt::format(format, std::forward<Args>(args)...));
  }
  // "text {" … "}"
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    add(fmt::format(format, std::forward<Args>(args)...) + " {");
    ++depth_;
  }
  void indent() { ++depth_; }
  void close(std::string_view after = "}") {
    --depth_;
    add(std::string(after));
  }
  // "const type a = x, b = y;": a line for each where that is long.
  void declare(std::string_view type, const std::vector<std::string>& declarators);
  void add(const std::string& line);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

// Whether printed code uses the word itself: what the headers define, and the names of a kernel's parameters.
bool is_reserved(std::string_view name);

// Types of C++ for an element of `dtype`: in memory (bool: u8; narrow floats: their bits), as a scalar
// variable, as a vector.
std::string_view memory_type(DType dtype);
std::string_view scalar_type(DType dtype);
std::string_view vector_type(DType dtype);
int memory_bytes(DType dtype);

// A literal that reads as one would write it and has exactly the number's value.
std::string literal(DType dtype, const tile::Number& number);
// Whether it begins with a sign.
bool has_sign(DType dtype, const tile::Number& number);
std::string int_text(Index value);

}  // namespace tilewright::cpu
