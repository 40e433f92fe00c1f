// Operations on constants, which the compiler computes itself: it must not take what C++ leaves undefined (a
// NaN as an integer, a sum that overflows) for undefined where the tile IR says what comes out.
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/host/isa.h"
#include "backends/cpu/parity_testing.h"

#include <tilewright/tile/builder.h>

#include <limits>

namespace tilewright::cpu {
namespace {

using tile::Builder;
using tile::PrimClass;
using tile::PrimInfo;
using tile::Value;
using tile::View;

class ConstantTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!host_runs(GetParam())) GTEST_SKIP() << "this machine lacks " << name(GetParam());
    backend_ = CpuBackend::open({.threads = 1, .isa = std::string(name(GetParam()))}).value();
  }
  std::unique_ptr<backends::Backend> backend_;
};

std::vector<double> float_samples() {
  const double infinity = std::numeric_limits<double>::infinity();
  return {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, -2, 0, 1.5, 1e30};
}
std::vector<std::int64_t> integer_samples(DType d) {
  const int bits = 8 * size_bytes(d);
  if (d == DType::u8) return {0, 1, 255};
  const auto highest = static_cast<std::int64_t>((std::uint64_t{1} << (bits - 1)) - 1);
  return {-highest - 1, -1, 0, 1, highest};
}
std::vector<Value> samples(Builder& k, DType d) {
  std::vector<Value> values;
  if (is_float(d))
    for (const double x : float_samples()) values.push_back(k.literal(d, x));
  else
    for (const std::int64_t x : integer_samples(d)) values.push_back(k.literal_int(d, x));
  return values;
}

// Every primitive that takes this type, on every pair of samples, as scalars and as tiles.
TEST_P(ConstantTest, EveryPrimitive) {
  std::uint64_t number = 0;
  for (const DType d : {DType::f32, DType::f64, DType::i32, DType::i64, DType::i8, DType::u8})
    for (const PrimInfo& row : tile::kPrims) {
      const bool takes = row.operands == PrimClass::any || row.operands == PrimClass::arithmetic ||
                         row.operands == (is_float(d) ? PrimClass::floating : PrimClass::integral);
      if (!takes || row.prim == tile::Prim::select || !testing::is_tried(GetParam(), number++)) continue;
      SCOPED_TRACE(std::string(row.name) + " on " + std::string(name(d)));
      Builder k("prim");
      const DType result = row.to_bool ? DType::boolean : d;
      const std::vector<Value> values = samples(k, d);
      const auto n = static_cast<Index>(values.size());
      const View s = k.view("s", result, {n, n}), t = k.view("t", result, {n, n, 20});
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < (row.arity == 1 ? 1 : n); ++j) {
          std::vector<tile::Operand> operands(static_cast<std::size_t>(row.arity),
                                              values[static_cast<std::size_t>(i)]);
          operands.back() = values[static_cast<std::size_t>(row.arity == 1 ? i : j)];
          const Value y = k.apply(row.prim, operands);
          k.store(s, {i, j}, y);
          k.store(t, {i, j, 0}, k.broadcast(y, {20}));
        }
      testing::expect_parity(*backend_, k.finish({{{1, 1}}}));
    }
}

TEST_P(ConstantTest, EveryCast) {
  for (const DType from : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    SCOPED_TRACE(name(from));
    Builder k("cast");
    const std::vector<Value> values = samples(k, from);
    const auto n = static_cast<Index>(values.size());
    for (const DType to : kAllDTypes) {
      if (from == to) continue;
      const View y = k.view(std::string(name(to)), to, {n});
      for (Index i = 0; i < n; ++i) k.store(y, {i}, k.cast(values[static_cast<std::size_t>(i)], to));
    }
    testing::expect_parity(*backend_, k.finish({{{1, 1}}}));
  }
}

// x + 1 > x is false for the largest number; a compiler that takes overflow for impossible says true.
TEST_P(ConstantTest, IntegersWrapAround) {
  Builder k("wrap");
  const View x = k.view("x", DType::i32, {40}), y = k.view("y", DType::boolean, {40});
  const Value t = k.load(x, {0}, {.shape = {40}});
  k.store(y, {0}, (t + 1) > t);
  testing::expect_parity(*backend_, k.finish({{{1, 1}}}), {.ranges = {{0, {2147483645, 2147483647}}}});
}

INSTANTIATE_TEST_SUITE_P(Isas, ConstantTest, ::testing::ValuesIn(kAllIsas),
                         [](const auto& each) { return std::string(name(each.param)); });

}  // namespace
}  // namespace tilewright::cpu
