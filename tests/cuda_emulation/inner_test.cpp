// Sums of products along a row, on tensor cores where both factors are narrow floats or bytes: every type and
// way of standing in rows, two sums that share a factor, and what is left to the ordinary units.
#include "cuda_emulation/kernel_expect.h"

#include <tilewright/tile/builder.h>

namespace tilewright::emulation {
namespace {

using tile::Builder;
using tile::Kernel;
using tile::Monoid;
using tile::Prim;
using tile::Schedule;
using tile::View;

enum class Weights : unsigned char { floats, bytes, nibbles };

struct Rows {
  Index rows, columns, block_rows;
  Weights weights = Weights::floats;
  DType dtype = DType::bf16;  // of x, and of weights that are floats
};

// y[r] = Σ_c w[r, c] · x[c]; of numbers of 4 bits one sum for each half of a byte.
Kernel row_products(const Rows& p) {
  Builder k("rows");
  const bool floats = p.weights == Weights::floats, halves = p.weights == Weights::nibbles;
  const View w = k.view("w", floats ? p.dtype : DType::i8, {p.rows, p.columns}),
             x = k.view("x", p.dtype, {p.columns}), y = k.view("y", DType::f32, {p.rows}),
             z = k.view("z", DType::f32, {p.rows});
  const tile::Value start = k.program_id(0) * p.block_rows;
  const bool several = p.block_rows > 1;
  const std::vector<Index> shape = several ? std::vector{p.block_rows, p.columns} : std::vector{p.columns};
  const tile::Value bytes = k.load(w, {start, 0}, {.shape = shape});
  const tile::Value by = k.cast(k.load(x, {0}, {.shape = {p.columns}}), DType::f32);
  const auto sum = [&](tile::Value left) {
    const tile::Value product =
        k.cast(left, DType::f32) * (several ? k.broadcast(k.expand(by, 0), shape) : by);
    return k.reduce(Monoid::sum, product, several ? 1 : 0);
  };
  const auto half = [&](Index count) {
    const auto number = [&](Index n) { return k.literal_int(DType::i8, n, shape); };
    return k.apply(Prim::shr, {k.apply(Prim::shl, {bytes, number(count)}), number(4)});
  };
  k.store(y, {start}, sum(halves ? half(4) : bytes));
  if (halves) k.store(z, {start}, sum(half(0)));
  return k.finish({{{p.rows, p.block_rows}}});
}

class InnerProducts : public ::testing::Test {
 protected:
  // The text that was checked.
  std::string check(const Kernel& kernel, const Schedule& schedule,
                    const std::string& architecture = "sm_90a") {
    const auto backend = open_emulated_cuda(architecture).value();
    SCOPED_TRACE(to_string(schedule));
    expect_right(*backend, kernel, schedule,
                 {.odd_share = 0.002, .model = {.scale = 2, .flush_subnormals = true}});
    const auto printed = backend->print(kernel, schedule);
    return printed ? printed->text : "";
  }
};

int occurrences(const std::string& text, const std::string& part) {
  int n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

constexpr Schedule kQuads{.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 4}};
constexpr Schedule kEights{.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 8}};
constexpr Schedule kWhole{.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 64}};

TEST_F(InnerProducts, EveryTypeAndWayOfStanding) {
  for (const Weights weights : {Weights::floats, Weights::bytes, Weights::nibbles})
    for (const Schedule& s : {kQuads, kEights})
      EXPECT_EQ(occurrences(check(row_products({128, 256, 32, weights}), s), "add_products("), 1);
  EXPECT_EQ(occurrences(check(row_products({4, 2048, 1, Weights::bytes}), kWhole), "add_products("), 1);
  EXPECT_EQ(
      occurrences(check(row_products({64, 128, 32, Weights::floats, DType::f16}), kEights), "add_products("),
      1);
  EXPECT_EQ(
      occurrences(check(row_products({64, 128, 32, Weights::nibbles}), kEights, "sm_80"), "add_products("),
      1);
}

// The blocks of a cluster have columns of the same row.
TEST_F(InnerProducts, PartsOfARowOverACluster) {
  Schedule s = kWhole;
  std::get<tile::ElementLoops>(s.kind).cluster = 2;
  EXPECT_EQ(occurrences(check(row_products({4, 4096, 1}), s), "add_products("), 1);
}

TEST_F(InnerProducts, OtherFactorsAndOverhangingRowsStayOnTheOrdinaryUnits) {
  const auto none = [&](const Rows& rows, const Schedule& s) {
    EXPECT_EQ(occurrences(check(row_products(rows), s), "add_products("), 0);
  };
  none({64, 128, 32, Weights::floats, DType::f32}, kEights);
  none({64, 120, 32}, kEights);  // columns
  none({64, 32, 32}, kQuads);    // short rows
  none({48, 128, 48}, {.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 2}});
  // f32 and bytes: neither type has the other's values.
  none({64, 128, 32, Weights::bytes, DType::f16}, kEights);
}

}  // namespace
}  // namespace tilewright::emulation
