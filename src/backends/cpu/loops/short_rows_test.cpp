// Blocks of short rows: their lanes are folded together, what is computed once a row is computed for as many
// rows as a vector has lanes, rows behind the end are left out, and all of it is what the interpreter
// computes.
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/parity_testing.h"
#include "backends/cpu/print/printer.h"

#include <tilewright/tile/builder.h>

#include <fmt/format.h>

#include "support/draws.h"
#include "support/random_numbers.h"

#include <random>

namespace tilewright::cpu {
namespace {

using tile::Builder;
using tile::Monoid;
using tile::Value;
using tile::View;

using ShortRowsTest = testing::OnIsa;

struct Rows {
  DType dtype = DType::f32;
  Index rows, columns, block;  // of rows
};

// Value of a column [rows, 1] in each element of its row.
Value along(Builder& k, const Value& column, const Rows& r) {
  return k.broadcast(k.expand(column, 1), {r.block, r.columns});
}

Value log_softmax(Builder& k, const Value& x, const Rows& r) {
  const Value shifted = x - along(k, k.reduce(Monoid::max, x, 1), r);
  return shifted - along(k, log(k.reduce(Monoid::sum, exp(shifted), 1)), r);
}
Value softmax(Builder& k, const Value& x, const Rows& r) {
  const Value e = exp(x - along(k, k.reduce(Monoid::max, x, 1), r));
  return e / along(k, k.reduce(Monoid::sum, e, 1), r);
}
Value layer_norm(Builder& k, const Value& x, const Rows& r) {
  const auto mean = [&](const Value& v) {
    return k.reduce(Monoid::sum, v, 1) * (1.f / static_cast<float>(r.columns));
  };
  const Value centred = x - along(k, mean(x), r);
  return centred * along(k, rsqrt(mean(centred * centred) + 1e-5f), r);
}
using Composite = Value (*)(Builder&, const Value&, const Rows&);
constexpr Composite kComposites[] = {log_softmax, softmax, layer_norm};

// y = f(x) by rows, and for each row its product, its least element and where its greatest one is.
tile::Kernel by_rows(const Rows& r, Composite f) {
  Builder k("by_rows");
  const View x = k.view("x", r.dtype, {r.rows, r.columns}), y = k.view("y", r.dtype, {r.rows, r.columns});
  const View product = k.view("product", DType::f32, {r.rows}), least = k.view("least", r.dtype, {r.rows}),
             place = k.view("place", DType::i64, {r.rows});
  const Value first = k.program_id(0) * r.block;
  const Value t = k.load(x, {first, 0}, {.shape = {r.block, r.columns}, .fill = 0.0});
  const Value wide = k.cast(t, DType::f32);
  k.store(y, {first, 0}, k.cast(f(k, wide, r), r.dtype), {.bounded = true});
  k.store(product, {first}, k.reduce(Monoid::prod, wide * 0.1f + 1.f, 1), {.bounded = true});
  k.store(least, {first}, k.cast(k.reduce(Monoid::min, wide, 1), r.dtype), {.bounded = true});
  k.store(place, {first}, k.reduce(Monoid::argmax, wide, 1), {.bounded = true});
  return k.finish({{{r.rows, r.block}}});
}

TEST_P(ShortRowsTest, DrawnShapesAreWhatTheInterpreterComputes) {
  std::mt19937_64 engine(17);
  const auto drawn = [&](Index low, Index high) {
    return low + static_cast<Index>(engine() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (std::uint64_t n = 0; n < test::draws(24); ++n) {
    const DType dtypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64};
    const Rows r{
        .dtype = dtypes[drawn(0, 3)], .rows = drawn(1, 150), .columns = drawn(1, 130), .block = drawn(2, 70)};
    SCOPED_TRACE(fmt::format("{} {}: {} x {} by {}", n, name(r.dtype), r.rows, r.columns, r.block));
    check(by_rows(r, kComposites[n % 3]));
  }
}

std::string text_of_rows(const tile::Kernel& kernel) {
  return print_kernel(kernel, {.kind = tile::CpuLoops{.unroll = 4}}, /*lanes=*/16)->text;
}

TEST(ShortRowsTextTest, RowsAreFoldedTogetherAndScaledByVectors) {
  const std::string text = text_of_rows(by_rows({.rows = 1000, .columns = 30, .block = 32}, log_softmax));
  for (const std::string part :
       {"fold_rows<Add>", "fold_rows<Maximum>", "fold_rows<Multiply>", "fold_places"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  for (const std::string part : {"reduce_sum", "reduce_max", "log(vf32", " ? 30 : 0"})
    EXPECT_EQ(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(ShortRowsTextTest, FewRowsAreFoldedOneByOne) {
  const std::string text = text_of_rows(by_rows({.rows = 1000, .columns = 300, .block = 4}, softmax));
  EXPECT_EQ(text.find("fold_rows"), std::string::npos) << text;
}

// What is behind the end counts where columns are reduced, too, or more rows are stored than there are.
TEST_P(ShortRowsTest, RowsThatSomethingElseReadsAreComputed) {
  for (const bool by_columns : {false, true}) {
    Builder k("others");
    const View x = k.view("x", DType::f32, {40, 30}), y = k.view("y", DType::f32, {40, 30}),
               z = k.view("z", DType::f32, {2, by_columns ? 30 : 32});
    const Value first = k.program_id(0) * 32;
    const Value t = k.load(x, {first, 0}, {.shape = {32, 30}, .fill = 0.5});
    k.store(y, {first, 0}, exp(t), {.bounded = true});
    k.store(z, {k.program_id(0), 0}, k.reduce(Monoid::sum, t, by_columns ? 0 : 1));
    check(k.finish({{{40, 32}}}));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, ShortRowsTest, ::testing::ValuesIn(kAllIsas),
                         [](const auto& tried) { return std::string(name(tried.param)); });

}  // namespace
}  // namespace tilewright::cpu
