// Short rows that are walked as one, by themselves and behind a transposition: what is printed, and that it
// is what the interpreter computes.
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/parity_testing.h"
#include "backends/cpu/print/printer.h"

#include <tilewright/tile/builder.h>

#include <fmt/format.h>

namespace tilewright::cpu {
namespace {

using namespace tile;

struct ShortLines {
  Index rows, columns;
  Index block = 0;  // rows of a program; 0: all
  DType dtype = DType::f32;
  bool gaps = false;      // the result's rows are apart
  bool numbered = false;  // what is computed depends on the column's number
};

// y = exp(x) · row, plus column: rows of x and y lie one after another.
Kernel scaled(const ShortLines& s) {
  Builder k("scaled");
  const Index block = s.block > 0 ? s.block : s.rows;
  const View x = k.view("x", s.dtype, {s.rows, s.columns}), row = k.view("row", s.dtype, {s.columns}),
             column = k.view("column", s.dtype, {s.rows}),
             y = k.view("y", s.dtype, {s.rows, s.columns},
                        {.strides = {{s.columns + (s.gaps ? 1 : 0), -1}, {1, -1}}});
  const Value first = k.program_id(0) * block, at = k.literal_int(DType::i64, 0);
  const std::vector<Index> shape = {block, s.columns};
  const auto wide = [&](const Value& v) { return k.cast(v, compute_dtype(s.dtype)); };
  const Value scale = wide(k.load(row, {at}, {.shape = {s.columns}}));
  const Value shift = wide(k.load(column, {first}, {.shape = {block}, .fill = 0.0}));
  Value t = wide(k.load(x, {first, at}, {.shape = shape, .fill = 0.0}));
  t = exp(t) * k.broadcast(k.expand(scale, 0), shape) + k.broadcast(k.expand(shift, 1), shape);
  if (s.numbered) t = t * k.broadcast(k.expand(k.cast(k.arange(s.columns), t.type().dtype), 0), shape);
  k.store(y, {first, at}, k.cast(t, s.dtype), {.bounded = true});
  return k.finish({{{s.rows, block}}});
}

// y = exp(xᵀ), columns one after another.
Kernel turned(Index rows, Index columns, DType dtype) {
  Builder k("turned");
  const View x = k.view("x", dtype, {rows, columns}), y = k.view("y", dtype, {columns, rows});
  const Value at = k.literal_int(DType::i64, 0);
  Value t = k.transpose(k.load(x, {at, at}, {.shape = {rows, columns}}));
  if (is_float(dtype)) t = k.cast(exp(k.cast(t, compute_dtype(dtype))), dtype);
  k.store(y, {at, at}, t);
  return k.finish({{{1, 1}}});
}

std::string joined_text(const Kernel& kernel) {
  return print_kernel(kernel, {.kind = tile::CpuLoops{.unroll = 4}}, /*lanes=*/16)->text;
}

TEST(JoinedRowsTest, NoVectorEndsWithARow) {
  for (const Index columns : {2, 3, 8, 17, 40}) {
    const std::string text = joined_text(scaled({.rows = 64, .columns = columns}));
    EXPECT_EQ(text.find("for (i64 r"), std::string::npos) << text;
    EXPECT_NE(text.find(fmt::format("repeat_row<{}>", columns)), std::string::npos) << text;
    EXPECT_NE(text.find(fmt::format("repeat_elements<{}>", columns)), std::string::npos) << text;
    EXPECT_EQ(text.find("lanes_below"), std::string::npos) << text;
  }
  EXPECT_EQ(joined_text(turned(3, 64, DType::f32)).find("for (i64 r = 0; r < 64"), std::string::npos);
}

TEST(JoinedRowsTest, OtherLoopsGoRowByRow) {
  for (const ShortLines& rows :
       {ShortLines{.rows = 64, .columns = 16}, ShortLines{.rows = 64, .columns = 127},
        ShortLines{.rows = 64, .columns = 3, .gaps = true},
        ShortLines{.rows = 64, .columns = 40, .numbered = true}}) {
    const std::string text = joined_text(scaled(rows));
    EXPECT_EQ(text.find("repeat_"), std::string::npos) << text;
  }
}

using JoinedRowsOnIsa = testing::OnIsa;

TEST_P(JoinedRowsOnIsa, ValuesAreTheInterpreters) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const Index columns : {2, 3, 13, 40})
      for (const auto& [rows, block] : {std::pair<Index, Index>{37, 0}, {50, 20}})
        check(scaled({.rows = rows, .columns = columns, .block = block, .dtype = dtype}));
}

TEST_P(JoinedRowsOnIsa, TilesOfFewRowsAreTurned) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8})
    for (const Index rows : {2, 3, 5, 8, 9, 15, 17, 58})
      for (const Index columns : {15, 16, 40}) check(turned(rows, columns, dtype));
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, JoinedRowsOnIsa, ::testing::ValuesIn(kAllIsas),
                         [](const auto& tried) { return std::string(name(tried.param)); });

}  // namespace
}  // namespace tilewright::cpu
