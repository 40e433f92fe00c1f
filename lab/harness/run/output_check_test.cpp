// The rule of the comparison, and that pieces of an output give the numbers of one look at each element.
#include "harness/run/output_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tilewright::lab {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

OutputSpec spec_of(DType dtype, std::int64_t n, ToleranceRule rule = {}) {
  rule.storage = dtype;
  return {"y", dtype, Shape{n}, rule};
}

OutputCheck one(DType dtype, double got, double want, std::vector<double> magnitude = {}) {
  return check_output(std::vector<double>{got}, {{want}, std::move(magnitude)}, spec_of(dtype, 1));
}

TEST(CheckOutput, OneRoundingOfTheStoredTypeIsWithinTheBound) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    for (double want : {1.0 / 3, 1e-3, 200.0, -7.7, 3e-8}) {
      const std::vector<double> got = {round_to(dtype, want), 1};
      EXPECT_TRUE(check_output(got, {{want, 1}}, spec_of(dtype, 2)).ok()) << name(dtype) << " " << want;
    }
  }
}

TEST(CheckOutput, OneWrongElementAmongAMillionIsFound) {
  const std::int64_t n = 1 << 20;
  Reference want;
  for (std::int64_t i = 0; i < n; ++i) want.values.push_back(1.0 + static_cast<double>(i % 7));
  std::vector<double> got = want.values;
  got[777777] *= 1 + 1e-6;
  OutputSpec spec = spec_of(DType::f32, n);
  spec.shape = Shape{1024, 1024};
  const OutputCheck check = check_output(got, want, spec);
  EXPECT_EQ(check.wrong, 1);
  EXPECT_EQ(check.worst, 777777);
  EXPECT_NEAR(check.max_rel_err, 1e-6, 1e-9);
  EXPECT_NE(describe(check, spec).find("y[759,561]: got"), std::string::npos) << describe(check, spec);
  EXPECT_NE(describe(check, spec).find("1 of 1048576 elements are wrong"), std::string::npos);
}

TEST(CheckOutput, WhereTheReferenceKnowsSomeRowsTheOthersMustBeWrittenAndFinite) {
  const Reference want{{1, 2, 0, 0, 0, 0, 5, 6}, {}, {.length = 2, .rows = {true, false, false, true}}};
  const auto check = [&](std::vector<double> got, std::uint8_t poison) {
    return check_output(got, want, spec_of(DType::f32, 8), poison);
  };
  EXPECT_TRUE(check({1, 2, 7, 8, 9, 0, 5, 6}, 0xFF).ok());
  EXPECT_EQ(check({1, 2, 7, 8, 9, 0, 5, 6}, 0xFF).compared, 4);
  EXPECT_EQ(check({1, 2, 7, 8, 9, 0, 5, 7}, 0xFF).wrong, 1);
  EXPECT_EQ(check({1, 2, 7, kNan, 9, 0, 5, 6}, 0xFF).unwritten, 1);
  EXPECT_EQ(check({1, 2, 7, kInf, 9, 0, 5, 6}, 0xFF).wrong, 1);
  EXPECT_EQ(check({1, 2, poison_value(DType::f32, 0x5A), 8, 9, 0, 5, 6}, 0x5A).unwritten, 1);
}

TEST(CheckOutput, NanAndInfinityMatchOnlyThemselves) {
  EXPECT_TRUE(one(DType::f32, kNan, kNan).ok());
  EXPECT_TRUE(one(DType::f32, -kInf, -kInf).ok());
  EXPECT_FALSE(one(DType::f32, kNan, 1).ok());
  EXPECT_FALSE(one(DType::f32, 1, kNan).ok());
  EXPECT_FALSE(one(DType::f32, kInf, -kInf).ok());
  EXPECT_FALSE(one(DType::f32, kInf, 1).ok());
  EXPECT_FALSE(one(DType::f32, 1e30, kInf).ok());
  EXPECT_EQ(one(DType::f32, kNan, 1).max_rel_err, kInf);
}

TEST(CheckOutput, OverflowIsWhatAStoreMakesOfIt) {
  EXPECT_TRUE(one(DType::f16, kInf, 70000).ok());
  EXPECT_FALSE(one(DType::f16, 1000, 70000).ok());
  EXPECT_TRUE(one(DType::f16, 65504, 65530).ok());  // within a rounding of the edge, both are right
  EXPECT_TRUE(one(DType::f8e4m3, 448, 1e6).ok());   // saturates
  EXPECT_TRUE(one(DType::f8e4m3, 448, kInf).ok());
  EXPECT_FALSE(one(DType::f8e4m3, 256, 1e6).ok());
}

