// Softmax and norms over any axes, and a norm's gradients.
#include <fmt/format.h>

#include <algorithm>

#include "sweep/families.h"
#include "sweep/families/parts.h"

namespace tilewright::sweep {

namespace {

// Rows as long as models have them, unless that would be more than all there is.
Shape rows_shape(Draft& d, double elements, int rank, int axis) {
  const double longest = std::min(65536.0, std::max(2.0, elements / 2));
  const Index extent = d.sizes.extent(d.sizes.log_uniform(std::min(16.0, longest / 2), longest));
  const Shape others = d.sizes.shape(elements / static_cast<double>(extent), rank - 1);
  std::vector<Index> extents(others.begin(), others.end());
  extents.insert(extents.begin() + axis, extent);
  return Shape(extents);
}

}  // namespace

void softmax_rows(Draft& d) {
  const auto rank = static_cast<int>(d.choose.integer(2, 4));
  const int place =
      d.choose.weighted<int>({{0, 3}, {1, 1}, {2, 1}, {3, 0.7}});  // last, middle, first, several
  const int axis = place == 0 ? rank - 1 : place == 1 ? rank / 2 : 0;
  const bool scaled = d.choose.chance(0.4), biased = d.choose.chance(0.3);
  const std::string op = d.choose.weighted<std::string>({{"softmax", 2}, {"log_softmax", 1}});
  const Shape shape = rows_shape(d, d.elements(0.5), rank, axis);
  std::string x = d.input("x", shape, {.deviation = 2});
  if (scaled) x = d.add("mul", {x, "0.125"});
  if (biased) x = d.add("add", {x, d.input("bias", Shape({shape[rank - 1]}))});
  if (place == 3) {  // over the last two: flattened, as there is no softmax of several axes
    std::vector<Index> flat(shape.begin(), shape.end() - 2);
    flat.push_back(shape[rank - 2] * shape[rank - 1]);
    x = d.add("reshape", {x}, {{"shape", list(flat)}});
    x = d.add(op, {x}, {{"axis", "-1"}});
    d.results({d.add("reshape", {x}, {{"shape", list(shape)}})});
    return;
  }
  d.results({d.add(op, {x}, {{"axis", std::to_string(axis)}})});
}

namespace {

// Over axes that no function of PyTorch's norms: people write the mean and the variance.
std::string written_norm(Draft& d, const std::string& x, const std::string& axes) {
  const std::string mean = d.add("mean", {x}, {{"axes", axes}, {"keep", "1"}});
  const std::string var = d.add("var", {x}, {{"axes", axes}, {"keep", "1"}, {"ddof", "0"}});
  const std::string centred = d.add("sub", {x, mean});
  return d.add("mul", {centred, d.add("rsqrt", {d.add("add", {var, "1e-5"})})});
}

}  // namespace

void norm(Draft& d) {
  const auto rank = static_cast<int>(d.choose.integer(2, 4));
  const int kind = d.choose.weighted<int>({{0, 2}, {1, 2}, {2, 1}, {3, 0.7}, {4, 0.7}, {5, 0.8}});
  // 0 layer, 1 rms, 2 written over the middle, 3 over the first, 4 over two axes, 5 F.normalize
  const int axis = kind == 2 ? rank / 2 : kind == 3 ? 0 : rank - 1;
  const bool residual = d.choose.chance(0.4), activated = d.choose.chance(0.3);
  const Shape shape = rows_shape(d, d.elements(residual ? 0.33 : 0.5), rank, axis);
  std::string x = d.input("x", shape, {.mean = 0.5});
  if (residual) x = d.add("add", {x, d.input("r", shape)});
  const std::string axis_text = std::to_string(axis);
  if (kind <= 1) {
    x = last_axis_norm(d, x, shape[rank - 1], kind == 1);
  } else if (kind <= 3) {
    x = written_norm(d, x, axis_text);
  } else if (kind == 4) {
    x = written_norm(d, x, fmt::format("{},{}", rank - 2, rank - 1));
  } else {
    const std::string squares = d.ours("sum", {d.ours("square", {x})}, {{"axes", axis_text}, {"keep", "1"}});
    const std::string length = d.ours("maximum", {d.ours("sqrt", {squares}), "1e-12"});
    const std::string y = d.ours("div", {x, length});
    d.torch(y, fmt::format("F.normalize({}, dim={})", x, axis));
    x = y;
  }
  if (activated) x = d.add(d.choose.chance(0.5) ? "gelu" : "silu", {x});
  d.results({x});
}

void norm_gradient(Draft& d) {
  const bool rms = d.choose.chance(0.5), residual = d.choose.chance(0.3);
  const Shape shape = rows_shape(d, d.elements(0.2), 2, 1);
  const std::string x = d.input("x", shape, {.mean = 0.5});
  const std::string given = residual ? d.add("add", {x, d.input("r", shape)}) : x;
  const std::string y = last_axis_norm(d, given, shape[1], rms);
  std::vector<std::string> by = norm_weights(rms);
  by.insert(by.begin(), x);
  d.gradients(mse_loss(d, y, shape), by);
}

}  // namespace tilewright::sweep
