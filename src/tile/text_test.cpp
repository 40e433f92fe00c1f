#include <gtest/gtest.h>
#include <tilewright/tile/text.h>
#include <tilewright/tile/verify.h>

#include <limits>

#include "support/random_kernel.h"
#include "support/sample_kernels.h"

namespace tilewright::tile {
namespace {

std::vector<Kernel> sample_kernels() {
  return {
      samples::elu(),
      samples::row_softmax(DType::bf16, 32, 100),
      samples::row_softmax_looped(DType::f16, 7, 1000, 256),
      samples::matmul_gelu(DType::bf16,
                           {.m = 100, .n = 70, .k = 65, .block_m = 32, .block_n = 16, .block_k = 32}),
      samples::attention(DType::bf16, {.heads = 2, .tokens = 50, .width = 16, .block_m = 16, .block_n = 8}),
      samples::column_sums_atomic(1000, 33, 64, 16),
      samples::column_sums_partial(1000, 33, 64, 16)};
}

void expect_round_trip(const Kernel& kernel) {
  const std::string text = print(kernel);
  const Result<Kernel> back = parse(text);
  ASSERT_TRUE(back.ok()) << back.error().message << "\n" << text;
  EXPECT_EQ(print(*back), text);
  EXPECT_TRUE(*back == kernel) << text;
}

std::string parse_error(std::string_view text) {
  const Result<Kernel> result = parse(text);
  return result.ok() ? "" : result.error().message;
}

TEST(TileText, SampleKernelsComeBackEqual) {
  for (const Kernel& kernel : sample_kernels()) {
    SCOPED_TRACE(kernel.name);
    expect_round_trip(kernel);
  }
}

TEST(TileText, LaunchesTogetherStandBehindTheGrid) {
  Kernel kernel = samples::elu();
  kernel.together = 64;
  expect_round_trip(kernel);
  const std::string text = print(kernel);
  EXPECT_NE(text.find("grid(cdiv(%n,1024)) const(BLOCK=1024) together(64) {"), std::string::npos) << text;
  for (const char* const launches : {"0", "-1", "513", "9223372036854775807"}) {
    std::string other = text;
    other.replace(other.find("together(64)"), 12, std::string("together(") + launches + ")");
    EXPECT_EQ(parse_error(other), "launches run together 1 to 512 at once");
  }
}

TEST(TileText, RandomKernelsComeBackEqual) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    expect_round_trip(test::random_kernel(seed).kernel);
  }
}

TEST(TileText, EluPrintsOneOpALine) {
  EXPECT_EQ(print(samples::elu()),
            R"(kernel @elu(
    %x: view<f32,[%n],strides=[1],align=16>,
    %y: view<f32,[%n],strides=[1],align=16>,
    %n: i64)
    grid(cdiv(%n,1024)) const(BLOCK=1024) {
  %0 = scalar_param %n : i64
  %1 = program_id 0 : i64
  %2 = constant 1024 : i64
  %start = mul %1, %2 : i64
  %4 = load %x[%start] {fill=0.0} : tile<f32,[1024]>
  %5 = constant 0.0 : tile<f32,[1024]>
  %6 = gt %4, %5 : tile<bool,[1024]>
  %7 = exp %4 : tile<f32,[1024]>
  %8 = constant 1.0 : tile<f32,[1024]>
  %9 = sub %7, %8 : tile<f32,[1024]>
  %10 = select %6, %4, %9 : tile<f32,[1024]>
  store %y[%start], %10 {bounded=true} : tile<f32,[1024]>
}
)");
}

