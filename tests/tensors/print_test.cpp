// Printed tensors, against NumPy 2.4.6's str() of the same arrays.
#include <tilewright/fmt.h>
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;

class Printing : public ::testing::Test {
 protected:
  Context ctx_{{.device = "reference", .cache_directory = ""}};
  std::string printed(const std::vector<double>& values, const Shape& shape, DType dtype = DType::f32,
                      const PrintOptions& options = {}) {
    return to_string(ctx_.from(values, shape, dtype), options);
  }
  static std::vector<double> counted(std::size_t n) {
    std::vector<double> values(n);
    std::iota(values.begin(), values.end(), 0);
    return values;
  }
};

// Each text is what python3 prints for repr(str(np.array(values, dtype))), the type aside.
TEST_F(Printing, LooksAsNumPy) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const struct {
    std::vector<double> values;
    Shape shape;
    DType dtype;
    const char* text;
  } cases[] = {
      {{1, 2, 3}, {3}, DType::f32, "[1. 2. 3.] f32[3]"},
      {{1, 2.5, 0.25, 4}, {2, 2}, DType::f32, "[[1.   2.5 ]\n [0.25 4.  ]] f32[2,2]"},
      {{0.1, 1.0 / 3, -2}, {3}, DType::f32, "[ 0.1         0.33333334 -2.        ] f32[3]"},
      {{1.0 / 3, 1e-5, 123456.789}, {3}, DType::f64, "[3.33333333e-01 1.00000000e-05 1.23456789e+05] f64[3]"},
      {{1e10, -1, 0}, {3}, DType::f32, "[ 1.e+10 -1.e+00  0.e+00] f32[3]"},
      {{nan, inf, -inf, 1}, {4}, DType::f32, "[ nan  inf -inf   1.] f32[4]"},
      {{nan, -inf}, {2}, DType::f64, "[ nan -inf] f64[2]"},
      {{65504, 6e-8}, {2}, DType::f16, "[6.55e+04 5.96e-08] f16[2]"},
      {{0.1, 1000}, {2}, DType::f16, "[1.e-01 1.e+03] f16[2]"},
      {{-0.0, 16777216}, {2}, DType::f32, "[-0.0000000e+00  1.6777216e+07] f32[2]"},
      {{99999992, 0.5}, {2}, DType::f32, "[9.999999e+07 5.000000e-01] f32[2]"},
      {{0x1p-1074, 1.7976931348623157e308}, {2}, DType::f64, "[4.94065646e-324 1.79769313e+308] f64[2]"},
      {{1, -20, 300, 4}, {2, 2}, DType::i32, "[[  1 -20]\n [300   4]] i32[2,2]"},
      {{255, 0}, {2}, DType::u8, "[255   0] u8[2]"},
      {{1, 0}, {2}, DType::boolean, "[ True False] bool[2]"},
      {{1, 1}, {2}, DType::boolean, "[ True  True] bool[2]"},
      {{}, {2, 0}, DType::f32, "[] f32[2,0]"},
      {{1.0 / 3}, {}, DType::f64, "0.3333333333333333 f64[]"},
      {{0.1}, {}, DType::f32, "0.1 f32[]"},
      {{1e16}, {}, DType::f64, "1e+16 f64[]"},
      {{-7}, {}, DType::i64, "-7 i64[]"},
      {{1}, {}, DType::boolean, "True bool[]"},
      // NumPy has no bf16 and no f8: what ml_dtypes prints for whole numbers, 448, is what f32's digits are.
      {{0.1, 1.0 / 3}, {2}, DType::bf16, "[0.10009766 0.33398438] bf16[2]"},
      {{448, -128}, {2}, DType::f8e4m3, "[ 448. -128.] f8e4m3[2]"},
      {{57344, 65536}, {2}, DType::bf16, "[57344. 65536.] bf16[2]"},
      {{57344}, {}, DType::f8e5m2, "57344.0 f8e5m2[]"},
  };
  for (const auto& c : cases) EXPECT_EQ(printed(c.values, c.shape, c.dtype), c.text);
}

