// Bytes as tokens.
#include <tilewright/nn/text_data.h>

#include <fmt/format.h>

#include <array>

namespace tilewright::nn {

ByteVocabulary::ByteVocabulary(std::string_view text) {
  std::array<bool, 256> occurs{};
  for (const char c : text) occurs[static_cast<unsigned char>(c)] = true;
  for (std::size_t byte = 0; byte < occurs.size(); ++byte)
    if (occurs[byte]) bytes_.push_back(static_cast<char>(byte));
}

std::vector<std::int32_t> ByteVocabulary::encode(std::string_view text, const Location& where) const {
  std::array<std::int32_t, 256> token_of{};
  token_of.fill(-1);
  for (std::size_t token = 0; token < bytes_.size(); ++token)
    token_of[static_cast<unsigned char>(bytes_[token])] = static_cast<std::int32_t>(token);
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (token_of[byte] < 0)
      throw Error(fmt::format("encode: byte {} of the text, {:#04x}, is not in the vocabulary of {} bytes",
                              tokens.size(), byte, bytes_.size()),
                  where);
    tokens.push_back(token_of[byte]);
  }
  return tokens;
}

std::string ByteVocabulary::decode(const std::vector<std::int32_t>& tokens, const Location& where) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= size())
      throw Error(fmt::format("decode: there is no token {} in a vocabulary of {}", token, size()), where);
    text.push_back(bytes_[static_cast<std::size_t>(token)]);
  }
  return text;
}

}  // namespace tilewright::nn
