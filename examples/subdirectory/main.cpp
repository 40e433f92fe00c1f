// Compiles elu(x) and compares it with the host's own. Ends with 0 if they agree.
#include <tilewright/tilewright.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace tw = tilewright;

int main() {
  tw::Context context;
  const auto elu = tw::compile([](const tw::Tensor& x) { return tw::where(x > 0.f, x, tw::exp(x) - 1.f); });
  const tw::Tensor x = context.randn({1 << 16}), y = elu(x);
  std::printf("%s", elu.explain().c_str());

  const std::vector<float> from = x.to_vector<float>(), to = y.to_vector<float>();
  double largest = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const double at = from[i];
    largest = std::max(largest, std::abs(to[i] - (at > 0 ? at : std::expm1(at))));
  }
  std::printf("largest difference from the host: %.2g\n", largest);
  return largest < 1e-6 ? EXIT_SUCCESS : EXIT_FAILURE;
}