TEST(CheckOutput, SubnormalsAreHeldToTheirSpacing) {
  const double step = min_subnormal(DType::f32);
  EXPECT_TRUE(one(DType::f32, 3 * step, 3.4 * step).ok());
  EXPECT_FALSE(one(DType::f32, 3 * step, 6 * step).ok());
}

TEST(CheckOutput, TheMagnitudeScalesTheError) {
  const double error = 3e-7;  // of a difference of two numbers near 100
  EXPECT_FALSE(one(DType::f32, 1 + error, 1).ok());
  EXPECT_TRUE(one(DType::f32, 1 + error, 1, {100}).ok());
}

TEST(CheckOutput, IntegersMustBeEqual) {
  EXPECT_TRUE(one(DType::i32, -5, -5).ok());
  EXPECT_FALSE(one(DType::i32, -5, -4).ok());
  EXPECT_FALSE(one(DType::i64, 1, 0).ok());
}

TEST(CheckOutput, UnwrittenElementsAreToldFromWrongOnes) {
  const std::vector<double> got = {1, poison_value(DType::f32, 0x5A), 3};
  const OutputCheck check = check_output(got, {{1, 2, 4}}, spec_of(DType::f32, 3), 0x5A);
  EXPECT_EQ(check.wrong, 2);
  EXPECT_EQ(check.unwritten, 1);
  const OutputCheck nan = check_output(std::vector<double>{kNan}, {{1}}, spec_of(DType::f32, 1), 0xFF);
  EXPECT_EQ(nan.unwritten, 1);
  EXPECT_EQ(nan.unexpected_nan, 1);
}

TEST(CheckOutput, PoisonIsNanOrFarFromZeroInEveryFloatType) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    EXPECT_TRUE(std::isnan(poison_value(dtype, 0xFF))) << name(dtype);
    EXPECT_GT(poison_value(dtype, 0x5A), 1.0) << name(dtype);
    EXPECT_TRUE(std::isfinite(poison_value(dtype, 0x5A))) << name(dtype);
  }
}

TEST(CheckOutput, AnOutputOfTheWrongSizeIsWrong) {
  EXPECT_FALSE(check_output(std::vector<double>{1}, {{1, 2}}, spec_of(DType::f32, 2)).ok());
}

TEST(CheckOutput, AMagnitudeThatLetsZerosPassIsVacuous) {
  const OutputCheck check = one(DType::f32, 1, 1, {1e12});
  EXPECT_EQ(check.wrong, 0);
  EXPECT_FALSE(check.ok());
  EXPECT_NE(describe(check, spec_of(DType::f32, 1)).find("zeros would pass"), std::string::npos);
}

TEST(CheckOutput, ABoundAboveOneHalfIsVacuous) {
  const OutputSpec spec =
      spec_of(DType::f8e5m2, 1, {.storage_roundings = 3});  // 0.6: zeros would still be caught
  EXPECT_FALSE(check_output(std::vector<double>{1}, {{1}}, spec).ok());
}

TEST(CheckOutput, AReferenceThatIsStoredAsZerosIsNotVacuous) {
  EXPECT_TRUE(one(DType::f32, 0, 0).ok());
  EXPECT_TRUE(one(DType::f16, 0, 1e-9).ok());
}

TEST(CheckOutput, EmptyOutputsAreRight) {
  EXPECT_TRUE(check_output(std::vector<double>{}, {}, spec_of(DType::f32, 0)).ok());
}

// --- as they are stored, piece by piece

// The error of one element, as output_check.h states the rule, and no faster.
double error_of(double got, double want, double magnitude, const OutputSpec& spec) {
  const bool rounds = is_float(spec.dtype);
  const double normal = rounds ? min_normal(spec.dtype) : 1, largest = rounds ? max_finite(spec.dtype) : kInf;
  const double bound = tolerance(spec.rule, spec.shape.size());
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  if (std::isnan(got) || std::isnan(want)) return kInf;
  double right = want;
  if (std::fabs(want) > largest) {
    const double stored = round_to(spec.dtype, want);
    if (got == stored) return 0;
    if (std::isfinite(stored))
      right = stored;
    else if (!std::isfinite(got) || !std::isfinite(want))
      return kInf;
  }
  const double scale = std::max({std::fabs(right), magnitude, normal});
  if (rounds && std::isinf(got) && std::isfinite(right))
    return std::fabs(std::copysign(largest, got) - right) <= bound * scale ? 0 : kInf;
  const double error = std::fabs(got - right) / scale;
  return std::isnan(error) ? kInf : error;
}

