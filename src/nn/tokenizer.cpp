// Byte-level BPE: added tokens are found, what lies between is cut by patterns, each piece is merged.
#include <tilewright/nn/tokenizer.h>

#include "formats/in_file.h"
#include "formats/mapped_file.h"
#include "formats/tokenizer_file.h"
#include "nn/added_tokens.h"
#include "nn/byte_pairs.h"
#include "nn/piece_cache.h"
#include "nn/text_pattern.h"
#include "nn/utf8.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <mutex>
#include <unordered_map>

namespace tilewright::nn {

namespace {

// What one call of encode() works in, and the next one finds warm.
struct Workspace {
  PieceCache cache;
  PairMerger merger;
  MatchState match;
  std::string repaired;
  std::string spaced;  // a text with the space that it lacked
};

std::vector<formats::AddedToken> those(const std::vector<formats::AddedToken>& all, bool normalized) {
  std::vector<formats::AddedToken> some;
  for (const formats::AddedToken& token : all)
    if (token.normalized == normalized) some.push_back(token);
  return some;
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(formats::TokenizerFile read);

  void encode(std::string_view text, SpecialTokens special, Workspace& work,
              std::vector<std::int32_t>& to) const;

  formats::TokenizerFile file;
  PairTable pairs;
  AddedTokens first, second;  // the second are looked for in what the first left
  std::vector<TextPattern> splits;
  std::unordered_map<std::string_view, std::int32_t> vocabulary;  // the bytes lie in `file`
  std::unordered_map<std::string_view, std::int32_t> added;
  std::vector<std::string_view> bytes;       // by number, those of added tokens, too
  std::array<std::int32_t, 256> byte_token;  // -1: none

  // Workspaces that no call uses now.
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Workspace>> idle;

 private:
  void encode_between(std::string_view text, SpecialTokens special, Workspace& work,
                      std::vector<std::int32_t>& to) const;
  void encode_plain(std::string_view text, Workspace& work, std::vector<std::int32_t>& to) const;
  void cut(std::string_view text, std::size_t stage, Workspace& work, std::vector<std::int32_t>& to) const;
  void encode_piece(std::string_view piece, Workspace& work, std::vector<std::int32_t>& to) const;
  void merge_piece(std::string_view piece, Workspace& work, std::vector<std::int32_t>& to) const;
};

Tokenizer::Impl::Impl(formats::TokenizerFile read)
    : file(std::move(read)),
      pairs(file.merges),
      first(those(file.added, false)),
      second(those(file.added, true)) {
  for (const formats::SplitPattern& split : file.splits) splits.emplace_back(split);
  std::vector<formats::Merge>().swap(file.merges);  // they are in `pairs`
  byte_token.fill(-1);
  bytes.resize(file.tokens.size());
  vocabulary.reserve(file.tokens.size());
  for (std::size_t token = 0; token < file.tokens.size(); ++token) {
    const std::string_view own = file.tokens[token];
    if (own.empty()) continue;
    bytes[token] = own;
    vocabulary.emplace(own, static_cast<std::int32_t>(token));
    if (own.size() == 1) byte_token[static_cast<unsigned char>(own[0])] = static_cast<std::int32_t>(token);
  }
  for (const formats::AddedToken& token : file.added) {
    if (token.token >= bytes.size()) bytes.resize(token.token + 1);
    bytes[token.token] = token.text;
    added.emplace(token.text, static_cast<std::int32_t>(token.token));
  }
}

// A piece that no pattern cuts any more. Most come out of the cache.
void Tokenizer::Impl::encode_piece(std::string_view piece, Workspace& work,
                                   std::vector<std::int32_t>& to) const {
  if (piece.size() > PieceCache::kMostBytes) {
    merge_piece(piece, work, to);
    return;
  }
  PieceCache::Place& place = work.cache.at(piece);
  if (place.is(piece)) {
    to.insert(to.end(), place.tokens, place.tokens + place.count);
    return;
  }
  const std::size_t before = to.size();
  merge_piece(piece, work, to);
  PieceCache::put(place, piece, to.data() + before, to.size() - before);
}

void Tokenizer::Impl::merge_piece(std::string_view piece, Workspace& work,
                                  std::vector<std::int32_t>& to) const {
  if (file.whole_pieces)
    if (const auto found = vocabulary.find(piece); found != vocabulary.end()) {
      to.push_back(found->second);
      return;
    }
  const std::size_t begin = to.size();
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte_token[byte] < 0)
      throw Error(fmt::format("the vocabulary has no token for the byte {:#04x}, which the text has", byte));
    to.push_back(byte_token[byte]);
  }
  work.merger.merge(pairs, to, begin);
}

// What the pattern of a stage matches, and what lies between, goes to the next one as texts of their own.
void Tokenizer::Impl::cut(std::string_view text, std::size_t stage, Workspace& work,
                          std::vector<std::int32_t>& to) const {
  if (stage == splits.size()) {
    encode_piece(text, work, to);
    return;
  }
  for (std::size_t at = 0; at < text.size();) {
    const TextPattern::Match match = splits[stage].find(text, at, work.match);
    if (match.begin > at) cut(text.substr(at, match.begin - at), stage + 1, work, to);
    if (match.end > match.begin) cut(text.substr(match.begin, match.end - match.begin), stage + 1, work, to);
    at = match.end;
  }
}

