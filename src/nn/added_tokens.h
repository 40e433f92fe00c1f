// Tokens that stand for the whole of a text of their own, wherever it occurs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/tokenizer_file.h"

namespace tilewright::nn {

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<formats::AddedToken> tokens);
  bool empty() const { return tokens_.empty(); }
  struct Found {
    std::size_t at;
    const formats::AddedToken* token;
  };
  // The leftmost one at or after `from`, of several there the longest.
  std::optional<Found> find(std::string_view text, std::size_t from) const;

 private:
  std::vector<formats::AddedToken> tokens_;                   // by first byte, then the longest first
  std::array<std::pair<std::size_t, std::size_t>, 256> own_;  // of each first byte
};

}  // namespace tilewright::nn