OutputCheck one_after_another(std::span<const double> got, const Reference& want, const OutputSpec& spec,
                              std::uint8_t poison) {
  OutputCheck check{.elements = spec.shape.size(), .tolerance = tolerance(spec.rule, spec.shape.size())};
  const double poisoned = poison_value(spec.dtype, poison);
  double worst = -1, zeros = 0;
  bool all_zero = true;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool known = want.known.at(static_cast<std::int64_t>(i));
    const double magnitude = want.magnitude.empty() ? 0 : want.magnitude[want.magnitude.size() == 1 ? 0 : i];
    const double error = known ? error_of(got[i], want.values[i], magnitude, spec)
                               : (std::isfinite(got[i]) && got[i] != poisoned ? 0 : kInf);
    check.compared += known ? 1 : 0;
    if (error > worst) {
      worst = error;
      check.worst = static_cast<std::int64_t>(i);
    }
    if (known && want.values[i] != 0 &&
        !(is_float(spec.dtype) && round_to(spec.dtype, want.values[i]) == 0)) {
      all_zero = false;
      zeros = std::max(zeros, error_of(0, want.values[i], magnitude, spec));
    }
    if (error <= check.tolerance) continue;
    ++check.wrong;
    if (std::isnan(got[i])) ++check.unexpected_nan;
    if (got[i] == poisoned || (std::isnan(got[i]) && std::isnan(poisoned))) ++check.unwritten;
  }
  check.max_rel_err = std::max(worst, 0.0);
  if (!got.empty()) {
    check.got = got[static_cast<std::size_t>(check.worst)];
    if (!want.values.empty()) check.want = want.values[static_cast<std::size_t>(check.worst)];
  }
  if (check.tolerance > kVacuousTolerance || (!all_zero && zeros <= check.tolerance)) check.vacuous = "it is";
  return check;
}

struct Case {
  OutputSpec spec;
  Reference want;
  std::vector<unsigned char> stored;
  std::vector<double> got;  // what is stored
};

// Right but for rounding, with a few elements of each kind that is special, how many of them is drawn, too.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  Case next() {
    constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::i32};
    const DType dtype = kTypes[below(std::size(kTypes))];
    const auto n = static_cast<Index>(below(4) == 0 ? below(3) : below(5000));
    Case c{.spec = {"y", dtype, Shape{n}, {.storage = dtype, .reduction = 1 + Index(below(3)) * 500}},
           .want = {},
           .stored = {},
           .got = {}};
    const bool exact = !is_float(dtype) || below(5) == 0;
    if (exact) c.spec.rule.kind = ToleranceRule::Kind::exact;
    const bool special = below(2) == 0, wrong = below(2) == 0;
    const double scale = below(4) == 0 ? 1e-30 : below(4) == 0 ? 3e4 : 1;
    std::vector<double> got;
    for (Index i = 0; i < n; ++i) {
      double want = is_float(dtype) ? scale * normal() : std::round(100 * normal());
      if (below(50) == 0) want = 0;
      if (special && below(40) == 0) want = special_value(dtype);
      double is = exact ? want : want * (1 + 0.2 * unit() * unit_roundoff(dtype));
      if (wrong && below(60) == 0) is = below(2) == 0 ? want * 1.5 + 1 : special_value(dtype);
      if (wrong && below(60) == 0) is = poison_value(dtype, kPoison);
      c.want.values.push_back(is_float(dtype) || std::isfinite(want) ? want : 7);
      got.push_back(is);
    }
    draw_magnitude(c, n);
    draw_known(c, n);
    c.stored.resize(got.size() * size_bytes(dtype));
    for (std::size_t i = 0; i < got.size(); ++i)
      store_f64(c.stored.data() + i * size_bytes(dtype), dtype, got[i]);
    for (std::size_t i = 0; i < got.size(); ++i)
      c.got.push_back(load_f64(c.stored.data() + i * size_bytes(dtype), dtype));
    return c;
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  static constexpr std::uint8_t kPoison = 0x5A;

 private:
  double unit() { return std::uniform_real_distribution(-1.0, 1.0)(random_); }
  double normal() { return std::normal_distribution()(random_); }
  double special_value(DType dtype) {
    const double all[] = {kNan, kInf, -kInf, is_float(dtype) ? 1.0001 * max_finite(dtype) : 5, -0.0};
    return is_float(dtype) ? all[below(std::size(all))] : 5;
  }
  void draw_magnitude(Case& c, Index n) {
    const std::size_t kind = below(4);
    if (kind == 1) c.want.magnitude = {std::fabs(normal())};
    if (kind == 2 || (kind == 3 && below(4) == 0)) {
      for (Index i = 0; i < n; ++i) c.want.magnitude.push_back(std::fabs(normal()) * (kind == 3 ? 1e9 : 1));
      if (n > 0 && below(3) == 0) c.want.magnitude[below(static_cast<std::size_t>(n))] = kInf;
    }
  }
  void draw_known(Case& c, Index n) {
    const std::size_t kind = below(4);
    if (n == 0 || kind > 1) return;
    if (kind == 0) {  // nothing is known
      c.want = {.values = {}, .magnitude = {}, .known = {.length = n, .rows = {false}}};
      return;
    }
    c.want.known.length = n % 4 == 0 ? 4 : 1;
    for (Index row = 0; row < n / c.want.known.length; ++row) c.want.known.rows.push_back(below(2) == 0);
  }
  std::mt19937_64 random_;
};

