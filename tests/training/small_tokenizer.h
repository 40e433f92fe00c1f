// A tokenizer small enough to be read: all bytes, and the merges that a test names.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::test {

// GPT-2's letter for a byte, in UTF-8.
inline std::string letter(int byte) {
  std::uint32_t code = 0;
  int next = 256;
  for (int b = 0; b <= byte; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
    code = static_cast<std::uint32_t>(printable ? b : next++);
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

inline std::string letters(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += letter(static_cast<unsigned char>(c));
  return text;
}

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

using ByteMerges = std::vector<std::pair<std::string, std::string>>;

// Tokens 0 to 255 are the bytes; token 256 + i is what the i-th merge makes.
struct SmallTokenizer {
  ByteMerges merges;
  std::string more_vocabulary = {};  // `,"xyz":300`
  std::string model = {};            // further fields of the model: `,"ignore_merges":true`
  std::string pre_tokenizer =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  std::string added = "[]";
  std::string rest = {};  // `,"normalizer":null`

  std::string json() const {
    std::string vocabulary, pairs;
    for (int byte = 0; byte < 256; ++byte)
      vocabulary += fmt::format("{}{}:{}", byte > 0 ? "," : "", quoted(letter(byte)), byte);
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const auto& [left, right] = merges[i];
      vocabulary += fmt::format(",{}:{}", quoted(letters(left + right)), 256 + i);
      pairs += fmt::format("{}[{},{}]", i > 0 ? "," : "", quoted(letters(left)), quoted(letters(right)));
    }
    return fmt::format(
        R"({{"version":"1.0","model":{{"type":"BPE","vocab":{{{}{}}},"merges":[{}]{}}},"pre_tokenizer":{},)"
        R"("added_tokens":{}{}}})",
        vocabulary, more_vocabulary, pairs, model, pre_tokenizer, added, rest);
  }

  std::string tiktoken() const {
    std::string lines;
    for (int byte = 0; byte < 256; ++byte) lines += line(std::string(1, static_cast<char>(byte)), byte);
    for (std::size_t i = 0; i < merges.size(); ++i)
      lines += line(merges[i].first + merges[i].second, 256 + static_cast<int>(i));
    return lines;
  }

  static std::string line(const std::string& bytes, int rank) {
    constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
      std::uint32_t bits = 0;
      for (std::size_t j = i; j < i + 3; ++j)
        bits = bits << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0);
      for (std::size_t j = 0; j < 4; ++j)
        text += i + j > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * j) & 63];
    }
    return fmt::format("{} {}\n", text, rank);
  }
};

}  // namespace tilewright::test
