// Numbers and values of tile text: which id a definition gets, which value a reference means.
#pragma once

#include <fmt/format.h>
#include <tilewright/tile/kernel.h>

#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tile/lexer.h"

namespace tilewright::tile {

template <class T>
T parse_number(const Token& token) {
  T value{};
  const char *begin = token.text.data(), *end = begin + token.text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end)
    throw SyntaxError(token, fmt::format("'{}' is not a number of this type", token.text.substr(0, 40)));
  return value;
}

// A value's name and, when written, its id; the type comes from the end of the op.
struct Definition {
  Token token;
  std::optional<ValueId> id;
  std::string name;
};

class ValueTable {
 public:
  ValueTable(Kernel& kernel, std::size_t id_limit) : kernel_(kernel), id_limit_(id_limit) {}
  Definition parse_definition(Lexer& lexer) const;  // %name, %name#12 or %12
  ValueId define(const Definition& definition, const TileType& type);
  ValueId parse_ref(Lexer& lexer) const;

 private:
  Kernel& kernel_;
  std::size_t id_limit_;
  std::map<std::string, ValueId, std::less<>> names_;
  std::vector<bool> defined_;  // by id
  ValueId next_ = 0;
};

}  // namespace tilewright::tile
