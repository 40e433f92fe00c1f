// A folder of checkpoints under what happens to folders: damage, a full disk, no permission, another process.
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <tilewright/nn/checkpoint_folder.h>
#include <tilewright/tilewright.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/errors.h"
#include "support/file_size_limit.h"

namespace tilewright::nn {
namespace {

namespace fs = std::filesystem;
using test::expect_says;

struct Model {
  Tensor weight, bias;
  TILEWRIGHT_FIELDS(weight, bias)
};

class CheckpointFolderTest : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(path_); }
  void TearDown() override {
    fs::permissions(path_, fs::perms::owner_all);
    fs::remove_all(path_);
  }
  Model model(double value) { return {ctx_.full({4, 8}, value), ctx_.full({8}, -value)}; }
  // Checkpoints of steps 1 to `last`, each of its own number; that of `best` is the best.
  CheckpointFolder filled(int last, int best = 0) {
    CheckpointFolder folder(path_);
    for (int step = 1; step <= last; ++step)
      folder.save(model(step), step, {.words = {{"seen", std::to_string(step)}}, .is_best = step == best});
    folder.wait();
    return folder;
  }
  std::string file(int step) const { return path_ + "/step-0000000" + std::to_string(step) + ".safetensors"; }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void flip(const std::string& path, std::size_t byte) {
    std::string bytes = read(path);
    bytes.at(byte) = static_cast<char>(bytes[byte] ^ 4);
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(path_)) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  // What a process that opens the folder anew finds: its step, whose numbers it has, and what was lost.
  void expect_found(int step, const std::vector<std::string>& lost) {
    const auto found = CheckpointFolder(path_).load(ctx_, model(0));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->step, step);
    EXPECT_EQ(found->word("seen"), std::to_string(step));
    EXPECT_EQ(found->tree.weight.to_vector<double>(), std::vector<double>(32, step));
    EXPECT_EQ(found->tree.bias.to_vector<double>(), std::vector<double>(8, -step));
    EXPECT_EQ(found->lost.empty(), lost.empty()) << found->lost;
    EXPECT_EQ(found->lost.find('\n'), std::string::npos) << "it is one line";
    for (const std::string& part : lost) EXPECT_NE(found->lost.find(part), std::string::npos) << found->lost;
  }

  Context ctx_{{.device = "reference", .cache_directory = ""}};
  std::string path_ = testing::TempDir() + "tilewright-checkpoints-" + std::to_string(getpid());
};

TEST_F(CheckpointFolderTest, TheLastAndTheBestAreKept) {
  CheckpointFolder folder = filled(6, 2);
  const auto entries = folder.entries();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].step, 2);
  EXPECT_TRUE(entries[0].is_best);
  EXPECT_EQ(entries[1].path, file(5));
  EXPECT_FALSE(entries[2].is_best);
  EXPECT_EQ(names(), (std::vector<std::string>{"manifest", "step-00000002.safetensors",
                                               "step-00000005.safetensors", "step-00000006.safetensors"}));
  folder.save(model(7), 7, {.is_best = true});
  folder.wait();
  EXPECT_EQ(folder.entries().front().step, 6) << "there is another best";
}

TEST_F(CheckpointFolderTest, AnEmptyFolderHasNone) {
  EXPECT_FALSE(CheckpointFolder(path_).load(ctx_, model(0)));
}

