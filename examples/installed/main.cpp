// Fits a small network to sin(x): a training step with its gradients is one compiled function, which writes
// the new weights over the old ones. Ends with 0 if the fit is good.
#include <tilewright/tilewright.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace tw = tilewright;

namespace {

constexpr tw::Index kSamples = 256, kHidden = 64;
constexpr int kSteps = 400;
constexpr double kRate = 0.02;

// The mean square of what the network, weights {w1, b1, w2}, is off by.
tw::Tensor loss(const tw::Tensor& w1, const tw::Tensor& b1, const tw::Tensor& w2, const tw::Tensor& x,
                const tw::Tensor& y) {
  const tw::Tensor hidden = tw::tanh(tw::matmul(x, w1) + b1);  // (kSamples, kHidden)
  return tw::mean(tw::square(tw::matmul(hidden, w2) - y));
}

// {loss, the new weights} of {weights, x, y}.
std::vector<tw::Tensor> step(const std::vector<tw::Tensor>& arguments) {
  std::vector<tw::Tensor> results = tw::value_and_grad(loss, {0, 1, 2})(arguments);
  for (std::size_t weight = 0; weight < 3; ++weight)
    results[weight + 1] = arguments[weight] - kRate * results[weight + 1];
  return results;
}

int run() {
  tw::Context context({.seed = 17});
  const tw::Tensor x = context.rand({kSamples, 1}) * 6.0 - 3.0, y = tw::sin(x);
  std::vector<tw::Tensor> weights = {context.randn({1, kHidden}), context.randn({kHidden}),
                                     context.randn({kHidden, 1}) * 0.1};
  const auto fast = tw::compile(step);
  const double before = loss(weights[0], weights[1], weights[2], x, y).item();
  double after = before;
  for (int i = 0; i < kSteps; ++i) {
    const std::vector<tw::Tensor> results = fast({weights[0], weights[1], weights[2], x, y});
    weights = {results[1], results[2], results[3]};
    if (i + 1 == kSteps) after = results[0].item();
  }
  std::printf("%s", fast.explain().c_str());
  std::printf("Tilewright %s: loss %.4f before, %.4f after %d steps\n", tw::library_version(), before, after,
              kSteps);
  return before > 0.1 && after < 0.05 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
