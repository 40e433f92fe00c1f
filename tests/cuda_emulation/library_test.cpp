// A vendor's library in the place of kernels, from compile() to explain(): on an emulated GPU with a made-up
// cuBLASLt, which is faster than our kernels for products of a depth of 64 and more (emulated_cuda.h).
#include <tilewright/tilewright.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/open_device.h"
#include "tensor/state.h"

namespace tilewright {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Folder {
  std::string path =
      (std::filesystem::temp_directory_path() / ("tw_libraries_" + std::to_string(getpid()))).string();
  ~Folder() { std::filesystem::remove_all(path); }
};

void emulate(Context& ctx) {
  const std::shared_ptr<runtime::Device> opened = test::open_device("emulated:sm_80", "");
  detail::ContextState& state = *ctx.state();
  state.devices[opened->name()] = std::make_unique<detail::DeviceState>(opened, &state.cache);
  state.options.device = opened->name();
}

std::vector<float> values(Index count) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
  return out;
}

Tensor matrix(Context& ctx, Index rows, Index columns) {
  return ctx.from(values(rows * columns), {rows, columns});
}

// The product of two such matrices: sums of small integers, which are exact.
void expect_product(const Tensor& c, Index m, Index n, Index k) {
  const std::vector<float> a = values(m * k), b = values(k * n), got = c.to_vector<float>();
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      float sum = 0;
      for (Index l = 0; l < k; ++l)
        sum += a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(l * n + j)];
      ASSERT_EQ(got[static_cast<std::size_t>(i * n + j)], sum) << i << ", " << j;
    }
}

const auto kProduct = [](const Tensor& a, const Tensor& b) { return matmul(a, b); };

TEST(Libraries, TakeThePlaceOfAProductThatTheyComputeFaster) {
  Context ctx({.device = "cpu", .cache_directory = ""});
  emulate(ctx);
  const auto f = compile(kProduct, {.max_autotune = true});
  expect_product(f(matrix(ctx, 40, 64), matrix(ctx, 64, 24)), 40, 24, 64);
  const KernelReport kernel = f.report().front().kernels.front();
  EXPECT_EQ(kernel.schedule, "library name=cublaslt");
  EXPECT_EQ(kernel.tiles, "");
  EXPECT_THAT(kernel.library,
              StartsWith("cublaslt won: 280.00 us, the best of ours 400.00 us, 42.9 % more ("));
  EXPECT_EQ(kernel.tuning.front(), "library name=cublaslt measured 280.00 us");
  EXPECT_THAT(kernel.source, HasSubstr("a call of cuBLASLt 13.1.0"));
  EXPECT_THAT(kernel.source, HasSubstr("m=24 n=40 k=64 batch=1 sums=f32"));
  EXPECT_THAT(f.explain(), HasSubstr("    library: cublaslt won: 280.00 us"));
  EXPECT_THAT(f.explain(), HasSubstr("    schedule library name=cublaslt\n"));
}

TEST(Libraries, LoseToAKernelThatIsFaster) {
  Context ctx({.device = "cpu", .cache_directory = ""});
  emulate(ctx);
  const auto f = compile(kProduct, {.max_autotune = true});
  expect_product(f(matrix(ctx, 40, 32), matrix(ctx, 32, 24)), 40, 24, 32);
  const KernelReport kernel = f.report().front().kernels.front();
  EXPECT_THAT(kernel.schedule, Not(StartsWith("library")));
  EXPECT_EQ(kernel.library, "ours won: 400.00 us, cublaslt 560.00 us, 40.0 % more");
}

TEST(Libraries, AreNotAskedWithoutMaxAutotuneNorWhereTheyAreNotWanted) {
  Context ctx({.device = "cpu", .cache_directory = ""});
  emulate(ctx);
  for (const CompileOptions& options :
       {CompileOptions{}, CompileOptions{.max_autotune = true, .libraries = Libraries::none}}) {
    const auto f = compile(kProduct, options);
    expect_product(f(matrix(ctx, 40, 64), matrix(ctx, 64, 24)), 40, 24, 64);
    const KernelReport kernel = f.report().front().kernels.front();
    EXPECT_THAT(kernel.schedule, Not(StartsWith("library")));
    EXPECT_EQ(kernel.library, "");
    EXPECT_THAT(f.explain(), Not(HasSubstr("library")));
  }
}

TEST(Libraries, RunAloneWhereAComparisonWantsThem) {
  Context ctx({.device = "cpu", .cache_directory = ""});
  emulate(ctx);
  const auto f =
      compile([](const Tensor& a, const Tensor& b) { return exp(matmul(a, b) * 0.f); },
              {.fuse = false, .max_autotune = true, .libraries = Libraries::alone, .replay = false});
  const Tensor c = f(matrix(ctx, 40, 32), matrix(ctx, 32, 24));
  for (const float v : c.to_vector<float>()) ASSERT_EQ(v, 1);
  const SpecialisationReport report = f.report().front();
  ASSERT_GE(report.kernels.size(), 2u);
  EXPECT_THAT(report.kernels.front().schedule, StartsWith("library name=cublaslt"));
  for (std::size_t i = 1; i < report.kernels.size(); ++i) {
    EXPECT_THAT(report.kernels[i].schedule, Not(StartsWith("library")));
    EXPECT_TRUE(report.kernels[i].tuning.empty());
  }
}

// Winners with libraries, without and with them alone are stored apart, each with what was found.
TEST(Libraries, WinnersAreStored) {
  const Folder folder;
  for (const bool stored : {false, true}) {
    Context ctx({.device = "cpu", .cache_directory = folder.path});
    emulate(ctx);
    for (const Libraries libraries : {Libraries::compared, Libraries::none, Libraries::alone}) {
      const auto f = compile(kProduct, {.max_autotune = true, .libraries = libraries});
      expect_product(f(matrix(ctx, 40, 64), matrix(ctx, 64, 24)), 40, 24, 64);
      const KernelReport kernel = f.report().front().kernels.front();
      EXPECT_EQ(kernel.schedule.starts_with("library"), libraries != Libraries::none);
      EXPECT_EQ(kernel.library.starts_with("cublaslt won"), libraries == Libraries::compared);
      EXPECT_EQ(kernel.tuning.front().find("stored winner") != std::string::npos, stored);
    }
    // A second size of the bucket, whose tiles may be others.
    const auto f = compile(kProduct, {.max_autotune = true});
    expect_product(f(matrix(ctx, 39, 64), matrix(ctx, 64, 23)), 39, 23, 64);
    EXPECT_EQ(f.report().front().kernels.front().schedule, "library name=cublaslt");
  }
}

TEST(Libraries, TheirCallsAreNotEdited) {
  Context ctx({.device = "cpu", .cache_directory = ""});
  emulate(ctx);
  const auto f = compile(kProduct, {.max_autotune = true, .libraries = Libraries::alone});
  const Tensor a = matrix(ctx, 40, 64), b = matrix(ctx, 64, 24);
  f(a, b);
  const std::string text = f.report().front().kernels.front().source;
  EXPECT_NO_THROW(f.edit(0, text, {a, b}));
  try {
    f.edit(0, text + "\n", {a, b});
    ADD_FAILURE() << "another text was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a library's call cannot be edited"));
  }
}

}  // namespace
}  // namespace tilewright
