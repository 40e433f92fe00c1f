// Reads the text form of graphs. Recursive descent; every complaint carries line and column.
#include "ir/lexis.h"
#include "ir/text.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

namespace tilewright::ir {

namespace {

// Malformed text unwinds with this to parse(), which turns it into a Failure.
struct SyntaxError {
  std::size_t at;
  std::string message;
};

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) { skip_space(); }

  std::size_t at() const { return at_; }
  bool done() const { return at_ == text_.size(); }
  [[noreturn]] void fail(const std::string& message) const { fail_at(at_, message); }
  [[noreturn]] static void fail_at(std::size_t at, const std::string& message) {
    throw SyntaxError{at, message};
  }

  bool peek(std::string_view mark) const { return text_.substr(at_).starts_with(mark); }
  bool take(std::string_view mark) {
    if (!peek(mark)) return false;
    at_ += mark.size();
    skip_space();
    return true;
  }
  void expect(std::string_view mark) {
    if (!take(mark)) fail(fmt::format("expected '{}'", mark));
  }

  bool at_word() const { return !done() && is_word_start(text_[at_]); }
  bool at_quote() const { return peek("\""); }
  // A word, or with `allow_digits` also a plain number: the part of an SSA name after '%'.
  std::string word(const char* what, bool allow_digits = false) {
    if (!at_word() && !(allow_digits && !done() && is_digit(text_[at_])))
      fail(fmt::format("expected {}", what));
    const std::size_t begin = at_;
    while (!done() && is_word_part(text_[at_])) ++at_;
    return finish(begin);
  }
  std::string word_or_quoted(const char* what) { return at_quote() ? quoted() : word(what); }
  std::string value_name() {
    if (done() || text_[at_] != '%') fail("expected a value such as %x");
    ++at_;  // no space between % and the name
    return word("the name of a value", true);
  }
  std::string quoted();
  Index integer();
  Attr number();