TEST_F(CheckpointFolderTest, TheLastGoodOneIsTaken) {
  filled(3);
  expect_found(3, {});
  const struct {
    const char* what;
    std::function<void()> damage;
    std::string said;
  } cases[] = {
      {"a flipped bit", [&] { flip(file(3), fs::file_size(file(3)) - 3); }, "is damaged"},
      {"a flipped bit of the header", [&] { flip(file(3), 20); }, "step 3: "},
      {"a truncated file", [&] { fs::resize_file(file(3), fs::file_size(file(3)) / 2); }, "cut short"},
      {"an empty file", [&] { fs::resize_file(file(3), 0); }, "step 3: "},
      {"a missing file", [&] { fs::remove(file(3)); }, "No such file"},
      {"another's file", [&] { fs::copy_file(file(2), file(3), fs::copy_options::overwrite_existing); },
       "is of step 2"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const std::string whole = read(file(3));
    c.damage();
    expect_found(2, {c.said, "step-00000003.safetensors"});
    std::ofstream(file(3), std::ios::binary) << whole;
  }
  expect_found(3, {});
}

TEST_F(CheckpointFolderTest, ADamagedManifestIsDoneWithout) {
  filled(3);
  const std::string manifest = path_ + "/manifest";
  flip(manifest, 26);
  expect_found(3, {"manifest: it is damaged"});
  fs::remove(manifest);
  expect_found(3, {"manifest is missing"});
}

TEST_F(CheckpointFolderTest, WhatTheManifestDoesNotNameIsNoCheckpoint) {
  filled(3);
  fs::copy_file(file(2), file(4));  // a process was killed before it wrote the manifest
  std::ofstream(path_ + "/step-00000005.safetensors.123.0.tmp") << "half";
  expect_found(3, {});
  CheckpointFolder folder(path_);
  folder.save(model(6), 6);
  folder.wait();
  EXPECT_EQ(names(),
            (std::vector<std::string>{"manifest", "step-00000003.safetensors", "step-00000006.safetensors"}));
}

TEST_F(CheckpointFolderTest, GoingOnFromAnEarlierOneDropsTheLost) {
  filled(3);
  flip(file(3), fs::file_size(file(3)) - 3);
  CheckpointFolder folder(path_);
  ASSERT_EQ(folder.load(ctx_, model(0))->step, 2);
  folder.save(model(5), 5);
  folder.wait();
  EXPECT_EQ(folder.entries().front().step, 2) << "the one that is whole stays, not the damaged one";
}

TEST_F(CheckpointFolderTest, NoneThatIsWholeIsAnError) {
  filled(2);
  for (int step = 1; step <= 2; ++step) fs::resize_file(file(step), 9);
  CheckpointFolder folder(path_);
  expect_says([&] { (void)folder.load(ctx_, model(0)); },
              {"load: " + path_ + " has no checkpoint that is whole: step 2: ", "; step 1: "});
}

TEST_F(CheckpointFolderTest, AnotherTreesNamesAreAnError) {
  filled(2);
  CheckpointFolder folder(path_);
  const struct Other {
    Tensor weight, scale;
    TILEWRIGHT_FIELDS(weight, scale)
  } other{ctx_.zeros({4, 8}), ctx_.zeros({8})};
  expect_says([&] { (void)folder.load(ctx_, other); }, {"scale", "bias"});
}

TEST_F(CheckpointFolderTest, AFullDiskIsSaidAtTheNextSaveAndTheOldOnesStay) {
  CheckpointFolder folder = filled(3);
  const std::string before = read(file(3));
  {
    const test::FileSizeLimit full(64);
    folder.save(model(4), 4);
    expect_says([&] { folder.save(model(5), 5); }, {"save_checkpoint: " + file(4), "File too large",
                                                    "is unchanged", "checkpoint_folder_test.cpp:"});
    folder.save(model(5), 5);
    expect_says([&] { folder.wait(); }, {file(5), "File too large"});
    EXPECT_NO_THROW(folder.wait()) << "an error is told once";
  }
  EXPECT_EQ(folder.entries().back().step, 3);
  EXPECT_EQ(read(file(3)), before);
  EXPECT_EQ(names().size(), 3U) << "nothing is left beside";
  folder.save(model(6), 6);
  EXPECT_NO_THROW(folder.wait()) << "there is room again";
}

TEST_F(CheckpointFolderTest, AFolderThatMayNotBeWrittenKeepsWhatItHas) {
  {
    CheckpointFolder folder = filled(2);
    fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                               fs::perms::others_exec);
    const auto root = setfsuid(65534);  // to whom modes mean nothing
    folder.save(model(3), 3);
    expect_says([&] { folder.wait(); }, {file(3), "it cannot be written: Permission denied"});
    setfsuid(static_cast<uid_t>(root));
  }
  expect_found(2, {});
  expect_says([] { CheckpointFolder("/proc/none"); }, {"CheckpointFolder: /proc/none: it cannot be made: "});
  expect_says([&] { CheckpointFolder(path_, {.keep_last = 0}); }, {"keep_last is 0; at least 1 is kept"});
}

TEST_F(CheckpointFolderTest, OneProcessWrites) {
  {
    const CheckpointFolder folder(path_);
    expect_says([&] { const CheckpointFolder other(path_); },
                {path_ + ": another process is writing checkpoints into it"});
  }
  EXPECT_NO_THROW(CheckpointFolder{path_});
}

TEST_F(CheckpointFolderTest, ATreeIsSavedAsItIsThen) {
  CheckpointFolder folder(path_);
  const Model m = model(1);
  const auto next = compile([](const Tensor& w, const Tensor& b) { return std::tuple{w + 1.0, b - 1.0}; });
  for (int step = 1; step <= 20; ++step) {
    folder.save(m, step, {.words = {{"seen", std::to_string(step)}}});
    next.into({m.weight, m.bias}, m.weight, m.bias);  // in place, while it is written
    if (step % 5 != 0) continue;
    const auto found = folder.load(ctx_, model(0));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->tree.weight.to_vector<double>(), std::vector<double>(32, step));
    EXPECT_EQ(found->word("seen"), std::to_string(step));
  }
}

}  // namespace
}  // namespace tilewright::nn
