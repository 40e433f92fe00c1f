// Ceiling files: round trip, and damaged files that fail with a reason.
#include <tilewright/perf/ceiling_file.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tilewright::perf {
namespace {

Ceilings sample() {
  return {
      "here",
      "a machine",
      {{"memory_bytes_per_s", 83.25e9, "tw bench read, 2 threads"}, {"vector.f32", 534e9, "tw bench fma"}}};
}

std::string temporary_path(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / "tilewright_ceilings" / name).string();
}

TEST(CeilingFile, TextRoundTrips) {
  const auto parsed = parse_ceilings(to_json(sample()), "text");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_TRUE(*parsed == sample());
}

TEST(CeilingFile, FileRoundTripsIntoANewFolder) {
  const std::string path = temporary_path("here.json");
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  ASSERT_TRUE(write_ceilings(sample(), path).ok());
  const auto read = read_ceilings(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_hardware(*read).memory_bytes_per_s.value, 83.25e9);
  EXPECT_EQ(to_hardware(*read).memory_bytes_per_s.source, "tw bench read, 2 threads");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& f :
       std::filesystem::directory_iterator(std::filesystem::path(path).parent_path())) {
    ++files;
  }
  EXPECT_EQ(files, 1u);  // no temporary is left
}

TEST(CeilingFile, MissingFileIsAnIoFailureWithThePath) {
  const auto read = read_ceilings("/nonexistent/here.json");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, Failure::Kind::io);
  EXPECT_NE(read.error().message.find("/nonexistent/here.json"), std::string::npos);
}

TEST(CeilingFile, DamagedTextFailsWithItsPlace) {
  const std::string good = to_json(sample());
  for (std::size_t cut = 0; cut + 2 < good.size(); cut += 7) {
    EXPECT_FALSE(parse_ceilings(good.substr(0, cut), "cut").ok()) << cut;
  }
  const auto wrong = parse_ceilings(
      R"({"name":"x","title":"","measurements":[{"what":"memory_bytes_per_s","value":1,"how":""},{"what":"vector.f32"}]})",
      "file.json");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("file.json: not a ceiling file, measurement 1"), std::string::npos)
      << wrong.error().message;
  for (const char* damaged : {"{", "[]", R"({"name":1,"title":"","measurements":[]})", R"({"name":"x"})"}) {
    const auto none = parse_ceilings(damaged, "file.json");
    ASSERT_FALSE(none.ok()) << damaged;
    EXPECT_EQ(none.error().message.find("exception"), std::string::npos) << none.error().message;
  }
  EXPECT_FALSE(parse_ceilings(R"({"name":"x","title":"","measurements":[]})", "empty").ok());
}

}  // namespace
}  // namespace tilewright::perf
