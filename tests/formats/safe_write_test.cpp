// A file is there as a whole or as it was: a full disk, a folder that may not be written, links, permissions.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "formats/files.h"
#include "support/errors.h"
#include "support/file_size_limit.h"

namespace tilewright {
namespace {

using test::expect_says;
using test::FileSizeLimit;

class SafeWrite : public ::testing::Test {
 protected:
  Context ctx_{{.device = "reference", .cache_directory = ""}};
  test::Folder folder_;
  std::string here_ = "(at safe_write_test.cpp:";
};

TEST_F(SafeWrite, AFullDiskLeavesTheOldFile) {
  const Tensor small = ctx_.ones({4}), large = ctx_.ones({1 << 16});
  const struct {
    const char* op;
    std::string path;
    std::function<void(const std::string&, const Tensor&)> save;
  } cases[] = {
      {"save_npy", folder_.file("x.npy"), [](const std::string& p, const Tensor& t) { save_npy(p, t); }},
      {"save_npz", folder_.file("x.npz"),
       [](const std::string& p, const Tensor& t) { save_npz(p, {{"w", t}}); }},
      {"save_safetensors", folder_.file("x.safetensors"),
       [](const std::string& p, const Tensor& t) { save_safetensors(p, {{"w", t}}); }},
  };
  for (const auto& c : cases) {
    c.save(c.path, small);
    const std::string before = test::read_file(c.path);
    const std::size_t files = folder_.count();
    {
      const FileSizeLimit full(1 << 16);
      expect_says(
          [&] { c.save(c.path, large); },
          {std::string(c.op) + ": " + c.path, "could not be written: File too large", "is unchanged", here_});
    }
    EXPECT_EQ(test::read_file(c.path), before);
    EXPECT_EQ(folder_.count(), files) << "nothing is left beside";
  }
}

TEST_F(SafeWrite, AFullDiskLeavesAllShards) {
  const std::string path = folder_.file("m.safetensors");
  const auto model = [&](double value, Index last) {
    return NamedTensors{{"a", ctx_.full({64}, value)}, {"b", ctx_.full({last}, value)}};
  };
  save_safetensors(path, model(1, 64), {.shard_bytes = 256});
  {
    const FileSizeLimit full(1 << 16);
    expect_says([&] { save_safetensors(path, model(2, 1 << 16), {.shard_bytes = 256}); },
                {"File too large", here_});
  }
  const NamedTensors read = load_safetensors(ctx_, path + ".index.json");
  EXPECT_EQ(at(read, "a").to_vector<float>()[0], 1)
      << "the first shard was whole, and is not put in place alone";
  EXPECT_EQ(folder_.count(), 3U);
}

TEST_F(SafeWrite, SaysWhyAFileCannotBeWritten) {
  const Tensor x = ctx_.ones({2});
  expect_says([&] { save_npy(folder_.file("none/x.npy"), x); },
              {"save_npy: ", "none/x.npy: it cannot be written: No such file or directory", here_});
  std::filesystem::create_directory(folder_.file("d"));
  expect_says([&] { save_npy(folder_.file("d"), x); }, {"it is there, and no regular file", here_});
  expect_says([&] { save_npy("/proc/tilewright.npy", x); },
              {"/proc/tilewright.npy: it cannot be written: ", here_});
}

TEST_F(SafeWrite, KeepsLinksAndPermissions) {
  const Tensor x = ctx_.ones({2});
  save_npy(folder_.file("real.npy"), x);
  chmod(folder_.file("real.npy").c_str(), 0640);
  std::filesystem::create_symlink("real.npy", folder_.file("link.npy"));
  save_npy(folder_.file("link.npy"), ctx_.full({2}, 5));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.file("link.npy")));
  EXPECT_EQ(load_npy(ctx_, folder_.file("real.npy")).to_vector<float>()[0], 5);
  struct stat info{};
  ASSERT_EQ(stat(folder_.file("real.npy").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640U);
}

}  // namespace
}  // namespace tilewright
