// Reads the body of a kernel: op by op, each giving ids to the values it brings.
#include "tile/parse_ops.h"

#include <fmt/format.h>

#include <limits>

#include "tile/parse_values.h"
#include "tile/rules.h"

namespace tilewright::tile {

namespace {

class BodyParser {
 public:
  BodyParser(Lexer& lexer, Kernel& kernel)
      : lexer_(lexer), kernel_(kernel), values_(kernel, lexer.text_size()) {}

  void parse() {
    lexer_.expect("{");
    parse_ops(kernel_.body, 0);
    lexer_.expect("}");
  }

 private:
  void parse_ops(Block& block, int depth) {
    if (depth > kMaxNesting) lexer_.fail(fmt::format("nested deeper than {}", kMaxNesting));
    while (!lexer_.at("}")) {
      if (lexer_.peek().kind == Token::Kind::end) lexer_.fail("expected '}'");
      block.ops.push_back(parse_op(depth));
    }
  }

  Op parse_op(int depth) {
    std::vector<Definition> results;
    if (lexer_.peek().kind == Token::Kind::value) {
      do results.push_back(values_.parse_definition(lexer_));
      while (lexer_.take_if(","));
      lexer_.expect("=");
    }
    const Token word = lexer_.expect(Token::Kind::name, "an op");
    Op op;
    op.location = fmt::format("line {}", word.line);
    read_kind(word, op);
    std::vector<Definition> args;
    literal_ = {};
    parse_operands(op, args);
    const std::vector<TileType> types = parse_types();
    finish_access(op, types, word);
    if (op.kind == OpKind::loop || op.kind == OpKind::branch) {
      parse_blocks(op, args, types, depth);
    } else if (op.kind == OpKind::constant) {
      if (types.size() == 1) op.number = read_literal(literal_, types[0].dtype);
    }
    const bool typed_by_operand = results.empty();
    if (!typed_by_operand && types.size() != results.size())
      throw SyntaxError(word, fmt::format("{} types for {} results", types.size(), results.size()));
    for (std::size_t i = 0; i < results.size(); ++i)
      op.results.push_back(values_.define(results[i], types[i]));
    return op;
  }

  static void read_kind(const Token& word, Op& op) {
    if (const auto prim = parse_prim(word.text)) {
      op.kind = OpKind::apply;
      op.prim = *prim;
      return;
    }
    for (int i = 0; i <= static_cast<int>(OpKind::yield); ++i) {
      op.kind = static_cast<OpKind>(i);
      if (op.kind != OpKind::apply && name(op.kind) == word.text) return;
    }
    throw SyntaxError(word, fmt::format("no op is called '{}'", word.text.substr(0, 40)));
  }

  // --- operands and attributes

  void parse_refs(std::vector<ValueId>& refs) {
    do refs.push_back(values_.parse_ref(lexer_));
    while (lexer_.take_if(","));
  }

  void parse_operands(Op& op, std::vector<Definition>& args) {
    switch (op.kind) {
      case OpKind::constant:
        literal_ = lexer_.take();
        return;
      case OpKind::scalar_param:
        op.param = find_param(kernel_.scalars, "scalar parameter");
        return;
      case OpKind::program_id:
        op.param =
            static_cast<int>(parse_number<std::int16_t>(lexer_.expect(Token::Kind::number, "an axis")));
        return;
      case OpKind::load:
      case OpKind::store:
      case OpKind::gather:
      case OpKind::scatter:
      case OpKind::atomic_add:
        return parse_access(op);
      case OpKind::reduce:
      case OpKind::scan:
        parse_monoid_of(op);
        op.operands.push_back(values_.parse_ref(lexer_));
        return parse_attributes(op);
      case OpKind::loop:
        return parse_loop_head(op, args);
      case OpKind::arange:
        return;
      case OpKind::apply:
      case OpKind::argsort:
      case OpKind::dot:
        if (lexer_.peek().kind == Token::Kind::value) parse_refs(op.operands);
        return parse_attributes(op);
      default:
        if (lexer_.peek().kind == Token::Kind::value) parse_refs(op.operands);
    }
  }

