// tokenizer.json: fields that mean something else than byte-level BPE are refused by name.
#include "formats/json.h"
#include "formats/tokenizer_file.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <array>
#include <unordered_map>

namespace tilewright::formats {

namespace {

using nlohmann::json;

// A value and where it stands in the file: "model.merges[3]".
class Field {
 public:
  Field(const json& value, std::string path) : value_(value), path_(std::move(path)) {}

  [[noreturn]] void refuse(std::string_view why) const { throw Error(fmt::format("its {}: {}", path_, why)); }
  [[noreturn]] void refuse_value(std::string_view wanted) const {
    std::string shown = value_.is_structured() ? value_.type_name() : value_.dump(-1, ' ', true);
    if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
    refuse(fmt::format("{} where {} must stand", shown, wanted));
  }

  bool is_null() const { return value_.is_null(); }
  bool is_text() const { return value_.is_string(); }
  const json& object() const {
    if (!value_.is_object()) refuse_value("an object");
    return value_;
  }
  const json& list() const {
    if (!value_.is_array()) refuse_value("a list");
    return value_;
  }
  const std::string& text() const {
    if (!value_.is_string()) refuse_value("a text");
    return value_.get_ref<const std::string&>();
  }
  std::uint32_t token() const {
    if (!value_.is_number_unsigned() || value_.get<std::uint64_t>() >= kMostTokens)
      refuse_value(fmt::format("the number of a token, below {},", kMostTokens));
    return value_.get<std::uint32_t>();
  }
  // A member; null where there is none.
  Field operator[](const std::string& name) const {
    static const json none;
    const json& all = object();
    const auto found = all.find(name);
    return {found == all.end() ? none : *found, path_.empty() ? name : path_ + "." + name};
  }
  Field at(std::size_t index) const { return {value_[index], fmt::format("{}[{}]", path_, index)}; }
  bool flag(bool otherwise) const {
    if (value_.is_null()) return otherwise;
    if (!value_.is_boolean()) refuse_value("true or false");
    return value_.get<bool>();
  }
  void must_be_off(std::string_view why) const {
    if (flag(false)) refuse(why);
  }
  void must_be_empty(std::string_view why) const {
    if (!is_null() && !(value_.is_string() && text().empty())) refuse(why);
  }

 private:
  const json& value_;
  std::string path_;
};

constexpr std::uint32_t kNoByte = 256;

// GPT-2's letters for bytes: printable ones stand for themselves, the others for U+0100 and on, in order.
struct ByteLetters {
  std::array<std::uint32_t, 0x144> byte_of;
  ByteLetters() {
    byte_of.fill(kNoByte);
    std::uint32_t next = 256;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
      byte_of[printable ? byte : next++] = byte;
    }
  }
};

// The bytes that a token's letters stand for; its own bytes where other letters are among them, as in the
// names of special tokens.
std::string bytes_of_letters(const std::string& letters, const ByteLetters& known) {
  std::string bytes;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    std::uint32_t letter = static_cast<unsigned char>(letters[i]);
    if (letter >= 0xE0) return letters;  // three bytes and more: past U+0143
    if (letter >= 0xC0) letter = (letter & 0x1F) << 6 | (static_cast<unsigned char>(letters[++i]) & 0x3F);
    if (letter >= known.byte_of.size() || known.byte_of[letter] == kNoByte) return letters;
    bytes.push_back(static_cast<char>(known.byte_of[letter]));
  }
  return bytes;
}

using TokenNumbers = std::unordered_map<std::string, std::uint32_t>;  // by letters

TokenNumbers read_vocabulary(const Field& vocabulary, TokenizerFile& to) {
  const ByteLetters letters;
  TokenNumbers numbers;
  for (const auto& [name, value] : vocabulary.object().items()) {
    const Field field = vocabulary[name];
    const std::uint32_t token = field.token();
    if (name.empty()) field.refuse("a token of no bytes");
    if (token >= to.tokens.size()) to.tokens.resize(token + 1);
    if (!to.tokens[token].empty()) field.refuse(fmt::format("number {} is another token's, too", token));
    to.tokens[token] = bytes_of_letters(name, letters);
    numbers.emplace(name, token);
  }
  return numbers;
}

// "a b", or ["a", "b"] as newer files have it.
std::pair<std::string, std::string> merged_pair(const Field& field) {
  if (field.is_text()) {
    const std::string& text = field.text();
    const std::size_t space = text.find(' ');
    if (space == 0 || space + 1 >= text.size() || text.find(' ', space + 1) != std::string::npos)
      field.refuse_value("two tokens with a space between");
    return {text.substr(0, space), text.substr(space + 1)};
  }
  if (field.list().size() != 2) field.refuse("a list that is not of two tokens");
  return {field.at(0).text(), field.at(1).text()};
}

void read_merges(const Field& merges, const TokenNumbers& numbers, TokenizerFile& to) {
  const std::size_t count = merges.list().size();
  to.merges.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Field field = merges.at(i);
    const auto [left, right] = merged_pair(field);
    const auto number = [&](const std::string& token) {
      const auto found = numbers.find(token);
      if (found == numbers.end()) field.refuse(fmt::format("\"{}\" is not in model.vocab", token));
      return found->second;
    };
    to.merges.push_back({number(left), number(right), number(left + right), static_cast<std::uint32_t>(i)});
  }
}

