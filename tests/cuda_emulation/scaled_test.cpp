// Sums of products of blocks under their scales, as the compiler writes them for tensor cores: 8-bit floats
// of either type, ragged edges, few rows; and what takes another schedule.
#include "cuda_emulation/kernel_expect.h"

#include "passes/pipeline.h"
#include "support/product_graphs.h"
#include "support/scaled_kernels.h"

namespace tilewright::emulation {
namespace {

using test::ProductGraph;
using Around = ProductGraph::Around;
using tile::DotUnit;

class EmulatedScales : public ::testing::Test {
 protected:
  EmulatedScales() : backend_(open_emulated_cuda("sm_90a").value()) {}

  // The unit that the one kernel's first schedule takes, after it is checked.
  DotUnit check(ProductGraph product) {
    if (product.around == Around::nothing) product.around = Around::scaled_blocks;
    const passes::Compiled compiled = passes::run_pipeline(test::graph_of(product), backend_->target());
    const std::string what = to_string(product);
    EXPECT_EQ(compiled.plan.kernels.size(), 1u) << what;
    SCOPED_TRACE(what);
    const tile::Kernel& kernel = compiled.plan.kernels.back();
    const auto first = expect_first_right(*backend_, kernel);
    if (!first) return {};
    text_ = backend_->print(kernel, *first).value().text;
    return dot_unit(*first);
  }

  // The same of each kernel, however many; their schedules.
  std::vector<tile::Schedule> check_all(const ProductGraph& product) {
    const passes::Compiled compiled = passes::run_pipeline(test::graph_of(product), backend_->target());
    SCOPED_TRACE(to_string(product));
    std::vector<tile::Schedule> all;
    all.reserve(compiled.plan.kernels.size());
    for (const tile::Kernel& kernel : compiled.plan.kernels)
      all.push_back(expect_first_right(*backend_, kernel).value_or(tile::Schedule{}));
    return all;
  }

