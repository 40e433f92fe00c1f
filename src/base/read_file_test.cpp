#include "base/read_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tilewright {
namespace {

TEST(ReadFile, GivesAllBytesOrSaysWhyNot) {
  const std::string path = testing::TempDir() + "read_file_test";
  const std::string text("a\0b\n\xff", 5);
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(read_file(path).value(), text);
  std::ofstream(path, std::ios::binary) << "";
  EXPECT_EQ(read_file(path).value(), "");
  std::filesystem::remove(path);
  const auto missing = read_file(path);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Failure::Kind::not_found);
  EXPECT_EQ(missing.error().message, "cannot read " + path + ": No such file or directory");
  const auto folder = read_file("/");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().message, "cannot read /: Is a directory");
}

}  // namespace
}  // namespace tilewright
