// The stack, its gradient in plain loops, and its knobs.
#include "pairs/mlp_stack.h"

#include <tilewright/tensor/functions.h>
#include <tilewright/tensor/gradient.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "pairs/host_matmul.h"

namespace tilewright::lab {

double MlpSizes::flops() const {
  const double product =
      2 * static_cast<double>(rows) * static_cast<double>(width) * static_cast<double>(hidden);
  return product * (6 * static_cast<double>(layers) - 1);
}

std::string MlpSizes::text() const { return fmt::format("R{} C{} H{} L{}", rows, width, hidden, layers); }

namespace {

Shape shape_of(const MlpSizes& s, Index weight) {
  return weight % 2 == 0 ? Shape{s.width, s.hidden} : Shape{s.hidden, s.width};
}
std::string name_of(Index weight) { return fmt::format("w{}.{}", 1 + weight % 2, weight / 2); }

}  // namespace

std::vector<InputSpec> mlp_inputs(const MlpSizes& s) {
  const Shape rows{s.rows, s.width};
  std::vector<InputSpec> in = {normal_input("x", rows, DType::f32), normal_input("target", rows, DType::f32)};
  for (Index w = 0; w < 2 * s.layers; ++w) {
    const Shape shape = shape_of(s, w);
    in.push_back(shared(normal_input(name_of(w), shape, DType::f32,
                                     {.deviation = 1 / std::sqrt(static_cast<double>(shape[0]))})));
  }
  return in;
}

std::vector<OutputSpec> like_weights(const MlpSizes& s, const std::string& prefix,
                                     const ToleranceRule& rule) {
  std::vector<OutputSpec> out;
  out.reserve(static_cast<std::size_t>(2 * s.layers));
  for (Index w = 0; w < 2 * s.layers; ++w)
    out.push_back({prefix + name_of(w), DType::f32, shape_of(s, w), rule});
  return out;
}

Tensor mlp_layer(const Tensor& x, const Tensor& w1, const Tensor& w2) {
  return x + matmul(gelu_tanh(matmul(x, w1)), w2);
}

Tensor mlp_loss(const Tensor& x, const Tensor& target, const std::vector<Tensor>& weights,
                const MlpLayer& layer) {
  Tensor y = x;
  for (std::size_t w = 0; w < weights.size(); w += 2) y = layer(y, weights[w], weights[w + 1]);
  return mean(square(y - target));
}

std::vector<Tensor> mlp_gradient(const Tensor& x, const Tensor& target, const std::vector<Tensor>& weights,
                                 const MlpLayer& layer) {
  const auto loss = [&](const std::vector<Tensor>& w) { return mlp_loss(x, target, w, layer); };
  auto [value, gradient] = value_and_grad(loss)(weights);
  std::vector<Tensor> out{value};
  out.insert(out.end(), gradient.begin(), gradient.end());
  return out;
}

FactorRounding factor_rounding(DType factors) {
  return {factors == DType::f32 ? 0 : roundoff(factors), underflow(factors)};
}

namespace {

// gelu_tanh() and its slope.
std::pair<double, double> gelu_and_slope(double z) {
  const double root = std::sqrt(2 / std::numbers::pi), cubic = 0.044715;
  const double t = std::tanh(root * (z + cubic * z * z * z));
  return {0.5 * z * (1 + t), 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * root * (1 + 3 * cubic * z * z)};
}

// Products of matrices, whose factors are rounded as a program's are.
class Products {
 public:
  Products(const FactorRounding& factors, RandomRounding& rounding, ThreadPool& pool)
      : factors_(factors), rounding_(rounding), pool_(pool) {}
  struct Factor {
    const HostArray& values;
    Index rows, columns;
    bool transposed = false;
  };
  HostArray operator()(const Factor& a, const Factor& b) const {
    const Index m = a.transposed ? a.columns : a.rows, k = a.transposed ? a.rows : a.columns,
                n = b.transposed ? b.rows : b.columns;
    const HostArray left = rounded(a.values, k), right = rounded(b.values, k);
    HostArray c(static_cast<std::size_t>(m * n));
    host_matmul({.a = left.data(),
                 .b = right.data(),
                 .c = c.data(),
                 .m = m,
                 .n = n,
                 .k = k,
                 .lda = a.transposed ? 1 : a.columns,
                 .ldb = b.transposed ? 1 : b.columns,
                 .ldc = n,
                 .a_step = a.transposed ? a.columns : 1,
                 .b_step = b.transposed ? b.columns : 1},
                pool_);
    rounding_.move(c, roundoff(DType::f32));
    return c;
  }

