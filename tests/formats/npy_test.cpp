// .npy: bytes as the format's page describes them, NumPy's own files, and damaged ones.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <numeric>

#include "formats/files.h"
#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;
using Floats = std::vector<float>;

// Header and elements by hand: a version, the dict, and the bytes behind it.
std::string npy(int version, const std::string& dict, const std::string& elements) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  file += static_cast<char>(dict.size());
  file += '\0';
  if (version > 1) file += std::string(2, '\0');
  return file + dict + elements;
}
std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

class Npy : public ::testing::Test {
 protected:
  Context ctx_{{.device = "reference", .cache_directory = ""}};
  test::Folder folder_;
  std::string here_ = "(at npy_test.cpp:";

  Tensor read(const std::string& bytes) { return load_npy(ctx_, folder_.with("x.npy", bytes)); }
  void refused(const std::string& bytes, const std::string& why) {
    expect_says([&] { read(bytes); }, {"load_npy: ", "x.npy: ", why, here_});
  }
};

TEST_F(Npy, ReadsEveryVersion) {
  const std::string two = std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);  // 1, -2
  for (const int version : {1, 2, 3})
    EXPECT_EQ(read(npy(version, dict("<f4", "False", "(2,)"), two)).to_vector<float>(), (Floats{1, -2}))
        << version;
  EXPECT_EQ(
      read(npy(1, "{\"shape\":(2L,),\"descr\":\"<f4\",\"fortran_order\":False}", two)).to_vector<float>(),
      (Floats{1, -2}));
  EXPECT_EQ(read(npy(1, dict("<f4", "False", "()"), two.substr(4))).item(), -2);
  EXPECT_EQ(read(npy(1, dict("<f4", "True", "(3, 0)"), "")).shape(), (Shape{3, 0}));
}

TEST_F(Npy, ReadsBothOrdersAndByteOrders) {
  const std::string bytes("\0\1\0\2\0\3\0\4\0\5\0\6", 12);
  std::string wide;
  for (std::size_t i = 0; i < bytes.size(); i += 2) wide += std::string(2, '\0') + bytes.substr(i, 2);
  EXPECT_EQ(read(npy(1, dict(">i4", "False", "(2, 3)"), wide)).to_vector<float>(),
            (Floats{1, 2, 3, 4, 5, 6}));
  const Tensor turned = read(npy(1, dict(">i4", "True", "(2, 3)"), wide));
  EXPECT_EQ(turned.dtype(), DType::i32);
  EXPECT_EQ(turned.to_vector<float>(), (Floats{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(read(npy(1, dict(">i4", "True", "(1, 6)"), wide)).to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6}));
}

// python3 -c "import numpy, ml_dtypes": see make_fixtures.py, which wrote them with NumPy 2.4.6.
TEST_F(Npy, ReadsNumPysFiles) {
  const Tensor f = load_npy(ctx_, test::fixture("fortran_f8.npy"));
  EXPECT_EQ(f.dtype(), DType::f64);
  EXPECT_EQ(f.shape(), (Shape{2, 3, 4}));
  std::vector<double> counted(24);
  std::iota(counted.begin(), counted.end(), 0);
  EXPECT_EQ(f.to_vector<double>(), counted);
  const Tensor b = load_npy(ctx_, test::fixture("bfloat16.npy"));
  EXPECT_EQ(b.dtype(), DType::bf16);
  EXPECT_EQ(b.to_vector<float>(), (Floats{0.5f, -1.5f, 3.140625f}));
  expect_says([&] { load_npy(ctx_, test::fixture("float8.npy")); }, {"'<V1', raw bytes", here_});
}

TEST_F(Npy, WhatIsSavedComesBack) {
  for (const DType dtype : kAllDTypes) {
    const Tensor x = ctx_.from(Floats{0, 1, 1, 0, 1, 0}, {2, 3}, dtype);
    const std::string path = folder_.file("y.npy");
    if (is_f8(dtype)) {
      expect_says([&] { save_npy(path, x); }, {"save_npy: ", "no name for f8", here_});
      continue;
    }
    save_npy(path, x);
    EXPECT_EQ(test::read_file(path).size() % 64, 6 * size_bytes(dtype) % 64)
        << "the header is a multiple of 64";
    const Tensor y = load_npy(ctx_, path);
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.shape(), x.shape());
    EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());
  }
}

TEST_F(Npy, SaysWhatIsWrong) {
  const std::string good = npy(1, dict("<f4", "False", "(2, 2)"), std::string(16, '\0'));
  refused("", "no .npy file");
  refused(std::string("\x93NUMPX\1\0", 8), "no .npy file");
  refused(npy(4, "{}", ""), "its version is 4");
  for (std::size_t size = 6; size < good.size(); ++size)
    refused(good.substr(0, size), "it is cut short: its ");
  refused(good + "x", "1 bytes are left behind the elements of f32 [2,2]");
  refused(npy(1, dict("<f4", "False", "(-1, 2)"), ""), "shape [-1,2] has a negative extent");
  refused(npy(1, dict("<f4", "False", "(4294967296, 4294967296)"), ""), "too many elements");
  refused(npy(1, dict("<f4", "False", "(99999999999999999999,)"), ""), "beyond 64 bits");
  refused(npy(1, dict("<f4", "False", "(2)"), ""), "a tuple of one has one");
  refused(npy(1, dict("<f4", "Maybe", "(2,)"), ""), "True or False");
  refused(npy(1, "{'descr': '<f4', 'descr': '<f4'}", ""), "'descr' twice");
  refused(npy(1, "{'descr': '<f4'}", ""), "lacks one of");
  refused(npy(1, "{'colour': 'red'}", ""), "unknown key, 'colour'");
  refused(npy(1, "{'\xff': 1}", ""), "plain characters");
  refused(npy(1, dict("<c8", "False", "(1,)"), ""), "complex numbers");
  refused(npy(1, dict("|O", "False", "(1,)"), ""), "Python objects");
  refused(npy(1, dict("<U3", "False", "(1,)"), ""), "text");
  refused(npy(1, dict("<u2", "False", "(1,)"), ""), "'<u2', numbers of a size that no tensor has");
  refused(npy(1, "{'descr': [('a', '<f4')], }", ""), "records of several fields");
  refused(npy(1, dict("|b1", "False", "(2,)"), "\1\2"), "element 1 of it, a bool, is 2");
  expect_says([&] { load_npy(ctx_, folder_.file("none.npy")); },
              {"none.npy: it cannot be opened: No such file", here_});
  expect_says([&] { load_npy(ctx_, folder_.file("")); }, {"it is no regular file", here_});
}

}  // namespace
}  // namespace tilewright