void Tokenizer::Impl::encode_plain(std::string_view text, Workspace& work,
                                   std::vector<std::int32_t>& to) const {
  if (text.empty()) return;
  if (file.space_first && text.front() != ' ') {
    work.spaced.assign(1, ' ').append(text);
    text = work.spaced;
  }
  cut(text, 0, work, to);
}

// `each` gets what lies between added tokens.
template <class Each>
void between(const AddedTokens& tokens, std::string_view text, SpecialTokens special,
             std::vector<std::int32_t>& to, Each each) {
  std::size_t begin = 0, from = 0;
  while (const auto found = tokens.find(text, from)) {
    from = found->at + found->token->text.size();
    if (found->token->special && special == SpecialTokens::as_text) continue;
    each(text.substr(begin, found->at - begin));
    to.push_back(static_cast<std::int32_t>(found->token->token));
    begin = from;
  }
  each(text.substr(begin));
}

void Tokenizer::Impl::encode(std::string_view text, SpecialTokens special, Workspace& work,
                             std::vector<std::int32_t>& to) const {
  between(first, text, special, to, [&](std::string_view left) {
    between(second, left, special, to, [&](std::string_view plain) { encode_plain(plain, work, to); });
  });
}

Index Tokenizer::size() const { return static_cast<Index>(impl_->bytes.size()); }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special,
                                            const Location& where) const {
  if (text.size() >= std::numeric_limits<std::uint32_t>::max() / 3)  // U+FFFD has three bytes
    throw Error(fmt::format("encode: a text of {} bytes at once; give it in parts of at most a gigabyte",
                            text.size()),
                where);
  std::unique_ptr<Workspace> work;
  {
    const std::lock_guard lock(impl_->mutex);
    if (!impl_->idle.empty()) {
      work = std::move(impl_->idle.back());
      impl_->idle.pop_back();
    }
  }
  if (!work) work = std::make_unique<Workspace>();
  std::vector<std::int32_t> tokens;
  try {
    tokens.reserve(text.size() / 4);
    impl_->encode(well_formed(text, work->repaired), special, *work, tokens);
  } catch (const Error& e) {
    throw Error(fmt::format("encode: {}", e.what()), where);
  }
  const std::lock_guard lock(impl_->mutex);
  impl_->idle.push_back(std::move(work));
  return tokens;
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& tokens, const Location& where) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    const auto number = static_cast<std::size_t>(token);
    if (token < 0 || number >= impl_->bytes.size() || impl_->bytes[number].empty())
      throw Error(fmt::format("decode: there is no token {} in a vocabulary of {}", token, size()), where);
    text += impl_->bytes[number];
  }
  return text;
}

std::optional<std::int32_t> Tokenizer::find(std::string_view text) const {
  if (const auto found = impl_->added.find(text); found != impl_->added.end()) return found->second;
  if (const auto found = impl_->vocabulary.find(text); found != impl_->vocabulary.end()) return found->second;
  return std::nullopt;
}

namespace {

formats::TokenizerFile parse(std::string_view text, const TokenizerOptions& options) {
  // A tiktoken file begins with a letter or a digit.
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && (text[begin] == '{' || text[begin] == '[')) {
    if (!options.pattern.empty()) throw Error("it says itself how text is cut: leave `pattern` empty");
    return formats::parse_tokenizer_json(text);
  }
  formats::TokenizerFile read = formats::parse_tiktoken(text);
  if (options.pattern.empty())
    throw Error(
        "a tiktoken file does not say how text is cut: `pattern` must, by \"gpt2\", \"cl100k\", \"o200k\" or "
        "a regular expression");
  read.splits.push_back({named_pattern(options.pattern), formats::PatternDialect::tiktoken});
  return read;
}

void add_special(formats::TokenizerFile& file, const std::vector<SpecialToken>& special) {
  for (const auto& [text, token] : special) {
    if (text.empty() || token < 0 || static_cast<std::uint32_t>(token) >= formats::kMostTokens)
      throw Error(
          fmt::format("the special token \"{}\" with number {}: it must have a text and a number from "
                      "0 to {}",
                      text, token, formats::kMostTokens - 1));
    file.added.push_back({.text = text, .token = static_cast<std::uint32_t>(token)});
  }
}

// Two texts of one number, or two numbers of one text, would not come back as what they were.
void check_added(const formats::TokenizerFile& file) {
  std::unordered_map<std::uint32_t, std::string_view> by_number;
  std::unordered_map<std::string_view, std::uint32_t> by_text;
  for (const formats::AddedToken& added : file.added) {
    const std::string_view own =
        added.token < file.tokens.size() ? std::string_view(file.tokens[added.token]) : std::string_view();
    if (!by_number.emplace(added.token, added.text).second ||
        !by_text.emplace(added.text, added.token).second || (!own.empty() && own != added.text))
      throw Error(
          fmt::format("the added token \"{}\" or its number {} is another's, too", added.text, added.token));
  }
}

}  // namespace

Tokenizer load_tokenizer(const std::string& path, const TokenizerOptions& options, const Location& where) {
  return formats::in_file("load_tokenizer", path, where, [&] {
    const auto file = formats::MappedFile::open(path);
    formats::TokenizerFile read = parse(formats::text(file->bytes()), options);
    add_special(read, options.special);
    check_added(read);
    return Tokenizer(std::make_shared<const Tokenizer::Impl>(std::move(read)));
  });
}

}  // namespace tilewright::nn
