// A pattern that cuts text into pieces, by PCRE2 with Unicode's classes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "formats/tokenizer_file.h"

namespace tilewright::nn {

// What one match at a time needs; not for two threads at once.
class MatchState {
 public:
  MatchState();
  struct Data;
  Data& data() const { return *data_; }

 private:
  std::shared_ptr<Data> data_;
};

// Immutable: threads may share it.
class TextPattern {
 public:
  // Throws Error: it is no regular expression, or has what engines read differently.
  explicit TextPattern(const formats::SplitPattern& pattern);
  struct Match {
    std::size_t begin, end;
  };
  // The first match at or after `from` that is not empty; {size, size} where there is none. `text` must be
  // well-formed UTF-8. Throws Error where the pattern needs more memory than it may have.
  Match find(std::string_view text, std::size_t from, const MatchState& state) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

// The expression that a name of TokenizerOptions::pattern means; what has no such name is one itself.
std::string named_pattern(const std::string& name);

}  // namespace tilewright::nn
