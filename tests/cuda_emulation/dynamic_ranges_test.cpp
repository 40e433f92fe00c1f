// Ranges of sizes on an emulated GPU, where kernels of whole tiles have no bounds: values are the CPU's, and
// a third size lowers nothing.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "support/open_device.h"
#include "tensor/state.h"

namespace tilewright {
namespace {

using Tensors = std::vector<Tensor>;

// A Context whose device is emulated: its tensors are made there.
void emulate(Context& ctx, const std::string& device) {
  const std::shared_ptr<runtime::Device> opened = test::open_device(device, "");
  detail::ContextState& state = *ctx.state();
  state.devices[opened->name()] = std::make_unique<detail::DeviceState>(opened, &state.cache);
  state.options.device = opened->name();
}

std::vector<float> values(Index count, double scale) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(std::sin(scale * double(i + 1)));
  return out;
}

class EmulatedRanges : public ::testing::TestWithParam<const char*> {};

TEST_P(EmulatedRanges, EverySizeHasTheCpusValues) {
  struct Case {
    const char* name;
    std::function<Tensors(const Tensors&)> function;
    std::vector<Shape> shapes;  // -1: the size
  };
  const std::vector<Case> cases = {
      {"pointwise", [](const Tensors& a) -> Tensors { return {tanh(a[0] * 2.f) + 1.f}; }, {{-1, 24}}},
      {"a cache and a row",
       [](const Tensors& a) -> Tensors { return {concat(a, 0)}; },
       {{-1, 3, 8}, {1, 3, 8}}},
      {"a sum of rows", [](const Tensors& a) -> Tensors { return {sum(a[0] * a[0], {1})}; }, {{-1, 24}}},
      {"softmax of rows", [](const Tensors& a) -> Tensors { return {softmax(a[0])}; }, {{5, -1}}},
      {"a product", [](const Tensors& a) -> Tensors { return {matmul(a[0], a[1])}; }, {{-1, 16}, {16, 24}}},
  };
  Context ctx{{.device = "cpu", .cache_directory = ""}}, cpu{{.device = "cpu", .cache_directory = ""}};
  emulate(ctx, GetParam());
  const detail::DeviceState& device = ctx.state()->device(ctx.state()->options.device);
  for (const Case& c : cases) {
    std::vector<DynamicDim> dynamic;
    for (int axis = 0; axis < c.shapes[0].rank(); ++axis)
      if (c.shapes[0][axis] == -1) dynamic.push_back({0, axis});
    const auto compiled = compile(c.function, {.dynamic = dynamic});
    std::size_t lowered = 0;
    const std::vector<Index> sizes = {64, 65, 66, 67, 72, 79, 80, 96, 100, 127, 128, 129, 64};
    for (const Index n : sizes) {
      Tensors here, there;
      for (const Shape& shape : c.shapes) {
        std::vector<Index> extents = shape.extents();
        for (Index& e : extents) e = e == -1 ? n : e;
        const Shape s(extents);
        const std::vector<float> x = values(s.size(), 0.37 + static_cast<double>(here.size()));
        here.push_back(ctx.from(x, s));
        there.push_back(cpu.from(x, s));
      }
      const std::size_t before = device.lowerings;
      const std::vector<float> got = compiled(here)[0].to_vector<float>();
      lowered += device.lowerings > before;
      const std::vector<float> want = c.function(there)[0].to_vector<float>();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 1e-4 * (1 + std::fabs(want[i])))
            << fmt::format("{} at {}, element {}: {}", c.name, n, i, compiled.report().front().dynamic);
    }
    EXPECT_LE(lowered, 6) << c.name << ": " << compiled.explain();
  }
}

// Sizes that were multiples one by one say nothing of their product, their sum or what lies between them.
TEST_P(EmulatedRanges, TwoSizesMayBothBeOdd) {
  struct Case {
    const char* name;
    std::function<Tensors(const Tensors&)> function;
    std::vector<std::pair<int, int>> shapes;  // 0: n, 1: m
  };
  const std::vector<Case> cases = {
      {"pointwise", [](const Tensors& a) -> Tensors { return {tanh(a[0]) * 2.f + 1.f}; }, {{0, 1}}},
      {"a sum of rows", [](const Tensors& a) -> Tensors { return {sum(a[0] * a[0], {1})}; }, {{0, 1}}},
      {"all in a row", [](const Tensors& a) -> Tensors { return {reshape(a[0], {-1}) * 0.5f}; }, {{0, 1}}},
      {"a transpose", [](const Tensors& a) -> Tensors { return {transpose(a[0], {1, 0}) * 2.f}; }, {{0, 1}}},
      {"a concat",
       [](const Tensors& a) -> Tensors { return {exp(concat({a[0], a[1]}, 0))}; },
       {{0, 2}, {1, 2}}},
      {"a product",
       [](const Tensors& a) -> Tensors { return {matmul(a[0], a[1]) * 0.1f}; },
       {{0, 2}, {2, 1}}},
  };
  Context ctx{{.device = "cpu", .cache_directory = ""}}, cpu{{.device = "cpu", .cache_directory = ""}};
  emulate(ctx, GetParam());
  for (const Case& c : cases) {
    std::vector<DynamicDim> dynamic;
    for (std::size_t a = 0; a < c.shapes.size(); ++a) {
      if (c.shapes[a].first != 2) dynamic.push_back({static_cast<int>(a), 0});
      if (c.shapes[a].second != 2) dynamic.push_back({static_cast<int>(a), 1});
    }
    const auto compiled = compile(c.function, {.dynamic = dynamic});
    const std::vector<std::pair<Index, Index>> sizes = {{128, 64},  {256, 256}, {512, 128}, {257, 259},
                                                        {260, 252}, {268, 244}, {131, 67},  {255, 130},
                                                        {111, 193}, {65, 301}};
    for (const auto& [n, m] : sizes) {
      Tensors here, there;
      for (const auto& [rows, columns] : c.shapes) {
        const Index extents[] = {n, m, 32};
        const Shape shape{extents[rows], extents[columns]};
        const std::vector<float> x = values(shape.size(), 0.37 + static_cast<double>(here.size()));
        here.push_back(ctx.from(x, shape));
        there.push_back(cpu.from(x, shape));
      }
      const std::vector<float> got = compiled(here)[0].to_vector<float>(),
                               want = c.function(there)[0].to_vector<float>();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 1e-4 * (1 + std::fabs(want[i]))) << fmt::format(
            "{} at {} and {}, element {}: {}", c.name, n, m, i, compiled.report().front().dynamic);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, EmulatedRanges,
                         ::testing::Values("emulated:sm_80", "emulated:sm_90a"),
                         [](const auto& info) { return std::string(info.param).substr(9); });

}  // namespace
}  // namespace tilewright
