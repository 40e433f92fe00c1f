// Chains of elementwise ops, and views between them.
#include <fmt/format.h>

#include <algorithm>

#include "sweep/families.h"

namespace tilewright::sweep {

namespace {

// What keeps values of order 1, whatever they were.
std::string one_operand(Draft& d, const std::string& x) {
  const auto op = d.choose.weighted<std::string>({{"tanh", 1},
                                                  {"sigmoid", 1},
                                                  {"relu", 1},
                                                  {"silu", 1},
                                                  {"gelu", 1},
                                                  {"gelu_tanh", 1},
                                                  {"sin", 1},
                                                  {"cos", 1},
                                                  {"abs", 0.7},
                                                  {"neg", 0.3},
                                                  {"softplus", 0.5},
                                                  {"elu", 0.5},
                                                  {"erf", 0.3}});
  return d.add(op, {x});
}

std::string two_operands(Draft& d, const std::string& x, const std::string& y) {
  const auto op = d.choose.weighted<std::string>(
      {{"add", 3}, {"mul", 2}, {"sub", 1.5}, {"maximum", 0.7}, {"minimum", 0.5}});
  return d.add(op, {x, y});
}

std::string with_number(Draft& d, const std::string& x) {
  static const std::vector<std::string> kNumbers = {"0.5", "2.0", "0.125", "1.5", "-1.0"};
  const auto op = d.choose.weighted<std::string>({{"mul", 2}, {"add", 1}});
  return d.add(op, {x, d.choose.one_of(kNumbers)});
}

// `shape` itself, or what broadcasts to it: a vector along the last axis, or 1 along some.
Shape broadcasting(Draft& d, const Shape& shape) {
  const int kind = d.choose.weighted<int>({{0, 2}, {1, 1}, {2, 1}, {3, 0.3}});
  if (kind == 0 || shape.rank() == 0) return shape;
  if (kind == 1) return Shape({shape[shape.rank() - 1]});
  Shape other = shape;
  if (kind == 2) {
    other[static_cast<int>(d.choose.integer(0, shape.rank() - 1))] = 1;
  } else {
    for (int axis = 1; axis < shape.rank(); ++axis) other[axis] = 1;
  }
  return other;
}

}  // namespace

void pointwise(Draft& d) {
  const int rank = static_cast<int>(d.choose.integer(1, 4)),
            inputs = static_cast<int>(d.choose.integer(1, 4));
  const Shape shape = d.sizes.shape(d.elements(1.0 / (1 + inputs)), rank);
  std::vector<std::string> values = {d.input("x0", shape)};
  for (int i = 1; i < inputs; ++i) values.push_back(d.input(fmt::format("x{}", i), broadcasting(d, shape)));
  std::string x = values[0];
  std::size_t next = 1;
  const auto steps = static_cast<int>(d.choose.integer(2, 9));
  for (int step = 0; step < steps || next < values.size(); ++step) {
    const bool join = next < values.size() && d.choose.chance(0.5);
    if (join || step >= steps)
      x = two_operands(d, x, values[next++]);
    else if (d.choose.chance(0.3))
      x = with_number(d, x);
    else
      x = one_operand(d, x);
  }
  d.results({x});
}

namespace {

// A value of known shape, which a view changes.
struct Shaped {
  std::string name;
  Shape shape;
  double read = 1;  // the share of the input that it is made of
};

Shaped sliced(Draft& d, const Shaped& x) {
  const auto axis = static_cast<int>(d.choose.integer(0, x.shape.rank() - 1));
  const Index n = x.shape[axis];
  const bool from_front = d.choose.chance(0.5), strided = d.choose.chance(0.25);
  const Index cut =
      std::max(Index{1}, static_cast<Index>(static_cast<double>(n) * (0.3 + 0.6 * d.sizes.unit())));
  const double read = x.read * static_cast<double>(cut) / static_cast<double>(n);
  Shape shape = x.shape;
  if (strided) {
    shape[axis] = ceil_div(n, 2);
    return {d.add("slice", {x.name}, {{"axis", std::to_string(axis)}, {"step", "2"}}), shape, x.read};
  }
  shape[axis] = cut;
  if (from_front)
    return {d.add("slice", {x.name}, {{"axis", std::to_string(axis)}, {"stop", std::to_string(cut)}}), shape,
            read};
  return {d.add("slice", {x.name}, {{"axis", std::to_string(axis)}, {"start", std::to_string(n - cut)}}),
          shape, read};
}

Shaped padded(Draft& d, const Shaped& x) {
  const auto back = static_cast<int>(d.choose.integer(1, x.shape.rank()));
  const Index low = d.choose.integer(0, 3), high = d.choose.integer(1, 4);
  Shape shape = x.shape;
  shape[x.shape.rank() - back] += low + high;
  return {d.add("pad", {x.name},
                {{"axis", std::to_string(-back)},
                 {"low", std::to_string(low)},
                 {"high", std::to_string(high)},
                 {"value", "0.0"}}),
          shape, x.read};
}

Shaped permuted(Draft& d, const Shaped& x) {
  std::vector<Index> order(static_cast<std::size_t>(x.shape.rank()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Index>(i);
  for (std::size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[static_cast<std::size_t>(d.choose.integer(0, static_cast<Index>(i)))]);
  Shape shape = x.shape;
  for (int i = 0; i < shape.rank(); ++i)
    shape[i] = x.shape[static_cast<int>(order[static_cast<std::size_t>(i)])];
  return {d.add("transpose", {x.name}, {{"perm", list(order)}}), shape, x.read};
}

Shaped joined_with_itself(Draft& d, const Shaped& x, const Shaped& original) {
  const auto axis = static_cast<int>(d.choose.integer(0, x.shape.rank() - 1));
  const bool same = original.shape == x.shape && original.name != x.name;
  const std::string other = same ? original.name : one_operand(d, x.name);
  Shape shape = x.shape;
  shape[axis] *= 2;
  return {d.add("concat", {x.name, other}, {{"axis", std::to_string(axis)}}), shape, same ? 1 : x.read};
}

}  // namespace

void views(Draft& d) {
  const auto rank = static_cast<int>(d.choose.integer(2, 4));
  const Shape shape = d.sizes.shape(d.elements(0.4), rank);
  const Shaped first{d.input("x", shape), shape};
  Shaped x = first;
  const auto steps = static_cast<int>(d.choose.integer(1, 3));
  for (int step = 0; step < steps; ++step) {
    if (d.choose.chance(0.5)) x.name = one_operand(d, x.name);
    const int kind = d.choose.weighted<int>({{0, 1.2}, {1, 1}, {2, 1.3}, {3, 1}});
    x = kind == 0   ? sliced(d, x)
        : kind == 1 ? padded(d, x)
        : kind == 2 ? permuted(d, x)
                    : joined_with_itself(d, x, first);
  }
  d.reads_of("x", x.read * static_cast<double>(shape.size()));
  // A result that PyTorch would only describe by strides is made to lie as it reads.
  const std::string bias = d.input("b", Shape({x.shape[x.shape.rank() - 1]}));
  d.results({d.add("add", {x.name, bias})});
}

}  // namespace tilewright::sweep
