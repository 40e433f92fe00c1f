// Definitions take the next id unless they write one.
#include "tile/parse_values.h"

namespace tilewright::tile {

namespace {
// "12" of %12; empty for a name.
std::optional<ValueId> bare_id(const Token& token) {
  if (token.text.empty()) throw SyntaxError(token, "expected a value's name or id");
  if (token.text[0] < '0' || token.text[0] > '9') return std::nullopt;
  return parse_number<ValueId>(token);
}
}  // namespace

Definition ValueTable::parse_definition(Lexer& lexer) const {
  Definition d{lexer.expect(Token::Kind::value, "a value"), {}, {}};
  d.id = bare_id(d.token);
  if (d.id) return d;
  d.name = d.token.text;
  if (lexer.take_if("#")) d.id = parse_number<ValueId>(lexer.expect(Token::Kind::number, "an id"));
  return d;
}

ValueId ValueTable::define(const Definition& d, const TileType& type) {
  const ValueId id = d.id.value_or(next_);
  // Ids are dense in a well-formed kernel, and a definition takes more than one character.
  if (id < 0 || static_cast<std::size_t>(id) >= id_limit_)
    throw SyntaxError(d.token, fmt::format("the id {} is too large", id));
  const auto at = static_cast<std::size_t>(id);
  if (defined_.size() <= at) defined_.resize(at + 1);
  if (defined_[at])
    throw SyntaxError(d.token, fmt::format("value %{} is defined twice (id {})", d.token.text, id));
  if (!d.name.empty() && !names_.emplace(d.name, id).second)
    throw SyntaxError(d.token, fmt::format("the name %{} is used twice", d.name));
  defined_[at] = true;
  kernel_.values.resize(defined_.size());
  kernel_.values[at] = {type, d.name};
  next_ = id + 1;
  return id;
}

ValueId ValueTable::parse_ref(Lexer& lexer) const {
  const Token token = lexer.expect(Token::Kind::value, "a value");
  if (const auto id = bare_id(token)) {
    if (*id >= static_cast<ValueId>(defined_.size()) || !defined_[static_cast<std::size_t>(*id)])
      throw SyntaxError(token, fmt::format("no value %{} before this", *id));
    return *id;
  }
  const auto found = names_.find(token.text);
  if (found == names_.end()) throw SyntaxError(token, fmt::format("no value %{} before this", token.text));
  return found->second;
}

}  // namespace tilewright::tile
