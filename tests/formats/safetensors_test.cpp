// safetensors: bytes as the format's page describes them, files of its Python package, damaged ones, shards.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cstring>

#include "formats/files.h"
#include "support/errors.h"
#include "tensor/storage.h"

namespace tilewright {
namespace {

using test::expect_says;
using Floats = std::vector<float>;

std::string file_of(const std::string& header, const std::string& elements) {
  const std::uint64_t size = header.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + header + elements;
}

class SafetensorsFiles : public ::testing::Test {
 protected:
  Context ctx_{{.device = "reference", .cache_directory = ""}};
  test::Folder folder_;
  std::string here_ = "(at safetensors_test.cpp:";

  void refused(const std::string& bytes, const std::string& why) {
    folder_.with("x.safetensors", bytes);
    expect_says([&] { load_safetensors(ctx_, folder_.file("x.safetensors")); },
                {"load_safetensors: ", "x.safetensors: ", why, here_});
  }
};

TEST_F(SafetensorsFiles, ReadsWhatTheFormatSays) {
  const std::string path = folder_.with(
      "x.safetensors",
      file_of(R"({"w":{"dtype":"I8","shape":[2,2],"data_offsets":[1,5]},"__metadata__":{"by":"hand"},)"
              R"("n":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}   )",
              "\7\1\2\3\4"));
  const Safetensors file(path);
  ASSERT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.tensors()[0].name, "n");
  EXPECT_EQ(file.tensors()[1].dtype, "I8");
  EXPECT_EQ(file.metadata(), (Metadata{{"by", "hand"}}));
  EXPECT_TRUE(file.contains("w") && !file.contains("v"));
  EXPECT_EQ(file.load(ctx_, "w").to_vector<float>(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(file.load(ctx_, "n").item(), 7);
  expect_says([&] { file.load(ctx_, "v"); },
              {"load: ", "there is no tensor \"v\"; there are \"n\", \"w\"", here_});
  NamedTensors many;
  for (int i = 0; i < 12; ++i) many.push_back({"layer." + std::to_string(i), ctx_.ones({1})});
  many.push_back({"bf16", ctx_.ones({1})});
  save_safetensors(folder_.file("many.safetensors"), many);
  expect_says([&] { Safetensors(folder_.file("many.safetensors")).load(ctx_, "bf61"); },
              {"there are \"bf16\", ", "and 5 more"});
}

TEST_F(SafetensorsFiles, WhatIsSavedComesBack) {
  NamedTensors saved;
  for (const DType dtype : kAllDTypes)
    saved.push_back({std::string(name(dtype)), ctx_.from(Floats{0, 1, 1, 0, 1, 0, 1}, {7}, dtype)});
  saved.push_back({"none \"\\ \xc3\xbc", ctx_.ones({0, 3})});
  saved.push_back({"one", ctx_.scalar(3)});
  const std::string path = folder_.file("y.safetensors");
  save_safetensors(path, saved, {.metadata = {{"b", "2"}, {"a", "\"1\""}}});
  const NamedTensors read = load_safetensors(ctx_, path);
  ASSERT_EQ(read.size(), saved.size());
  for (const NamedTensor& t : saved) {
    EXPECT_EQ(at(read, t.name).dtype(), t.tensor.dtype()) << t.name;
    EXPECT_EQ(at(read, t.name).shape(), t.tensor.shape()) << t.name;
    EXPECT_EQ(at(read, t.name).to_vector<float>(), t.tensor.to_vector<float>()) << t.name;
  }
  EXPECT_EQ(Safetensors(path).metadata(), (Metadata{{"a", "\"1\""}, {"b", "2"}}));
  save_safetensors(path, {});
  EXPECT_TRUE(load_safetensors(ctx_, path).empty());
}

TEST_F(SafetensorsFiles, TensorsAreTheFilesMemory) {
  const std::string path = folder_.file("y.safetensors");
  save_safetensors(
      path, {{"w", ctx_.from(Floats{1, 2}, {2})}, {"b", ctx_.from(Floats{1, 0, 1}, {3}, DType::boolean)}});
  for (const char* device : {"cpu", "reference"}) {
    Context ctx({.device = device, .cache_directory = ""});
    Tensor w, copy;
    {
      const Safetensors file(path);
      w = file.load(ctx, "w");
      EXPECT_EQ(detail::storage_address(w), detail::storage_address(file.load(ctx, "w"))) << device;
      EXPECT_EQ(detail::storage_address(file.load(ctx, "b")) == detail::storage_address(file.load(ctx, "b")),
                std::string(device) == "cpu")
          << "which alone takes any address";
    }
    const auto plus = compile([](const Tensor& t) { return t + 1.f; });
    expect_says([&] { plus.into({w}, {w}); }, {"read-only", here_});
    save_safetensors(path, {{"w", ctx_.from(Floats{8, 9}, {2})}, {"b", ctx_.ones({3}, DType::boolean)}});
    EXPECT_EQ(plus(w).to_vector<float>(), std::string(device) == "cpu" ? (Floats{2, 3}) : (Floats{9, 10}))
        << "the file that was opened, whatever has its name since";
  }
}

// Written by the Python package 0.8.0: make_fixtures.py.
TEST_F(SafetensorsFiles, ReadsThePackagesFiles) {
  const Safetensors file(test::fixture("package.safetensors"));
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "np"}}));
  EXPECT_EQ(file.load(ctx_, "counted").to_vector<float>(), (Floats{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(file.load(ctx_, "half").dtype(), DType::f16);
  EXPECT_EQ(file.load(ctx_, "half").to_vector<float>(), (Floats{0.5f, -1.5f, 3.140625f}));
  EXPECT_EQ(file.load(ctx_, "flags").to_vector<float>(), (Floats{1, 0, 1}));
  expect_says([&] { file.load(ctx_, "words"); },
              {"tensor \"words\": it is U16, which no tensor here has", here_});
}

TEST_F(SafetensorsFiles, SaysWhatIsWrong) {
  const auto one = [](const std::string& tensor, const std::string& bytes) {
    return file_of("{\"w\":" + tensor + "}", bytes);
  };
  const std::string four(16, '\0');
  const std::string good = one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})", four);
  for (std::size_t size = 0; size < good.size(); ++size)
    refused(good.substr(0, size), size < 62 ? "cut short" : "");
  refused(good + "x", "1 bytes behind the last tensor belong to none");
  refused(file_of("[]", ""), "does not begin with '{'");
  refused("\xff\xff\xff\xff\xff\xff\xff\xff{}", "its header would have 18446744073709551615 bytes");
  refused(file_of("{\"w\"", ""), "its header cannot be read");
  refused(file_of("{\"\xff\":1}", ""), "its header cannot be read");
  refused(one("3", ""), "tensor \"w\": its description is no object");
  refused(one(R"({"dtype":"F33","shape":[],"data_offsets":[0,0]})", ""), "the format has no type \"F33\"");
  refused(one(R"({"shape":[],"data_offsets":[0,0]})", ""), "it has no \"dtype\"");
  refused(one(R"({"dtype":"F32","shape":[-4],"data_offsets":[0,16]})", four), "no whole number from 0 on");
  refused(one(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,16]})", four), "no whole number from 0 on");
  refused(one(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,16]})", four),
          "an extent of 18446744073709551615");
  refused(one(R"({"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,16]})", four),
          "too many elements");
  refused(one(R"({"dtype":"F32","shape":[5],"data_offsets":[0,16]})", four),
          "takes 20 bytes, its data_offsets are 16 apart");
  refused(one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,17]})", four),
          "ends at byte 17 of the elements, which are 16");
  refused(one(R"({"dtype":"F32","shape":[4],"data_offsets":[16,0]})", four), "not a beginning and an end");
  refused(one(R"({"dtype":"F4","shape":[3],"data_offsets":[0,16]})", four), "fill no whole bytes");
  refused(one(R"({"dtype":"BOOL","shape":[16],"data_offsets":[0,16]})", four.substr(1) + "\3"),
          "element 15 of it, a bool, is 3");
  const std::string w = R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  refused(file_of("{" + w + "," + w + "}", four), "its header has \"w\" twice");
  refused(file_of("{" + w + R"(,"v":{"dtype":"F32","shape":[3],"data_offsets":[4,16]}})", four),
          "tensors \"w\" and \"v\" overlap");
  refused(file_of("{" + w + R"(,"v":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", four),
          "4 bytes in front of tensor \"v\" belong to none");
  refused(file_of(R"({"__metadata__":{"a":1}})", ""), "\"a\", which is no string");
}

