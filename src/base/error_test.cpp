// Errors: what their messages carry and how a Result is opened.
#include "base/plain_message.h"

#include <tilewright/base/error.h>

#include <gtest/gtest.h>

#include <memory>

namespace tilewright {
namespace {

TEST(Error, NamesTheFileWithoutItsFolders) {
  const auto here = std::source_location::current();
  EXPECT_EQ(std::string(Error("matmul: inner dims differ", here).what()),
            "matmul: inner dims differ (at error_test.cpp:" + std::to_string(here.line()) + ")");
}

TEST(Result, HoldsAValue) {
  Result<int> result = 3;
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(*result, 3);
}

TEST(Result, HoldsAFailureWithItsKind) {
  const Result<int> result = failure(Failure::Kind::io, "cannot read x");
  EXPECT_FALSE(result);
  EXPECT_EQ(result.error().kind, Failure::Kind::io);
  EXPECT_EQ(name(result.error().kind), "i/o");
}

TEST(Result, OpeningAFailureThrowsItsMessage) {
  Result<int> result = failure(Failure::Kind::compile, "no compiler");
  try {
    result.value();
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no compiler");
  }
}

TEST(Result, ATextValueIsNotAFailure) {
  const Result<std::string> result = std::string("text");
  EXPECT_TRUE(result.ok());
}

TEST(Result, GivesUpMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Check, ThrowsWithConditionReasonAndPlace) {
  EXPECT_NO_THROW(TW_CHECK(1 + 1 == 2, "arithmetic"));
  try {
    TW_CHECK(1 > 2, "order");
    FAIL() << "did not throw";
  } catch (const std::logic_error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("order: 1 > 2 is false (at error_test.cpp:"), std::string::npos) << what;
  }
}

std::string plain(const char* what) { return plain_message(std::runtime_error(what)); }

TEST(PlainMessage, OfJsonSaysWhereItEndsAndNotHowItWasRead) {
  const std::string tag = "[json.exception.parse_error.101] parse error at ", state = "syntax error while ";
  EXPECT_EQ(
      plain((tag + "line 3, column 7: " + state + "parsing value - invalid literal; last read: '#'").c_str()),
      "it is no JSON from line 3, column 7 on");
  EXPECT_EQ(plain((tag + "line 2, column 1: " + state + "parsing object - unexpected end of input").c_str()),
            "its JSON ends too early, at line 2, column 1");
  EXPECT_EQ(plain((tag + "line 1, column 1: " + state + "parsing value - unexpected end of input").c_str()),
            "it is empty");
  EXPECT_EQ(plain("[json.exception.out_of_range.403] key 'name' not found"), "key 'name' not found");
  EXPECT_EQ(plain("no such file"), "no such file");
}

TEST(PlainMessage, ALineOfOursIsLeftOut) {
  const Error error("no memory", std::source_location::current());
  EXPECT_NE(std::string(error.what()), "no memory");
  EXPECT_EQ(without_place(error), "no memory");
  EXPECT_EQ(without_place(Error("no memory (of 3 bytes)")), "no memory (of 3 bytes)");
}

}  // namespace
}  // namespace tilewright