TokenNumbers read_model(const Field& model, TokenizerFile& to) {
  if (model.is_null()) model.refuse("missing");
  // Old files leave the type out; what tells the kinds apart then are their fields.
  if (!model["type"].is_null() && model["type"].text() != "BPE")
    model["type"].refuse(fmt::format("\"{}\" is not supported; BPE is", model["type"].text()));
  if (const auto dropout = model.object().find("dropout");
      dropout != model.object().end() && !dropout->is_null() && *dropout != 0)
    model["dropout"].refuse("merges left out at random are not supported");
  model["continuing_subword_prefix"].must_be_empty("marks within words are not supported");
  model["end_of_word_suffix"].must_be_empty("marks at the ends of words are not supported");
  model["byte_fallback"].must_be_off("a vocabulary of characters with bytes for the rest is not supported");
  to.whole_pieces = model["ignore_merges"].flag(false);
  TokenNumbers numbers = read_vocabulary(model["vocab"], to);
  read_merges(model["merges"], numbers, to);
  return numbers;
}

constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A text as a pattern that means it.
std::string quoted(const std::string& text) {
  std::string pattern;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (std::ispunct(byte) != 0)) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

void read_split(const Field& split, TokenizerFile& to) {
  if (split["behavior"].text() != "Isolated")
    split["behavior"].refuse(fmt::format("\"{}\" is not supported; Isolated is", split["behavior"].text()));
  split["invert"].must_be_off("what lies between matches as pieces is not supported");
  const Field pattern = split["pattern"];
  if (!pattern["Regex"].is_null()) {
    to.splits.push_back({pattern["Regex"].text()});
  } else {
    if (pattern["String"].text().empty()) pattern["String"].refuse("it is empty");
    to.splits.push_back({quoted(pattern["String"].text())});
  }
}

// Reads one pre-tokenizer; whether it was ByteLevel.
bool read_one_pre_tokenizer(const Field& field, TokenizerFile& to) {
  const std::string& type = field["type"].text();
  if (type == "Split") {
    read_split(field, to);
  } else if (type == "Digits") {
    to.splits.push_back({field["individual_digits"].flag(false) ? R"(\p{N})" : R"(\p{N}+)"});
  } else if (type == "ByteLevel") {
    to.space_first = field["add_prefix_space"].flag(true);
    if (to.space_first && !to.splits.empty())
      field["add_prefix_space"].refuse("a space in front of every piece is not supported");
    if (field["use_regex"].flag(true)) to.splits.push_back({kGpt2Pattern});
  } else {
    field["type"].refuse(
        fmt::format("\"{}\" is not supported; ByteLevel, Split, Digits and Sequence are", type));
  }
  return type == "ByteLevel";
}

bool read_pre_tokenizer(const Field& field, TokenizerFile& to) {
  if (field["type"].text() != "Sequence") return read_one_pre_tokenizer(field, to);
  bool byte_level = false;
  const Field all = field["pretokenizers"];
  for (std::size_t i = 0; i < all.list().size(); ++i) {
    if (byte_level) all.at(i).refuse("nothing may follow ByteLevel");
    byte_level = read_one_pre_tokenizer(all.at(i), to);
  }
  return byte_level;
}

void refuse_normalizer(const Field& normalizer) {
  if (normalizer.is_null()) return;
  if (normalizer["type"].text() == "Sequence" && normalizer["normalizers"].list().empty()) return;
  normalizer["type"].refuse(
      fmt::format("\"{}\" changes text, which is not supported", normalizer["type"].text()));
}

// Reads added tokens. In the vocabulary they stand by their text, not in letters for bytes.
void read_added(const Field& added, const TokenNumbers& numbers, TokenizerFile& to) {
  if (added.is_null()) return;
  for (std::size_t i = 0; i < added.list().size(); ++i) {
    const Field field = added.at(i);
    AddedToken token{.text = field["content"].text(),
                     .token = field["id"].token(),
                     .special = field["special"].flag(false),
                     .normalized = field["normalized"].flag(true)};
    if (token.text.empty()) field["content"].refuse("it is empty");
    for (const char* name : {"single_word", "lstrip", "rstrip"})
      field[name].must_be_off("a token that looks at its neighbours is not supported");
    if (const auto own = numbers.find(token.text); own != numbers.end() && own->second == token.token)
      to.tokens[token.token] = token.text;
    to.added.push_back(std::move(token));
  }
}

}  // namespace

TokenizerFile parse_tokenizer_json(std::string_view text) {
  const json whole = parse_json(text, "it");
  const Field file(whole, "");
  if (!whole.is_object()) throw Error("it is no object, and so no tokenizer.json");
  TokenizerFile read;
  refuse_normalizer(file["normalizer"]);
  const TokenNumbers numbers = read_model(file["model"], read);
  const Field pre_tokenizer = file["pre_tokenizer"];
  if (pre_tokenizer.is_null() || !read_pre_tokenizer(pre_tokenizer, read))
    pre_tokenizer.refuse("no ByteLevel, and only byte-level BPE is supported");
  read_added(file["added_tokens"], numbers, read);
  return read;
}

}  // namespace tilewright::formats
