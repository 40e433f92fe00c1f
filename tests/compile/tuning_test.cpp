// max_autotune: what is measured, kept and stored.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <set>

namespace tilewright {
namespace {

struct Folder {
  std::string path =
      (std::filesystem::temp_directory_path() / ("tw_tuning_" + std::to_string(getpid()))).string();
  ~Folder() { std::filesystem::remove_all(path); }
};

TEST(Tuning, MeasuresCandidatesKeepsTheFastestAndStoresIt) {
  const Folder folder;
  const auto rows = [](const Tensor& x) { return softmax(x); };
  std::string winner;
  {
    Context ctx({.cache_directory = folder.path});
    const auto tuned = compile(rows, {.max_autotune = true});
    const Tensor x = ctx.randn({256, 1000});
    const std::vector<float> got = tuned(x).to_vector<float>(), want = softmax(x).to_vector<float>();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6) << i;
    const KernelReport kernel = tuned.report().front().kernels.front();
    ASSERT_GE(kernel.tuning.size(), 2u);
    EXPECT_NE(kernel.tuning.front().find("measured"), std::string::npos) << kernel.tuning.front();
    EXPECT_EQ(kernel.tuning.front().find(kernel.schedule), 0u)
        << kernel.tuning.front() << " | " << kernel.schedule;
    winner = kernel.schedule;
  }
  // 200 rows are of the bucket of 256, 300 are not.
  Context ctx({.cache_directory = folder.path});
  for (const Index count : {256, 200, 300}) {
    const auto again = compile(rows, {.max_autotune = true});
    const Tensor x = ctx.randn({count, 1000});
    const std::vector<float> got = again(x).to_vector<float>(), want = softmax(x).to_vector<float>();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6) << i;
    const KernelReport kernel = again.report().front().kernels.front();
    const bool stored =
        kernel.tuning.size() == 1 && kernel.tuning.front().find("stored winner") != std::string::npos;
    EXPECT_EQ(stored, count <= 256) << kernel.tuning.front();
    if (stored) {
      EXPECT_EQ(kernel.schedule, winner) << count;
    }
  }
}

// A loop of minima begins with the largest integer, which no power of two of its type rounds up.
TEST(Tuning, LimitsOfIntegersAreOfABucketToo) {
  Context ctx({.cache_directory = ""});
  const auto least = compile([](const Tensor& x) { return min(x, {1}); }, {.max_autotune = true});
  const Tensor x = reshape(ctx.arange(400000), {2, 200000});
  EXPECT_EQ(least(x).to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 200000}));
}

// "BM=96 BN=128 BK=256" of a line of the report, or of a kernel's text.
std::string tiles_in(const std::string& text) {
  const std::size_t from = text.find("BM=");
  if (from == std::string::npos) return "";
  std::string tiles = text.substr(from, text.find_first_of(")p", from) - from);
  std::erase(tiles, ',');
  while (!tiles.empty() && tiles.back() == ' ') tiles.pop_back();
  return tiles;
}

TEST(Tuning, MeasuresProductsWithOtherTiles) {
  const Folder folder;
  const auto product = [](const Tensor& a, const Tensor& b) { return matmul(a, b) + 1.f; };
  std::string winner;
  for (const bool stored : {false, true}) {
    Context ctx({.cache_directory = folder.path});
    const auto tuned = compile(product, {.max_autotune = true});
    const Tensor a = ctx.randn({200, 300}), b = ctx.randn({300, 260});
    const std::vector<float> got = tuned(a, b).to_vector<float>(),
                             want = (matmul(a, b) + 1.f).to_vector<float>();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << i;
    const KernelReport kernel = tuned.report().front().kernels.front();
    if (!stored) {
      std::set<std::string> tiles;
      for (const std::string& line : kernel.tuning) tiles.insert(tiles_in(line));
      EXPECT_GE(tiles.size(), 3u) << kernel.tuning.front();
      // What would run untuned is among what was measured.
      const auto untuned = compile(product);
      (void)untuned(a, b);
      const KernelReport model = untuned.report().front().kernels.front();
      EXPECT_EQ(tiles.count(tiles_in(model.tile)), 1u) << model.tile;
      winner = tiles_in(kernel.tuning.front());
    }
    // What the report shows, and what runs, is the kernel with the tiles that won.
    EXPECT_EQ(tiles_in(kernel.tile), winner) << kernel.tile;
  }
}

// Tiles are fitted to the size: of another size in the bucket the nearest ones are taken.
TEST(Tuning, SizesOfABucketShareTheWinnerThoughTheirTilesDiffer) {
  const Folder folder;
  const auto product = [](const Tensor& a, const Tensor& b) { return matmul(a, b) + 1.f; };
  for (const Index size : {200, 211, 130, 300}) {
    Context ctx({.cache_directory = folder.path});
    const auto tuned = compile(product, {.max_autotune = true});
    const Tensor a = ctx.randn({size, size}), b = ctx.randn({size, size});
    const std::vector<float> got = tuned(a, b).to_vector<float>(),
                             want = (matmul(a, b) + 1.f).to_vector<float>();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << i;
    const std::string first = tuned.report().front().kernels.front().tuning.at(0);
    EXPECT_EQ(first.find("stored winner") != std::string::npos, size == 211 || size == 130) << size << first;
  }
}

TEST(Tuning, WithoutItTheReportSaysWhatTheModelTook) {
  Context ctx({.cache_directory = ""});
  const auto product = compile([](const Tensor& a) { return matmul(a, a); });
  product(ctx.randn({200, 200}));
  const KernelReport kernel = product.report().front().kernels.front();
  EXPECT_TRUE(kernel.tuning.empty());
  EXPECT_GT(kernel.schedules, 1);
  EXPECT_GT(kernel.predicted_us, 0);
  EXPECT_EQ(kernel.tiles, tiles_in(kernel.tile));
  for (const std::string& part :
       {kernel.schedule + " " + kernel.tiles + ": the least predicted time of ", std::string(", predicted ")})
    EXPECT_NE(product.explain().find(part), std::string::npos) << product.explain();
}

TEST(Tuning, IsNotSharedWithFunctionsThatDidNotAskForIt) {
  Context ctx({.cache_directory = ""});
  const auto f = [](const Tensor& x) { return exp(x) * 2.f; };
  const auto tuned = compile(f, {.max_autotune = true});
  const auto plain = compile(f);
  const Tensor x = ctx.randn({1 << 16});
  tuned(x);
  plain(x);
  EXPECT_FALSE(tuned.report().front().kernels.front().tuning.empty());
  EXPECT_TRUE(plain.report().front().kernels.front().tuning.empty());
}

}  // namespace
}  // namespace tilewright