  template <class Param>
  int find_param(const std::vector<Param>& params, const char* what) {
    const Token token = lexer_.expect(Token::Kind::value, what);
    for (std::size_t i = 0; i < params.size(); ++i)
      if (params[i].name == token.text) return static_cast<int>(i);
    throw SyntaxError(token, fmt::format("no {} %{}", what, token.text));
  }

  void parse_monoid_of(Op& op) {
    const Token word = lexer_.expect(Token::Kind::name, "a monoid");
    const auto monoid = parse_monoid(word.text);
    if (!monoid) throw SyntaxError(word, fmt::format("no monoid is called '{}'", word.text.substr(0, 40)));
    op.monoid = *monoid;
  }

  // "%x[%i, %j], %value, %mask {…}"
  void parse_access(Op& op) {
    op.param = find_param(kernel_.views, "view");
    std::vector<ValueId> starts, extra;
    lexer_.expect("[");
    if (!lexer_.at("]")) parse_refs(starts);
    lexer_.expect("]");
    if (lexer_.take_if(",")) parse_refs(extra);
    const std::size_t values = op.kind == OpKind::load || op.kind == OpKind::gather ? 0 : 1;
    const std::size_t masks = op.kind == OpKind::load || op.kind == OpKind::store ? 0 : 1;
    if (extra.size() < values || extra.size() > values + masks)
      lexer_.fail(
          fmt::format("{} takes {} to {} values after its indices", name(op.kind), values, values + masks));
    op.masked = extra.size() > values;
    if (values == 1) op.operands.push_back(extra[0]);
    op.operands.insert(op.operands.end(), starts.begin(), starts.end());
    if (op.masked) op.operands.push_back(extra.back());
    parse_attributes(op);
  }

  void parse_attributes(Op& op) {
    dims_given_ = false;
    if (!lexer_.take_if("{")) return;
    do {
      const Token word = lexer_.expect(Token::Kind::name, "an attribute");
      lexer_.expect("=");
      const FieldUse use = field_use(op.kind);
      if (word.text == "axis" && use.axis) {
        op.axis = parse_number<std::int16_t>(lexer_.expect(Token::Kind::number, "an axis"));
      } else if (word.text == "bounded" && op.kind == OpKind::store) {
        lexer_.expect("true");
        op.bounded = true;
      } else if (word.text == "rounded" && op.kind == OpKind::apply) {
        lexer_.expect("true");
        op.rounded = true;
      } else if (word.text == "order" && use.order) {
        lexer_.expect(name(Order::descending));
        op.order = Order::descending;
      } else if (word.text == "precision" && op.kind == OpKind::dot) {
        const bool two_level = lexer_.take_if(name(DotPrecision::two_level));
        if (!two_level) lexer_.expect(name(DotPrecision::tf32));
        op.precision = two_level ? DotPrecision::two_level : DotPrecision::tf32;
      } else if (word.text == "dims" && use.tile_dims) {
        parse_tile_dims(op);
      } else if (word.text == "fill" &&
                 (op.kind == OpKind::load || (op.kind == OpKind::gather && op.masked))) {
        op.bounded = op.kind == OpKind::load;
        const DType dtype = kernel_.views[static_cast<std::size_t>(op.param)].dtype;
        op.number = read_literal(lexer_.take(), dtype);
      } else {
        throw SyntaxError(word,
                          fmt::format("{} has no attribute '{}'", name(op.kind), word.text.substr(0, 40)));
      }
    } while (lexer_.take_if(","));
    lexer_.expect("}");
  }

  void parse_tile_dims(Op& op) {
    dims_given_ = true;
    lexer_.expect("[");
    if (!lexer_.at("]")) {
      do op.tile_dims.push_back(parse_number<std::int16_t>(lexer_.expect(Token::Kind::number, "a dim")));
      while (lexer_.take_if(","));
    }
    lexer_.expect("]");
  }

