// Small helpers for writing C++ text: indentation, literals, type names.
#pragma once

#include "backends/cuda/print/kernel_names.h"

#include <tilewright/base/dtype.h>
#include <tilewright/base/shape.h>
#include <tilewright/tile/kernel.h>

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::cuda {

class Text {
 public:
  Text(int indent, KernelNames& names) : indent_(indent), names_(&names) {}
  Text another(int indent) const { return Text(indent, *names_); }
  // A name for what is declared here: others may have it behind the end of the block that is open.
  std::string local(std::string_view wish) {
    std::string name = names_->unique(wish);
    if (!blocks_.empty()) blocks_.back().names.push_back(name);
    return name;
  }
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
    open("for (int {0} = {1}; {0} < {2}; ++{0})", variable, first, end);
  }
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    const std::size_t head = begin_of_head();
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    write(text + " {");
    begin_block(does_nothing(text) ? head : kKept);
  }
  void open_block() {
    write("{");
    begin_block();
  }
  // A loop or a condition with nothing in it is taken back.
  void close() {
    const Block block = blocks_.back();
    if (block.head == kKept || block.body != out_.size()) return close_with("}");
    end_block();
    out_.resize(block.head);
  }
  void close_with(const std::string& text) {
    end_block();
    write(text);
  }
  void close_else() {
    end_block();
    write("} else {");
    begin_block();
  }
  void blank() {
    if (!out_.empty() && out_.back() == '\n' && !(out_.size() > 1 && out_[out_.size() - 2] == '\n'))
      out_ += '\n';
  }
  void append(const Text& other) { out_ += other.out_; }
  int indent() const { return indent_; }
  const std::string& str() const { return out_; }

 private:
  static constexpr std::size_t kKept = std::string::npos;
  struct Block {
    std::vector<std::string> names;  // that end with it
    std::size_t head = kKept;        // where the text of what opens it begins, if that may be taken back
    std::size_t body = 0;            // where its own text begins
  };
  // Whether a head only counts or asks: nothing is called or written in it but the counter.
  static bool does_nothing(std::string_view head);
  // With the pragma that the loop has.
  std::size_t begin_of_head() const;

  void begin_block(std::size_t head = kKept) {
    ++indent_;
    blocks_.push_back({{}, head, out_.size()});
  }
  void end_block() {
    --indent_;
    for (const std::string& name : blocks_.back().names) names_->release(name);
    blocks_.pop_back();
  }

  int indent_;
  KernelNames* names_;
  std::vector<Block> blocks_;  // that are open
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
// "(text)" unless it is a single name, number, call or subscript.
std::string wrapped(const std::string& text);
// How tightly the outermost operator of an expression binds, which stands between spaces: 0 for a ? b : c, 9
// for what is a whole.
int binding(const std::string& text);
// "(text)" where it binds less than that.
std::string wrapped_below(const std::string& text, int least);

}  // namespace tilewright::cuda
