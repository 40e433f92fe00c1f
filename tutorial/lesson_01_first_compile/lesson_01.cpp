// Lesson 1: the first compiled function.
//
// A Context owns a device and everything made on it. Outside compile() each operation runs at once and writes
// its result to memory; inside, operations are recorded and fused. Here x*s + b followed by ELU is five
// operations and five trips through memory, or one kernel that reads x once and writes y once.
#include <fmt/core.h>

#include <tilewright/tilewright.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tw = tilewright;

tw::Tensor scaled_elu(const tw::Tensor& x, const tw::Tensor& s, const tw::Tensor& b) {
  tw::Tensor t = x * s + b;
  return tw::where(t > 0.f, t, tw::exp(t) - 1.f);
}

int main() {
  tw::Context ctx;
  const tw::Index rows = 1000, columns = 257;
  tw::Tensor x = ctx.randn({rows, columns}), s = ctx.randn({columns}), b = ctx.randn({columns});

  tw::Tensor eager = scaled_elu(x, s, b);
  auto fast = tw::compile(scaled_elu);  // nothing happens yet
  tw::Tensor y = fast(x, s, b);         // traced, fused, compiled for these shapes, and run
  y = fast(x, s, b);                    // run

  // Both must agree with the definition, computed here in float64.
  const std::vector<float> xs = x.to_vector<float>(), ss = s.to_vector<float>(), bs = b.to_vector<float>();
  const std::vector<float> got = y.to_vector<float>(), plain = eager.to_vector<float>();
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double t = static_cast<double>(xs[i]) * ss[i % columns] + bs[i % columns];
    const double want = t > 0 ? t : std::expm1(t);
    worst = std::max({worst, std::abs(got[i] - want), std::abs(plain[i] - want)});
  }
  fmt::print("kernels: {}, largest difference from float64: {:.1e}\n", fast.report().at(0).kernels.size(),
             worst);

  // exp(t) - 1 cancels near 0, so the bound is absolute: a few roundings of numbers up to about 10.
  if (worst > 1e-5 || fast.report().at(0).kernels.size() != 1) return EXIT_FAILURE;
  return EXIT_SUCCESS;
}
