// explain() of long programs: equal launches, many arguments and many donated tensors are told together.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <regex>

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Explain, TellsEqualLaunchesTogether) {
  Context ctx({.cache_directory = test::kernel_folder()});
  constexpr Index kLayers = 20;
  std::vector<Tensor> in;
  in.reserve(kLayers);
  for (Index i = 0; i < kLayers; ++i) in.push_back(ctx.randn({64, 96}));
  CompiledList f([](const std::vector<Tensor>& weights) {
    std::vector<Tensor> out;
    out.reserve(weights.size());
    for (const Tensor& w : weights) out.push_back(softmax(matmul(w, swap_axes(w, 0, 1)), -1));
    return out;
  });
  f(in);
  f.measure(in);
  const std::string text = f.explain();
  const auto kernels = static_cast<Index>(f.report().front().kernels.size());
  ASSERT_GE(kernels, kLayers) << text;
  EXPECT_LE(count_of(text, "  kernel "), 4) << text;
  EXPECT_NE(text.find("(20 launches, each:)"), std::string::npos) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(measured [\d.]+ us \([\d.]+ to [\d.]+\): \d+ % of)")))
      << text;
  EXPECT_NE(
      text.find(
          "f32[64,96] on cpu, …, f32[64,96] on cpu, f32[64,96] on cpu, f32[64,96] on cpu (20 arguments)"),
      std::string::npos)
      << text;
}

TEST(Explain, CountsDonatedTensors) {
  Context ctx({.cache_directory = test::kernel_folder()});
  std::vector<Tensor> in;
  std::vector<int> all;
  for (int i = 0; i < 14; ++i) {
    in.push_back(ctx.randn({32}));
    all.push_back(i);
  }
  CompiledList f(
      [](const std::vector<Tensor>& given) {
        std::vector<Tensor> out;
        out.reserve(given.size());
        for (const Tensor& x : given) out.push_back(x + 1.f);
        return out;
      },
      {.donate = all});
  f(in);
  const std::string text = f.explain();
  EXPECT_EQ(count_of(text, " becomes output "), 3) << text;
  EXPECT_NE(text.find("donated: 14 tensors become outputs in all"), std::string::npos) << text;
}

}  // namespace
}  // namespace tilewright
