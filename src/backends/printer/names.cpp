#include "backends/printer/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace tilewright::printer {

namespace {

constexpr std::string_view kKeywords =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq "
    "nullptr operator or or_eq private protected public register reinterpret_cast requires return "
    "short signed sizeof static static_assert static_cast struct switch template this thread_local "
    "throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while "
    "xor xor_eq ";

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

bool is_word_of(std::string_view list, std::string_view word) {
  for (std::size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1))
    if (at > 0 && list[at - 1] == ' ' && list.substr(at + word.size()).starts_with(' ')) return !word.empty();
  return false;
}

void add_declared_words(std::string_view text, std::set<std::string, std::less<>>& out) {
  int namespaces = 0, braces = 0, parentheses = 0;
  std::string_view before, word;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '/' && text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '#' && (i == 0 || text[i - 1] == '\n')) {
      while (i < text.size() && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
    } else if (c == '"') {
      i = std::min(text.find('"', i + 1), text.size() - 1) + 1;
    } else if (is_word(c)) {
      std::size_t end = i;
      while (end < text.size() && is_word(text[end])) ++end;
      before = std::exchange(word, text.substr(i, end - i));
      if (braces == 0 && parentheses == 0) out.emplace(word);
      i = end;
    } else {
      // namespace tw {, namespace fast {: what stands in them is declared, too.
      if (c == '{') ++(before == "namespace" && braces == 0 ? namespaces : braces);
      if (c == '}') --(braces > 0 ? braces : namespaces);
      parentheses += c == '(' ? 1 : c == ')' ? -1 : 0;
      ++i;
    }
  }
}

bool is_keyword(std::string_view word) { return is_word_of(kKeywords, word); }

std::string Names::identifier(std::string_view wish) const {
  std::string out;
  for (char c : wish) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (out.empty() || is_digit(out[0])) out.insert(0, "v");
  // A name that a number may follow does not end in a digit.
  if (again_ == Again::letter && is_digit(out.back())) out += "_";
  return is_keyword(out) || is_reserved_(out) ? out + "_" : out;
}

// x, x_2, x_3 …; or x, x_b, … x_z, x_bb, x_bc …
std::string Names::unique(std::string_view wish) {
  const std::string base = identifier(wish);
  std::string name = base;
  // A number behind a name is no word of the language; letters may be: and_eq.
  const auto is_free = [&] { return !is_keyword(name) && !is_reserved_(name) && taken_.insert(name).second; };
  for (int n = 1; !is_free(); ++n) {
    std::string suffix;
    if (again_ == Again::number)
      suffix = fmt::format("{}", n + 1);
    else
      for (int rest = n; rest > 0; rest /= 26)
        suffix.insert(suffix.begin(), static_cast<char>('a' + rest % 26));
    name = fmt::format("{}{}{}", base, base.back() == '_' ? "" : "_", suffix);
  }
  return name;
}

}  // namespace tilewright::printer
