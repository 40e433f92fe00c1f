#include "backends/printer/names.h"

#include <gtest/gtest.h>

namespace tilewright::printer {
namespace {

Names names(Names::Again again) {
  return {[](std::string_view word) { return word == "load"; }, again};
}

TEST(Names, ThatAreTakenGoOnByNumber) {
  Names n = names(Names::Again::number);
  EXPECT_EQ(n.unique("scores"), "scores");
  EXPECT_EQ(n.unique("scores"), "scores_2");
  EXPECT_EQ(n.unique("scores_2"), "scores_2_2");
  EXPECT_EQ(n.unique("scores"), "scores_3");
}

TEST(Names, ThatANumberFollowsGoOnByLetterAndEndInNone) {
  Names n = names(Names::Again::letter);
  EXPECT_EQ(n.unique("a0"), "a0_");
  EXPECT_EQ(n.unique("a"), "a");
  EXPECT_EQ(n.unique("a"), "a_b");
}

TEST(Names, AreCppAndNoWordOfTheLanguageOrTheHeaders) {
  Names n = names(Names::Again::number);
  EXPECT_EQ(n.unique("row.max"), "row_max");
  EXPECT_EQ(n.unique("1x"), "v1x");
  EXPECT_EQ(n.unique("switch"), "switch_");
  EXPECT_EQ(n.unique("load"), "load_");
  EXPECT_EQ(n.unique("load"), "load_2");
}

// and_ and the letters eq are and_eq.
TEST(Names, ThatGoOnByLetterAreNoWordsEither) {
  for (const char* const word : {"and", "or", "xor", "not"}) {
    Names n = names(Names::Again::letter);
    for (int i = 0; i < 200; ++i) EXPECT_FALSE(is_keyword(n.unique(word))) << word << " " << i;
  }
}

TEST(Names, AreFreeOnceTheyAreReleased) {
  Names n = names(Names::Again::number);
  n.release(n.unique("x"));
  EXPECT_EQ(n.unique("x"), "x");
}

TEST(Names, OfAHeaderAreWhatStandsOutsideOfBodiesAndParameters) {
  std::set<std::string, std::less<>> words;
  add_declared_words(
      "#define HIDDEN \\\n  also_hidden\n// commented\n#include \"quoted\"\nnamespace tw {\nnamespace fast "
      "{\n"
      "template <int N> f32 power(f32 base) { return local(base); }\n}\nstruct Ring { int member; };\n"
      "constexpr int kSize = 4;\n}  // namespace tw\nvoid outside();\n",
      words);
  for (const char* there : {"power", "Ring", "kSize", "outside", "f32"})
    EXPECT_EQ(words.count(there), 1U) << there;
  for (const char* missing : {"base", "local", "member", "commented", "quoted", "HIDDEN", "also_hidden"})
    EXPECT_EQ(words.count(missing), 0U) << missing;
}

}  // namespace
}  // namespace tilewright::printer
