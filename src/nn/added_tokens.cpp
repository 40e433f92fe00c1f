// Finding added tokens: by their first byte, then each that begins with it.
#include "nn/added_tokens.h"

#include <algorithm>

namespace tilewright::nn {

namespace {

unsigned char first_byte(const formats::AddedToken& token) {
  return static_cast<unsigned char>(token.text.front());
}

}  // namespace

AddedTokens::AddedTokens(std::vector<formats::AddedToken> tokens) : tokens_(std::move(tokens)), own_{} {
  std::sort(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) {
    if (first_byte(a) != first_byte(b)) return first_byte(a) < first_byte(b);
    return a.text.size() > b.text.size();
  });
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    auto& [begin, end] = own_[first_byte(tokens_[i])];
    if (begin == end) begin = i;
    end = i + 1;
  }
}

std::optional<AddedTokens::Found> AddedTokens::find(std::string_view text, std::size_t from) const {
  if (empty()) return std::nullopt;
  for (std::size_t at = from; at < text.size(); ++at) {
    const auto [begin, end] = own_[static_cast<unsigned char>(text[at])];
    for (std::size_t i = begin; i < end; ++i)
      if (text.substr(at).starts_with(tokens_[i].text)) return Found{at, &tokens_[i]};
  }
  return std::nullopt;
}

}  // namespace tilewright::nn
