// Well-formed UTF-8, by the table of byte sequences of the Unicode standard (3-7).
#include "nn/utf8.h"

#include <cstdint>
#include <cstring>

namespace tilewright::nn {

namespace {

struct Sequence {
  std::size_t bytes;  // of a character, or of the part of one that is there; at least 1
  bool whole;
};

// What begins at `at`, which is no ASCII byte.
Sequence sequence_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0xC2 || first > 0xF4) return {1, false};
  const std::size_t wanted = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The second byte's range keeps out overlong forms, surrogates and what is past U+10FFFF.
  unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < wanted; ++i, low = 0x80, high = 0xBF)
    if (at + i >= text.size() || byte(at + i) < low || byte(at + i) > high) return {i, false};
  return {wanted, true};
}

// The first place at or after `at` where no well-formed character begins; the text's size where there is
// none.
std::size_t well_formed_until(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    std::uint64_t eight = 0;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080ULL) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Sequence next = sequence_at(text, at);
    if (!next.whole) return at;
    at += next.bytes;
  }
  return at;
}

}  // namespace

std::string_view well_formed(std::string_view text, std::string& storage) {
  std::size_t bad = well_formed_until(text, 0);
  if (bad == text.size()) return text;
  storage.clear();
  for (std::size_t begin = 0; begin < text.size();) {
    storage.append(text, begin, bad - begin);
    if (bad == text.size()) break;
    storage.append("\xEF\xBF\xBD");  // U+FFFD
    begin = bad + sequence_at(text, bad).bytes;
    bad = well_formed_until(text, begin);
  }
  return storage;
}

}  // namespace tilewright::nn