TEST_F(SafetensorsFiles, SavesNothingThatCouldNotBeRead) {
  const std::string path = folder_.file("y.safetensors");
  const Tensor x = ctx_.ones({2});
  expect_says([&] { save_safetensors(path, {{"w", x}, {"w", x}}); },
              {"save_safetensors: ", "two tensors are called \"w\"", here_});
  expect_says([&] { save_safetensors(path, {{"\xff", x}}); }, {"is not UTF-8", here_});
  expect_says([&] { save_safetensors(path, {{"__metadata__", x}}); }, {"cannot be called", here_});
  expect_says([&] { save_safetensors(path, {{"w", x}}, {.metadata = {{"a", "1"}, {"a", "2"}}}); },
              {"the metadata has \"a\" twice", here_});
  expect_says([&] { save_safetensors(path, {{"w", {}}}); }, {"tensor \"w\"", here_});
  EXPECT_EQ(folder_.count(), 0U);
}

TEST_F(SafetensorsFiles, ShardsComeBack) {
  const std::string path = folder_.file("m.safetensors");
  NamedTensors saved;
  for (int i = 0; i < 5; ++i) saved.push_back({"t" + std::to_string(i), ctx_.full({100}, i)});
  save_safetensors(path, saved, {.metadata = {{"k", "v"}}, .shard_bytes = 800});
  EXPECT_EQ(folder_.count(), 4U) << "two each, and the index";
  const std::string index = path + ".index.json";
  const Safetensors model(index);
  EXPECT_EQ(model.metadata(), (Metadata{{"k", "v"}}));
  for (const NamedTensor& t : saved)
    EXPECT_EQ(model.load(ctx_, t.name).to_vector<float>(), t.tensor.to_vector<float>());
  EXPECT_EQ(load_safetensors(ctx_, index).size(), 5U);

  const std::string text = test::read_file(index);
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    folder_.with("m.safetensors.index.json", bytes);
    expect_says([&] { load_safetensors(ctx_, index); }, {"load_safetensors: ", why, here_});
  };
  const auto replaced = [&](const std::string& what, const std::string& by) {
    std::string out = text;
    return out.replace(out.find(what), what.size(), by);
  };
  refused("{}", "no \"weight_map\"");
  refused(text.substr(0, 60), "the index cannot be read");
  refused(replaced("m-00001", "../m-00001"), "no name of a file in the index's folder");
  refused(replaced("m-00001", "n-00001"), "n-00001-of-00003.safetensors: it cannot be opened");
  refused(replaced("\"t0\"", "\"t9\""),
          "\"t9\" is not in m-00001-of-00003.safetensors, where the index says");
  refused(replaced("\"t0\": \"m-00001", "\"t0\": \"m-00002"), "\"t0\" is not in m-00002");
  refused(replaced("\"t0\": \"m-00001-of-00003.safetensors\",", ""),
          "its files have 5 tensors, and the index names 4");
}

}  // namespace
}  // namespace tilewright
