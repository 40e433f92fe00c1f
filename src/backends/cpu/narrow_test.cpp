// Narrow floats and saturating casts of the device headers against base's single-value conversions, bit for
// bit.
#include <fmt/format.h>
#include <tilewright/base/dtype.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/testing.h"

namespace tilewright::cpu {
namespace {

struct Format {
  const char* name;
  DType dtype;
  const char* code;  // the lane type of its bits
  int bits;
};
constexpr Format kFormats[] = {{"f16", DType::f16, "u16", 16},
                               {"bf16", DType::bf16, "u16", 16},
                               {"f8e4m3", DType::f8e4m3, "u8", 8},
                               {"f8e5m2", DType::f8e5m2, "u8", 8}};

// Every f32 at a stride, each format's values, the ties between neighbours and what lies beside both.
std::vector<float> narrow_arguments() {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < 1ull << 32; bits += 4099)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  const auto with_neighbours = [&x](double value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    for (std::uint32_t step = 0; step < 3; ++step) x.push_back(std::bit_cast<float>(bits + step - 1));
  };
  for (const Format& format : kFormats)
    for (std::uint32_t code = 0; code < 1u << format.bits; ++code) {
      const std::uint32_t next = code + 1;
      const double value = load_f64(&code, format.dtype);
      with_neighbours(value);
      with_neighbours((value + load_f64(&next, format.dtype)) / 2);
    }
  while (x.size() % 64 != 0) x.push_back(0);
  return x;
}

template <class From, class To>
std::vector<To> run(Isa isa, const std::string& header, const std::string& expression,
                    const std::string& from, const std::string& to, const std::vector<From>& x) {
  const auto text = fmt::format(
      "#include \"tw_cpu/{}.h\"\n#include \"tw_cpu/memory.h\"\nusing namespace tw;\n"
      "extern \"C\" void run(const {}* x, {}* y, i64 n) {{\n"
      "  for (i64 i = 0; i < n; i += TW_LANES) {{ const auto v = load(x + i); store(y + i, {}); }}\n}}\n",
      header, from, to, expression);
  const auto kernel = testing::build<void(const From*, To*, long)>(text, "run", testing::options_for(isa));
  std::vector<To> y(x.size());
  kernel.function(x.data(), y.data(), static_cast<long>(x.size()));
  return y;
}

template <class Code>
void check_format(const Format& format) {
  const auto x = narrow_arguments();
  std::vector<Code> codes(1u << (8 * sizeof(Code)));
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<Code>(i);
  for (const Isa isa : testing::runnable_isas()) {
    SCOPED_TRACE(fmt::format("{} {}", format.name, name(isa)));
    const auto encoded =
        run<float, Code>(isa, "narrow", fmt::format("f32_to_{}(v)", format.name), "f32", format.code, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      Code expected = 0;
      store_f64(&expected, format.dtype, x[i]);
      ASSERT_EQ(encoded[i], expected)
          << fmt::format("{:a} = {:#010x}", x[i], std::bit_cast<std::uint32_t>(x[i]));
    }
    const auto decoded =
        run<Code, float>(isa, "narrow", fmt::format("{}_to_f32(v)", format.name), format.code, "f32", codes);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const auto expected = static_cast<float>(load_f64(&codes[i], format.dtype));
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(decoded[i]) && std::signbit(decoded[i]) == std::signbit(expected)) << i;
      else
        ASSERT_EQ(std::bit_cast<std::uint32_t>(decoded[i]), std::bit_cast<std::uint32_t>(expected)) << i;
    }
  }
}

TEST(NarrowTest, SixteenBitFloatsConvertAsBaseDoes) {
  check_format<std::uint16_t>(kFormats[0]);
  check_format<std::uint16_t>(kFormats[1]);
}

TEST(NarrowTest, EightBitFloatsConvertAsBaseDoes) {
  check_format<std::uint8_t>(kFormats[2]);
  check_format<std::uint8_t>(kFormats[3]);
}

// Halfway cases that f32 cannot see: rounding twice would give the wrong neighbour.
TEST(NarrowTest, F64RoundsOnceToNarrowFloats) {
  std::vector<double> x;
  for (std::uint32_t code = 0; code < 0x7f80; code += 3) {
    const std::uint32_t next = code + 1;
    const double tie = (load_f64(&code, DType::bf16) + load_f64(&next, DType::bf16)) / 2;
    for (const double value : {tie, std::nextafter(tie, 0), std::nextafter(tie, HUGE_VAL)})
      x.insert(x.end(), {value, -value});
  }
  x.insert(x.end(), {HUGE_VAL, -HUGE_VAL, NAN, 1e300, -1e300, 1e-310, 0x1.fffffffffp127, -0.0});
  while (x.size() % 64 != 0) x.push_back(0);
  for (const Isa isa : testing::runnable_isas()) {
    const auto y =
        run<double, std::uint16_t>(isa, "narrow", "f32_to_bf16(f64_to_f32_odd(v))", "f64", "u16", x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::uint16_t expected = 0;
      store_f64(&expected, DType::bf16, x[i]);
      ASSERT_EQ(y[i], expected) << name(isa) << fmt::format(" {:a}", x[i]);
    }
  }
}

template <class From, class To>
void check_cast(const std::string& expression, const char* from, const char* to, DType target,
                const std::vector<From>& x) {
  for (const Isa isa : testing::runnable_isas()) {
    const auto y = run<From, To>(isa, "convert", expression, from, to, x);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(static_cast<std::int64_t>(y[i]), float_to_int(target, x[i]))
          << name(isa) << fmt::format(" {}: {:a}", expression, x[i]);
  }
}

TEST(ConvertTest, FloatToIntegerTruncatesAndSaturatesAsBaseDoes) {
  const auto x = narrow_arguments();
  std::vector<double> wide(x.begin(), x.end());
  for (const double limit : {0x1p31, 0x1p63, 128.0, 256.0, 0.0})
    for (const double sign : {1.0, -1.0})
      for (const double at :
           {limit, limit - 0.5, limit + 0.5, std::nextafter(limit, 0.0), limit - 1, limit + 1})
        wide.push_back(sign * at);
  while (wide.size() % 64 != 0) wide.push_back(0);
  check_cast<float, std::int32_t>("to_i32(v)", "f32", "i32", DType::i32, x);
  check_cast<float, std::int64_t>("to_i64(v)", "f32", "i64", DType::i64, x);
  check_cast<float, std::int8_t>("to_i8(v)", "f32", "i8", DType::i8, x);
  check_cast<float, std::uint8_t>("to_u8(v)", "f32", "u8", DType::u8, x);
  check_cast<double, std::int32_t>("to_i32(v)", "f64", "i32", DType::i32, wide);
  check_cast<double, std::int64_t>("to_i64(v)", "f64", "i64", DType::i64, wide);
  check_cast<double, std::int8_t>("to_i8(v)", "f64", "i8", DType::i8, wide);
  check_cast<double, std::uint8_t>("to_u8(v)", "f64", "u8", DType::u8, wide);
}

}  // namespace
}  // namespace tilewright::cpu
