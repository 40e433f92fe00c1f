// Errors: what their messages carry and how a Result is opened.
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

}  // namespace
}  // namespace tilewright
