// linear_cross_entropy: the mean loss of logits x · wᵀ over a large vocabulary, and its gradients dx and dw:
// a language model's last layer in training. The logits are rows × classes, many times larger than x and w.
// Forward one product, backward two, 6 FLOPs for each element of the three; what is computed again counts
// nothing.
#include <tilewright/tensor/gradient.h>

#include <algorithm>
#include <cmath>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

struct LossSizes {
  Index rows, classes, depth;
};

std::vector<Tensor> loss_and_gradients(const std::vector<Tensor>& in) {
  const auto loss = [](const Tensor& x, const Tensor& w, const Tensor& labels) {
    return linear_cross_entropy(x, w, labels);
  };
  return tensors_of(value_and_grad<0, 1>(loss)(in[0], in[1], in[2]));
}

// The same by separate calls.
std::vector<Tensor> loss_and_gradients_by_calls(const std::vector<Tensor>& in) {
  const Tensor &x = in[0], &w = in[1], &labels = in[2];
  const Tensor logp = log_softmax(cast(matmul(x, swap_axes(w, 0, 1)), DType::f32));
  const Tensor loss = -mean(take_along(logp, unsqueeze(labels, 1), 1));
  const auto rows = static_cast<double>(x.shape()[0]);
  const Tensor d = cast((exp(logp) - one_hot(labels, w.shape()[0])) * (1 / rows), x.dtype());
  return {loss, matmul(d, w), matmul(swap_axes(d, 0, 1), x)};
}

// The gradient by the logits, and how far off each may be, squared.
struct LogitGradient {
  HostArray values, squared_errors;  // (rows, classes)
};

// The loss, too, with its own scale.
LogitGradient by_logits(const HostArrays& in, const LossSizes& s, const ErrorScale& scale, Reference& loss,
                        ThreadPool& pool) {
  HostProduct logits = host_product(
      in[0], in[1], {.m = s.rows, .n = s.classes, .k = s.depth, .b_order = MatrixOrder::columns}, pool);
  // The gradient takes the logits' place: gigabytes, each.
  LogitGradient out{std::move(logits.values), HostArray(static_cast<std::size_t>(s.rows * s.classes))};
  HostArray losses(static_cast<std::size_t>(s.rows)), sizes(static_cast<std::size_t>(s.rows));
  const auto rows = static_cast<double>(s.rows);
  for_rows(pool, s.rows, [&](Index r) {
    const auto d = row_of(out.values, r, s.classes), e = row_of(out.squared_errors, r, s.classes);
    const auto at = static_cast<std::size_t>(r), label = static_cast<std::size_t>(in[2][at]);
    const double largest = *std::max_element(d.begin(), d.end()), own_logit = d[label];
    double sum = 0, widest = 0;
    for (std::size_t j = 0; j < d.size(); ++j) {
      sum += e[j] = std::exp(d[j] - largest);
      widest = std::max(widest, logits.size(r, static_cast<Index>(j)));
    }
    for (std::size_t j = 0; j < d.size(); ++j) {
      const double p = e[j] / sum, own = j == label ? 1 : 0;
      // Stored: the logit, where there is no compiler, and the gradient. Computed: the logit's sum, the
      // row's.
      const double error =
          scale.term((p * std::fabs(d[j]) + p + own) / rows,
                     (p * (logits.size(r, static_cast<Index>(j)) + widest) + p + own) / rows);
      d[j] = (p - own) / rows;
      e[j] = error * error;
    }
    const double lse = largest + std::log(sum);
    losses[at] = lse - own_logit;
    // Logits that were stored are off by a rounding each, of which the loss averages many.
    sizes[at] = scale(std::fabs(largest) + std::fabs(own_logit), std::fabs(lse) + 2 * widest);
  });
  loss = {{0}, {0}};
  for (std::size_t r = 0; r < losses.size(); ++r) {
    loss.values[0] += losses[r] / rows;
    loss.magnitude[0] += sizes[r] / rows;
  }
  return out;
}

HostArray squares(HostArray x) {
  for (double& v : x) v *= v;
  return x;
}

