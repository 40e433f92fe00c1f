// Tensors of one value: filled memory outside of compile(), which needs no program, a constant inside.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tensor/state.h"

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

class Creation : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
  std::size_t programs() { return ctx_.state()->device(GetParam()).graphs.size(); }
};

TEST_P(Creation, HasTheValuesOfTheConstant) {
  for (const DType dtype : kAllDTypes)
    for (const double value : {0.0, -0.0, 1.0, 0.5, 2.0, -2.0, 0.1, 1.0 / 3, 100.0, 1e-3}) {
      if (!is_float(dtype) && value < 0) continue;
      if (dtype == DType::boolean && value > 1) continue;
      for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{3, 0, 2}, Shape{33, 65}}) {
        const Tensor constant =
            compile([&](const Tensor&) { return ctx_.full(shape, value, dtype); })(ctx_.zeros({1}));
        const Tensor memory = ctx_.full(shape, value, dtype);
        EXPECT_EQ(memory.shape(), shape);
        EXPECT_EQ(memory.dtype(), dtype);
        const std::string what = fmt::format("{} of {} and shape {}", value, name(dtype), to_string(shape));
        const std::vector<double> got = memory.to_vector<double>(), want = constant.to_vector<double>(),
                                  like = full_like(memory, value).to_vector<double>();
        ASSERT_EQ(got.size(), want.size()) << what;
        for (std::size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i], want[i]) << what;
          ASSERT_EQ(std::signbit(got[i]), std::signbit(want[i])) << what;
          ASSERT_EQ(like[i], want[i]) << what;
        }
      }
    }
}

TEST_P(Creation, CompilesNothing) {
  const std::size_t before = programs();
  for (Index n : {1, 2, 3, 100, 1000})
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i8}) {
      const Tensor x = ctx_.ones({n, 16}, dtype);
      const std::vector<double> ones(static_cast<std::size_t>(16 * n), 1);
      EXPECT_EQ(x.to_vector<double>(), ones);
      EXPECT_EQ(ctx_.zeros({n}, dtype).to_vector<double>(), std::vector<double>(static_cast<std::size_t>(n)));
      EXPECT_EQ(full_like(x, 3).to_vector<double>()[0], 3);
      EXPECT_EQ(zeros_like(x).to_vector<double>()[0], 0);
    }
  EXPECT_EQ(programs(), before);
}

// Large tensors are filled in parts by the threads of a CPU.
TEST_P(Creation, FillsLargeTensorsToTheirEnd) {
  constexpr Index kSize = (Index{1} << 20) + 3;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::u8}) {
    const std::vector<float> got = ctx_.full({kSize}, 5, dtype).to_vector<float>();
    EXPECT_EQ(got, std::vector<float>(kSize, 5.f)) << name(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Creation, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
