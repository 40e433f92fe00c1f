// Byte-level BPE by hand: what merges, what stays, what is refused. judge_tokenizer.py has others' judgement.
#include <gtest/gtest.h>

#include <tilewright/nn/tokenizer.h>

#include <thread>

#include "formats/files.h"
#include "small_tokenizer.h"

namespace tilewright::nn {
namespace {

using test::SmallTokenizer;
using Tokens = std::vector<std::int32_t>;

struct Tokenizers : testing::Test {
  test::Folder folder;
  Tokenizer from_json(const SmallTokenizer& small) const {
    return load_tokenizer(folder.with("tokenizer.json", small.json()));
  }
  Tokenizer from_tiktoken(const SmallTokenizer& small, const std::string& pattern) const {
    return load_tokenizer(folder.with("a.tiktoken", small.tiktoken()), {.pattern = pattern});
  }
  std::string error_of(const std::string& content, const TokenizerOptions& options = {}) const {
    try {
      load_tokenizer(folder.with("t", content), options);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
};

TEST_F(Tokenizers, MergeTheLowestRankFirstAndTheLeftmostOfEqualOnes) {
  const Tokenizer t = from_json({.merges = {{"b", "c"}, {"a", "b"}, {"a", "a"}, {"aa", "a"}}});
  EXPECT_EQ(t.size(), 260);
  EXPECT_EQ(t.encode("abc"), (Tokens{'a', 256}));  // b c before a b
  EXPECT_EQ(t.encode("abd"), (Tokens{257, 'd'}));
  EXPECT_EQ(t.encode("aaa"), (Tokens{259}));        // (a a) a
  EXPECT_EQ(t.encode("aaaa"), (Tokens{258, 258}));  // both pairs before any triple
  EXPECT_EQ(t.encode(""), Tokens{});
  EXPECT_EQ(t.decode({259, 'x', 256}), "aaaxbc");
}

TEST_F(Tokenizers, MergeNothingAcrossPieces) {
  const SmallTokenizer small{.merges = {{"a", " "}, {" ", "a"}}};
  EXPECT_EQ(from_json(small).encode("a a"), (Tokens{'a', 257}));
  EXPECT_EQ(from_tiktoken(small, "gpt2").encode("a a"), (Tokens{'a', 257}));
  EXPECT_EQ(from_tiktoken(small, "[a-z ]+").encode("a a"), (Tokens{256, 'a'}));
}

TEST_F(Tokenizers, KeepWhatThePatternDoesNotMatch) {
  const SmallTokenizer small{.merges = {{"a", "a"}, {"-", "-"}}};
  EXPECT_EQ(from_tiktoken(small, "[a-z]+").encode("--aa-"), (Tokens{257, 256, '-'}));
}

TEST_F(Tokenizers, TakeAWholePieceWhereTheFileSaysSo) {
  SmallTokenizer small{.merges = {{"a", "b"}}, .more_vocabulary = R"(,"abc":300)"};
  EXPECT_EQ(from_json(small).encode("abc"), (Tokens{256, 'c'}));  // no merge makes it
  small.model = R"(,"ignore_merges":true)";
  EXPECT_EQ(from_json(small).encode("abc abcd"), (Tokens{300, ' ', 256, 'c', 'd'}));
}

TEST_F(Tokenizers, FindSpecialTokensOnlyWhereAskedTo) {
  const SmallTokenizer small{.merges = {{"<", "|"}},
                             .added = R"([{"id":300,"content":"<|end|>","special":true,"normalized":false},
                   {"id":301,"content":"<|end|>>","special":true,"normalized":false},
                   {"id":302,"content":"of","special":false,"normalized":true}])"};
  const Tokenizer t = from_json(small);
  EXPECT_EQ(t.size(), 303);
  EXPECT_EQ(t.encode("<|end|>").size(), 6U);
  EXPECT_EQ(t.encode("x<|end|>>y<|end|>", SpecialTokens::as_tokens), (Tokens{'x', 301, 'y', 300}));
  EXPECT_EQ(t.encode("of"), (Tokens{302}));  // added, and not special: always
  EXPECT_EQ(t.decode({300, 302}), "<|end|>of");
  EXPECT_EQ(t.find("<|end|>"), 300);
  EXPECT_EQ(t.find("<|"), 256);
  EXPECT_EQ(t.find("nothing"), std::nullopt);

  const Tokenizer other = load_tokenizer(folder.with("b.tiktoken", small.tiktoken()),
                                         {.pattern = "gpt2", .special = {{"<|end|>", 1000}}});
  EXPECT_EQ(other.encode("a<|end|>", SpecialTokens::as_tokens), (Tokens{'a', 1000}));
  EXPECT_THROW(other.decode({999}), Error);  // between the vocabulary and it
  EXPECT_THROW(other.decode({-1}), Error);
}

TEST_F(Tokenizers, RepairBrokenUtf8AsPythonDoes) {
  const Tokenizer t = from_json({});
  const std::string r = "\xEF\xBF\xBD";
  const std::pair<std::string, std::string> cases[] = {
      {"a\xff\xfe"
       "b",
       "a" + r + r + "b"},
      {"\xc3", r},
      {"\xe2\x82", r},  // the beginning of one character
      {"\xe2\x82"
       "a",
       r + "a"},
      {"\xf0\x9f\x98\xf0\x9f\x98\x80", r + "\xf0\x9f\x98\x80"},
      {"\xed\xa0\x80", r + r + r},  // a surrogate
      {"\xc0\xaf", r + r},          // overlong
      {"\xe0\x80\x80", r + r + r},
      {"\xf4\x90\x80\x80", r + r + r + r},  // past U+10FFFF
      {"12345678\x80"
       "12345678",
       "12345678" + r + "12345678"},
      {"na\xc3\xafve \xe2\x82\xac \xf4\x8f\xbf\xbf", "na\xc3\xafve \xe2\x82\xac \xf4\x8f\xbf\xbf"},
  };
  for (const auto& [broken, repaired] : cases) {
    EXPECT_EQ(t.decode(t.encode(broken)), repaired);
    EXPECT_EQ(t.encode(broken), t.encode(repaired));
  }
}

TEST_F(Tokenizers, GiveASpaceToATextThatBeginsWithNone) {
  const Tokenizer t =
      from_json({.merges = {{" ", "a"}},
                 .pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":true})"});
  EXPECT_EQ(t.encode("a a"), (Tokens{256, 256}));
  EXPECT_EQ(t.encode(" a"), (Tokens{256}));
}

TEST_F(Tokenizers, CutByOnePatternAfterTheOther) {
  const Tokenizer t = from_json({.merges = {{"1", "2"}, {"12", "3"}, {"a", "1"}, {".", "."}},
                                 .pre_tokenizer = R"({"type":"Sequence","pretokenizers":[
         {"type":"Digits","individual_digits":false},
         {"type":"Split","pattern":{"Regex":"[0-9]{1,2}"},"behavior":"Isolated","invert":false},
         {"type":"Split","pattern":{"String":"."},"behavior":"Isolated","invert":false},
         {"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})"});
  EXPECT_EQ(t.encode("a123.."), (Tokens{'a', 256, '3', '.', '.'}));
}

TEST_F(Tokenizers, ReadSpacesAsUnicodeHasThem) {
  // U+180E is none since Unicode 6.3, whatever PCRE2's \s says; U+3000 and U+0085 are.
  const Tokenizer t = from_tiktoken({.merges = {{"x", "\xe1"}, {"x", "\xe3"}, {"x", "\xc2"}}}, R"(\S+|\s+)");
  EXPECT_EQ(t.encode("x\xe1\xa0\x8e")[0], 256);
  EXPECT_EQ(t.encode("x\xe3\x80\x80")[0], 'x');
  EXPECT_EQ(t.encode("x\xc2\x85")[0], 'x');
}

TEST_F(Tokenizers, MergeAMegabyteOfOneLetter) {
  test::ByteMerges merges;
  for (std::string run = "a"; run.size() < 16; run += run) merges.emplace_back(run, run);
  const Tokenizer t = from_tiktoken({.merges = merges}, "cl100k");
  const Tokens tokens = t.encode(std::string(1'000'003, 'a'));  // minutes where merging is quadratic
  EXPECT_EQ(tokens.size(), 1'000'003U / 16 + 2);
  EXPECT_EQ(tokens.front(), 259);
  EXPECT_EQ(t.encode(std::string(1'000'000, ' ')).size(), 1'000'000U);
}

TEST_F(Tokenizers, AreSharedByThreads) {
  const Tokenizer t = from_json({.merges = {{"a", "b"}, {"ab", "c"}}});
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "abc ab " + std::to_string(i) + "\n";
  const Tokens alone = t.encode(text);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) EXPECT_EQ(t.encode(text), alone);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Tokenizers, NameTheFieldThatIsOfAnotherKind) {
  const auto json = [](auto change) {
    SmallTokenizer small{.merges = {{"a", "b"}}};
    change(small);
    return small.json();
  };
  const auto model = [&](const char* fields) { return json([&](auto& s) { s.model = fields; }); };
  const auto pre = [&](const char* value) { return json([&](auto& s) { s.pre_tokenizer = value; }); };
  const auto added = [&](const char* value) { return json([&](auto& s) { s.added = value; }); };
  const auto rest = [&](const char* value) { return json([&](auto& s) { s.rest = value; }); };
  std::string word_piece = json([](auto&) {});
  word_piece.replace(word_piece.find("\"BPE\""), 5, "\"WordPiece\"");
  std::string lost = json([](auto&) {});
  lost.replace(lost.find(R"(["a","b"])"), 9, R"(["a","zz"])");
  const std::pair<std::string, std::string> cases[] = {
      {word_piece, "model.type: \"WordPiece\" is not supported"},
      {lost, "model.merges[0]: \"zz\" is not in model.vocab"},
      {model(R"(,"dropout":0.1)"), "model.dropout"},
      {model(R"(,"byte_fallback":true)"), "model.byte_fallback"},
      {model(R"(,"continuing_subword_prefix":"##")"), "model.continuing_subword_prefix"},
      {model(R"(,"end_of_word_suffix":"</w>")"), "model.end_of_word_suffix"},
      {model(R"(,"ignore_merges":3)"), "model.ignore_merges: 3 where true or false must stand"},
      {rest(R"(,"normalizer":{"type":"NFC"})"), "normalizer.type: \"NFC\" changes text"},
      {pre("null"), "pre_tokenizer: no ByteLevel"},
      {pre(R"({"type":"Whitespace"})"), "pre_tokenizer.type: \"Whitespace\""},
      {pre(R"({"type":"Sequence","pretokenizers":[{"type":"Metaspace"}]})"),
       "pre_tokenizer.pretokenizers[0].type: \"Metaspace\""},
      {pre(R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"a"},"behavior":"Removed"}]})"),
       "pre_tokenizer.pretokenizers[0].behavior: \"Removed\""},
      {pre(R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"a&&("},"behavior":"Isolated"},)"
           R"({"type":"ByteLevel","add_prefix_space":false}]})"),
       "the pattern \"a&&(\" cannot be read"},
      {added(R"([{"id":300,"content":"x","lstrip":true}])"), "added_tokens[0].lstrip"},
      {added(R"([{"id":-3,"content":"x"}])"), "added_tokens[0].id: -3 where the number of a token"},
      {added(R"([{"id":300,"content":"x"},{"id":300,"content":"y"}])"), "\"y\" or its number 300"},
      {added(R"([{"id":97,"content":"x"}])"), "\"x\" or its number 97"},
      {json([](auto& s) { s.more_vocabulary = R"(,"xx":97)"; }), "model.vocab.xx: number 97 is another"},
      {json([](auto& s) { s.more_vocabulary = R"(,"xx":4000000000)"; }), "model.vocab.xx: 4000000000 where"},
      {"{}", "model: missing"},
      {"{\"a\":", "its JSON ends too early"},
      {"[]", "it is no object"},
  };
  for (const auto& [content, part] : cases) {
    const std::string said = error_of(content);
    EXPECT_NE(said.find(part), std::string::npos) << said << "\n  lacks " << part;
    EXPECT_EQ(said.find("load_tokenizer: "), 0U) << said;
  }
  EXPECT_NE(error_of(SmallTokenizer{}.json(), {.pattern = "gpt2"}).find("leave `pattern` empty"),
            std::string::npos);
}

