// Integers that count lanes: what is printed for them, and that it is what the interpreter computes.
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/parity_testing.h"
#include "backends/cpu/print/printer.h"

#include <tilewright/tile/builder.h>

#include <fmt/format.h>

#include <limits>

namespace tilewright::cpu {
namespace {

using tile::Builder;
using tile::Prim;
using tile::Value;
using tile::View;

constexpr Index kColumns = 100;  // not a whole number of vectors

std::string text_of(const tile::Kernel& kernel) {
  return print_kernel(kernel, {.kind = tile::CpuLoops{.unroll = 4}}, /*lanes=*/16).value().text;
}
bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_parity_everywhere(const tile::Kernel& kernel) {
  for (const Isa isa : kAllIsas) {
    if (!host_runs(isa)) continue;
    SCOPED_TRACE(name(isa));
    const auto backend = CpuBackend::open({.threads = 1, .isa = std::string(name(isa))}).value();
    testing::expect_parity(*backend, kernel);
  }
}

// y[r, :] = prim(r * 7 + 0, 1, 2 …, limit), or with the sides exchanged.
tile::Kernel comparison(Prim prim, Index limit, bool limit_first) {
  Builder k("comparison");
  const View y = k.view("y", DType::boolean, {5, kColumns});
  const Value row = k.program_id(0), counted = row * 7 + k.arange(kColumns),
              most = k.literal_int(DType::i64, limit);
  k.store(y, {row, 0}, limit_first ? k.apply(prim, {most, counted}) : k.apply(prim, {counted, most}));
  return k.finish({{{5, 1}}});
}

TEST(LoopLanesTest, ComparisonsAreMasksOfLeadingLanes) {
  const Index most = std::numeric_limits<Index>::max(), least = std::numeric_limits<Index>::min();
  for (const Prim prim : {Prim::lt, Prim::le, Prim::gt, Prim::ge, Prim::eq, Prim::ne})
    for (const bool limit_first : {false, true})
      for (const Index limit : {least, Index{-1}, Index{0}, Index{15}, Index{50}, most}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name(prim), limit, limit_first));
        const tile::Kernel kernel = comparison(prim, limit, limit_first);
        EXPECT_FALSE(contains(text_of(kernel), "iota()")) << text_of(kernel);
        expect_parity_everywhere(kernel);
      }
}

// Counting that wraps around has no leading lanes.
TEST(LoopLanesTest, CountingThatMayWrapIsComputed) {
  Builder k("wraps");
  const View from = k.view("from", DType::i64, {1}), y = k.view("y", DType::boolean, {kColumns});
  const Value start = k.load(from, {0}, {}) + std::numeric_limits<Index>::max() - 20;
  k.store(y, {0}, start + k.arange(kColumns) < 3);
  const tile::Kernel kernel = k.finish({{{1, 1}}});
  EXPECT_TRUE(contains(text_of(kernel), "iota()"));
  expect_parity_everywhere(kernel);
}

tile::Kernel random_words(Index per_row, Index first) {
  Builder k("random_words");
  const View y = k.view("y", DType::i64, {3, kColumns}), seed = k.view("seed", DType::i64, {1});
  const Value row = k.program_id(0);
  k.store(y, {row, 0}, k.random(k.load(seed, {0}, {}), row * per_row + first + k.arange(kColumns)));
  return k.finish({{{3, 1}}});
}

TEST(LoopLanesTest, NeighbouringCountersShareABlockOfWords) {
  EXPECT_TRUE(contains(text_of(random_words(kColumns, 8)), "philox_consecutive("));
  EXPECT_FALSE(
      contains(text_of(random_words(kColumns + 1, 8)), "philox_consecutive("));  // blocks begin in between
  for (const Index per_row : {kColumns, kColumns + 1})
    for (const Index first : {0, 3, 8}) expect_parity_everywhere(random_words(per_row, first));
}

}  // namespace
}  // namespace tilewright::cpu