 private:
  HostArray rounded(HostArray values, Index terms) const {
    rounding_.move(values, std::max(factors_.roundoff, roundoff_of_sums(static_cast<double>(terms))),
                   factors_.underflow);
    return values;
  }
  const FactorRounding& factors_;
  RandomRounding& rounding_;
  ThreadPool& pool_;
};

}  // namespace

HostArrays host_mlp_gradient(const HostArrays& in, const MlpSizes& s, const FactorRounding& factors,
                             RandomRounding& rounding, ThreadPool& pool) {
  const Products product(factors, rounding, pool);
  const double plain = roundoff(DType::f32);
  HostArrays xs{in[0]}, hidden, slopes;  // of each layer: what it reads, gelu(z), and its slope at z
  for (Index l = 0; l < s.layers; ++l) {
    const HostArray &w1 = in[static_cast<std::size_t>(2 + 2 * l)],
                    &w2 = in[static_cast<std::size_t>(3 + 2 * l)];
    HostArray z = product({xs.back(), s.rows, s.width}, {w1, s.width, s.hidden});
    HostArray slope(z.size());
    for (std::size_t i = 0; i < z.size(); ++i) std::tie(z[i], slope[i]) = gelu_and_slope(z[i]);
    rounding.move(z, plain), rounding.move(slope, plain);
    HostArray y = product({z, s.rows, s.hidden}, {w2, s.hidden, s.width});
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += xs.back()[i];
    rounding.move(y, plain);
    hidden.push_back(std::move(z)), slopes.push_back(std::move(slope)), xs.push_back(std::move(y));
  }
  HostArrays out(static_cast<std::size_t>(1 + 2 * s.layers));
  HostArray dy = xs.back();
  double loss = 0;
  const auto count = static_cast<double>(dy.size());
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const double rest = dy[i] - in[1][i];
    loss += rest * rest / count;
    dy[i] = 2 * rest / count;
  }
  out[0] = {loss};
  rounding.move(out[0], plain), rounding.move(dy, plain);
  for (Index l = s.layers; l-- > 0;) {
    const auto at = static_cast<std::size_t>(l), w = 2 + 2 * at;
    out[1 + 2 * at + 1] = product({hidden[at], s.rows, s.hidden, true}, {dy, s.rows, s.width});
    HostArray dz = product({dy, s.rows, s.width}, {in[w + 1], s.hidden, s.width, true});
    for (std::size_t i = 0; i < dz.size(); ++i) dz[i] *= slopes[at][i];
    rounding.move(dz, plain);
    out[1 + 2 * at] = product({xs[at], s.rows, s.width, true}, {dz, s.rows, s.hidden});
    if (l == 0) break;
    const HostArray through = product({dz, s.rows, s.hidden}, {in[w], s.width, s.hidden, true});
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] += through[i];
    rounding.move(dy, plain);
  }
  return out;
}

ToleranceRule mlp_rule(const MlpSizes& s) {
  return {.storage = DType::f32,
          .reduction = std::max({s.rows, s.width, s.hidden}),
          .operations = 24 * static_cast<int>(std::min<Index>(s.layers, 1000))};
}

std::vector<Knob> mlp_knobs(const MlpSizes& cpu, const MlpSizes& cuda) {
  return {
      {.name = "rows", .values = {cpu.rows}, .doc = "of the batch", .cuda_values = {cuda.rows}},
      {.name = "width", .values = {cpu.width}, .doc = "of a row", .cuda_values = {cuda.width}},
      {.name = "hidden", .values = {cpu.hidden}, .doc = "width inside a layer", .cuda_values = {cuda.hidden}},
      {.name = "layers",
       .values = {cpu.layers},
       .doc = "x + gelu(x w1) w2 each",
       .cuda_values = {cuda.layers},
       .most = 1000}};
}

MlpSizes mlp_sizes(const Knobs& knobs) {
  return {.rows = knobs.integer("rows"),
          .width = knobs.integer("width"),
          .hidden = knobs.integer("hidden"),
          .layers = knobs.integer("layers")};
}

DType factors_of(const std::string& precision) { return parse_dtype(precision).value_or(DType::f32); }

Knob mlp_precision_knob(std::vector<std::string> choices) {
  return {.name = "precision",
          .values = {choices.front()},
          .doc = "of the products, as CompileOptions::precision",
          .cuda_values = {std::string("bf16")},
          .choices = {choices.begin(), choices.end()}};
}

std::vector<Reference> mlp_references(const HostArrays& in, const MlpSizes& sizes,
                                      const std::string& precision, const std::vector<OutputSpec>& outputs,
                                      ThreadPool& pool) {
  const auto run = [&](RandomRounding& rounding) {
    return host_mlp_gradient(in, sizes, factor_rounding(factors_of(precision)), rounding, pool);
  };
  return references(spread_of(run, kMlpRuns), outputs);
}

}  // namespace tilewright::lab
