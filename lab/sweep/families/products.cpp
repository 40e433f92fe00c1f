// Products of any M, N and K, alone, in batches, and with their gradients.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sweep/families.h"
#include "sweep/families/parts.h"

namespace tilewright::sweep {

namespace {

struct Extents {
  Index m, n, k;
};

// Operands and result have about `elements` in all. A third are tall or flat: one side as short as a few
// tokens.
Extents extents_of(Draft& d, double elements) {
  if (d.sizes.chance(0.3)) {
    const double thin = std::min(d.sizes.log_uniform(1, 65), std::max(1.0, elements / 4));
    const double ratio = d.sizes.log_uniform(0.125, 8),
                 area = std::max(1.0, elements / (1 + 2 / std::sqrt(elements)));
    const Index t = d.sizes.extent(thin), a = d.sizes.extent(std::sqrt(area * ratio)),
                b = d.sizes.extent(std::sqrt(area / ratio));
    switch (d.sizes.integer(0, 3)) {
      case 0:
        return {a, t, b};
      case 1:
        return {a, b, t};
      default:
        return {t, a, b};
    }
  }
  const double m = d.sizes.log_uniform(0.25, 4), n = d.sizes.log_uniform(0.25, 4),
               k = d.sizes.log_uniform(0.25, 4);
  const double side = std::sqrt(elements / (m * k + k * n + m * n));
  return {d.sizes.extent(side * m), d.sizes.extent(side * n), d.sizes.extent(side * k)};
}

// The second operand: w (N, K) as torch.nn.Linear holds it, or (K, N).
std::string times_weight(Draft& d, const std::string& x, const Extents& e, bool as_linear, bool bias) {
  if (as_linear) return linear(d, x, "w", e.n, e.k, bias ? "b" : "");
  const std::string y = d.add("matmul", {x, d.weight("w", Shape({e.k, e.n}), e.k)});
  return bias ? d.add("add", {y, d.addend("b", e.n)}) : y;
}

}  // namespace

void matmul(Draft& d) {
  const bool transposed = d.choose.chance(0.2), as_linear = d.choose.chance(0.6), bias = d.choose.chance(0.4);
  const int before = d.choose.weighted<int>({{0, 4}, {1, 1}, {2, 1}});
  const auto activation = d.choose.weighted<std::string>(
      {{"", 2}, {"gelu", 0.6}, {"gelu_tanh", 0.6}, {"relu", 0.6}, {"silu", 0.6}});
  const bool residual = d.choose.chance(0.25);
  const Extents e = extents_of(d, d.elements());
  std::string x = d.input("x", transposed ? Shape({e.k, e.m}) : Shape({e.m, e.k}));
  if (before == 1) x = d.add("silu", {x});
  if (before == 2) x = d.add("mul", {x, d.input("scale", transposed ? Shape({e.k, 1}) : Shape({e.k}))});
  if (transposed) x = d.add("swap_axes", {x}, {{"a", "0"}, {"b", "1"}});
  std::string y = times_weight(d, x, e, as_linear, bias);
  if (!activation.empty()) y = d.add(activation, {y});
  if (residual) y = d.add("add", {y, d.input("r", Shape({e.m, e.n}))});
  d.results({y});
}

void matmul_batched(Draft& d) {
  const bool ta = d.choose.chance(0.3), tb = d.choose.chance(0.4), shared_b = d.choose.chance(0.2);
  const bool softmaxed = d.choose.chance(0.2), scaled = d.choose.chance(0.3);
  const double elements = d.elements();
  const Index batch = d.sizes.extent(std::min(d.sizes.log_uniform(2, 257), std::max(2.0, elements / 64)));
  const Extents e = extents_of(d, elements / static_cast<double>(batch));
  std::string a = d.input("a", ta ? Shape({batch, e.k, e.m}) : Shape({batch, e.m, e.k}));
  const Index of_b = shared_b ? 1 : batch;
  std::string b = d.weight("b", tb ? Shape({of_b, e.n, e.k}) : Shape({of_b, e.k, e.n}), e.k);
  const Options last_two = {{"a", "-1"}, {"b", "-2"}};
  if (ta) a = d.add("swap_axes", {a}, last_two);
  if (tb) b = d.add("swap_axes", {b}, last_two);
  std::string y = d.add("matmul", {a, b});
  if (scaled) y = d.add("mul", {y, "0.125"});
  if (softmaxed) y = d.add("softmax", {y}, {{"axis", "-1"}});
  d.results({y});
}

void matmul_gradient(Draft& d) {
  const bool as_linear = d.choose.chance(0.7), bias = d.choose.chance(0.5), of_x = d.choose.chance(0.7);
  const auto activation = d.choose.weighted<std::string>({{"", 2}, {"gelu", 1}, {"relu", 1}});
  const Extents e = extents_of(d, d.elements(0.4));
  const std::string x = d.input("x", Shape({e.m, e.k}));
  std::string y = times_weight(d, x, e, as_linear, bias);
  if (!activation.empty()) y = d.add(activation, {y});
  std::vector<std::string> by = {"w"};
  if (bias) by.emplace_back("b");
  if (of_x) by.push_back(x);
  d.gradients(mse_loss(d, y, Shape({e.m, e.n})), by);
}

}  // namespace tilewright::sweep