 private:
  std::string finish(std::size_t begin) {
    std::string token(text_.substr(begin, at_ - begin));
    skip_space();
    return token;
  }
  void skip_space() {
    while (!done()) {
      if (peek("//")) {
        while (!done() && text_[at_] != '\n') ++at_;
      } else if (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string Cursor::quoted() {
  const std::size_t begin = at_++;
  std::string out;
  for (;; ++at_) {
    if (done() || text_[at_] == '\n') fail_at(begin, "the quote is not closed");
    if (text_[at_] == '"') break;
    if (text_[at_] != '\\') {
      out += text_[at_];
      continue;
    }
    const std::string_view escape = text_.substr(at_ + 1, 3);
    if (escape.starts_with('"') || escape.starts_with('\\')) {
      out += escape[0];
      at_ += 1;
    } else if (escape.size() == 3 && escape[0] == 'x' && hex_digit(escape[1]) >= 0 &&
               hex_digit(escape[2]) >= 0) {
      out += static_cast<char>(hex_digit(escape[1]) * 16 + hex_digit(escape[2]));
      at_ += 3;
    } else {
      fail("unknown escape, known are \\\" \\\\ \\xNN");
    }
  }
  ++at_;
  skip_space();
  return out;
}

Index Cursor::integer() {
  const std::size_t begin = at_;
  const Attr value = number();
  if (const auto* i = std::get_if<Index>(&value)) return *i;
  fail_at(begin, "expected an integer");
}

// 12 and -3 are integers; 0.5, 1e9, inf, -inf and nan are reals.
Attr Cursor::number() {
  const std::size_t begin = at_;
  if (peek("-")) ++at_;
  if (at_word()) {
    const std::string token = word("a number");
    const double sign = text_[begin] == '-' ? -1 : 1;
    if (token == "inf") return sign * std::numeric_limits<double>::infinity();
    if (token == "nan") return std::numeric_limits<double>::quiet_NaN();
    fail_at(begin, "expected a number");
  }
  bool real = false;
  while (!done()) {
    const char c = text_[at_];
    const bool exponent_sign = (c == '+' || c == '-') && text_[at_ - 1] == 'e';
    if (!is_digit(c) && c != '.' && c != 'e' && !exponent_sign) break;
    real = real || !is_digit(c);
    ++at_;
  }
  const std::string token = finish(begin);
  const char* end = token.data() + token.size();
  Index i = 0;
  double d = 0;
  const auto read = real ? std::from_chars(token.data(), end, d) : std::from_chars(token.data(), end, i);
  if (read.ec != std::errc{} || read.ptr != end) fail_at(begin, "expected a number");
  return real ? Attr(d) : Attr(i);
}

struct Input {
  std::string ssa;
  std::string name;
  Type type;
  Index place = 0;  // not before the node of this number
  std::size_t at = 0;
};

class Parser {
 public:
  Parser(std::string_view text, std::span<const Op* const> ops) : in_(text) {
    for (const Op* op : ops) ops_.emplace(op->name, op);
  }

  Graph run() {
    in_.expect("graph");
    in_.expect("@");
    graph_ = Graph(in_.word_or_quoted("the name of the graph"));
    signature();
    in_.expect("{");
    add_due_inputs();
    while (!in_.peek("return")) {
      statement();
      add_due_inputs();
    }
    if (added_ < declared_.size())
      Cursor::fail_at(declared_[added_].at,
                      fmt::format("the body ends before node {}", declared_[added_].place));
    outputs();
    in_.expect("}");
    if (!in_.done()) in_.fail("text after the graph");
    return std::move(graph_);
  }

 private:
  Type type() {
    const std::size_t begin = in_.at();
    const std::string dtype_text = in_.word("an element type");
    const auto dtype = parse_dtype(dtype_text);
    if (!dtype) Cursor::fail_at(begin, fmt::format("{} is not an element type", dtype_text));
    Type type{*dtype, Shape(index_list())};
    guarded(begin, [&] { check_shape(type.shape); });
    return type;
  }

  std::vector<Index> index_list() {
    std::vector<Index> list;
    in_.expect("[");
    while (!in_.peek("]")) {
      list.push_back(in_.integer());
      if (!in_.take(",")) break;
    }
    in_.expect("]");
    return list;
  }

  void signature() {
    in_.expect("(");
    while (!in_.peek(")")) {
      Input input{.at = in_.at()};
      input.ssa = in_.value_name();
      input.name = in_.at_quote() ? in_.quoted() : input.ssa;
      in_.expect(":");
      input.type = type();
      if (in_.take("at")) input.place = in_.integer();
      declared_.push_back(std::move(input));
      if (!in_.take(",")) break;
    }
    in_.expect(")");
    in_.expect("->");
    if (!in_.take("(")) {
      results_.push_back(type());
      return;
    }
    while (!in_.peek(")")) {
      results_.push_back(type());
      if (!in_.take(",")) break;
    }
    in_.expect(")");
  }

  void add_due_inputs() {
    for (; added_ < declared_.size() && declared_[added_].place <= graph_.size(); ++added_) {
      const Input& input = declared_[added_];
      define(input.ssa, graph_.add_input(input.name, input.type), input.at);
    }
  }

  void define(const std::string& ssa, NodeId id, std::size_t at) {
    if (!values_.emplace(ssa, id).second) Cursor::fail_at(at, fmt::format("%{} is defined twice", ssa));
  }

  NodeId operand() {
    const std::size_t begin = in_.at();
    const std::string ssa = in_.value_name();
    auto found = values_.find(ssa);
    if (found == values_.end()) Cursor::fail_at(begin, fmt::format("%{} is not defined here", ssa));
    return found->second;
  }

  Attrs attrs() {
    Attrs attrs;
    if (!in_.take("{")) return attrs;
    while (!in_.peek("}")) {
      const std::size_t begin = in_.at();
      const std::string key = in_.word_or_quoted("the name of an attribute");
      if (attrs.has(key)) Cursor::fail_at(begin, fmt::format("attribute {} is given twice", key));
      in_.expect("=");
      attrs.set(key, attr());
      if (!in_.take(",")) break;
    }
    in_.expect("}");
    return attrs;
  }

  Attr attr() {
    if (in_.peek("[")) return index_list();
    if (in_.at_quote()) return in_.quoted();
    if (!in_.at_word() || in_.peek("inf") || in_.peek("nan")) {
      Cursor ahead = in_;
      if (!ahead.at_word() || is_number_word(ahead.word("a value"))) return in_.number();
    }
    return in_.word("a value");
  }

  void statement() {
    const std::size_t begin = in_.at();
    const std::string ssa = in_.value_name();
    in_.expect("=");
    const std::size_t op_at = in_.at();
    const std::string op_name = in_.word("the name of an operation");
    const auto op = ops_.find(op_name);
    if (op == ops_.end()) Cursor::fail_at(op_at, fmt::format("{} is not an operation", op_name));
    std::vector<NodeId> operands;
    if (in_.peek("%")) {
      do operands.push_back(operand());
      while (in_.take(","));
    }
    const Attrs given = attrs();
    in_.expect(":");
    const std::size_t type_at = in_.at();
    const Type stated = type();
    guarded(op_at, [&] {
      const NodeId id = graph_.add(*op->second, operands, given);
      if (graph_.type(id) != stated)
        Cursor::fail_at(type_at, fmt::format("{} gives {}, not {}", op_name, to_string(graph_.type(id)),
                                             to_string(stated)));
      define(ssa, id, begin);
    });
  }

  void outputs() {
    const std::size_t begin = in_.at();
    in_.expect("return");
    std::vector<NodeId> ids;
    std::vector<Type> types;
    if (in_.peek("%")) {
      do {
        ids.push_back(operand());
        types.push_back(graph_.type(ids.back()));
      } while (in_.take(","));
    }
    if (types != results_) Cursor::fail_at(begin, "the returned values differ from the signature's types");
    graph_.set_outputs(std::move(ids));
  }

  // Runs `build`; what it says about the graph becomes a complaint about the text at `at`.
  template <class F>
  static void guarded(std::size_t at, const F& build) {
    try {
      build();
    } catch (const Error& error) {
      Cursor::fail_at(at, error.what());
    }
  }

  Cursor in_;
  std::map<std::string, const Op*, std::less<>> ops_;
  std::map<std::string, NodeId> values_;
  Graph graph_;
  std::vector<Input> declared_;
  std::size_t added_ = 0;
  std::vector<Type> results_;
};

std::string line_and_column(std::string_view text, std::size_t at) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (std::size_t i = 0; i < at; ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n' ? 1 : 0;
  }
  return fmt::format("{}:{}", line, column);
}

}  // namespace

Result<Graph> parse(std::string_view text, std::span<const Op* const> ops) {
  try {
    return Parser(text, ops).run();
  } catch (const SyntaxError& error) {
    return failure(Failure::Kind::invalid,
                   fmt::format("graph text {}: {}", line_and_column(text, error.at), error.message));
  }
}

}  // namespace tilewright::ir
