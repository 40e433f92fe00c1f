// Losses, with and without gradients.
#include <fmt/format.h>

#include <algorithm>

#include "sweep/families.h"
#include "sweep/families/parts.h"

namespace tilewright::sweep {

namespace {

std::string cross_entropy(Draft& d, const std::string& x, const Shape& shape) {
  const std::string labels = d.integers("labels", Shape({shape[0]}), shape[1]);
  const std::string value = d.ours("cross_entropy", {x, labels});
  // What autocast does as well: the loss of narrow logits in f32.
  d.torch(value,
          fmt::format("F.cross_entropy({}{}, {})", x, d.dtype() == DType::f32 ? "" : ".float()", labels));
  return value;
}

// max(x, 0) - x t + log1p(exp(-|x|)), the mean of it.
std::string binary_cross_entropy(Draft& d, const std::string& x, const Shape& shape) {
  const std::string t = d.ours("sigmoid", {d.input("t", shape)});
  d.torch(t, "torch.sigmoid(t)");
  const std::string wide = d.widened(x);
  // Its slope at 0, where those of max(x, 0) and |x| jump, is that of softplus.
  const std::string loss = d.ours("sub", {d.ours("softplus", {wide}), d.ours("mul", {wide, d.widened(t)})});
  const std::string value = d.narrowed(d.ours("mean", {loss}, {{"keep", "0"}}));
  d.torch(value, fmt::format("F.binary_cross_entropy_with_logits({}, {})", x, t));
  return scaled_loss(d, value, shape.size());
}

// Log-probabilities against those of another model, as distillation has it.
std::string divergence(Draft& d, const std::string& x, const Shape& shape) {
  const std::string teacher = d.add("log_softmax", {d.input("teacher", shape)}, {{"axis", "-1"}});
  const std::string student = d.add("log_softmax", {x}, {{"axis", "-1"}});
  const std::string terms = d.ours("mul", {d.ours("exp", {teacher}), d.ours("sub", {teacher, student})});
  const std::string value =
      d.ours("div", {d.ours("sum", {terms}, {{"keep", "0"}}), fmt::format("{}.0", shape[0])});
  d.torch(value, fmt::format("F.kl_div({}, {}, reduction=\"batchmean\", log_target=True)", student, teacher));
  return value;
}

std::string drawn_loss(Draft& d, double share) {
  const int kind = d.choose.weighted<int>({{0, 2}, {1, 1}, {2, 0.7}, {3, 0.7}});
  const double elements = d.elements(share);
  Shape shape;
  if (kind == 0) {
    const Index classes =
        d.sizes.extent(std::min(d.sizes.log_uniform(10, 131073), std::max(2.0, elements / 2)));
    shape = Shape({std::max(Index{1}, static_cast<Index>(elements / static_cast<double>(classes))), classes});
  } else {
    shape = d.sizes.shape(elements / 2, 2);
  }
  const std::string x = d.input("x", shape, {.deviation = 2});
  if (kind == 0) return cross_entropy(d, x, shape);
  if (kind == 1) return mse_loss(d, x, shape);
  if (kind == 2) return binary_cross_entropy(d, x, shape);
  return divergence(d, x, shape);
}

}  // namespace

void loss(Draft& d) { d.results({drawn_loss(d, 0.95)}); }
void loss_gradient(Draft& d) { d.gradients(drawn_loss(d, 0.5), {"x"}); }

}  // namespace tilewright::sweep
