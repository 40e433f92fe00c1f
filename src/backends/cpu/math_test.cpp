// The vector math of the device headers against float64, over the whole range of f32 and on every instruction
// set.
#include <fmt/format.h>
#include <tilewright/tile/prim.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/testing.h"

namespace tilewright::cpu {
namespace {

using testing::error_ulp;

struct Case {
  const char* name;
  const char* header;
  double (*exact)(double);
  double bound_ulp = 0;  // of what is no primitive, which says its own
};

const Case kCases[] = {
    {"exp", "exp", [](double x) { return std::exp(x); }},
    {"exp2", "exp2", [](double x) { return std::exp2(x); }},
    {"expm1", "expm1", [](double x) { return std::expm1(x); }},
    {"log", "log", [](double x) { return std::log(x); }},
    {"log2", "log2", [](double x) { return std::log2(x); }},
    {"log1p", "log1p", [](double x) { return std::log1p(x); }},
    {"sin", "sin", [](double x) { return std::sin(x); }},
    {"cos", "cos", [](double x) { return std::cos(x); }},
    {"tan", "tan", [](double x) { return std::tan(x); }},
    {"tanh", "tanh", [](double x) { return std::tanh(x); }},
    {"erf", "erf", [](double x) { return std::erf(x); }},
    {"sigmoid", "sigmoid",
     [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }},
    // An exponential, a sum and a quotient. What a sum in f32 could not hold is 0.
    {"one_plus_tanh", "sigmoid",
     [](double x) {
       const double e = std::exp(-2 * x);
       return e > std::numeric_limits<float>::max() ? 0 : 2 / (e + 1);
     },
     2.75},
    {"sqrt", "root", [](double x) { return std::sqrt(x); }},
    {"rsqrt", "root", [](double x) { return 1 / std::sqrt(x); }},
};

// All bit patterns at a stride (a prime, so that every exponent gets every kind of mantissa), the special
// values and their neighbours, multiples of 1/64, and a dense sweep of the range where most arguments are.
std::vector<float> arguments() {
  std::vector<float> x;
  constexpr std::uint32_t kStride = 4099;
  for (std::uint64_t bits = 0; bits < 1ull << 32; bits += kStride)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (int i = -200'000; i <= 200'000; ++i) x.push_back(static_cast<float>(i) * 0x1.0001p-11f);
  for (int i = -4096; i <= 4096; ++i) x.push_back(static_cast<float>(i) * 0x1p-6f);  // where pieces meet
  using Limits = std::numeric_limits<float>;
  for (const float special : {0.f,
                              1.f,
                              2.f,
                              0.5f,
                              0.75f,
                              1.5f,
                              88.72284f,
                              87.33655f,
                              103.97f,
                              127.5f,
                              128.f,
                              149.5f,
                              9.0109f,
                              3.9192f,
                              131072.f,
                              Limits::min(),
                              Limits::max(),
                              Limits::denorm_min(),
                              Limits::infinity(),
                              Limits::quiet_NaN(),
                              1.5707964f,
                              3.1415927f,
                              16367173.f * 0x1p72f})
    for (const float at : {special, -special})
      for (int steps = -4; steps <= 4; ++steps)
        x.push_back(
            std::bit_cast<float>(std::bit_cast<std::uint32_t>(at) + static_cast<std::uint32_t>(steps)));
  while (x.size() % 64 != 0) x.push_back(1.f);
  return x;
}

std::string kernel_text(const Case& test) {
  return fmt::format(
      "#include \"tw_cpu/{}.h\"\n#include \"tw_cpu/memory.h\"\n"
      "extern \"C\" void run(const float* x, float* y, long n) {{\n"
      "  for (long i = 0; i < n; i += TW_LANES) tw::store(y + i, tw::{}(tw::load(x + i)));\n}}\n",
      test.header, test.name);
}

class MathTest : public ::testing::TestWithParam<Case> {};

TEST_P(MathTest, IsWithinItsBoundOverTheWholeRange) {
  const Case& test = GetParam();
  const double bound_ulp = test.bound_ulp > 0 ? test.bound_ulp : tile::info(*tile::parse_prim(test.name)).ulp;
  const std::vector<float> x = arguments();
  std::vector<double> exact(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) exact[i] = test.exact(x[i]);
  for (const Isa isa : testing::runnable_isas()) {
    const auto kernel =
        testing::build<void(const float*, float*, long)>(kernel_text(test), "run", testing::options_for(isa));
    std::vector<float> y(x.size());
    kernel.function(x.data(), y.data(), static_cast<long>(x.size()));
    double worst = -1;
    std::size_t where = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (const double error = error_ulp(y[i], exact[i]); error > worst) worst = error, where = i;
    RecordProperty(std::string(name(isa)), fmt::format("{:.3f}", worst));
    if (std::getenv("TW_PRINT"))
      fmt::print("{:8} {:8} {:6.3f} ulp at {:a}\n", test.name, name(isa), worst, x[where]);
    EXPECT_LE(worst, bound_ulp) << name(isa)
                                << fmt::format(": {}({:a}) = {:a}, exactly {:a}", test.name, x[where],
                                               y[where], exact[where]);
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, MathTest, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// Dividends and divisors: any bits; products of both kinds of numbers and their neighbours, whose quotients
// are whole or next to it; quotients next to what goes lane by lane; and what is no ordinary number.
template <class T, class Bits>
std::vector<std::pair<T, T>> dividends() {
  std::vector<std::pair<T, T>> out;
  std::uint64_t state = 17;
  const auto draw = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
  };
  const auto step = [](T x, int ulps) {
    return std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(x) + static_cast<Bits>(ulps)));
  };
  constexpr int kDigits = std::numeric_limits<T>::digits;
  for (int i = 0; i < 200'000; ++i) {
    out.emplace_back(std::bit_cast<T>(static_cast<Bits>(draw())),
                     std::bit_cast<T>(static_cast<Bits>(draw())));
    const T by = step(static_cast<T>(0.7), static_cast<int>(draw() % 1000000));
    const T whole = static_cast<T>(draw() >> (64 - 1 - draw() % (kDigits + 3)));
    const int ulps = static_cast<int>(draw() % 5) - 2;
    out.emplace_back(step(whole * by, ulps) * (draw() % 2 == 0 ? 1 : -1), draw() % 2 == 0 ? by : -by);
  }
  using Limits = std::numeric_limits<T>;
  const T specials[] = {0,
                        1,
                        T(0.7),
                        3,
                        Limits::min(),
                        Limits::max(),
                        Limits::denorm_min(),
                        Limits::infinity(),
                        Limits::quiet_NaN(),
                        std::ldexp(T(1), kDigits),
                        std::ldexp(T(1), kDigits + 1)};
  for (const T a : specials)
    for (const T b : specials)
      for (const int signs : {0, 1, 2, 3}) out.emplace_back(signs & 1 ? -a : a, signs & 2 ? -b : b);
  while (out.size() % 64 != 0) out.emplace_back(T(1), T(1));
  return out;
}

template <class T, class Bits>
void expect_remainders(const char* type) {
  const std::vector<std::pair<T, T>> operands = dividends<T, Bits>();
  std::vector<T> a, b;
  for (const auto& [x, y] : operands) a.push_back(x), b.push_back(y);
  const std::string text = fmt::format(
      "#include \"tw_cpu/elementwise.h\"\n#include \"tw_cpu/memory.h\"\n"
      "extern \"C\" void run(const {0}* a, const {0}* b, {0}* y, long n) {{\n"
      "  for (long i = 0; i < n; i += TW_LANES) tw::store(y + i, tw::rem(tw::load(a + i), tw::load(b + "
      "i)));\n}}\n",
      type);
  for (const Isa isa : testing::runnable_isas()) {
    const auto kernel =
        testing::build<void(const T*, const T*, T*, long)>(text, "run", testing::options_for(isa));
    std::vector<T> y(a.size());
    kernel.function(a.data(), b.data(), y.data(), static_cast<long>(y.size()));
    int wrong = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const T exact = std::fmod(a[i], b[i]);
      const bool same =
          std::isnan(exact) ? std::isnan(y[i]) : std::bit_cast<Bits>(exact) == std::bit_cast<Bits>(y[i]);
      if (!same && ++wrong < 4)
        ADD_FAILURE() << name(isa)
                      << fmt::format(": {:a} rem {:a} is {:a}, exactly {:a}", a[i], b[i], y[i], exact);
    }
    EXPECT_EQ(wrong, 0) << name(isa);
  }
}

TEST(Remainders, OfFloatsAreExactToTheBit) {
  expect_remainders<float, std::uint32_t>("float");
  expect_remainders<double, std::uint64_t>("double");
}

}  // namespace
}  // namespace tilewright::cpu