TEST_F(Tokenizers, RefuseMalformedListsOfTiktoken) {
  const TokenizerOptions gpt2{.pattern = "gpt2"};
  const std::pair<std::string, std::string> cases[] = {
      {"", "it has no tokens"},
      {"YQ== 0\nYQ==1\n", "line 2 is no line of a tiktoken file: it has no space"},
      {"Y%== 0\n", "its token is no base64"},
      {"YQ= 0\n", "its token is no base64"},
      {" 0\n", "its token is no base64"},
      {"YQ== x\n", "its rank is no number"},
      {"YQ== 99999999\n", "its rank is no number below"},
      {"YQ== 0\nYg== 0\n", "line 2 is no line of a tiktoken file: rank 0 stands before it, too"},
      {"YQ== 0\nYQ== 1\n", "ranks 0 and 1 are the same bytes"},
  };
  for (const auto& [content, part] : cases) {
    const std::string said = error_of(content, gpt2);
    EXPECT_NE(said.find(part), std::string::npos) << said << "\n  lacks " << part;
  }
  EXPECT_NE(error_of("YQ== 0\n").find("`pattern` must"), std::string::npos);
  EXPECT_NE(error_of("YQ== 0\r\n\nYg== 1", {.pattern = "gpt2", .special = {{"", 2}}}).find("special token"),
            std::string::npos);
  const Tokenizer some = load_tokenizer(folder.with("s", "YQ== 0\r\n\nYg== 1"), gpt2);
  EXPECT_EQ(some.encode("ab"), (Tokens{0, 1}));
  EXPECT_THROW(some.encode("abc"), Error);  // no token for c
}

TEST_F(Tokenizers, RefusePatternsThatEnginesReadDifferently) {
  const std::string all = SmallTokenizer{}.tiktoken();
  for (const char* pattern : {R"(\w+)", R"([\w']+)", R"(\bx)", R"([a&&b])", R"([a[bc]])", R"([a--b])",
                              R"(\Qx\E)", R"(x\1)", "[]", "[^]a]"})
    EXPECT_NE(error_of(all, {.pattern = pattern}).find("which engines read differently"), std::string::npos)
        << pattern;
  for (const char* pattern : {"(x", "\\", "[a", R"(\p{Nowhere})", R"(\p{L)"})
    EXPECT_NE(error_of(all, {.pattern = pattern}).find("cannot be read"), std::string::npos) << pattern;
  EXPECT_EQ(error_of(all, {.pattern = R"([[:alpha:]\]\-'\n\x{41}\p{Lu}]+|[^a\s]{1,3}+|\P{L}$)"}), "no error");
}

}  // namespace
}  // namespace tilewright::nn
