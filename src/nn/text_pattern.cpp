// Patterns of tokenizers, which are written for the regular expressions of Rust (tiktoken) and of Oniguruma
// (tokenizers), in PCRE2's language. What the three agree on is passed on, \s is made to agree, and what is
// left is refused: a pattern that was misread would give other tokens, and no error.
#include "nn/text_pattern.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tilewright::nn {

namespace {

using formats::PatternDialect;

// Rewrites a pattern, byte by byte; in brackets it looks at classes.
class Translator {
 public:
  explicit Translator(const formats::SplitPattern& pattern) : in_(pattern.text), dialect_(pattern.dialect) {}

  std::string run() {
    for (; at_ < in_.size(); ++at_) {
      const char c = in_[at_];
      if (c == '\\')
        escape();
      else if (class_begin_ != std::string_view::npos)
        in_class(c);
      else
        outside(c);
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(
        fmt::format("the pattern \"{}\" has {} at byte {}, which engines read differently", in_, what, at_));
  }
  bool next_is(char c) const { return at_ + 1 < in_.size() && in_[at_ + 1] == c; }

  void escape() {
    if (at_ + 1 == in_.size()) {
      out_ += '\\';  // PCRE2 says what is wrong
      return;
    }
    const char c = in_[at_ + 1];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    // U+180E is a space of PCRE2's \s, and of Unicode's since version 6.3 no more.
    if (c == 's' || c == 'S')
      out_ += c == 's' ? R"(\p{White_Space})" : R"(\P{White_Space})";
    else if (!letter || std::string_view("pPdDrntfv").find(c) != std::string_view::npos)
      out_.append({'\\', c == 'v' ? '\x0b' : c});
    else if (c == 'x')
      out_ += "\\x";
    else
      refuse(fmt::format("\\{}", c));
    ++at_;
    if ((c == 'p' || c == 'P' || c == 'x') && next_is('{')) {  // the braces of a count are others
      const std::size_t end = std::min(in_.find('}', at_), in_.size() - 1);
      out_.append(in_, at_ + 1, end - at_);
      at_ = end;
    }
  }

  void in_class(char c) {
    const bool first = at_ == class_begin_;
    if (c == '[' && !next_is(':')) refuse("a class within a class");
    if (c == '&' && next_is('&')) refuse("an intersection of classes");
    if ((c == '-' || c == '~') && next_is(c)) refuse("a difference of classes");
    out_ += c;
    if (c == '[') {
      const std::size_t end = std::min(in_.find(":]", at_), in_.size());
      out_.append(in_, at_ + 1, end + 2 - at_ - 1);
      at_ = end + 1;
    } else if (c == '^' && first) {
      ++class_begin_;
    } else if (c == ']' && !first) {
      class_begin_ = std::string_view::npos;
    } else if (c == ']') {
      refuse("an empty class");
    }
  }

  void outside(char c) {
    const bool oniguruma = dialect_ == PatternDialect::tokenizers;
    if (oniguruma && (c == '$' || c == '^')) refuse("the beginning or end of a line");
    if (oniguruma && c == '}' && next_is('+')) refuse("a count that gives nothing back");
    if (c == '[') class_begin_ = at_ + 1;
    out_ += c;
  }

  std::string_view in_;
  PatternDialect dialect_;
  std::size_t at_ = 0, class_begin_ = std::string_view::npos;
  std::string out_;
};

std::string message(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct MatchState::Data {
  Data()
      : match(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        // Nested repetitions need it; the published patterns do not. It grows as far as it must.
        stack(pcre2_jit_stack_create(32 << 10, 64 << 20, nullptr)) {
    if (match == nullptr || context == nullptr || stack == nullptr) throw std::bad_alloc();
    pcre2_jit_stack_assign(context, nullptr, stack);
    // A run of letters may be as long as the text.
    pcre2_set_match_limit(context, std::numeric_limits<std::uint32_t>::max());
  }
  ~Data() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  pcre2_match_data* match;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
};

MatchState::MatchState() : data_(std::make_shared<Data>()) {}

struct TextPattern::Code {
  explicit Code(pcre2_code* c) : compiled(c) {}
  ~Code() { pcre2_code_free(compiled); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  pcre2_code* compiled;
};

TextPattern::TextPattern(const formats::SplitPattern& pattern) {
  const std::string text = Translator(pattern).run();
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                       PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C,
                                       &error, &place, nullptr);
  if (compiled == nullptr)
    throw Error(fmt::format("the pattern \"{}\" cannot be read: {}", pattern.text, message(error)));
  code_ = std::make_shared<const Code>(compiled);
  // Where the system forbids making machine code, PCRE2 interprets: slower, with the same matches.
  (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
}

TextPattern::Match TextPattern::find(std::string_view text, std::size_t from, const MatchState& state) const {
  const MatchState::Data& data = state.data();
  // The text was seen to be UTF-8, once for all pieces.
  const int found = pcre2_match(code_->compiled, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data.match, data.context);
  if (found == PCRE2_ERROR_NOMATCH) return {text.size(), text.size()};
  if (found < 0)
    throw Error(fmt::format("the pattern that cuts the text fails at byte {}: {}", from, message(found)));
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data.match);
  return {bounds[0], bounds[1]};
}

std::string named_pattern(const std::string& name) {
  // Patterns of tiktoken's openai_public.py, without the possessive marks, which change no match.
  if (name == "gpt2") return R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  if (name == "cl100k")
    return R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
           R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
  if (name == "o200k")
    return R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
           R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
           R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  return name;
}

}  // namespace tilewright::nn
