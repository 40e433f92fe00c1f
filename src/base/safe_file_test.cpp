// A SafeFile is there whole or not at all, whoever writes it and whatever fails.
#include "base/safe_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace tilewright {
namespace {

namespace fs = std::filesystem;

class SafeFiles : public ::testing::Test {
 protected:
  SafeFiles() { fs::create_directory(folder_); }
  ~SafeFiles() override { fs::remove_all(folder_); }

  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::ptrdiff_t count() const { return std::distance(fs::directory_iterator(folder_), {}); }

  fs::path folder_ = fs::path(testing::TempDir()) / ("safe_file_" + std::to_string(::getpid()));
  std::string path_ = (folder_ / "x").string();
};

TEST_F(SafeFiles, TakesItsNameLast) {
  for (const bool durable : {true, false}) {
    ASSERT_TRUE(write_safely(path_, "old", {.durable = durable}));
    {
      SafeFile file = SafeFile::create(path_, {.durable = durable}).value();
      ASSERT_TRUE(file.write("?????"));
      ASSERT_TRUE(file.write("56"));
      ASSERT_TRUE(file.write_at(1, std::as_bytes(std::span("ab", 2))));
      ASSERT_TRUE(file.write("789"));
      SafeFile moved = std::move(file);
      ASSERT_TRUE(moved.finish());
      EXPECT_EQ(read(path_), "old");
      ASSERT_TRUE(moved.publish());
    }
    EXPECT_EQ(read(path_), "?ab??56789");
    EXPECT_EQ(count(), 1);
  }
}

TEST_F(SafeFiles, LeavesNothingWithoutPublish) {
  SafeFile(SafeFile::create(path_).value()).write("half").value();
  EXPECT_EQ(count(), 0);
}

TEST_F(SafeFiles, MakesFoldersWhereAskedTo) {
  const std::string deep = path_ + "/y/z";
  const Status refused = write_safely(deep, "1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Failure::Kind::io);
  EXPECT_EQ(refused.error().message, deep + ": it cannot be written: No such file or directory");
  ASSERT_TRUE(write_safely(deep, "1", {.make_folders = true}));
  EXPECT_EQ(read(deep), "1");
  EXPECT_NE(write_safely(deep + "/w", "1", {.make_folders = true}).error().message.find("cannot be written"),
            std::string::npos);
  EXPECT_NE(write_safely(path_, "1").error().message.find("no regular file"), std::string::npos);
}

// A process that was killed leaves its temporary file, and its number is given to another.
TEST_F(SafeFiles, PassesOverNamesThatAreTaken) {
  const std::string pid = std::to_string(::getpid());
  for (int serial = 0; serial < 100; ++serial)
    std::ofstream(path_ + "." + pid + "." + std::to_string(serial) + ".tmp") << "left";
  ASSERT_TRUE(write_safely(path_, "new"));
  EXPECT_EQ(read(path_), "new");
  EXPECT_EQ(count(), 101);
}

TEST_F(SafeFiles, ProcessesWriteOneFileAtOnce) {
  constexpr int kProcesses = 4, kTimes = 50;
  const std::size_t size = 50000;
  ASSERT_TRUE(write_safely(path_, std::string(size, 'a')));
  std::vector<pid_t> running;
  for (int p = 0; p < kProcesses; ++p) {
    running.push_back(::fork());
    if (running.back() > 0) continue;
    const std::string content(size, static_cast<char>('a' + p));
    for (int i = 0; i < kTimes; ++i)
      if (!write_safely(path_, content, {.durable = false})) ::_exit(1);
    ::_exit(0);
  }
  for (int i = 0; i < kTimes; ++i) {
    const std::string seen = read(path_);
    ASSERT_EQ(seen.size(), size);
    ASSERT_EQ(seen.find_first_not_of(seen[0]), std::string::npos);
  }
  for (const pid_t child : running) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(count(), 1);
}

TEST_F(SafeFiles, KeepsPermissions) {
  ASSERT_TRUE(write_safely(path_, "1"));
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  ASSERT_TRUE(write_safely(path_, "2"));
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
}

}  // namespace
}  // namespace tilewright