// d · other with its scale.
Reference product_with(const LogitGradient& d, const HostArray& other, const ProductSizes& sizes,
                       const ErrorScale& scale, ThreadPool& pool) {
  HostProduct y = host_product(d.values, other, sizes, pool);
  Reference out{std::move(y.values), host_product(d.squared_errors, squares(other), sizes, pool).values};
  for_rows(pool, sizes.m, [&](Index i) {
    for (Index j = 0; j < sizes.n; ++j) {
      const auto at = static_cast<std::size_t>(i * sizes.n + j);
      out.magnitude[at] = std::sqrt(out.magnitude[at]) + scale(std::fabs(out.values[at]), y.size(i, j));
    }
  });
  return out;
}

std::vector<Reference> reference(const HostArrays& in, const LossSizes& s, const ErrorScale& scale,
                                 ThreadPool& pool) {
  Reference loss;
  const LogitGradient d = by_logits(in, s, scale, loss, pool);
  Reference dx = product_with(d, in[1], {.m = s.rows, .n = s.depth, .k = s.classes}, scale, pool);
  Reference dw = product_with(
      d, in[0], {.m = s.classes, .n = s.depth, .k = s.rows, .a_order = MatrixOrder::columns}, scale, pool);
  return {std::move(loss), std::move(dx), std::move(dw)};
}

Result<PairInstance> make_linear_cross_entropy(const Knobs& knobs, LabDevice& device) {
  const LossSizes s{knobs.integer("rows"), knobs.integer("classes"), knobs.integer("depth")};
  if (s.rows < 1 || s.classes < 1 || s.depth < 1) throw Error("linear_cross_entropy: sizes are at least 1");
  const DType dtype = knobs.dtype("dtype");
  TensorWorkload w{.target = "linear_cross_entropy",
                   .shape = shape_text(Shape{s.rows, s.classes, s.depth}),
                   .dtype = std::string(name(dtype))};
  const double deviation = 1 / std::sqrt(static_cast<double>(s.depth));
  w.inputs = {normal_input("x", Shape{s.rows, s.depth}, dtype),
              shared(normal_input("w", Shape{s.classes, s.depth}, dtype, {.deviation = deviation})),
              integer_input("labels", Shape{s.rows}, s.classes)};
  const ToleranceRule rule{.storage = dtype, .reduction = s.depth + s.classes + s.rows, .operations = 20};
  w.outputs = {{"loss", DType::f32, Shape{}, rule},
               {"dx", dtype, Shape{s.rows, s.depth}, rule},
               {"dw", dtype, Shape{s.classes, s.depth}, rule}};
  const double flops =
      6.0 * static_cast<double>(s.rows) * static_cast<double>(s.classes) * static_cast<double>(s.depth);
  w.cost = product_cost(w.inputs, w.outputs, flops, dtype);
  w.unit = "GFLOP/s";
  w.function = loss_and_gradients;
  w.eager = loss_and_gradients_by_calls;
  const ErrorScale scale(rule, s.rows * s.depth);
  w.reference = [s, scale](const HostArrays& in, ThreadPool& pool) { return reference(in, s, scale, pool); };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair linear_cross_entropy_pair() {
  return {
      .name = "linear_cross_entropy",
      .doc = "mean cross-entropy of x wT and labels, with its gradients by x and w",
      .knobs = {{.name = "rows", .values = {Index{1024}}, .doc = "rows of x", .cuda_values = {Index{8192}}},
                {.name = "classes",
                 .values = {Index{8192}},
                 .doc = "rows of w: the vocabulary",
                 .cuda_values = {Index{50304}}},
                {.name = "depth", .values = {Index{768}}, .doc = "columns of x and of w"},
                product_dtype_knob()},
      .make = make_linear_cross_entropy,
      .tiny = {{"rows=60", "classes=301", "depth=40,270", "dtype=f32,bf16"}},
      .suites = {{"products", {"rows=256", "classes=2048", "depth=320"}}}};
}

}  // namespace tilewright::lab