  static Number read_literal(const Token& token, DType dtype) {
    if (dtype == DType::boolean && (token.text == "true" || token.text == "false"))
      return {0, token.text == "true"};
    if (!is_float(dtype)) return {0, parse_number<std::int64_t>(token)};
    if (token.text == "nan") return {std::numeric_limits<double>::quiet_NaN(), 0};
    // The printer writes the shortest text of the type itself: reading it wider would round twice.
    const double value =
        dtype == DType::f64 ? parse_number<double>(token) : static_cast<double>(parse_number<float>(token));
    const auto literal = float_literal(dtype, value);
    if (!literal)
      throw SyntaxError(token, fmt::format("{} has no value {}", name(dtype), token.text.substr(0, 40)));
    return *literal;
  }

  // --- types

  std::vector<TileType> parse_types() {
    std::vector<TileType> types;
    if (!lexer_.take_if(":")) return types;
    do types.push_back(parse_type());
    while (lexer_.take_if(","));
    return types;
  }

  TileType parse_type() {
    TileType type;
    if (!lexer_.take_if("tile")) {
      type.dtype = parse_dtype_name(lexer_);
      return type;
    }
    lexer_.expect("<");
    type.dtype = parse_dtype_name(lexer_);
    lexer_.expect(",");
    lexer_.expect("[");
    do type.shape.push_back(parse_int(lexer_));
    while (lexer_.take_if(","));
    lexer_.expect("]");
    lexer_.expect(">");
    return type;
  }

  // What the text leaves out: the last dims of the view. A written value's type must be its own.
  void finish_access(Op& op, const std::vector<TileType>& types, const Token& word) const {
    const bool writes =
        op.kind == OpKind::store || op.kind == OpKind::scatter || op.kind == OpKind::atomic_add;
    if (writes && (types.size() != 1 || types[0] != kernel_.type(op.operands[0])))
      throw SyntaxError(word, fmt::format("the value is {}", to_string(kernel_.type(op.operands[0]))));
    if (!field_use(op.kind).tile_dims || dims_given_ || types.size() != 1) return;
    op.tile_dims =
        default_tile_dims(kernel_.views[static_cast<std::size_t>(op.param)].rank(), types[0].rank());
  }

  // --- control

  // "%i in %lower to %upper step %step (%carried = %initial, …)"
  void parse_loop_head(Op& op, std::vector<Definition>& args) {
    args.push_back(values_.parse_definition(lexer_));
    for (const char* word : {"in", "to", "step"}) {
      lexer_.expect(word);
      op.operands.push_back(values_.parse_ref(lexer_));
    }
    if (!lexer_.take_if("(")) return;
    do {
      args.push_back(values_.parse_definition(lexer_));
      lexer_.expect("=");
      op.operands.push_back(values_.parse_ref(lexer_));
    } while (lexer_.take_if(","));
    lexer_.expect(")");
  }

  void parse_blocks(Op& op, const std::vector<Definition>& args, const std::vector<TileType>& types,
                    int depth) {
    if (op.kind == OpKind::loop && types.size() + 1 != args.size())
      lexer_.fail(fmt::format("{} types for {} carried values", types.size(), args.size() - 1));
    const int blocks = field_use(op.kind).blocks;
    for (int i = 0; i < blocks; ++i) {
      Block block;
      if (i > 0) lexer_.expect("else");
      lexer_.expect("{");
      for (std::size_t a = 0; a < args.size(); ++a)
        block.args.push_back(values_.define(args[a], a == 0 ? TileType{DType::i64, {}} : types[a - 1]));
      parse_ops(block, depth + 1);
      lexer_.expect("}");
      op.blocks.push_back(std::move(block));
    }
  }

  Lexer& lexer_;
  Kernel& kernel_;
  ValueTable values_;
  Token literal_;
  bool dims_given_ = false;
};

}  // namespace

Index parse_int(Lexer& lexer) { return parse_number<Index>(lexer.expect(Token::Kind::number, "a number")); }

DType parse_dtype_name(Lexer& lexer) {
  const Token word = lexer.expect(Token::Kind::name, "a type");
  const auto dtype = parse_dtype(word.text);
  if (!dtype) throw SyntaxError(word, fmt::format("no type is called '{}'", word.text.substr(0, 40)));
  return *dtype;
}

void parse_body(Lexer& lexer, Kernel& kernel) { BodyParser(lexer, kernel).parse(); }

}  // namespace tilewright::tile
