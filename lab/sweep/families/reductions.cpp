// Reductions in every layout, scans, and the place of the largest.
#include <fmt/format.h>

#include <algorithm>

#include "sweep/families.h"

namespace tilewright::sweep {

namespace {

// Something to compute before values are reduced, or nothing.
std::string prologue(Draft& d, const std::string& x, const Shape& shape) {
  switch (d.choose.weighted<int>({{0, 2}, {1, 1}, {2, 1}, {3, 1}})) {
    case 1:
      return d.add("square", {x});
    case 2:
      return d.add("mul", {x, d.input("y", shape)});
    case 3:
      return d.add("sigmoid", {x});
    default:
      return x;
  }
}

}  // namespace

void reduction(Draft& d) {
  const auto rank = static_cast<int>(d.choose.integer(1, 4));
  std::vector<Index> axes;
  for (Index axis = 0; axis < rank; ++axis)
    if (d.choose.chance(0.5)) axes.push_back(axis);
  if (axes.empty()) axes.push_back(d.choose.integer(0, rank - 1));
  const auto op = d.choose.weighted<std::string>(
      {{"sum", 2}, {"mean", 1.5}, {"max", 1}, {"min", 0.5}, {"var", 1}, {"logsumexp", 0.7}});
  const bool keep = d.choose.chance(0.3);
  const Shape shape = d.sizes.shape(d.elements(0.9), rank);
  std::string x = prologue(d, d.input("x", shape), shape);
  Options options = {{"axes", list(axes)}, {"keep", keep ? "1" : "0"}};
  if (op == "var") options["ddof"] = "0";
  // A sum of many terms of one sign would leave f16's range and what bf16 resolves.
  if (op == "sum" && d.choose.chance(0.5)) x = d.add("tanh", {x});
  d.results({d.add(op, {x}, options)});
}

void scan(Draft& d) {
  const auto rank = static_cast<int>(d.choose.integer(1, 3));
  const auto axis = d.choose.integer(0, rank - 1);
  const Shape shape = d.sizes.shape(d.elements(0.5), rank);
  const std::string x = prologue(d, d.input("x", shape, {.deviation = 0.1}), shape);
  d.results({d.add("cumsum", {x}, {{"axis", std::to_string(axis)}})});
}

void argmax_rows(Draft& d) {
  const auto rank = static_cast<int>(d.choose.integer(1, 3));
  const auto axis = d.choose.integer(0, rank - 1);
  const auto op = d.choose.weighted<std::string>({{"argmax", 2}, {"argmin", 1}});
  const Shape shape = d.sizes.shape(d.elements(0.9), rank);
  std::string x = d.input("x", shape);
  if (d.choose.chance(0.4)) x = d.add("mul", {x, "2.0"});  // exact, so that the order is
  d.results({d.add(op, {x}, {{"axis", std::to_string(axis)}, {"keep", "0"}})});
}

}  // namespace tilewright::sweep