TEST(TileText, LiteralsComeBackBitForBit) {
  Builder k("literals");
  const View y = k.view("y", DType::f64, {64});
  const double values[] = {0.0,
                           -0.0,
                           0.1,
                           1e-45,
                           3.4028234663852886e38,
                           1.0 / 3,
                           1e300,
                           -5e-324,
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()};
  Index at = 0;
  for (double v : values) {
    k.store(y, {at++}, k.literal(DType::f64, v));
    if (std::abs(v) != 1e300) k.store(y, {at++}, k.cast(k.literal(DType::f32, v), DType::f64));
    if (std::abs(v) < 1e6) k.store(y, {at++}, k.cast(k.literal(DType::bf16, v), DType::f64));
  }
  for (Index v : {Index{0}, Index{-1}, std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max()})
    k.store(y, {at++}, k.cast(k.literal_int(DType::i64, v), DType::f64));
  k.store(y, {at++}, k.cast(k.literal_int(DType::u8, 255), DType::f64));
  k.store(y, {at++}, k.cast(k.literal_int(DType::boolean, 1), DType::f64));
  expect_round_trip(k.finish({{{1, 1}}}));
}

TEST(TileText, ProductsThatAreRoundedSaySo) {
  Builder k("rounded");
  const View x = k.view("x", DType::f32, {64}), y = k.view("y", DType::f32, {2, 64});
  const Value v = k.load(x, {0}, {.shape = {64}}), square = v * v;
  k.store(y, {0, 0}, square);
  k.store(y, {1, 0}, v * 2.f + 1.f);
  k.store(y, {1, 0}, square + 1.f);
  const Kernel kernel = k.finish({{{1, 1}}});
  EXPECT_NE(print(kernel).find("mul %1, %1 {rounded=true}"), std::string::npos) << print(kernel);
  EXPECT_EQ(print(kernel).find("{rounded=true}"), print(kernel).rfind("{rounded=true}"));
  expect_round_trip(kernel);
}

TEST(TileText, AnOddNumberingIsWrittenDown) {
  Kernel kernel = samples::elu();
  // Swap two ids everywhere: %start gets 4, the load 3.
  std::swap(kernel.values[3], kernel.values[4]);
  const auto swap = [](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) id = id == 3 ? 4 : id == 4 ? 3 : id;
  };
  for (Op& op : kernel.body.ops) {
    swap(op.operands);
    swap(op.results);
  }
  ASSERT_EQ(verify(kernel), std::nullopt);
  EXPECT_NE(print(kernel).find("%start#4 = mul"), std::string::npos);
  expect_round_trip(kernel);
}

TEST(TileText, EveryAttributeAndControlFormComesBack) {
  Builder k("forms");
  const Value n = k.scalar("n"), alpha = k.scalar("alpha", DType::f32);
  const View x =
      k.view("x", DType::f32, {8, n, 4}, {.strides = {{0, -1}, {-4, -1}, {1, -1}}, .align_bytes = 4});
  const View y = k.view("y", DType::f32, {64, 64}), z = k.view("z", DType::i32, {});
  const View out = k.view("out", DType::f32, {64, 64});
  const Value t = k.load(x, {0, 0, 0}, {.shape = {4, 8}, .dims = {2, 0}, .fill = -0.0});
  const Value scanned = k.scan(Monoid::sum, t, 1);
  k.argsort(scanned, 0);
  k.argsort(scanned, 1, Order::descending);
  const Value index = k.arange(8), mask = index < 5;
  const Value g = k.gather(y, {index, index}, {.mask = mask, .fill = 2.5});
  const Value h = k.gather(y, {index, 3});
  const Value r = k.reduce(Monoid::argmax, scanned, 0);
  const auto chosen =
      k.branch(n > 3, [&] { return std::vector<Value>{g * alpha}; }, [&] { return std::vector<Value>{h}; });
  const auto looped = k.loop(0, n, 2, {chosen[0], k.literal_int(DType::i64, 0)}, [&](Value i, const auto& c) {
    const auto inner =
        k.loop(i, 7, 1, {c[0]}, [&](Value, const auto& d) { return std::vector<Value>{d[0] + 1}; });
    return std::vector<Value>{inner[0], c[1] + i};
  });
  k.name_value(looped[0], "total");
  k.name_value(looped[1], "total");
  k.scatter(out, {r, index}, looped[0], mask);
  k.atomic_add(z, {}, k.cast(looped[1], DType::i32));
  const Value noise = k.random(n, index);
  k.branch(
      n == 0,
      [&] {
        k.scatter(out, {index + 8, noise & 7}, g);
        return std::vector<Value>{};
      },
      [] { return std::vector<Value>{}; });
  expect_round_trip(k.finish({{{n, 16}, {3, 1}}, {{5, 1}}, {{n, 1}}}));
}

