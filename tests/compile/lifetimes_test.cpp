// What is made of a temporary is a value of its own: loops, which in C++20 let go of all temporaries but the
// last, and references find what they were made of. scripts/site/check_lifetimes.py looks at every function.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

template <class Wanted, class Given>
constexpr bool gives() {
  return std::is_same_v<Wanted, Given>;
}
template <class T>
T temporary();
using OneToOne = Compiled<Tensor(Tensor)>;

static_assert(gives<SpecialisationReport, decltype(temporary<OneToOne>().report().front())>());
static_assert(gives<SpecialisationReport, decltype(temporary<OneToOne>().report().at(0))>());
static_assert(gives<SpecialisationReport, decltype(temporary<OneToOne>().report()[0])>());
static_assert(gives<NamedTensor, decltype(temporary<NamedTensors>().back())>());
static_assert(gives<Tensor, decltype(at(temporary<NamedTensors>(), ""))>());
static_assert(gives<Shape, decltype(temporary<Tensor>().shape())>());
static_assert(gives<std::vector<Index>, decltype(temporary<Shape>().extents())>());
static_assert(gives<List<Safetensors::Info>, decltype(temporary<Safetensors>().tensors())>());
static_assert(gives<Metadata, decltype(temporary<Safetensors>().metadata())>());
static_assert(gives<tile::Kernel, decltype(temporary<TileFunction>().kernel())>());
static_assert(gives<tile::Kernel, decltype(temporary<Result<tile::Kernel>>().value())>());
static_assert(gives<Failure, decltype(temporary<Result<tile::Kernel>>().error())>());

TEST(Lifetimes, OfWhatLoopsGoOverAreTheLoops) {
  Context ctx({.device = "cpu", .cache_directory = test::kernel_folder()});
  const Tensor x = ctx.ones({3, 5});
  const auto f = compile([](const Tensor& t) { return t * t.to_vector<float>()[0]; });
  f(x);
  std::size_t breaks = 0, sources = 0;
  for (const std::string& each : f.report().front().breaks)
    breaks += each.starts_with("to_vector() of") ? 1 : 0;
  for (const KernelReport& each : f.report()[0].kernels) sources += each.source.empty() ? 0 : 1;
  EXPECT_EQ(breaks, 1U);
  EXPECT_GE(sources, 1U);
  Index size = 1;
  for (const Index extent : (x + 1.f).shape().extents()) size *= extent;
  for (const Index extent : named_tensors(std::vector{x + 1.f}).front().tensor.shape()) size *= extent;
  EXPECT_EQ(size, 15 * 15);
  const SpecialisationReport& first = f.report().front();  // its life is the reference's
  EXPECT_EQ(first.reason, "first call");
  List<int> own = {1, 2};
  own.front() = 3;
  EXPECT_EQ(own, (std::vector<int>{3, 2}));
}

}  // namespace
}  // namespace tilewright
