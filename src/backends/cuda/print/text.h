// Small helpers for writing C++ text: indentation, literals, type names.
#pragma once

#include <tilewright/base/dtype.h>
#include <tilewright/base/shape.h>
#include <tilewright/tile/kernel.h>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace tilewright::cuda {

class Text {
 public:
  explicit Text(int indent = 0) : indent_(indent) {}
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...));
  }
  void write(const std::string& text) {
    if (!text.empty() && text[0] != '#') out_.append(static_cast<std::size_t>(indent_) * 2, ' ');
    out_ += text;
    out_ += '\n';
  }
  // "#pragma unroll" and the head of a counted loop.
  void unrolled(std::string_view variable, Index count) { unrolled(variable, 0, count); }
  void unrolled(std::string_view variable, Index first, Index end) {
    write("#pragma unroll");
    line("for (int {0} = {1}; {0} < {2}; ++{0}) {{", variable, first, end);
    ++indent_;
  }
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...) + " {");
    ++indent_;
  }
  void close() { close_with("}"); }
  void close_with(const std::string& text) {
    --indent_;
    write(text);
  }
  void close_else() {
    --indent_;
    write("} else {");
    ++indent_;
  }
  void blank() {
    if (!out_.empty() && out_.back() == '\n' && !(out_.size() > 1 && out_[out_.size() - 2] == '\n'))
      out_ += '\n';
  }
  void indent_by(int levels) { indent_ += levels; }
  void append(const Text& other) { out_ += other.out_; }
  int indent() const { return indent_; }
  const std::string& str() const { return out_; }

 private:
  int indent_;
  std::string out_;
};

// The C++ type an element is stored as.
std::string element_type(DType dtype);
// The C++ type it is computed in: f32 for narrow floats.
std::string compute_type(DType dtype);
// A literal of the compute type.
std::string literal(DType dtype, const tile::Number& number);
// A literal of the stored type: narrow floats as their bits.
std::string stored_literal(DType dtype, const tile::Number& number);
std::string integer(Index value);
// A name that is valid C++: other characters become '_'.
std::string identifier(std::string_view name);
// Whether printed code uses the word itself: C++ keywords, and names of the device headers.
bool is_reserved(std::string_view name);
// "(text)" unless it is a single name, number, call or subscript.
std::string wrapped(const std::string& text);

}  // namespace tilewright::cuda
