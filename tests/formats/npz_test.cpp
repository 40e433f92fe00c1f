// .npz: what is written comes back, NumPy's own archives, and damaged ones.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "formats/files.h"
#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;
using Floats = std::vector<float>;

// Places of numbers in a record of a ZIP archive's directory, and in the record at its end.
enum Field : std::size_t { kFlags = 8, kMethod = 10, kChecksum = 16, kPackedBytes = 20, kBytes = 24 };

// The archive with another number in the record of its first entry.
std::string with(std::string archive, Field field, std::uint32_t value) {
  const std::size_t record = archive.find("PK\1\2");
  std::memcpy(archive.data() + record + field, &value, field < kChecksum ? 2 : 4);
  return archive;
}
std::string replaced(std::string archive, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = archive.find(what, at)) != std::string::npos; at += by.size())
    archive.replace(at, what.size(), by);
  return archive;
}

class Npz : public ::testing::Test {
 protected:
  Context ctx_{{.device = "reference", .cache_directory = ""}};
  test::Folder folder_;
  std::string path_ = folder_.file("x.npz"), here_ = "(at npz_test.cpp:";
  NamedTensors tensors_ = {{"w", ctx_.ones({64})}, {"v", ctx_.ones({64})}};

  std::string archive(bool compress) {
    save_npz(path_, tensors_, {.compress = compress});
    return test::read_file(path_);
  }
  void refused(const std::string& bytes, const std::vector<std::string>& why) {
    std::vector<std::string> parts = {"load_npz: ", "bad.npz: ", here_};
    parts.insert(parts.end(), why.begin(), why.end());
    folder_.with("bad.npz", bytes);
    expect_says([&] { load_npz(ctx_, folder_.file("bad.npz")); }, parts);
  }
};

TEST_F(Npz, ComesBack) {
  const NamedTensors saved = {{"w", ctx_.from(Floats{1, 2, 3, 4}, {2, 2})},
                              {"a/b", ctx_.ones({1000}, DType::bf16)},
                              {"\xc3\xbc", ctx_.ones({0, 2}, DType::i64)}};
  for (const bool compress : {false, true}) {
    save_npz(path_, saved, {.compress = compress});
    const NamedTensors read = load_npz(ctx_, path_);
    ASSERT_EQ(read.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(read[i].name, saved[i].name);
      EXPECT_EQ(read[i].tensor.dtype(), saved[i].tensor.dtype());
      EXPECT_EQ(read[i].tensor.shape(), saved[i].tensor.shape());
      EXPECT_EQ(read[i].tensor.to_vector<float>(), saved[i].tensor.to_vector<float>());
    }
    const std::string bytes = test::read_file(path_);
    EXPECT_EQ(bytes.size() < 2000, compress);
    EXPECT_EQ(at(read, "w").to_vector<float>()[3], 4);
    expect_says([&] { at(read, "v"); }, {"at: of the 3 tensors none is called \"v\"", here_});
    save_npz(path_, saved, {.compress = compress});
    EXPECT_EQ(test::read_file(path_), bytes) << "the same tensors give the same file";
  }
  save_npz(path_, {});
  EXPECT_EQ(test::read_file(path_), std::string("PK\5\6") + std::string(18, '\0'))
      << "as numpy.savez writes it";
  EXPECT_TRUE(load_npz(ctx_, path_).empty());
}

// More than libzip asks for at a time, and a rest.
TEST_F(Npz, LargeTensorsComeBack) {
  Floats numbers(300001);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * i % 8191);
  for (const bool compress : {false, true}) {
    save_npz(path_, {{"x", ctx_.from(numbers, {300001})}, {"y", ctx_.ones({3})}}, {.compress = compress});
    const NamedTensors read = load_npz(ctx_, path_);
    EXPECT_EQ(at(read, "x").to_vector<float>(), numbers);
    EXPECT_EQ(at(read, "y").to_vector<float>(), (Floats{1, 1, 1}));
  }
}

