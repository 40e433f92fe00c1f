// The parser of tile text, the printer's inverse. It reads what is well formed as text; the verifier then
// judges the kernel.
#include <fmt/format.h>
#include <tilewright/tile/text.h>
#include <tilewright/tile/verify.h>

#include "tile/parse_ops.h"

namespace tilewright::tile {

namespace {

// The parameters and grid: "kernel @name(…) grid(…) const(…) together(…)".
class HeaderParser {
 public:
  HeaderParser(Lexer& lexer, Kernel& kernel) : lexer_(lexer), kernel_(kernel) {}

  void parse() {
    lexer_.expect("kernel");
    kernel_.name = lexer_.expect(Token::Kind::kernel, "@name").text;
    lexer_.expect("(");
    if (!lexer_.at(")")) do
        parse_param();
      while (lexer_.take_if(","));
    lexer_.expect(")");
    resolve_view_dims();
    lexer_.expect("grid");
    lexer_.expect("(");
    do parse_axis();
    while (lexer_.take_if(","));
    lexer_.expect(")");
    if (lexer_.take_if("const")) parse_constants();
    if (lexer_.take_if("together")) parse_together();
  }

 private:
  // A size that may name a scalar declared later: kept as its token until all are known.
  struct PendingDim {
    Dim dim;
    Token name;
  };

  void parse_constants() {
    lexer_.expect("(");
    do {
      const Token name = lexer_.expect(Token::Kind::name, "a name");
      lexer_.expect("=");
      kernel_.constants.push_back({std::string(name.text), parse_int(lexer_)});
    } while (lexer_.take_if(","));
    lexer_.expect(")");
  }

  void parse_together() {
    lexer_.expect("(");
    const Index launches = parse_int(lexer_);
    lexer_.expect(")");
    // Out of range for the verifier, whatever an int makes of it.
    kernel_.together = launches >= 1 && launches <= kMostTogether ? static_cast<int>(launches) : 0;
  }

  void parse_param() {
    const Token name = lexer_.expect(Token::Kind::value, "a parameter");
    lexer_.expect(":");
    if (!lexer_.take_if("view")) {
      kernel_.scalars.push_back({std::string(name.text), parse_dtype_name(lexer_)});
      return;
    }
    ViewParam view{.name = std::string(name.text)};
    lexer_.expect("<");
    view.dtype = parse_dtype_name(lexer_);
    lexer_.expect(",");
    pending_.push_back(parse_dims());
    for (const char* word : {"strides", "align"}) {
      lexer_.expect(",");
      lexer_.expect(word);
      lexer_.expect("=");
      if (word[0] == 's')
        pending_.push_back(parse_dims());
      else
        view.align_bytes = parse_int(lexer_);
    }
    lexer_.expect(">");
    kernel_.views.push_back(std::move(view));
  }

  std::vector<PendingDim> parse_dims() {
    std::vector<PendingDim> dims;
    lexer_.expect("[");
    if (!lexer_.at("]")) do
        dims.push_back(parse_dim());
      while (lexer_.take_if(","));
    lexer_.expect("]");
    return dims;
  }

  PendingDim parse_dim() {
    if (lexer_.peek().kind == Token::Kind::value) return {{}, lexer_.take()};
    return {{parse_int(lexer_), -1}, {}};
  }

  Dim resolve(const PendingDim& pending) const {
    if (pending.name.text.empty() && pending.name.kind != Token::Kind::value) return pending.dim;
    for (std::size_t i = 0; i < kernel_.scalars.size(); ++i)
      if (kernel_.scalars[i].name == pending.name.text) return {0, static_cast<int>(i)};
    throw SyntaxError(pending.name, fmt::format("no scalar parameter %{}", pending.name.text));
  }

  void resolve_view_dims() {
    for (std::size_t v = 0; v < kernel_.views.size(); ++v) {
      for (const PendingDim& d : pending_[2 * v]) kernel_.views[v].extents.push_back(resolve(d));
      for (const PendingDim& d : pending_[2 * v + 1]) kernel_.views[v].strides.push_back(resolve(d));
    }
  }

  void parse_axis() {
    GridAxis axis;
    do {
      if (lexer_.take_if("cdiv")) {
        lexer_.expect("(");
        const Dim extent = resolve(parse_dim());
        lexer_.expect(",");
        axis.push_back({extent, parse_int(lexer_)});
        lexer_.expect(")");
      } else {
        axis.push_back({resolve(parse_dim()), 1});
      }
    } while (lexer_.take_if("*"));
    kernel_.grid.push_back(std::move(axis));
  }

  Lexer& lexer_;
  Kernel& kernel_;
  std::vector<std::vector<PendingDim>> pending_;  // extents and strides of each view
};

}  // namespace

Result<Kernel> parse(std::string_view text) {
  Kernel kernel;
  try {
    Lexer lexer(text);
    HeaderParser(lexer, kernel).parse();
    parse_body(lexer, kernel);
    if (lexer.peek().kind != Token::Kind::end) lexer.fail("expected the end");
  } catch (const SyntaxError& error) {
    return failure(Failure::Kind::invalid, error.what());
  }
  if (auto problem = verify(kernel)) return failure(Failure::Kind::invalid, *problem);
  return kernel;
}

}  // namespace tilewright::tile