OutputCheck in_pieces(const Case& c, Draws& draws) {
  OutputChecker checker(c.want, c.spec, Draws::kPoison);
  const auto count = static_cast<Index>(c.got.size());
  const std::size_t longest = 1 + draws.below(2000);
  for (Index first = 0; first < count;) {
    const Index part = std::min<Index>(count - first, static_cast<Index>(draws.below(longest)));
    checker.add({c.stored.data() + static_cast<std::size_t>(first) * size_bytes(c.spec.dtype), c.spec.dtype,
                 first, part});
    first += part;
  }
  return checker.result();
}

void expect_same(const OutputCheck& is, const OutputCheck& right) {
  EXPECT_EQ(is.elements, right.elements);
  EXPECT_EQ(is.compared, right.compared);
  EXPECT_EQ(is.max_rel_err, right.max_rel_err);
  EXPECT_EQ(is.tolerance, right.tolerance);
  EXPECT_EQ(is.worst, right.worst);
  EXPECT_TRUE(is.got == right.got || (std::isnan(is.got) && std::isnan(right.got))) << is.got;
  EXPECT_TRUE(is.want == right.want || (std::isnan(is.want) && std::isnan(right.want))) << is.want;
  EXPECT_EQ(is.wrong, right.wrong);
  EXPECT_EQ(is.unexpected_nan, right.unexpected_nan);
  EXPECT_EQ(is.unwritten, right.unwritten);
  EXPECT_EQ(is.vacuous.empty(), right.vacuous.empty());
}

TEST(CheckOutputInPieces, GivesTheNumbersOfOneLookAtEachElement) {
  Draws draws(23);
  int right = 0, wrong = 0, vacuous = 0;
  for (int i = 0; i < 600; ++i) {
    SCOPED_TRACE(i);
    const Case c = draws.next();
    const OutputCheck expected = one_after_another(c.got, c.want, c.spec, Draws::kPoison);
    expect_same(in_pieces(c, draws), expected);
    expect_same(check_output(c.got, c.want, c.spec, Draws::kPoison), expected);
    if (testing::Test::HasFailure()) return;
    (expected.ok() ? right : expected.wrong > 0 ? wrong : vacuous) += 1;
  }
  EXPECT_GT(right, 100);  // all three were tried
  EXPECT_GT(wrong, 100);
  EXPECT_GT(vacuous, 5);
}

// Each thread has a part of such an output, and the worst element may be in any.
TEST(CheckOutputInPieces, GivesTheSameOnSeveralThreads) {
  const Index n = (Index{1} << 21) + 77;
  std::vector<float> stored(static_cast<std::size_t>(n));
  Reference want;
  want.values.resize(stored.size());
  for (std::size_t i = 0; i < stored.size(); ++i) {
    want.values[i] = static_cast<double>(i % 1013) + 0.3;
    stored[i] = static_cast<float>(want.values[i]);
  }
  const OutputSpec spec{"y", DType::f32, Shape{n}, {}};
  for (const Index worst : {Index{5}, n / 2, n - 1}) {
    auto spoilt = stored;
    spoilt[static_cast<std::size_t>(worst)] += 7;
    OutputChecker checker(want, spec);
    checker.add({spoilt.data(), DType::f32, 0, n});
    const OutputCheck check = checker.result();
    EXPECT_EQ(check.worst, worst);
    EXPECT_EQ(check.wrong, 1);
    EXPECT_EQ(check.compared, n);
    EXPECT_EQ(check.got, static_cast<double>(spoilt[static_cast<std::size_t>(worst)]));
    expect_same(check, check_output(std::vector<double>(spoilt.begin(), spoilt.end()), want, spec));
  }
}

TEST(CheckOutputInPieces, TooFewOrTooManyElementsAreWrong) {
  const Reference want{{1, 2, 3, 4}};
  const float got[] = {1, 2, 3, 4, 5};
  for (const std::int64_t count : {3, 5}) {
    OutputChecker checker(want, {"y", DType::f32, Shape{4}, {}});
    checker.add({got, DType::f32, 0, 2});
    checker.add({got + 2, DType::f32, 2, count - 2});
    EXPECT_EQ(checker.result().wrong, 4) << count;
  }
}

}  // namespace
}  // namespace tilewright::lab
