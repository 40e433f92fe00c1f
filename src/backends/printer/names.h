// Names: the identifiers of one printed function, different from each other, from what the language reserves
// and from what its headers define.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace tilewright::printer {

bool is_keyword(std::string_view word);  // of C++
// The words of a header outside of bodies and parameters: its functions, types and constants among them.
void add_declared_words(std::string_view header, std::set<std::string, std::less<>>& words);
// Those of all headers of a list.
template <class Headers>
std::set<std::string, std::less<>> declared_words(const Headers& headers) {
  std::set<std::string, std::less<>> words;
  for (const auto& header : headers) add_declared_words(header.text, words);
  return words;
}
// Whether a word stands in a list with a space on either side of each.
bool is_word_of(std::string_view list, std::string_view word);

class Names {
 public:
  // The ending of a second x: x_2, or x_b where printed code puts numbers behind names.
  enum class Again : unsigned char { number, letter };
  Names(std::function<bool(std::string_view)> is_reserved, Again again)
      : is_reserved_(std::move(is_reserved)), again_(again) {}

  // A name that nothing else has, until it is released.
  std::string unique(std::string_view wish);
  void release(const std::string& name) { taken_.erase(name); }

  // The wish as C++: other characters become '_', a reserved word gets one at its end.
  std::string identifier(std::string_view wish) const;

 private:
  std::function<bool(std::string_view)> is_reserved_;
  Again again_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace tilewright::printer
