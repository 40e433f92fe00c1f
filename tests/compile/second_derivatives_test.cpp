// Second derivatives where a formula's cases meet: products with zeros, softplus at 0.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

namespace tilewright {
namespace {

// Σ w · ∂f/∂x, differentiated by x: the Hessian of f times w.
std::vector<double> hessian_times(const Tensor& x, const Tensor& w,
                                  const std::function<Tensor(const Tensor&)>& f) {
  const auto gradient = [&](const Tensor& u) { return sum(grad(f)(u) * w); };
  const std::vector<double> eager = grad(gradient)(x).to_vector<double>();
  const Tensor compiled = compile([&](const Tensor& u) { return grad(gradient)(u); })(x);
  EXPECT_EQ(compiled.to_vector<double>(), eager);
  return eager;
}

TEST(SecondDerivatives, OfAProductAreProductsOfTheOtherElements) {
  Context ctx;
  const std::vector<double> weights = {1, 2, 3, 5};
  for (const std::vector<double>& x : {std::vector<double>{2, 3, 4, 5},
                                       {0, 3, 4, 5},
                                       {0, 0, 3, 5},
                                       {7, 0, 3, 0},
                                       {0, 0, 0, 5},
                                       {0, 0, 0, 0}}) {
    std::vector<double> want(x.size(), 0);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < x.size(); ++j) {
        double others = i == j ? 0 : weights[j];
        for (std::size_t k = 0; k < x.size(); ++k)
          if (k != i && k != j) others *= x[k];
        want[i] += others;
      }
    const Shape shape{static_cast<Index>(x.size())};
    const std::vector<double> got =
        hessian_times(ctx.from(x, shape), ctx.from(weights, shape), [](const Tensor& u) { return prod(u); });
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
  }
}

TEST(SecondDerivatives, OfRunningProductsAreProductsOfTheOtherElements) {
  Context ctx;
  const std::vector<double> weights = {1, 2, 3, 5, 7}, factors = {2, -1, 0.5, 3, 4};
  for (const std::vector<double>& x : {std::vector<double>{2, 3, 4, 5, 6},
                                       {2, 0, 4, 5, 6},
                                       {0, 0, 3, 5, 2},
                                       {7, 0, 3, 0, 2},
                                       {7, 4, 3, 0, 0},
                                       {0, 0, 0, 5, 2},
                                       {0, 0, 0, 0, 0}}) {
    // Σ_i c_i Π_(k <= i) x_k, by x_j and x_m.
    std::vector<double> want(x.size(), 0);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j <= i; ++j)
        for (std::size_t m = 0; m <= i; ++m) {
          double others = j == m ? 0 : factors[i] * weights[m];
          for (std::size_t k = 0; k <= i; ++k)
            if (k != j && k != m) others *= x[k];
          want[j] += others;
        }
    const Shape shape{static_cast<Index>(x.size())};
    const Tensor c = ctx.from(factors, shape);
    const std::vector<double> got = hessian_times(ctx.from(x, shape), ctx.from(weights, shape),
                                                  [&](const Tensor& u) { return sum(cumprod(u, 0) * c); });
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
  }
}

// The product x0 x1 x2 alone, where all are 0: by each of the three once.
TEST(ThirdDerivatives, OfRunningProductsAreThoseOfZerosToo) {
  Context ctx;
  const Tensor x = ctx.zeros({3}, DType::f64), last = ctx.from<double>({0, 0, 1}, {3});
  const auto first = grad([&](const Tensor& u) { return sum(cumprod(u, 0) * last); });
  const auto second = grad([&](const Tensor& u) { return sum(first(u) * last); });  // by x2: x0 x1
  const auto third = grad([&](const Tensor& u) { return second(u)[0]; });           // and by x0: x1
  EXPECT_EQ(third(x).to_vector<double>(), (std::vector<double>{0, 1, 0}));
}

TEST(SecondDerivatives, OfSoftplusAreTheSigmoidsFirst) {
  Context ctx;
  const std::vector<double> x = {0, -0.0, 1e-3, -2, 3};
  const std::vector<double> got = hessian_times(ctx.from(x, {5}), ctx.ones({5}, DType::f64),
                                                [](const Tensor& u) { return sum(softplus(u)); });
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double s = 1 / (1 + std::exp(-x[i]));
    EXPECT_NEAR(got[i], s * (1 - s), 1e-12) << x[i];
  }
}

}  // namespace
}  // namespace tilewright
