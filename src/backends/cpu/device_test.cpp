// The rest of the device headers: functions of two arguments, f64, reductions, tails, streams, Philox.
#include <fmt/format.h>
#include <tilewright/base/philox.h>
#include <tilewright/tile/prim.h>

#include <cmath>
#include <limits>
#include <random>

#include "backends/cpu/testing.h"

namespace tilewright::cpu {
namespace {

using testing::error_ulp;

std::string binary_text(const std::string& header, const std::string& function) {
  return fmt::format(
      "#include \"tw_cpu/{}.h\"\n#include \"tw_cpu/memory.h\"\n"
      "extern \"C\" void run(const float* x, const float* y, float* z, long n) {{\n"
      "  for (long i = 0; i < n; i += TW_LANES) tw::store(z + i, tw::{}(tw::load(x + i), tw::load(y + "
      "i)));\n}}\n",
      header, function);
}

using Binary = void(const float*, const float*, float*, long);

// Pairs of special values, each with each; random bit patterns; moderate values, of which pow has finite
// results.
void fill_pairs(std::vector<float>& x, std::vector<float>& y) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> special;
  for (const float v : {0.f, 1.f, 2.f, 3.f, 0.5f, 1.5f, 0.99999994f, 1.0000001f, 16777215.f, 16777216.f,
                        8388609.f, 8388607.5f, 1e-40f, 1e38f, inf, NAN, 127.f, 1e-3f})
    special.insert(special.end(), {v, -v});
  for (const float a : special)
    for (const float b : special) x.push_back(a), y.push_back(b);
  std::mt19937 random(7);
  for (int i = 0; i < 300'000; ++i) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    y.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  std::normal_distribution<float> exponent(0, 8);
  for (int i = 0; i < 300'000; ++i) {
    x.push_back(std::exp2(exponent(random)));
    y.push_back(exponent(random) * (i % 2 == 0 ? 1.f : 8.f));
  }
  while (x.size() % 64 != 0) x.push_back(1), y.push_back(1);
}

void check_binary(const char* name_of, double (*exact)(double, double)) {
  std::vector<float> x, y;
  fill_pairs(x, y);
  const double bound = tile::info(*tile::parse_prim(name_of)).ulp;
  for (const Isa isa : testing::runnable_isas()) {
    const auto kernel =
        testing::build<Binary>(binary_text(name_of, name_of), "run", testing::options_for(isa));
    std::vector<float> z(x.size());
    kernel.function(x.data(), y.data(), z.data(), static_cast<long>(x.size()));
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double wanted = exact(x[i], y[i]), error = error_ulp(z[i], wanted);
      worst = std::max(worst, error);
      ASSERT_LE(error, bound) << name(isa)
                              << fmt::format(": {}({:a}, {:a}) = {:a}, exactly {:a}", name_of, x[i], y[i],
                                             z[i], wanted);
      ASSERT_TRUE(std::isnan(wanted) || std::signbit(z[i]) == std::signbit(wanted)) << x[i] << " " << y[i];
    }
    if (std::getenv("TW_PRINT")) fmt::print("{:8} {:8} {:6.3f} ulp\n", name_of, name(isa), worst);
  }
}

TEST(DeviceTest, PowIsWithinItsBoundAndKnowsTheSpecialCases) {
  check_binary("pow", [](double x, double y) { return std::pow(x, y); });
}
TEST(DeviceTest, Atan2IsWithinItsBoundAndKnowsTheSpecialCases) {
  check_binary("atan2", [](double y, double x) { return std::atan2(y, x); });
}

TEST(DeviceTest, MinAndMaxPropagateNaN) {
  std::vector<float> x, y;
  fill_pairs(x, y);
  for (const Isa isa : testing::runnable_isas())
    for (const std::string function : {"min", "max"}) {
      const auto kernel =
          testing::build<Binary>(binary_text("core", function), "run", testing::options_for(isa));
      std::vector<float> z(x.size());
      kernel.function(x.data(), y.data(), z.data(), static_cast<long>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(x[i]) || std::isnan(y[i]))
          ASSERT_TRUE(std::isnan(z[i])) << function << x[i] << " " << y[i];
        else
          ASSERT_EQ(z[i], function == "min" ? std::min(x[i], y[i]) : std::max(x[i], y[i]));
      }
    }
}