  std::unique_ptr<backends::Backend> backend_;
  std::string text_;  // of the kernel that was checked last
};

TEST_F(EmulatedScales, BlocksOfEightBitsAreMultipliedOnTensorCores) {
  for (const DType dtype : {DType::f8e4m3, DType::f8e5m2})
    EXPECT_EQ(check({.m = 128, .n = 256, .k = 384, .dtype = dtype, .b_by_columns = true}), DotUnit::wgmma);
  EXPECT_EQ(check({.m = 128,
                   .n = 128,
                   .k = 256,
                   .dtype = DType::f8e4m3,
                   .b_dtype = DType::f8e5m2,
                   .b_by_columns = true}),
            DotUnit::wgmma);
  EXPECT_EQ(check({.m = 128,
                   .n = 128,
                   .k = 256,
                   .dtype = DType::f8e5m2,
                   .b_dtype = DType::f8e4m3,
                   .b_by_columns = true}),
            DotUnit::wgmma);
  EXPECT_EQ(check({.m = 128, .n = 128, .k = 256, .dtype = DType::i8, .b_by_columns = true}), DotUnit::wgmma);
  // Rows that overhang, a width that scales do not divide evenly, few rows.
  EXPECT_EQ(check({.m = 200, .n = 128, .k = 256, .dtype = DType::f8e4m3, .b_by_columns = true}),
            DotUnit::wgmma);
  EXPECT_EQ(check({.m = 70, .n = 96, .k = 256, .dtype = DType::f8e4m3, .b_by_columns = true}),
            DotUnit::wgmma);
  EXPECT_EQ(check({.m = 9, .n = 256, .k = 512, .dtype = DType::f8e4m3, .b_by_columns = true}),
            DotUnit::wgmma);
  EXPECT_EQ(check({.m = 64, .n = 128, .k = 256, .dtype = DType::bf16}), DotUnit::wgmma);
}

// Rows of 256 in halves: an even and an odd number of rounds, one alone, and rows that overhang. With b
// shared by two blocks.
TEST_F(EmulatedScales, RoundsOfEveryKind) {
  for (const Index k : {Index{128}, Index{256}, Index{640}})
    for (const Index block_m : {Index{64}, Index{128}, Index{256}})
      for (const int cluster : {1, 2}) {
        const tile::samples::ScaledKernel s{
            .m = 2 * block_m - 58, .n = 256, .k = k, .block_m = block_m, .block_n = 64};
        const tile::Schedule schedule{
            .threads = block_m == 64 ? 128 : 256,
            .kind = tile::WgmmaScaled{.stages = 2, .group_m = 8, .cluster = cluster}};
        SCOPED_TRACE(to_string(s));
        expect_right(*backend_, scaled_product(s), schedule);
      }
}

// An odd number of blocks of rows leaves one without a neighbour.
TEST_F(EmulatedScales, ClustersWantNeighboursInRows) {
  const tile::samples::ScaledKernel s{.m = 3 * 64, .n = 256, .k = 256, .block_m = 64, .block_n = 64};
  const tile::Schedule schedule{.threads = 128,
                                .kind = tile::WgmmaScaled{.stages = 2, .group_m = 8, .cluster = 2}};
  const auto printed = backend_->print(scaled_product(s), schedule);
  ASSERT_FALSE(printed);
  EXPECT_NE(printed.error().message.find("cluster=2"), std::string::npos) << printed.error().message;
}

// Large ones in 256 rows, few in fewer.
TEST_F(EmulatedScales, TilesByTheNumberOfRows) {
  const auto tile_of = [&](Index m) {
    const ProductGraph product{.m = m,
                               .n = 4096,
                               .k = 4096,
                               .dtype = DType::f8e4m3,
                               .b_by_columns = true,
                               .around = Around::scaled_blocks};
    const passes::Compiled compiled = passes::run_pipeline(test::graph_of(product), backend_->target());
    const tile::Kernel& kernel = compiled.plan.kernels.back();
    const backends::Candidate first = backend_->candidates(kernel).at(0);
    return std::pair{kernel.grid[1][0].block, std::get<tile::WgmmaScaled>(first.schedule.kind).group_m};
  };
  EXPECT_EQ(tile_of(4096), (std::pair<Index, int>{256, 8}));
  EXPECT_LE(tile_of(128).first, 128);
}

// Widened in registers, as operand a: the result's columns are the tile's rows.
TEST_F(EmulatedScales, WeightsOfFewBitsAreWidenedOnTheirWayToTensorCores) {
  for (const Around around : {Around::quantised_weights, Around::packed_weights})
    for (const Index m : {Index{2}, Index{40}, Index{130}}) {
      const ProductGraph product{
          .m = m, .n = 256, .k = 384, .dtype = DType::bf16, .b_by_columns = true, .around = around};
      EXPECT_EQ(check(product), DotUnit::wgmma);
      // The copy engine brings the bytes ahead of their turn.
      EXPECT_NE(text_.find("block_pair<"), std::string::npos) << text_;
    }
}

// One row: groups of numbers by numbers, whole on chip; and programs that share the groups of 16 rows.
TEST_F(EmulatedScales, FewRowsOfQuantisedWeights) {
  const auto product = [](Index m, Index n, Index k, bool by_columns, Around around) {
    return ProductGraph{
        .m = m, .n = n, .k = k, .dtype = DType::bf16, .b_by_columns = by_columns, .around = around};
  };
  for (const Around around : {Around::quantised_weights, Around::packed_weights}) {
    for (const bool by_columns : {true, false}) {
      EXPECT_EQ(dot_unit(check_all(product(1, 70, 512, by_columns, around)).front()), DotUnit::fma);
      check_all(product(3, 70, 512, by_columns, around));
    }
    EXPECT_EQ(dot_unit(check_all(product(16, 1024, 1024, true, around)).front()), DotUnit::wgmma);
  }
}

TEST_F(EmulatedScales, OthersTakeASlowerSchedule) {
  // b by rows: 8 bits lie by k for tensor cores; a short last block: padded copies.
  constexpr Around kAround = Around::scaled_blocks;
  const ProductGraph by_rows{.m = 64, .n = 128, .k = 256, .dtype = DType::f8e4m3, .around = kAround};
  const ProductGraph singles{
      .m = 40, .n = 50, .k = 256, .dtype = DType::f32, .b_by_columns = true, .around = kAround};
  for (const ProductGraph& product : {by_rows, singles})
    for (const tile::Schedule& schedule : check_all(product)) EXPECT_NE(dot_unit(schedule), DotUnit::wgmma);
}

}  // namespace
}  // namespace tilewright::emulation