TEST_F(Printing, BreaksLinesAndLeavesOutAsNumPy) {
  EXPECT_EQ(printed(counted(24), {2, 3, 4}),
            "[[[ 0.  1.  2.  3.]\n  [ 4.  5.  6.  7.]\n  [ 8.  9. 10. 11.]]\n\n"
            " [[12. 13. 14. 15.]\n  [16. 17. 18. 19.]\n  [20. 21. 22. 23.]]] f32[2,3,4]");
  std::vector<double> eighths = counted(30);
  for (double& v : eighths) v /= 8;
  EXPECT_EQ(printed(eighths, {30}),
            "[0.    0.125 0.25  0.375 0.5   0.625 0.75  0.875 1.    1.125 1.25  1.375\n"
            " 1.5   1.625 1.75  1.875 2.    2.125 2.25  2.375 2.5   2.625 2.75  2.875\n"
            " 3.    3.125 3.25  3.375 3.5   3.625] f32[30]");
  EXPECT_EQ(printed(counted(1001), {1001}), "[   0.    1.    2. ...  998.  999. 1000.] f32[1001]");
  EXPECT_EQ(printed(counted(2000), {40, 50}, DType::i64),
            "[[   0    1    2 ...   47   48   49]\n [  50   51   52 ...   97   98   99]\n"
            " [ 100  101  102 ...  147  148  149]\n ...\n [1850 1851 1852 ... 1897 1898 1899]\n"
            " [1900 1901 1902 ... 1947 1948 1949]\n [1950 1951 1952 ... 1997 1998 1999]] i64[40,50]");
}

TEST_F(Printing, TakesOptions) {
  EXPECT_EQ(printed({0.123456, 2}, {2}, DType::f32, {.precision = 3}), "[0.123 2.   ] f32[2]");
  EXPECT_EQ(printed(counted(9), {9}, DType::i32, {.threshold = 5, .edge_items = 1}), "[0 ... 8] i32[9]");
  EXPECT_EQ(printed(counted(4), {4}, DType::i32, {.line_width = 6}), "[0 1\n 2 3] i32[4]");
  expect_says([&] { to_string(ctx_.ones({2}), {.precision = -1}); },
              {"to_string: PrintOptions::precision is -1", "print_test.cpp:"});
}

TEST_F(Printing, GoesToStreamsAndToFmt) {
  const Tensor x = ctx_.from(std::vector<float>{1, 0.12345f}, {2});
  std::ostringstream out;
  out << x << ' ' << x.shape() << ' ' << x.dtype();
  EXPECT_EQ(out.str(), "[1.      0.12345] f32[2] [2] f32");
  EXPECT_EQ(fmt::format("{} {:.2} {} {}", x, x, x.shape(), x.dtype()),
            "[1.      0.12345] f32[2] [1.   0.12] f32[2] [2] f32");
  EXPECT_EQ(to_string(Tensor()), "a tensor that was never given a value, or was moved from");
}

TEST_F(Printing, IsAGraphBreakOfACompiledFunction) {
  std::string text;
  const auto f = compile([&](const Tensor& x) {
    const Tensor twice = x * 2.f;
    std::ostringstream out;
    out << twice;
    text = out.str();
    return twice + 1.f;
  });
  for (const float v : {1.f, 5.f}) {
    EXPECT_EQ(f(ctx_.full({2}, v)).to_vector<float>(), std::vector<float>(2, 2 * v + 1));
    EXPECT_EQ(text, v == 1 ? "[2. 2.] f32[2]" : "[10. 10.] f32[2]");
  }
  ASSERT_EQ(f.report()[0].breaks.size(), 1u);
  EXPECT_NE(f.report()[0].breaks[0].find("print_test.cpp"), std::string::npos) << f.report()[0].breaks[0];
  const auto whole = compile(
      [](const Tensor& x) {
        std::ostringstream out;
        out << x;
        return x;
      },
      {.fullgraph = true});
  expect_says([&] { whole(ctx_.ones({2})); }, {"operator<<: ", "f32[2]", "print_test.cpp:"});
}

TEST_F(Printing, OfADonatedTensorSaysWhatTookIt) {
  const auto f = compile([](const Tensor& x) { return x + 1.f; }, {.donate = {0}});
  const Tensor x = ctx_.ones({2});
  f(x);
  expect_says([&] { std::ostringstream() << x; }, {"was donated", "print_test.cpp:"});
}

}  // namespace
}  // namespace tilewright
