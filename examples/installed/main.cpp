// Fits a small network to sin(x): a training step with its gradients is one compiled function, which gives
// the new weights. Ends with 0 if the fit is good.
#include <tilewright/tilewright.hpp>

#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <utility>

namespace tw = tilewright;

namespace {

constexpr tw::Index kSamples = 256, kHidden = 64;
constexpr int kSteps = 400;
constexpr double kRate = 0.02;

struct Network {
  tw::Tensor w1, b1, w2;
  TILEWRIGHT_FIELDS(w1, b1, w2)
};

// The mean square of what the network is off by.
tw::Tensor loss(const Network& net, const tw::Tensor& x, const tw::Tensor& y) {
  const tw::Tensor hidden = tw::tanh(tw::matmul(x, net.w1) + net.b1);  // (kSamples, kHidden)
  return tw::mean(tw::square(tw::matmul(hidden, net.w2) - y));
}

// The loss and the new network.
std::pair<tw::Tensor, Network> step(const Network& net, const tw::Tensor& x, const tw::Tensor& y) {
  const auto [value, gradient] = tw::value_and_grad(loss)(net, x, y);
  const auto moved = [](const tw::Tensor& w, const tw::Tensor& slope) { return w - kRate * slope; };
  return {value, tw::map_tensors(moved, net, gradient)};
}

int run() {
  tw::Context context({.seed = 17});
  const tw::Tensor x = context.rand({kSamples, 1}) * 6.0 - 3.0, y = tw::sin(x);
  Network net{context.randn({1, kHidden}), context.randn({kHidden}), context.randn({kHidden, 1}) * 0.1};
  const auto fast = tw::compile(step);
  const double before = loss(net, x, y).item();
  tw::Tensor after;
  for (int i = 0; i < kSteps; ++i) std::tie(after, net) = fast(net, x, y);
  std::printf("%s", fast.explain().c_str());
  std::printf("Tilewright %s: loss %.4f before, %.4f after %d steps\n", tw::library_version(), before,
              after.item(), kSteps);
  return before > 0.1 && after.item() < 0.05 ? EXIT_SUCCESS : EXIT_FAILURE;
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
