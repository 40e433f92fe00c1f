// Hyperbolic and inverse functions, log10, hypot and logaddexp over all magnitudes of their type, against the
// C library's long double; their gradients against formulas of it.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

namespace tilewright {
namespace {

using Real = long double;

struct Function {
  const char* name;
  Tensor (*apply)(const Tensor&, const Location&);
  Real (*value)(Real);
  Real (*slope)(Real);
};

const Function kFunctions[] = {
    {"log10", log10, std::log10, [](Real x) { return 1 / (x * std::numbers::ln10_v<Real>); }},
    {"asin", asin, std::asin, [](Real x) { return 1 / std::sqrt((1 - x) * (1 + x)); }},
    {"acos", acos, std::acos, [](Real x) { return -1 / std::sqrt((1 - x) * (1 + x)); }},
    {"atan", atan, std::atan, [](Real x) { return 1 / (1 + x * x); }},
    {"sinh", sinh, std::sinh, [](Real x) { return std::cosh(x); }},
    {"cosh", cosh, std::cosh, [](Real x) { return std::sinh(x); }},
    {"asinh", asinh, std::asinh, [](Real x) { return 1 / std::hypot(x, Real{1}); }},
    {"acosh", acosh, std::acosh, [](Real x) { return 1 / (std::sqrt(x - 1) * std::sqrt(x + 1)); }},
    {"atanh", atanh, std::atanh, [](Real x) { return 1 / ((1 - x) * (1 + x)); }},
};

// Powers of two and numbers beside them, near 1 and around the ends of the range of exp.
std::vector<double> arguments(DType dtype) {
  const int most = dtype == DType::f64 ? 1023 : 127, least = dtype == DType::f64 ? -1022 : -126;
  std::vector<double> out;
  for (int e = least; e <= most; e += dtype == DType::f64 ? 7 : 1)
    for (const double mantissa : {1.0, 1.2345678, 1.9}) out.push_back(std::ldexp(mantissa, e));
  for (int e = 2; e <= 52; e += 2)
    for (const double sign : {-1.0, 1.0}) out.push_back(1 + sign * std::ldexp(1.0, -e));
  for (const double x : {0.0, 1.0, 2.0, 88.7, 88.8, 89.3, 89.5, 709.7, 709.9, 710.4, 710.6}) out.push_back(x);
  for (double& x : out) x = round_to(dtype, x);
  out.push_back(std::numeric_limits<double>::infinity());
  const std::size_t n = out.size();
  for (std::size_t i = 0; i < n; ++i) out.push_back(-out[i]);
  return out;
}

class Elementary : public ::testing::TestWithParam<std::tuple<const char*, DType>> {
 protected:
  Context ctx_{{.device = std::get<0>(GetParam()), .cache_directory = ""}};
  const DType dtype_ = std::get<1>(GetParam());

  // In units of the last place; what is below the normal numbers may be 0.
  double distance(double got, Real wanted) const {
    const double rounded = round_to(dtype_, static_cast<double>(wanted));
    if (std::isnan(rounded) || std::isinf(rounded))
      return (std::isnan(rounded) && std::isnan(got)) || got == rounded ? 0 : 1e30;
    if (std::isnan(got)) return 1e30;
    if (got == 0 && std::fabs(wanted) < min_normal(dtype_)) return 0;
    const Real unit = std::max<Real>(std::fabs(rounded), min_normal(dtype_)) * 2 * unit_roundoff(dtype_);
    return static_cast<double>(std::fabs(got - wanted) / unit);
  }
  void expect_near(const std::string& what, const std::vector<double>& x, const Tensor& got,
                   const std::function<Real(std::size_t)>& wanted, double ulp) {
    const std::vector<double> values = got.to_vector<double>();
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (const double d = distance(values[i], wanted(i)); d > worst) worst = d, at = i;
    EXPECT_LE(worst, ulp) << what
                          << fmt::format(" at {}: {} instead of {}", x[at], values[at],
                                         static_cast<double>(wanted(at)));
  }
};

TEST_P(Elementary, AreAccurateEverywhere) {
  const std::vector<double> x = arguments(dtype_);
  const Tensor t = ctx_.from(x, {static_cast<Index>(x.size())}, dtype_);
  for (const Function& f : kFunctions) {
    const Tensor y = f.apply(t, Location::current());
    expect_near(f.name, x, y, [&](std::size_t i) { return f.value(x[i]); }, 8);
    const std::vector<double> values = y.to_vector<double>();
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] == 0 && f.value(x[i]) == 0) {
        EXPECT_EQ(std::signbit(values[i]), std::signbit(f.value(x[i]))) << f.name << " of " << x[i];
      }
  }
}