TEST(DeviceTest, F64FunctionsAreTheCLibrarys) {
  const std::string text =
      "#include \"tw_cpu/f64.h\"\n#include \"tw_cpu/memory.h\"\n"
      "extern \"C\" void run(const double* x, double* y, long n) {\n"
      "  for (long i = 0; i < n; i += TW_LANES) { const auto v = tw::load(x + i);\n"
      "    tw::store(y + i, tw::exp(v) + tw::sin(v) * tw::pow(tw::vf64(2.0), v) + tw::sigmoid(v)); } }\n";
  std::vector<double> x(640), y(640);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (static_cast<double>(i) - 320) / 17;
  for (const Isa isa : testing::runnable_isas()) {
    const auto kernel =
        testing::build<void(const double*, double*, long)>(text, "run", testing::options_for(isa));
    kernel.function(x.data(), y.data(), static_cast<long>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double wanted = std::exp(x[i]) + std::sin(x[i]) * std::exp2(x[i]) + 1 / (1 + std::exp(-x[i]));
      ASSERT_NEAR(y[i], wanted, 1e-14 * (1 + std::exp(x[i]))) << x[i];
    }
  }
}

TEST(DeviceTest, ReductionsCombineEveryLaneOnce) {
  const std::string text =
      "#include \"tw_cpu/reduce.h\"\n#include \"tw_cpu/memory.h\"\nusing namespace tw;\n"
      "extern \"C\" int run(const float* x, const long* k, float* y, long* z) {\n"
      "  const vf32 v = load(x); const vi64 i = load(k);\n"
      "  y[0] = reduce_sum(v); y[1] = reduce_prod(v); y[2] = reduce_min(v); y[3] = reduce_max(v);\n"
      "  z[0] = reduce_sum(i); z[1] = reduce_prod(i); z[2] = reduce_min(i); z[3] = reduce_max(i);\n"
      "  return TW_LANES; }\n";
  for (const Isa isa : testing::runnable_isas()) {
    const auto kernel =
        testing::build<int(const float*, const long*, float*, long*)>(text, "run", testing::options_for(isa));
    float x[16], y[4];
    long k[16], z[4];
    // Powers of two: the sum and the product tell which lanes took part.
    for (int i = 0; i < 16; ++i) x[i] = std::ldexp(1.f, i), k[i] = 1 + i % 3;
    const int lanes = kernel.function(x, k, y, z);
    EXPECT_EQ(lanes * 4, vector_bytes(isa));
    EXPECT_EQ(y[0], std::ldexp(1.f, lanes) - 1);
    EXPECT_EQ(y[1], std::ldexp(1.f, lanes * (lanes - 1) / 2));
    EXPECT_EQ(y[2], 1);
    EXPECT_EQ(y[3], std::ldexp(1.f, lanes - 1));
    long sum = 0, product = 1;
    for (int i = 0; i < lanes; ++i) sum += k[i], product *= k[i];
    EXPECT_EQ(z[0], sum);
    EXPECT_EQ(z[1], product);
    EXPECT_EQ(z[2], 1);
    EXPECT_EQ(z[3], 3);
    x[lanes / 2] = NAN;
    kernel.function(x, k, y, z);
    EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]));
  }
}

