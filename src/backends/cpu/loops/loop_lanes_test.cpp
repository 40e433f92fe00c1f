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

// `n`: the kernel's number in its test (is_tried).
void expect_parity_everywhere(const tile::Kernel& kernel, std::uint64_t n, int threads = 1) {
  for (const Isa isa : kAllIsas) {
    if (!host_runs(isa) || !testing::is_tried(isa, n)) continue;
    SCOPED_TRACE(name(isa));
    const auto backend = CpuBackend::open({.threads = threads, .isa = std::string(name(isa))}).value();
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
  std::uint64_t number = 0;
  const Index most = std::numeric_limits<Index>::max(), least = std::numeric_limits<Index>::min();
  for (const Prim prim : {Prim::lt, Prim::le, Prim::gt, Prim::ge, Prim::eq, Prim::ne})
    for (const bool limit_first : {false, true})
      for (const Index limit : {least, Index{-1}, Index{0}, Index{15}, Index{50}, most}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name(prim), limit, limit_first));
        const tile::Kernel kernel = comparison(prim, limit, limit_first);
        EXPECT_FALSE(contains(text_of(kernel), "iota()")) << text_of(kernel);
        expect_parity_everywhere(kernel, number++);
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
  expect_parity_everywhere(kernel, 0);
}

// y[r, c] = x[r, first + c] and z[r, c - first] = it, where that is in the row.
tile::Kernel shifted_row(DType dtype, Index first, Index stride) {
  Builder k("shifted_row");
  const View x = k.view("x", dtype, {5, kColumns}, {.strides = {{stride * kColumns, -1}, {stride, -1}}}),
             y = k.view("y", dtype, {5, kColumns}),
             z = k.view("z", dtype, {5, kColumns}, {.strides = {{stride * kColumns, -1}, {stride, -1}}});
  const Value row = k.program_id(0), column = k.arange(kColumns), from = column + first, to = column - first;
  const Value rows = k.broadcast(row, {kColumns});
  const Value t = k.gather(x, {rows, from}, {.mask = (from >= 0) & (from < kColumns), .fill = 1});
  k.store(y, {row, 0}, t);
  k.scatter(z, {rows, to}, t, (to >= 0) & (to < kColumns));
  return k.finish({{{5, 1}}});
}

TEST(LoopLanesTest, IndicesThatCountLanesAreVectorsOfMemory) {
  std::uint64_t number = 0;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::u8, DType::boolean})
    for (const Index first : {-32, -3, 0, 5, 48}) {
      SCOPED_TRACE(fmt::format("{} {}", name(dtype), first));
      const tile::Kernel kernel = shifted_row(dtype, first, 1);
      const std::string text = text_of(kernel);
      EXPECT_FALSE(contains(text, "gather") || contains(text, "scatter")) << text;
      expect_parity_everywhere(kernel, number++);
      EXPECT_TRUE(contains(text_of(shifted_row(dtype, first, 2)), "gather"));
      expect_parity_everywhere(shifted_row(dtype, first, 2), number++);
    }
}

// sums[shared ? 0 : row of ids, first + c] += x[r, c] for the rows of x, of which each program has one;
// `twice`: by two additions.
tile::Kernel added_rows(DType dtype, Index rows, Index first, bool shared, bool twice) {
  Builder k("added_rows");
  const View x = k.view("x", dtype, {rows, kColumns}), sums = k.view("sums", dtype, {7, 2 * kColumns});
  const Value row = k.program_id(0), to = shared ? row * 0 : row % 7;
  const Value t = k.load(x, {row, 0}, {.shape = {kColumns}}), column = k.arange(kColumns) + first;
  for (int i = 0; i < (twice ? 2 : 1); ++i)
    k.atomic_add(sums, {k.broadcast(to, {kColumns}), column}, t, column >= 0);
  return k.finish({{{rows, 1}}});
}

// Threads that add to the same elements lose nothing.
TEST(LoopLanesTest, RowsAreAddedByVectors) {
  std::uint64_t number = 0;
  for (const DType dtype : {DType::f32, DType::f64, DType::i64})
    for (const Index first : {0, 37})
      for (const bool shared : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name(dtype), first, shared));
        const tile::Kernel kernel = added_rows(dtype, 700, first, shared, false);
        const std::string text = text_of(kernel);
        EXPECT_TRUE(contains(text, "add_side_by_side") && !contains(text, "atomic_add")) << text;
        expect_parity_everywhere(kernel, number++, /*threads=*/2);
      }
  const tile::Kernel two = added_rows(DType::f32, 50, 3, false, true);
  EXPECT_FALSE(contains(text_of(two), "add_side_by_side"));
  expect_parity_everywhere(two, 0, 2);
}

tile::Kernel random_words(Index per_row, Index first) {
  Builder k("random_words");
  const View y = k.view("y", DType::i64, {3, kColumns}), seed = k.view("seed", DType::i64, {1});
  const Value row = k.program_id(0);
  k.store(y, {row, 0}, k.random(k.load(seed, {0}, {}), row * per_row + first + k.arange(kColumns)));
  return k.finish({{{3, 1}}});
}

TEST(LoopLanesTest, NeighbouringCountersShareABlockOfWords) {
  std::uint64_t number = 0;
  EXPECT_TRUE(contains(text_of(random_words(kColumns, 8)), "philox_consecutive("));
  EXPECT_FALSE(
      contains(text_of(random_words(kColumns + 1, 8)), "philox_consecutive("));  // blocks begin in between
  for (const Index per_row : {kColumns, kColumns + 1})
    for (const Index first : {0, 3, 8}) expect_parity_everywhere(random_words(per_row, first), number++);
}

}  // namespace
}  // namespace tilewright::cpu