TEST(TileText, ErrorsNameLineAndColumn) {
  EXPECT_EQ(parse_error(""), "1:1: expected 'kernel', found the end");
  EXPECT_EQ(parse_error("kernel @k() grid(1) {\n  %0 = frob : i64\n}"), "2:8: no op is called 'frob'");
}

TEST(TileText, RefusesMalformedText) {
  const auto body = [](const std::string& ops) {
    return "kernel @k(%x: view<f32,[8],strides=[1],align=4>, %n: i64) grid(1) {\n" + ops + "\n}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {"kernel @k(%x: view<f33,[8],strides=[1],align=4>) grid(1) {}", "no type is called 'f33'"},
      {"kernel @k(%x: view<f32,[%m],strides=[1],align=4>) grid(1) {}", "no scalar parameter %m"},
      {"kernel @k() grid(1) {", "expected '}'"},
      {"kernel @k() grid() {}", "expected a number"},
      {"kernel @k() grid(1) {} x", "expected the end"},
      {"kernel @k() grid(99999999999999999999) {}", "not a number"},
      {body("%0 = constant 1.0"), "0 types for 1 results"},
      {body("%0 = constant 1.5 : i64"), "not a number of this type"},
      {body("%0 = constant 1e999 : f32"), "not a number of this type"},
      {body("%0 = exp %1 : f32"), "no value %1 before this"},
      {body("%a = constant 1.0 : f32 %a = exp %a : f32"), "the name %a is used twice"},
      {body("%9000 = constant 1.0 : f32"), "the id 9000 is too large"},
      {body("%0 = constant 0 : i64 %0 = constant 0 : i64"), "defined twice"},
      {body("%0 = constant 0 : i64 store %x[%0], %0, %0, %0 : i64"), "store takes"},
      {body("%0 = constant 0 : i64 %1 = load %x[%0] {axis=0} : f32"), "no attribute 'axis'"},
      {body("%0 = constant 0 : i64 loop %1 in %0 to %0 step %0 { yield }"), "the step is 0"},
      {body("%0 = constant 1 : i64 loop %1 in %0 to %0 step %0 (%2 = %0) { yield }"), "types for 1 carried"},
      {body("%0 = constant true : bool branch %0 { yield }"), "expected 'else'"},
      {body("%0 = reduce most %0 {axis=0} : f32"), "no monoid is called 'most'"},
      {body("%0 = scalar_param %q : i64"), "no scalar parameter %q"},
      {body("%0 = constant 0 : i64 %1 = load %x[%0] : tile<f32,[9]>"), "leaves the view"},
      {body("%0 = constant 0 : i64 store %x[%0], %0 : f32"), "the value is i64"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_NE(parse_error(text).find(message), std::string::npos) << text << "\n-> " << parse_error(text);
}

TEST(TileText, DeepNestingIsRefusedNotFollowed) {
  std::string text = "kernel @k() grid(1) { %0 = constant true : bool ";
  for (int i = 0; i < 100000; ++i) text += "branch %0 { ";
  EXPECT_NE(parse_error(text).find("nested deeper than"), std::string::npos);
}

TEST(TileText, TruncatedKernelsNeverCrash) {
  for (const Kernel& kernel : sample_kernels()) {
    const std::string text = print(kernel);
    for (std::size_t n = 0; n + 2 < text.size(); n += 3)  // the last characters are "}\n"
      EXPECT_FALSE(parse(std::string_view(text).substr(0, n)).ok());
  }
}

}  // namespace
}  // namespace tilewright::tile