// zip64.npz has all sizes and places in ZIP64's fields, as archives beyond 4 GB have them.
TEST_F(Npz, ReadsNumPysArchives) {
  for (const char* file : {"stored.npz", "deflated.npz", "zip64.npz"}) {
    const NamedTensors read = load_npz(ctx_, test::fixture(file));
    ASSERT_EQ(read.size(), 2U) << file;
    EXPECT_EQ(at(read, "counted").to_vector<float>(), (Floats{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(at(read, "flags").dtype(), DType::boolean);
    EXPECT_EQ(at(read, "flags").to_vector<float>(), (Floats{1, 0, 1}));
  }
}

TEST_F(Npz, SaysWhichEntryIsDamaged) {
  const std::string stored = archive(false), deflated = archive(true);
  std::string damaged = stored;
  damaged[200] = '!';
  refused(damaged, {"tensor \"w\": entry \"w.npy\" is damaged: its CRC-32"});
  damaged = deflated;
  damaged[60] = static_cast<char>(damaged[60] ^ 0x55);
  refused(damaged, {"tensor \"w\": entry \"w.npy\" is damaged: "});
  refused(with(stored, kChecksum, 17), {"tensor \"w\": entry \"w.npy\" is damaged: its CRC-32"});
  refused(with(deflated, kFlags, 1), {"entry \"w.npy\" is encrypted"});
  refused(with(deflated, kMethod, 12), {"entry \"w.npy\" is packed by method 12"});
  refused(replaced(stored, "v.npy", "v.txt"), {"entry \"v.txt\" is no .npy"});
  refused(replaced(stored, "v.npy", "w.npy"), {"two tensors are called \"w\""});
  damaged = stored;
  damaged[26] = 6;  // the entry's own header says another length of its name: the bytes begin elsewhere
  refused(damaged, {"tensor \"w\": entry \"w.npy\" is damaged: its CRC-32"});
}

TEST_F(Npz, BelievesNoSize) {
  const std::string stored = archive(false), deflated = archive(true);
  constexpr std::uint32_t kLarge = 0x7fff0000;
  refused(with(stored, kBytes, kLarge), {"entry \"w.npy\" is stored, and its sizes differ: "});
  refused(with(with(stored, kBytes, kLarge), kPackedBytes, kLarge), {"\"w.npy\" is cut short or overlaps"});
  refused(with(deflated, kBytes, kLarge), {"entry \"w.npy\" cannot be 2147418112 bytes, packed into "});
  refused(with(deflated, kPackedBytes, kLarge), {"entry \"w.npy\" is cut short or overlaps"});
  for (const std::uint32_t bytes :
       {0, 1, 383, 385, 4000})  // 128 of the header and 256 of the elements are there
    refused(with(deflated, kBytes, bytes), {"tensor \"w\": entry \"w.npy\" is damaged: "});
  for (const std::uint32_t bytes : {0, 1, 383, 385})
    refused(with(with(stored, kBytes, bytes), kPackedBytes, bytes), {"tensor \"w\": "});
  // Two entries over the same bytes.
  const auto most = static_cast<std::uint32_t>(stored.size() - 383);
  refused(with(with(stored, kBytes, most), kPackedBytes, most), {"overlaps others: it would be 384 bytes"});
  refused("", {"no ZIP archive, or is cut short"});
  for (std::size_t size = 0; size < stored.size(); size += 7) refused(stored.substr(0, size), {"cut short"});
}

TEST_F(Npz, SaysWhatCannotBeSaved) {
  const std::string before = archive(false);
  const Tensor one = ctx_.ones({1});
  expect_says([&] { save_npz(path_, {{"w", one}, {"w", one}}); },
              {"save_npz: ", "two tensors are called \"w\"", here_});
  expect_says([&] { save_npz(path_, {{"w", {}}}); }, {"save_npz: ", "tensor \"w\"", "value", here_});
  expect_says([&] { save_npz(path_, {{"", one}}); }, {"a name has 1 to 65000 bytes", here_});
  expect_says([&] { save_npz(path_, {{std::string("a\0b", 3), one}}); }, {"none of them 0", here_});
  expect_says([&] { save_npz(path_, {{"v", one}, {"\xff", one}}); },
              {"entry \"\xff.npy\" cannot be called so", "UTF-8", here_});
  EXPECT_EQ(test::read_file(path_), before) << "the old file stays";
  EXPECT_EQ(folder_.count(), 1U);
}

}  // namespace
}  // namespace tilewright
