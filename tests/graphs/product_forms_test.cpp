// Which form lowering gives a matmul on a GPU. That every form means the same: product_parity.
#include "ir/text.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "support/h200_target.h"
#include "support/product_graphs.h"

#include <tilewright/tile/text.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tilewright::test {
namespace {

struct Form {
  int kernels = 0, dots = 0, sums = 0;
  friend bool operator==(const Form&, const Form&) = default;
};
std::ostream& operator<<(std::ostream& out, const Form& f) {
  return out << f.kernels << " kernels, " << f.dots << " dots, " << f.sums << " sums";
}

Form form_of(const ProductGraph& product) {
  const passes::Compiled compiled = passes::run_pipeline(graph_of(product), h200_target());
  Form form{.kernels = static_cast<int>(compiled.plan.kernels.size())};
  for (const tile::Kernel& kernel : compiled.plan.kernels)
    tile::for_each_op(kernel.body, [&](const tile::Op& op) {
      form.dots += op.kind == tile::OpKind::dot ? 1 : 0;
      form.sums += op.kind == tile::OpKind::reduce ? 1 : 0;
    });
  return form;
}

// Operand a of the dot, as a tile.
std::vector<Index> block(const ProductGraph& product) {
  std::vector<Index> shape;
  for (const tile::Kernel& kernel : passes::run_pipeline(graph_of(product), h200_target()).plan.kernels)
    tile::for_each_op(kernel.body, [&](const tile::Op& op) {
      if (op.kind == tile::OpKind::dot) shape = kernel.type(op.operands[0]).shape;
    });
  return shape;
}

TEST(ProductForms, OneRowIsASumOfProducts) {
  // k is contiguous if b lies by columns: each program reads a row of it.
  EXPECT_EQ(form_of({.n = 8192, .k = 8192, .dtype = DType::bf16, .b_by_columns = true}), (Form{1, 0, 1}));
  // Else the blocks of a cluster share k: one kernel, too. Where they are too few, or there are no clusters,
  // programs share it, and a second kernel adds their parts.
  const ProductGraph by_rows{.n = 8192, .k = 8192, .dtype = DType::bf16};
  EXPECT_EQ(form_of(by_rows), (Form{1, 0, 1}));
  EXPECT_EQ(form_of({.n = 512, .k = 65536, .dtype = DType::bf16}), (Form{2, 0, 2}));
  tile::Target alone = h200_target();
  alone.max_cluster = 1;
  EXPECT_EQ(passes::run_pipeline(graph_of(by_rows), alone).plan.kernels.size(), 2u);
  EXPECT_EQ(form_of({.m = 8192, .n = 1, .k = 4096}), (Form{1, 0, 1}));
  EXPECT_EQ(form_of({.n = 4096, .k = 4096, .around = ProductGraph::Around::scaled_weights}), (Form{2, 0, 2}));
}

// The largest tile that any kernel loads.
std::vector<Index> largest_load(const ProductGraph& product) {
  std::vector<Index> shape;
  Index most = 0;
  for (const tile::Kernel& kernel : passes::run_pipeline(graph_of(product), h200_target()).plan.kernels)
    tile::for_each_op(kernel.body, [&](const tile::Op& op) {
      if (op.kind != tile::OpKind::load) return;
      const tile::TileType& type = kernel.type(op.results[0]);
      if (type.dtype == DType::i8 && type.size() > most) most = type.size(), shape = type.shape;
    });
  return shape;
}

// Two sums, of the groups' numbers and of the groups; of packed weights those of both columns of a byte.
TEST(ProductForms, OneRowOfQuantisedWeightsHasItsGroupsOnChip) {
  ProductGraph p{.n = 8192,
                 .k = 8192,
                 .dtype = DType::bf16,
                 .b_by_columns = true,
                 .around = ProductGraph::Around::quantised_weights};
  EXPECT_EQ(form_of(p), (Form{1, 0, 2}));
  EXPECT_EQ(largest_load(p), (std::vector<Index>{64, 128}));
  p.around = ProductGraph::Around::packed_weights;
  EXPECT_EQ(form_of(p), (Form{1, 0, 4}));
  EXPECT_EQ(largest_load(p), (std::vector<Index>{64, 128}));
}

// The types that the innermost loops of a body load.
std::vector<DType> loaded_innermost(const tile::Kernel& kernel, const tile::Block& body) {
  std::vector<DType> found, here;
  for (const tile::Op& op : body.ops) {
    if (op.kind == tile::OpKind::load) here.push_back(kernel.type(op.results[0]).dtype);
    for (const tile::Block& inner : op.blocks) {
      const std::vector<DType> deeper = loaded_innermost(kernel, inner);
      found.insert(found.end(), deeper.begin(), deeper.end());
    }
  }
  return found.empty() ? here : found;
}

// A group's scales, with b by rows of k, are loaded and multiplied behind the loop over the group, not in it.
TEST(ProductForms, ScalesOfGroupsRestInTheLoopOverAGroup) {
  for (const auto around : {ProductGraph::Around::quantised_weights, ProductGraph::Around::packed_weights}) {
    const ProductGraph p{.n = 8192, .k = 8192, .dtype = DType::bf16, .around = around};
    const passes::Compiled compiled = passes::run_pipeline(graph_of(p), h200_target());
    const tile::Kernel& first = compiled.plan.kernels.front();
    const std::vector<DType> loaded = loaded_innermost(first, first.body);
    EXPECT_EQ(std::count(loaded.begin(), loaded.end(), DType::i8), 1) << tile::print(first);
    EXPECT_EQ(std::count(loaded.begin(), loaded.end(), DType::bf16), 1) << "x alone: " << tile::print(first);
  }
}

// Weights that lie by k are multiplied by tensor cores, and two programs share the blocks; others are sums on
// the vector units.
TEST(ProductForms, FewRowsOfQuantisedWeights) {
  ProductGraph p{.m = 16,
                 .n = 8192,
                 .k = 8192,
                 .dtype = DType::bf16,
                 .b_by_columns = true,
                 .around = ProductGraph::Around::packed_weights};
  EXPECT_EQ(form_of(p), (Form{2, 1, 1}));
  EXPECT_EQ(block(p), (std::vector<Index>{128, 128}));
  p.m = 4, p.b_by_columns = false, p.around = ProductGraph::Around::quantised_weights;
  EXPECT_EQ(form_of(p).dots, 0);
}

TEST(ProductForms, FewRowsShareWhatTheyRead) {
  EXPECT_EQ(form_of({.m = 4, .n = 8192, .k = 4096, .b_by_columns = true}), (Form{1, 0, 4}));
  // Tensor cores multiply few rows beside zeros at the memory's rate, too.
  EXPECT_EQ(form_of({.m = 4, .n = 8192, .k = 4096, .dtype = DType::bf16}).sums,
            form_of({.m = 4, .n = 8192, .k = 4096, .dtype = DType::bf16}).kernels - 1);
  EXPECT_EQ(form_of({.m = 64, .n = 8192, .k = 4096}).dots, 1);
}

// 128 columns of bytes of k are a block's row; two accumulators leave room for 192 columns.
TEST(ProductForms, EightBitFloatsTakeDeepBlocksOfTensorCores) {
  const ProductGraph p{.m = 4096, .n = 4096, .k = 4096, .dtype = DType::f8e4m3, .b_by_columns = true};
  EXPECT_EQ(block(p), (std::vector<Index>{128, 128}));
  ProductGraph of_two_types = p;
  of_two_types.b_dtype = DType::f8e5m2;
  EXPECT_EQ(block(of_two_types), (std::vector<Index>{128, 128}));
  ProductGraph by_rows = p;
  by_rows.b_by_columns = false;  // not as they read 8 bits: a kernel copies b
  EXPECT_EQ(block(by_rows), (std::vector<Index>{128, 128}));
  EXPECT_EQ(form_of(by_rows), (Form{2, 1, 0}));
}

TEST(ProductForms, EightBitIntegersTakeTensorCoresByK) {
  const ProductGraph p{.m = 4096, .n = 4096, .k = 4096, .dtype = DType::i8, .b_by_columns = true};
  EXPECT_EQ(block(p), (std::vector<Index>{128, 128}));
  ProductGraph by_rows = p;
  by_rows.b_by_columns = false;
  EXPECT_EQ(block(by_rows), (std::vector<Index>{128, 128}));
  EXPECT_EQ(form_of(by_rows), (Form{2, 1, 0}));
}

// Sums of products of blocks, each under its scales: one loop, and no product of a block is stored.
TEST(ProductForms, ScalesOfBlocksAreOneLoopOfDots) {
  const ProductGraph p{.m = 4096,
                       .n = 7168,
                       .k = 16384,
                       .dtype = DType::f8e4m3,
                       .b_by_columns = true,
                       .around = ProductGraph::Around::scaled_blocks};
  EXPECT_EQ(form_of(p), (Form{1, 1, 0}));
  EXPECT_EQ(block(p), (std::vector<Index>{256, 128}));
}

// The dots of a plan that may round their operands, and the depth of its last one's blocks.
std::pair<int, Index> tf32_dots(const ProductGraph& product, bool allowed) {
  tile::Target target = h200_target();
  target.tf32 = allowed;
  std::pair<int, Index> out;
  for (const tile::Kernel& kernel : passes::run_pipeline(graph_of(product), target).plan.kernels)
    tile::for_each_op(kernel.body, [&](const tile::Op& op) {
      if (op.kind != tile::OpKind::dot) return;
      out.first += op.precision == tile::DotPrecision::tf32 ? 1 : 0;
      out.second = kernel.type(op.operands[0]).shape[1];
    });
  return out;
}

TEST(ProductForms, SinglesAreRoundedOnlyWhereThatIsAllowed) {
  const ProductGraph p{.m = 4096, .n = 4096, .k = 4096};
  EXPECT_EQ(tf32_dots(p, false).first, 0);
  EXPECT_EQ(tf32_dots(p, true), (std::pair<int, Index>{1, 32}));
  EXPECT_EQ(tf32_dots({.m = 12, .n = 5, .k = 4096}, true).first, 0);  // few columns stream
  ProductGraph narrow = p;
  narrow.dtype = DType::bf16;
  EXPECT_EQ(tf32_dots(narrow, true).first, 0);
}

// Tiles were measured best on an H200 (docs/notes/2026-11-21-fourth-h200.md, 2026-11-22-sixth-h200.md).
TEST(ProductForms, FewRowsTakeTheTilesThatWereMeasured) {
  const auto columns = [](Index rows) {
    const ProductGraph p{.m = rows, .n = 8192, .k = 8192, .dtype = DType::bf16};
    Index out = 0;
    for (const tile::Kernel& kernel : passes::run_pipeline(graph_of(p), h200_target()).plan.kernels)
      tile::for_each_op(kernel.body, [&](const tile::Op& op) {
        if (op.kind == tile::OpKind::dot) out = kernel.type(op.results[0]).shape[1];
      });
    return out;
  };
  EXPECT_EQ(columns(8), 256);
  EXPECT_EQ(columns(128), 64);
}

// Elements of the largest view that each kernel has.
std::vector<Index> largest_views(std::string_view reduced, std::string_view shape) {
  const std::string text = fmt::format(
      "graph @g(%a: bf16[4096,1024], %b: bf16[1024,4096]) -> (bf16[4096,4096], f32{1}) {{\n"
      "  %2 = matmul %a, %b : bf16[4096,4096]\n"
      "  %3 = cast %2 {{dtype=f32}} : f32[4096,4096]\n"
      "  %4 = abs %3 : f32[4096,4096]\n"
      "  %5 = max %4 {{axes={0}}} : f32{1}\n"
      "  return %2, %5\n"
      "}}\n",
      reduced, shape);
  std::vector<Index> out;
  for (const tile::Kernel& kernel :
       passes::run_pipeline(ir::parse(text, ops::all_ops()).value(), h200_target()).plan.kernels) {
    Index largest = 0;
    for (const tile::ViewParam& view : kernel.views) {
      Index elements = 1;
      for (const tile::Dim& extent : view.extents) elements *= extent.value;
      largest = std::max(largest, elements);
    }
    out.push_back(largest);
  }
  return out;
}

// The product's tiles leave parts, and what follows reads these alone.
TEST(ProductForms, WhatIsReducedOfAStoredProductLeavesWithIt) {
  constexpr Index kAll = Index{4096} * 4096;
  for (auto [axes, shape] : {std::pair{"[1]", "[4096]"}, {"[0]", "[4096]"}, {"[0,1]", "[]"}}) {
    const std::vector<Index> views = largest_views(axes, shape);
    ASSERT_EQ(views.size(), 2U) << axes;
    EXPECT_EQ(views[0], kAll);
    EXPECT_LE(views[1], kAll / 64) << axes;
  }
}

// A scale for each 128 of a row: a tile holds its block, and what is stored has 8 bits. Measured on an H200,
// 4096 columns in one kernel take 57 and 208 us, in two 70 and 214
// (docs/notes/2026-11-22-statistics-of-tiles.md).
TEST(ProductForms, ScalesOfTheResultsBlocksAreFoundByItsTiles) {
  constexpr std::string_view kText = R"(
graph @g(%a: bf16[4096,{k}], %b: bf16[{k},{n}]) -> (f8e4m3[4096,{n}], f32[4096,{blocks}]) {{
  %2 = matmul %a, %b : bf16[4096,{n}]
  %3 = cast %2 {{dtype=f32}} : f32[4096,{n}]
  %4 = reshape %3 {{shape=[4096,{blocks},128]}} : f32[4096,{blocks},128]
  %5 = abs %4 : f32[4096,{blocks},128]
  %6 = max %5 {{axes=[2]}} : f32[4096,{blocks}]
  %7 = reshape %6 {{shape=[4096,{blocks},1]}} : f32[4096,{blocks},1]
  %8 = expand %7 {{shape=[4096,{blocks},128]}} : f32[4096,{blocks},128]
  %9 = div %4, %8 : f32[4096,{blocks},128]
  %10 = cast %9 {{dtype=f8e4m3}} : f8e4m3[4096,{blocks},128]
  %11 = reshape %10 {{shape=[4096,{n}]}} : f8e4m3[4096,{n}]
  return %11, %6
}}
)";
  for (const auto& [n, k] : {std::pair<Index, Index>{4096, 1024}, {4096, 4096}, {32768, 4096}}) {
    const std::string text =
        fmt::format(kText, fmt::arg("n", n), fmt::arg("k", k), fmt::arg("blocks", n / 128));
    const passes::Compiled compiled =
        passes::run_pipeline(ir::parse(text, ops::all_ops()).value(), h200_target());
    ASSERT_EQ(compiled.plan.kernels.size(), 1U) << n << " " << k;
    const tile::Kernel& kernel = compiled.plan.kernels[0];
    std::vector<Index> tile;
    tile::for_each_op(kernel.body, [&](const tile::Op& op) {
      if (op.kind == tile::OpKind::dot) tile = kernel.type(op.results[0]).shape;
    });
    ASSERT_EQ(tile.size(), 2U);
    EXPECT_EQ(tile[1], 128);
  }
}

TEST(ProductForms, FewTilesShareTheirDepth) {
  EXPECT_EQ(form_of({.m = 128, .n = 128, .k = 65536, .dtype = DType::bf16}), (Form{2, 1, 1}));
  EXPECT_EQ(form_of({.m = 128, .n = 128, .k = 65536}), (Form{2, 1, 1}));
  EXPECT_EQ(form_of({.m = 128, .n = 128, .k = 65536, .around = ProductGraph::Around::bias_and_silu}),
            (Form{2, 1, 1}));
  EXPECT_EQ(form_of({.m = 8192, .n = 8192, .k = 8192, .dtype = DType::bf16}), (Form{1, 1, 0}));
}

}  // namespace
}  // namespace tilewright::test