TEST_P(Elementary, HaveAccurateGradients) {
  const std::vector<double> x = arguments(dtype_);
  const Tensor t = ctx_.from(x, {static_cast<Index>(x.size())}, dtype_);
  for (const Function& f : kFunctions) {
    const auto slopes = grad([&](const Tensor& v) { return sum(f.apply(v, Location::current())); })(t);
    // Slopes say nothing where a function is NaN; at a pole the sign of a zero decides which infinity it is.
    const auto wanted = [&](std::size_t i) { return f.slope(x[i]); };
    std::vector<double> kept, got, all = slopes.to_vector<double>();
    std::vector<Real> want;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(f.value(x[i])) || std::isinf(wanted(i))) continue;
      kept.push_back(x[i]), got.push_back(all[i]), want.push_back(wanted(i));
    }
    expect_near(
        fmt::format("slope of {}", f.name), kept,
        ctx_.from(got, {static_cast<Index>(got.size())}, DType::f64), [&](std::size_t i) { return want[i]; },
        16);
  }
}

TEST_P(Elementary, OfTwoNumbersAreAccurateEverywhere) {
  const std::vector<double> some = arguments(dtype_);
  std::vector<double> a, b;
  for (std::size_t i = 0; i < some.size(); i += 5)
    for (std::size_t j = 0; j < some.size(); j += 7) a.push_back(some[i]), b.push_back(some[j]);
  const Shape shape{static_cast<Index>(a.size())};
  const Tensor ta = ctx_.from(a, shape, dtype_), tb = ctx_.from(b, shape, dtype_);
  expect_near(
      "hypot", a, hypot(ta, tb), [&](std::size_t i) { return std::hypot(Real{a[i]}, Real{b[i]}); }, 4);
  const auto sum_of_exps = [&](std::size_t i) {
    if (a[i] == b[i]) return a[i] + std::numbers::ln2_v<Real>;
    return std::max<Real>(a[i], b[i]) + std::log1p(std::exp(-std::fabs(Real{a[i]} - b[i])));
  };
  // The two parts of the sum cancel where the result is near 0: near in units of the larger operand.
  const std::vector<double> got = logaddexp(ta, tb).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isinf(sum_of_exps(i))) {
      EXPECT_EQ(got[i], sum_of_exps(i)) << a[i] << ' ' << b[i];
      continue;
    }
    const Real size = std::max<Real>(std::fabs(std::max(a[i], b[i])), 1);
    EXPECT_LE(std::fabs(got[i] - sum_of_exps(i)), 4 * size * 2 * unit_roundoff(dtype_))
        << a[i] << ' ' << b[i];
  }
}

TEST_P(Elementary, OfTwoNumbersHaveGradients) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor a = ctx_.from(std::vector<double>{3, -5e18, 0, 1}, {4}, dtype_),
               b = ctx_.from(std::vector<double>{4, 12e18, 2, 1}, {4}, dtype_);
  const auto legs =
      value_and_grad([](const Tensor& x, const Tensor& y) { return sum(hypot(x, y)); }, {0, 1})(a, b).second;
  const std::vector<double> want_a{0.6, -5. / 13, 0, std::numbers::sqrt2 / 2};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(legs[0].to_vector<double>()[i], want_a[i], 1e-6);
  EXPECT_NEAR(legs[1].to_vector<double>()[1], 12. / 13, 1e-6);
  const auto sums =
      value_and_grad([](const Tensor& x, const Tensor& y) { return sum(logaddexp(x, y)); }, {0, 1});
  const Tensor c = ctx_.from(std::vector<double>{0, 200, -inf, -inf, inf}, {5}, dtype_),
               d = ctx_.from(std::vector<double>{1, -200, 3, -inf, inf}, {5}, dtype_);
  const std::vector<double> parts{1 / (1 + std::exp(1)), 1, 0, 0.5, 0.5};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(sums(c, d).second[0].to_vector<double>()[i], parts[i], 1e-6) << i;
    EXPECT_NEAR(sums(c, d).second[1].to_vector<double>()[i], 1 - parts[i], 1e-6) << i;
  }
  EXPECT_EQ(logaddexp(c, d).to_vector<double>()[3], -inf);
  EXPECT_EQ(hypot(ctx_.full({1}, inf, dtype_), ctx_.full({1}, NAN, dtype_)).item(), inf);
}

INSTANTIATE_TEST_SUITE_P(Devices, Elementary,
                         ::testing::Combine(::testing::Values("cpu", "reference"),
                                            ::testing::Values(DType::f32, DType::f64)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param),
                                              name(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace tilewright
