// Reads the text form of graphs. Recursive descent; every complaint carries line and column.
#include "ir/cursor.h"
#include "ir/text.h"

#include <fmt/format.h>

#include <map>

namespace tilewright::ir {

namespace {

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
