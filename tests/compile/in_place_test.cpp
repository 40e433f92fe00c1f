// into() over what the function reads: the result is that of the call that writes elsewhere, whatever order
// kernels read and write in; and other handles of the tensor see it.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include "support/errors.h"

namespace tilewright {
namespace {

using Floats = std::vector<float>;

Floats values(const Tensor& t) { return t.to_vector<float>(); }

class InPlace : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = ""}};
  Tensor counted(const Shape& shape, float scale) {
    Floats f(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < f.size(); ++i) f[i] = scale * static_cast<float>(i % 17) - 1.5f;
    return ctx_.from(f, shape);
  }
};

Tensor roll(const Tensor& x, Index axis) {
  const Index n = x.shape()[static_cast<int>(axis)];
  return concat({slice(x, axis, {.start = n - 1}), slice(x, axis, {.stop = n - 1})}, axis);
}

TEST_P(InPlace, UpdatesAreThoseOfNewTensors) {
  using Update = Tensor (*)(const Tensor& w, const Tensor& g);
  const Update updates[] = {
      [](const Tensor& w, const Tensor& g) { return w - 0.1f * g; },
      [](const Tensor& w, const Tensor& g) { return w - 0.1f * flip(w, {0, 1}) * g; },
      [](const Tensor& w, const Tensor& g) { return roll(w, 0) + roll(w, 1) - g; },
      [](const Tensor& w, const Tensor& g) { return transpose(w, {1, 0}) - g; },
      [](const Tensor& w, const Tensor& g) { return matmul(w, g) + w; },
      [](const Tensor& w, const Tensor& g) { return matmul(matmul(w, g), transpose(w, {1, 0})); },
      [](const Tensor& w, const Tensor& g) { return softmax(w + g, 0) - sum(w, {1}, Keep::yes); },
      [](const Tensor& w, const Tensor& g) { return cumsum(w, 0) - g; },
      [](const Tensor& w, const Tensor&) { return w; },
  };
  const Tensor g = counted({40, 40}, 0.01f);
  for (const Update& update : updates) {
    const auto f = compile([=](const Tensor& w, const Tensor& by) { return update(w, by); });
    Tensor apart = counted({40, 40}, 0.25f), w = counted({40, 40}, 0.25f);
    const Tensor handle = w;
    for (int step = 0; step < 3; ++step) {
      apart = f(apart, g);
      f.into({w}, {w, g});
      ASSERT_EQ(values(w), values(apart)) << "update " << &update - updates << ", step " << step;
    }
    EXPECT_EQ(values(handle), values(apart)) << "another handle";
    EXPECT_NE(f.explain().find("into: output 0 is argument 0: written to new memory"), std::string::npos)
        << f.explain();
    f.into({apart}, {w, g});
    EXPECT_EQ(f.explain().find("into:"), std::string::npos) << "nothing is read that is written";
  }
}

TEST_P(InPlace, StatesOfAnOptimizer) {
  // Two outputs over two arguments, exchanged, and a captured one.
  Tensor a = counted({9}, 1), b = counted({9}, 2);
  const Tensor c = counted({9}, 3);
  const Floats was_a = values(a), was_b = values(b), was_c = values(c);
  const auto swap =
      compile([&](const Tensor& x, const Tensor& y) { return std::tuple{y + 0.f, x + 0.f, c + 1.f}; });
  const auto add_c = compile([&](const Tensor& x) { return x + c; });
  swap.into({a, b, c}, {a, b});
  EXPECT_EQ(values(a), was_b);
  EXPECT_EQ(values(b), was_a);
  EXPECT_EQ(values(c - 1.f), was_c);
  EXPECT_NE(swap.explain().find("output 2 is captured by the function"), std::string::npos) << swap.explain();
  EXPECT_EQ(values(add_c(a)), values(a + c)) << "other programs read it where it is now";
  // Both arguments are one tensor, which is the output.
  const auto plus = compile([](const Tensor& x, const Tensor& y) { return x + flip(y, {0}); });
  const Floats expected = values(plus(a, a));
  plus.into({a}, {a, a});
  EXPECT_EQ(values(a), expected);
}

TEST_P(InPlace, MemoryThatTensorsShareIsCopiedTo) {
  // In a function with graph breaks its argument's stand-in shares the argument's memory.
  const auto twice = compile([](const Tensor& t) { return t + flip(t, {0}); });
  const auto f = compile([&](const Tensor& x) {
    if (sum(x).item() > 1e9) return x;
    twice.into({x}, {x});
    return x * 10.f;
  });
  const Tensor x = ctx_.from(Floats{1, 2, 4}, {3});
  EXPECT_EQ(values(f(x)), (Floats{50, 40, 50}));
  EXPECT_EQ(values(x), (Floats{5, 4, 5})) << "the caller's tensor";
  EXPECT_NE(twice.explain().find("is copied to the tensor's own"), std::string::npos) << twice.explain();
}

INSTANTIATE_TEST_SUITE_P(Devices, InPlace, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

TEST(InPlaceErrors, AnOutputOfAnotherContextIsNamedSo) {
  Context one({.device = "reference", .cache_directory = ""}),
      other({.device = "reference", .cache_directory = ""});
  const Tensor x = one.ones({3}), y = other.ones({3});
  const auto f = compile([](const Tensor& t) { return t + 1.f; });
  test::expect_says([&] { f.into({y}, {x}); }, {"into: output 0", "another Context", "in_place_test.cpp:"});
}

}  // namespace
}  // namespace tilewright