template <class T>
void check_tails(Isa isa, const std::string& scalar) {
  const auto text = fmt::format(
      "#include \"tw_cpu/memory.h\"\nusing namespace tw;\n"
      "extern \"C\" int run(const {0}* x, {0}* y, long n, {0} fill) {{\n"
      "  const auto v = load_tail(x, n, decltype(load(x))(fill)); store(y, v); store_tail(y + TW_LANES, v, "
      "n);\n"
      "  return TW_LANES; }}\n",
      scalar);
  const auto kernel = testing::build<int(const T*, T*, long, T)>(text, "run", testing::options_for(isa));
  const int lanes = vector_bytes(isa) / 4;
  for (int count = 0; count < lanes; ++count) {
    std::vector<T> x(static_cast<std::size_t>(lanes)), y(static_cast<std::size_t>(3 * lanes), T(77));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i + 1);
    ASSERT_EQ(kernel.function(x.data(), y.data(), count, T(99)), lanes);
    for (int i = 0; i < lanes; ++i) {
      ASSERT_EQ(y[static_cast<std::size_t>(i)], i < count ? T(i + 1) : T(99)) << scalar << count;
      ASSERT_EQ(y[static_cast<std::size_t>(lanes + i)], i < count ? T(i + 1) : T(77)) << scalar << count;
    }
  }
}

TEST(DeviceTest, TailsTouchOnlyTheirElements) {
  for (const Isa isa : testing::runnable_isas()) {
    check_tails<float>(isa, "f32");
    check_tails<double>(isa, "f64");
    check_tails<std::int64_t>(isa, "i64");
    check_tails<std::int32_t>(isa, "i32");
    check_tails<std::uint16_t>(isa, "u16");
    check_tails<std::uint8_t>(isa, "u8");
  }
}

TEST(DeviceTest, PhiloxWordsAreBases) {
  const std::string text =
      "#include \"tw_cpu/philox.h\"\n#include \"tw_cpu/memory.h\"\nusing namespace tw;\n"
      "extern \"C\" int run(u64 seed, u64 first, u32* single, u32* block) {\n"
      "  for (int i = 0; i < 4 * TW_LANES; i += TW_LANES)\n"
      "    store(single + i, philox_word(seed, convert<vu64>(iota()) + (first + i)));\n"
      "  const PhiloxBlock words = philox_consecutive(seed, first);\n"
      "  for (int i = 0; i < 4; ++i) store(block + i * TW_LANES, words.word[i]);\n"
      "  return TW_LANES; }\n";
  for (const Isa isa : testing::runnable_isas()) {
    const auto kernel = testing::build<int(std::uint64_t, std::uint64_t, std::uint32_t*, std::uint32_t*)>(
        text, "run", testing::options_for(isa));
    for (const std::uint64_t first : {0ull, 4096ull, (1ull << 34) - 8, 0xfffffffffffffc00ull})
      for (const std::uint64_t seed : {0ull, 42ull, 0xdeadbeefcafef00dull}) {
        std::uint32_t single[64], block[64];
        const int lanes = kernel.function(seed, first, single, block);
        for (std::uint64_t i = 0; i < 4 * static_cast<std::uint64_t>(lanes); ++i) {
          const std::uint32_t wanted = philox4x32(seed, (first + i) >> 2)[(first + i) & 3];
          ASSERT_EQ(single[i], wanted) << name(isa) << " " << first << " + " << i;
          ASSERT_EQ(block[i], wanted) << name(isa) << " " << first << " + " << i;
        }
      }
  }
}

TEST(DeviceTest, StreamingStoresArrive) {
  const std::string text =
      "#include \"tw_cpu/memory.h\"\nusing namespace tw;\n"
      "extern \"C\" void run(const float* x, float* y, long n) {\n"
      "  for (long i = 0; i < n; i += TW_LANES) store_stream(y + i, load(x + i) + 1.f);\n  fence_streams(); "
      "}\n";
  for (const Isa isa : testing::runnable_isas()) {
    const auto kernel =
        testing::build<void(const float*, float*, long)>(text, "run", testing::options_for(isa));
    alignas(64) float x[128], y[128];
    for (int i = 0; i < 128; ++i) x[i] = static_cast<float>(i);
    kernel.function(x, y, 128);
    for (int i = 0; i < 128; ++i) ASSERT_EQ(y[i], static_cast<float>(i + 1));
  }
}

}  // namespace
}  // namespace tilewright::cpu
