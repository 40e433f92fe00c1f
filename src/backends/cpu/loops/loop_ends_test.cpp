// Reductions of what changes nothing behind a view's end: their loops end with the view, without masks, and
// what they give is what the interpreter computes.
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/parity_testing.h"
#include "backends/cpu/print/printer.h"

#include <tilewright/tile/builder.h>

#include <fmt/format.h>

#include <array>
#include <limits>

namespace tilewright::cpu {
namespace {

using tile::Builder;
using tile::Monoid;
using tile::Value;
using tile::View;

using LoopEndsTest = testing::OnIsa;

double identity_of(Monoid monoid) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool greatest = monoid == Monoid::max || monoid == Monoid::argmax,
             least = monoid == Monoid::min || monoid == Monoid::argmin;
  return greatest ? -kInfinity : least ? kInfinity : monoid == Monoid::prod ? 1 : 0;
}

struct Blocks {
  Index extent, block, programs;
  bool of_rows = false;  // reduced along the first axis of blocks of two, else the only one
  bool named = false;    // the extent is a parameter
  Monoid monoid = Monoid::sum;
};

// y[p] = the reduction of x in block p, what is behind its end masked as the passes do; further programs than
// there are blocks see nothing of it.
tile::Kernel blocks_reduced(const Blocks& b) {
  constexpr Index kColumns = 40;
  Builder k("blocks");
  const Builder::SizeArg extent = b.named ? Builder::SizeArg(k.scalar("n")) : Builder::SizeArg(b.extent);
  const Value end = b.named ? k.scalar("m") : k.literal_int(DType::i64, b.extent);
  std::vector<Builder::SizeArg> extents{extent};
  std::vector<Index> shape{b.block};
  if (b.of_rows) {
    extents.emplace_back(kColumns);
    shape.push_back(kColumns);
  }
  const View x = k.view("x", DType::f32, extents);
  const Value start = k.program_id(0) * b.block;
  std::vector<tile::Operand> at{start};
  if (b.of_rows) at.emplace_back(0);
  const Value t = k.load(x, at, {.shape = shape, .fill = 0.0});
  Value position = start + k.arange(b.block);
  if (b.of_rows) position = k.broadcast(k.expand(position, 1), shape);
  const Value other = k.literal(DType::f32, identity_of(b.monoid), shape);
  const Value sum = k.reduce(b.monoid, where(position < end, exp(t), other), 0);
  const DType result = tile::finds_place(b.monoid) ? DType::i64 : DType::f32;
  if (b.of_rows) {
    const View y = k.view("y", result, {b.programs, kColumns});
    k.store(y, {k.program_id(0), 0}, sum);
  } else {
    const View y = k.view("y", result, {b.programs});
    k.store(y, {k.program_id(0)}, sum);
  }
  return k.finish({{{b.programs, 1}}});
}

constexpr Monoid kMonoids[] = {Monoid::sum, Monoid::prod,   Monoid::max,
                               Monoid::min, Monoid::argmax, Monoid::argmin};

TEST_P(LoopEndsTest, BlocksThatEndEarlyOrBeginBehindTheEnd) {
  for (const Monoid monoid : kMonoids)
    for (const bool of_rows : {false, true})
      for (const auto& [extent, block, programs] :
           {std::array<Index, 3>{100, 64, 3}, {640, 64, 10}, {77, 100, 1}, {1001, 300, 5}}) {
        const bool named = (extent + static_cast<Index>(monoid)) % 2 == 0;
        SCOPED_TRACE(fmt::format("{} {} {} of {}, rows {}", name(monoid), programs, block, extent, of_rows));
        testing::ParityOptions options;
        if (named) options.scalars = {extent, extent};
        check(blocks_reduced({.extent = extent,
                              .block = block,
                              .programs = programs,
                              .of_rows = of_rows,
                              .named = named,
                              .monoid = monoid}),
              options);
      }
}

TEST(LoopEndsTextTest, NothingIsMaskedButTheLastVector) {
  for (const Monoid monoid : kMonoids)
    for (const bool of_rows : {false, true}) {
      const tile::Kernel kernel =
          blocks_reduced({.extent = 1000, .block = 256, .programs = 4, .of_rows = of_rows, .monoid = monoid});
      const std::string text =
          print_kernel(kernel, {.kind = tile::CpuLoops{.unroll = 4}}, /*lanes=*/16)->text;
      EXPECT_EQ(text.find("lanes_before"), std::string::npos) << text;
      EXPECT_EQ(text.find("mask_of"), std::string::npos) << text;
      EXPECT_NE(text.find("inside"), std::string::npos) << text;
    }
}

// What is put in the place of elements behind the end counts where it is not neutral.
TEST_P(LoopEndsTest, OtherNumbersBehindTheEndCount) {
  Builder k("counted");
  const View x = k.view("x", DType::f32, {100}), y = k.view("y", DType::f32, {2});
  const Value start = k.program_id(0) * 64, inside = start + k.arange(64) < 100;
  const Value t = k.load(x, {start}, {.shape = {64}, .fill = 0.0});
  k.store(y, {k.program_id(0)}, k.reduce(Monoid::sum, where(inside, t, k.literal(DType::f32, 2.0, {64})), 0));
  check(k.finish({{{2, 1}}}));
}

// The number of elements, in effect.
TEST_P(LoopEndsTest, WhatIsMaskedMayBeTheSameEverywhere) {
  for (const bool of_rows : {false, true}) {
    Builder k("counts");
    const View x = k.view("x", DType::f32, {2}), y = k.view("y", DType::f32, {2, 40});
    const Value position = k.program_id(0) * 64 + k.arange(64);
    const std::vector<Index> shape = of_rows ? std::vector<Index>{64, 40} : std::vector<Index>{40, 64};
    const Value inside = k.broadcast(k.expand(position, of_rows ? 1 : 0), shape) < 100;
    const Value one = k.broadcast(k.load(x, {k.program_id(0)}), shape);
    const Value sum =
        k.reduce(Monoid::sum, where(inside, one, k.literal(DType::f32, 0.0, shape)), of_rows ? 0 : 1);
    k.store(y, {k.program_id(0), 0}, sum);
    check(k.finish({{{2, 1}}}));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, LoopEndsTest, ::testing::ValuesIn(kAllIsas),
                         [](const auto& tried) { return std::string(name(tried.param)); });

}  // namespace
}  // namespace tilewright::cpu
