// The cache of compiled kernels gives back what was stored or nothing, whatever happened to its files and
// whoever writes them at the same time.
#include "runtime/binary_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

namespace tilewright::runtime {
namespace {

namespace fs = std::filesystem;

class Cache : public ::testing::Test {
 protected:
  Cache()
      : folder_(fs::path(::testing::TempDir()) / ("tw_cache_" + std::to_string(getpid()))),
        cache_(folder_.string()) {
    fs::remove_all(folder_);
  }
  ~Cache() override { fs::remove_all(folder_); }

  fs::path file_of(const Hash128& key) const { return folder_ / (to_hex(key) + ".twk"); }
  static std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  fs::path folder_;
  BinaryCache cache_;
};

// Different for each key, and long enough to take several pages.
std::string body_of(std::uint64_t k) {
  std::string body;
  for (std::uint64_t i = 0; i < 3000; ++i) body += std::to_string(i * k) + ' ';
  return body;
}
Hash128 key_of(std::uint64_t k) { return hash_bytes("key " + std::to_string(k)); }

// Runs `body` in another process; what waitpid says of its end.
pid_t start(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  body();
  _exit(0);
}
int end_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(Cache, GivesBackWhatWasStored) {
  EXPECT_FALSE(cache_.find(key_of(1)).has_value());
  ASSERT_TRUE(cache_.store(key_of(1), body_of(1)).ok());
  ASSERT_TRUE(cache_.store(key_of(2), "").ok());
  EXPECT_EQ(cache_.find(key_of(1)), body_of(1));
  EXPECT_EQ(cache_.find(key_of(2)), "");
  EXPECT_EQ(BinaryCache(folder_.string()).find(key_of(1)), body_of(1))
      << "another process reads the same folder";
  EXPECT_EQ(cache_.info().value().entries, 2u);
  EXPECT_EQ(cache_.verify().value().damaged, 0u);
  EXPECT_EQ(cache_.clear().value().entries, 2u);
  EXPECT_FALSE(cache_.find(key_of(1)).has_value());
}

TEST_F(Cache, WithoutAFolderKeepsNothingAndComplainsOfNothing) {
  BinaryCache none("");
  EXPECT_TRUE(none.store(key_of(1), "x").ok());
  EXPECT_FALSE(none.find(key_of(1)).has_value());
}

TEST_F(Cache, AnEntryCutAnywhereIsAMiss) {
  ASSERT_TRUE(cache_.store(key_of(1), "some machine code").ok());
  const std::string whole = read(file_of(key_of(1)));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write(file_of(key_of(1)), whole.substr(0, size));
    EXPECT_FALSE(cache_.find(key_of(1)).has_value()) << size;
    EXPECT_EQ(cache_.verify().value().damaged, 1u) << size;
  }
  write(file_of(key_of(1)), whole + "!");
  EXPECT_FALSE(cache_.find(key_of(1)).has_value());
  ASSERT_TRUE(cache_.store(key_of(1), "some machine code").ok()) << "a damaged entry is replaced";
  EXPECT_EQ(cache_.find(key_of(1)), "some machine code");
}

TEST_F(Cache, AnEntryWithAnyBitFlippedIsAMiss) {
  ASSERT_TRUE(cache_.store(key_of(1), "some machine code").ok());
  const std::string whole = read(file_of(key_of(1)));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    write(file_of(key_of(1)), bytes);
    EXPECT_FALSE(cache_.find(key_of(1)).has_value()) << "bit " << bit;
    EXPECT_EQ(cache_.verify().value().damaged, 1u) << "bit " << bit;
  }
}

TEST_F(Cache, AnEntryOfAnotherKeyOrAnotherProgramIsAMiss) {
  ASSERT_TRUE(cache_.store(key_of(1), body_of(1)).ok());
  fs::copy_file(file_of(key_of(1)), file_of(key_of(2)));
  EXPECT_FALSE(cache_.find(key_of(2)).has_value());
  write(file_of(key_of(3)), "\177ELF of someone else");
  EXPECT_FALSE(cache_.find(key_of(3)).has_value());
  fs::create_directory(file_of(key_of(4)));
  EXPECT_FALSE(cache_.find(key_of(4)).has_value());
  EXPECT_EQ(cache_.verify().value().damaged, 3u);
  EXPECT_EQ(cache_.find(key_of(1)), body_of(1));
}

