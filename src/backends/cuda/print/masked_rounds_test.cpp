// Masks that one loop has and the other has not are found; loops that differ in more have none.
#include "backends/cuda/print/masked_rounds.h"

#include <tilewright/tile/text.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tilewright::cuda {
namespace {

// An index that steps over the round of another loop.
constexpr const char* kStep = R"(    %before_it = lt %i, %step : bool
    %over = select %before_it, %zero, %step : i64
    %at = add %i, %over : i64
)";

struct Found {
  bool any = false;
  std::vector<int> left = {};
  std::size_t loads = 0;
};

// A loop at `at` with a mask, made of `limit`, and one that has `body` instead.
Found masks_of(const std::string& limit, const std::string& body, const std::string& at = "%i") {
  const std::string text = fmt::format(R"(
kernel @sums(%y: view<f32,[64],strides=[1],align=256>, %x: view<f32,[64,4096],strides=[4096,1],align=256>,
             %ends: view<i64,[4096],strides=[1],align=256>)
    grid(64) {{
  %pid = program_id 0 : i64
  %zero = constant 0 : i64
  %end = constant 4096 : i64
  %step = constant 512 : i64
  %none = constant 0.0 : f32
  %nothing = constant 0.0 : tile<f32,[512]>
  %first = loop %i in %zero to %end step %step (%sum = %none) : f32 {{
{}    %in = load %x[%pid, {}] : tile<f32,[512]>
    %index = arange : tile<i64,[512]>
    %limit = {}
    %inside = lt %index, %limit : tile<bool,[512]>
    %masked = select %inside, %in, %nothing : tile<f32,[512]>
    %part = reduce sum %masked {{axis=0}} : f32
    %next = add %sum, %part : f32
    yield %next
  }}
  %last = loop %j in %zero to %end step %step (%before = %first) : f32 {{
{}  }}
  store %y[%pid], %last : f32
}}
)",
                                       at == "%i" ? "" : kStep, at, limit, body);
  const tile::Kernel kernel = tile::parse(text).value();
  std::vector<const tile::Op*> loops;
  for (const tile::Op& op : kernel.body.ops)
    if (op.kind == tile::OpKind::loop) loops.push_back(&op);
  const auto masks = known_masks(kernel, *loops[0], *loops[1]);
  Found found{masks.has_value()};
  if (!masks) return found;
  for (const auto& [op, left] : masks->left) found.left.push_back(left);
  found.loads = masks->loads.size();
  return found;
}

constexpr const char* kComputed = "broadcast %end : tile<i64,[512]>";
constexpr const char* kLoaded = "load %ends[%i] : tile<i64,[512]>";
constexpr const char* kWhole = R"(    %all = load %x[%pid, %j] : tile<f32,[512]>
    %total = reduce sum %all {axis=0} : f32
    %after = add %before, %total : f32
    yield %after
)";
constexpr const char* kOther = R"(    %all = load %x[%pid, %j] : tile<f32,[512]>
    %total = reduce max %all {axis=0} : f32
    %after = add %before, %total : f32
    yield %after
)";

TEST(KnownMasks, AreWhatOneLoopHasAndTheOtherHasNot) {
  const Found found = masks_of(kComputed, kWhole);
  ASSERT_TRUE(found.any);
  EXPECT_EQ(found.left, std::vector{1});
  EXPECT_EQ(found.loads, 0U);
}

TEST(KnownMasks, AreNoneOfLoopsThatDifferInMore) { EXPECT_FALSE(masks_of(kComputed, kOther).any); }

TEST(KnownMasks, NameTheTilesThatTheyAloneAreMadeOf) {
  const Found found = masks_of(kLoaded, kWhole);
  ASSERT_TRUE(found.any);
  EXPECT_EQ(found.left, std::vector{1});
  EXPECT_EQ(found.loads, 1U);
}

TEST(KnownMasks, HaveTheIndexThatStepsOverOtherRounds) {
  const Found found = masks_of(kComputed, kWhole, "%at");
  ASSERT_TRUE(found.any);
  std::vector<int> left = found.left;
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector{0, 1}));
}

}  // namespace
}  // namespace tilewright::cuda
