// into() over what the function reads: the result is that of the call that writes elsewhere, whatever order
// kernels read and write in; and other handles of the tensor see it.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/kernel_folder.h"
#include "tensor/storage.h"

namespace tilewright {
namespace {

using Floats = std::vector<float>;

Floats values(const Tensor& t) { return t.to_vector<float>(); }

class InPlace : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
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
  struct Update {
    Tensor (*of)(const Tensor& w, const Tensor& g);
    const char* becomes;  // "" where it depends on how the kernels are cut
  };
  const char *const in_place = "written in place", *const elsewhere = "written to new memory";
  const Update updates[] = {
      {[](const Tensor& w, const Tensor& g) { return w - 0.1f * g; }, in_place},
      {[](const Tensor& w, const Tensor& g) { return w - 0.1f * flip(w, {0, 1}) * g; }, elsewhere},
      {[](const Tensor& w, const Tensor& g) { return roll(w, 0) + roll(w, 1) - g; }, elsewhere},
      {[](const Tensor& w, const Tensor& g) { return transpose(w, {1, 0}) - g; }, elsewhere},
      {[](const Tensor& w, const Tensor& g) { return matmul(w, g) + w; }, ""},
      {[](const Tensor& w, const Tensor& g) { return matmul(matmul(w, g), transpose(w, {1, 0})); }, ""},
      {[](const Tensor& w, const Tensor& g) { return softmax(w + g, 0) - sum(w, {1}, Keep::yes); }, ""},
      {[](const Tensor& w, const Tensor& g) { return cumsum(w, 0) - g; }, ""},
      {[](const Tensor& w, const Tensor& g) { return softmax(w - g, 1); }, ""},
      {[](const Tensor& w, const Tensor&) { return w; }, in_place},
      {[](const Tensor& w, const Tensor& g) { return g + 0.5f + 0.f * sum(w); }, in_place},
  };
  const Tensor g = counted({40, 40}, 0.01f);
  for (const Update& update : updates) {
    const auto f = compile([=](const Tensor& w, const Tensor& by) { return update.of(w, by); });
    Tensor apart = counted({40, 40}, 0.25f), w = counted({40, 40}, 0.25f);
    const Tensor handle = w;
    for (int step = 0; step < 3; ++step) {
      apart = f(apart, g);
      f.into({w}, {w, g});
      ASSERT_EQ(values(w), values(apart)) << "update " << &update - updates << ", step " << step;
    }
    EXPECT_EQ(values(handle), values(apart)) << "another handle";
    EXPECT_NE(f.explain().find(std::string("into: output 0 is argument 0: ") + update.becomes),
              std::string::npos)
        << f.explain() << f.report().front().kernels.front().tile;
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

TEST_P(InPlace, AdamWTakesNoSecondCopyOfItsStates) {
  const auto adamw = compile([](const Tensor& p, const Tensor& m, const Tensor& v, const Tensor& g) {
    const Tensor m2 = 0.9f * m + 0.1f * g, v2 = 0.999f * v + 0.001f * g * g;
    return std::tuple{p - 0.01f * (m2 / (sqrt(v2) + 1e-8f) + 0.1f * p), m2, v2};
  });
  const Tensor p = counted({37, 129}, 0.1f), m = counted({37, 129}, 0.2f), v = abs(counted({37, 129}, 0.3f));
  const Tensor g = counted({37, 129}, 0.4f);
  const auto [p1, m1, v1] = adamw(p, m, v, g);
  const void* was_at[] = {detail::storage_address(p), detail::storage_address(m), detail::storage_address(v)};
  adamw.into({p, m, v}, {p, m, v, g});
  EXPECT_EQ(values(p), values(p1));
  EXPECT_EQ(values(m), values(m1));
  EXPECT_EQ(values(v), values(v1));
  const void* is_at[] = {detail::storage_address(p), detail::storage_address(m), detail::storage_address(v)};
  EXPECT_TRUE(std::equal(was_at, was_at + 3, is_at)) << "no memory was given in their place";
  const SpecialisationReport r = adamw.report().front();
  EXPECT_EQ(r.in_place.size(), 3U);
  for (const std::string& line : r.in_place)
    EXPECT_NE(line.find("written in place"), std::string::npos) << line;
  EXPECT_EQ(r.arena_bytes, 0);
  const double all = 4.0 * static_cast<double>(p.size());
  EXPECT_EQ(r.kernels.front().bytes, 7 * all) << "four are read, three written";
  // Elsewhere it is the program of before.
  const auto [p2, m2, v2] = adamw(p, m, v, g);
  adamw.into({p, m, v}, {p, m, v, g});
  EXPECT_EQ(values(p), values(p2));
}

TEST_P(InPlace, WeightsThatTheBackwardPassReadsAreUpdatedBehindIt) {
  // The gradient with respect to h reads w2, which the kernel of its own gradient could have overwritten.
  const auto loss = [](const Tensor& x, const Tensor& w1, const Tensor& w2) {
    const Tensor h = tanh(matmul(x, w1));
    return sum(matmul(h, w2) * matmul(h, w2));
  };
  const auto step = compile([&](const std::vector<Tensor>& in) {
    const auto [value, g] = value_and_grad(loss, {1, 2})(in[0], in[1], in[2]);
    return std::vector{in[1] - 0.001f * g[0], in[2] - 0.001f * g[1], value};
  });
  const Tensor x = counted({24, 32}, 0.05f), w1 = counted({32, 48}, 0.03f), w2 = counted({48, 16}, 0.07f);
  const Tensor value = ctx_.zeros({});
  for (int i = 0; i < 3; ++i) {
    const std::vector<Tensor> apart = step({x, w1, w2});
    step.into({w1, w2, value}, {x, w1, w2});
    ASSERT_EQ(values(w1), values(apart[0]));
    ASSERT_EQ(values(w2), values(apart[1]));
    ASSERT_EQ(values(value), values(apart[2]));
  }
  const SpecialisationReport r = step.report().front();
  ASSERT_EQ(r.in_place.size(), 2U);
  EXPECT_EQ(r.in_place[1], "into: output 1 is argument 2: written in place");
}

TEST_P(InPlace, TunedProgramsAreTriedElsewhere) {
  const auto plus = [](const Tensor& x) { return x + 1.f; };
  const auto f = compile(plus, {.max_autotune = true});
  const Tensor x = ctx_.from(Floats{1, 2, 3}, {3});
  f.into({x}, {x});
  EXPECT_EQ(values(x), (Floats{2, 3, 4}));
  f.measure({x});
  EXPECT_EQ(values(x), (Floats{2, 3, 4}));
  f.into({x}, {x});
  EXPECT_EQ(values(x), (Floats{3, 4, 5}));
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
  Context one({.device = "reference", .cache_directory = test::kernel_folder()}),
      other({.device = "reference", .cache_directory = test::kernel_folder()});
  const Tensor x = one.ones({3}), y = other.ones({3});
  const auto f = compile([](const Tensor& t) { return t + 1.f; });
  test::expect_says([&] { f.into({y}, {x}); }, {"into: output 0", "another Context", "in_place_test.cpp:"});
}

}  // namespace
}  // namespace tilewright
