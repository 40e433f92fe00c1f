// Small helpers for writing C++ text: indentation, literals, type names.
#pragma once

#include "backends/cuda/print/kernel_names.h"
#include "backends/printer/index_text.h"

#include <tilewright/base/dtype.h>
#include <tilewright/base/shape.h>
#include <tilewright/tile/kernel.h>

#include <fmt/format.h>

#include <cstddef>
#include <optional>
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
    if (!text.empty()) out_.append(static_cast<std::size_t>(indent_) * 2, ' ');
    out_ += text;
    out_ += '\n';
  }
  // "#pragma unroll" and the head of a counted loop.
  void unrolled(std::string_view variable, Index count) { unrolled(variable, 0, count); }
  void unrolled(std::string_view variable, Index first, Index end) {
    const std::size_t head = out_.size();
    out_ += "#pragma unroll\n";  // where lines begin
    write(fmt::format("for (int {0} = {1}; {0} < {2}; ++{0}) {{", variable, first, end));
    begin_block(head);
  }
  // What the head does is wanted though nothing may stand in the block.
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...) + " {");
    begin_block();
  }
  // A head that only counts or asks: close() takes it back where nothing stands in the block.
  template <class... Args>
  void open_if_needed(fmt::format_string<Args...> format, Args&&... args) {
    const std::size_t head = out_.size();
    write(fmt::format(format, std::forward<Args>(args)...) + " {");
    begin_block(head);
  }
  void open_block() {
    write("{");
    begin_block();
  }
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

// A literal of the type that it is computed in.
std::string literal(DType dtype, const tile::Number& number);
// A literal of the stored type: narrow floats as their bits.
std::string stored_literal(DType dtype, const tile::Number& number);
std::string integer(Index value);
// The C++ type of a value, or of one with its place.
std::string maybe_indexed(DType type, bool indexed);
// A name that is valid C++: other characters become '_'.
std::string identifier(std::string_view name);

// How tightly the outermost operator of an expression binds.
enum class Binding : unsigned char {
  choice,  // a ? b : c
  either,
  both,
  bits,  // a & b, a | b, a ^ b
  equality,
  order,
  sum,
  product,
  prefix,       // -f(x), and f<n>(x), which is as hard to read behind a sign
  signed_name,  // -x
  call,         // f(x), and what stands in brackets
  name          // x, 1.0f, x[r].v[v]
};

// An expression and the C++ type it has (i32 for an i64 that is known to fit). Who writes it says how it
// binds: nobody reads that back from the text.
struct TypedText {
  std::string text;
  DType type = DType::f32;
  int operations = 0;  // in the text, names and elements of arrays being none
  Binding binds = Binding::name;
  std::optional<Index> number = std::nullopt;  // that the text is the digits of
  // Whether a variable for it would only be another name.
  bool is_short() const { return binds == Binding::name || binds == Binding::signed_name; }
};
TypedText literal_text(DType dtype, const tile::Number& number, DType type);
// The text as a part of index arithmetic.
printer::IndexText index_text(const TypedText& e);
// "(text)" where it binds less than that.
std::string wrapped_below(const TypedText& e, Binding least);
// "(text)" unless it is a single name, number, call or subscript.
std::string wrapped(const TypedText& e);

}  // namespace tilewright::cuda

// C++ types are called as the types of elements are.
template <>
struct fmt::formatter<tilewright::DType> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(tilewright::DType type, Context& context) const {
    return fmt::formatter<std::string_view>::format(tilewright::name(type), context);
  }
};