TEST_F(Cache, AFolderThatCannotBeWrittenIsAFailureThatNamesIt) {
  write(folder_, "a file where the folder should be");
  const Status stored = cache_.store(key_of(1), "x");
  ASSERT_FALSE(stored.ok());
  EXPECT_EQ(stored.error().kind, Failure::Kind::io);
  EXPECT_NE(stored.error().message.find(folder_.string()), std::string::npos) << stored.error().message;
  EXPECT_FALSE(cache_.find(key_of(1)).has_value());
  BinaryCache read_only("/proc/tilewright");  // for root too
  EXPECT_EQ(read_only.store(key_of(1), "x").error().kind, Failure::Kind::io);
}

// A limit on the size of files ends a write as a full disk does, in the middle.
TEST_F(Cache, AFullDiskLeavesNoEntryAndSaysSo) {
  ASSERT_TRUE(cache_.store(key_of(1), "small").ok());
  const int status = end_of(start([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Status stored = cache_.store(key_of(2), body_of(2));
    _exit(!stored.ok() && stored.error().kind == Failure::Kind::io &&
                  stored.error().message.find(std::strerror(EFBIG)) != std::string::npos
              ? 0
              : 1);
  }));
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(cache_.find(key_of(2)).has_value());
  EXPECT_EQ(cache_.find(key_of(1)), "small");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1)
      << "half a file is left";
}

TEST_F(Cache, ProcessesThatWriteTheSameKeysAtOnceSeeWholeEntries) {
  std::array<pid_t, 4> children{};
  for (pid_t& child : children)
    child = start([&] {
      for (std::uint64_t round = 0; round < 50; ++round)
        for (std::uint64_t k = 1; k <= 5; ++k) {
          if (!cache_.store(key_of(k), body_of(k)).ok()) _exit(1);
          if (cache_.find(key_of(k)) != body_of(k)) _exit(2);
        }
    });
  for (pid_t child : children) EXPECT_EQ(end_of(child), 0);
  EXPECT_EQ(cache_.info().value().entries, 5u);
  EXPECT_EQ(cache_.verify().value().damaged, 0u);
}

TEST_F(Cache, AWriterKilledAtAnyMomentLeavesWholeEntriesOnly) {
  for (int kill_after_us = 200; kill_after_us < 20000; kill_after_us += 660) {
    const pid_t child = start([&] {
      for (std::uint64_t k = 1;; k = k % 7 + 1) (void)cache_.store(key_of(k), body_of(k));
    });
    usleep(static_cast<useconds_t>(kill_after_us));
    kill(child, SIGKILL);
    EXPECT_EQ(WTERMSIG(end_of(child)), SIGKILL);
    EXPECT_EQ(cache_.verify().value().damaged, 0u);
    for (std::uint64_t k = 1; k <= 7; ++k) EXPECT_EQ(cache_.find(key_of(k)).value_or(body_of(k)), body_of(k));
  }
  EXPECT_GT(cache_.info().value().entries, 0u);
  (void)cache_.clear();
  EXPECT_TRUE(fs::is_empty(folder_)) << "clear leaves what killed writers left";
}

TEST_F(Cache, TheLeastRecentlyUsedEntriesGoFirst) {
  BinaryCache small(folder_.string(), 8000);
  const std::string body(2000, 'x');
  for (std::uint64_t k = 1; k <= 3; ++k) {
    ASSERT_TRUE(small.store(key_of(k), body).ok());
    usleep(20000);  // files keep their time to a clock tick
  }
  ASSERT_TRUE(small.find(key_of(1)).has_value());
  usleep(20000);
  ASSERT_TRUE(small.store(key_of(4), body).ok());
  EXPECT_LE(small.info().value().bytes, 8000u);
  EXPECT_TRUE(small.find(key_of(1)).has_value()) << "used a moment ago";
  EXPECT_FALSE(small.find(key_of(2)).has_value()) << "the oldest";
  EXPECT_TRUE(small.find(key_of(4)).has_value());
}

}  // namespace
}  // namespace tilewright::runtime
