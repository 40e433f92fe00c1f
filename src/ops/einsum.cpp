// einsum of two operands: axes are put in the order of a matrix product by views, and back.
#include "ops/functions.h"
#include "ops/promote.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tilewright::ops {

namespace {

struct Labels {
  std::string a, b, out;
};

void check_letters(std::string_view spec, const std::string& labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (!((labels[i] >= 'a' && labels[i] <= 'z') || (labels[i] >= 'A' && labels[i] <= 'Z')))
      throw Error(fmt::format("einsum \"{}\": '{}' is no axis name; axes are letters", spec, labels[i]));
    if (labels.find(labels[i], i + 1) != std::string::npos)
      throw Error(fmt::format("einsum \"{}\": axis {} is named twice in \"{}\": diagonals are not taken",
                              spec, labels[i], labels));
  }
}

Labels parse(std::string_view spec) {
  std::string text(spec);
  std::erase(text, ' ');
  const std::size_t comma = text.find(','), arrow = text.find("->");
  const bool one_comma = comma != std::string::npos && text.find(',', comma + 1) == std::string::npos;
  if (!one_comma || arrow == std::string::npos || comma > arrow)
    throw Error(fmt::format(
        "einsum \"{}\": want \"axes of a, axes of b -> axes of the result\", of two operands", spec));
  Labels labels{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  for (const std::string& each : {labels.a, labels.b, labels.out}) check_letters(spec, each);
  for (char c : labels.out)
    if (labels.a.find(c) == std::string::npos && labels.b.find(c) == std::string::npos)
      throw Error(fmt::format("einsum \"{}\": the result's axis {} is in neither operand", spec, c));
  return labels;
}

std::map<char, Index> sizes_of(std::string_view spec, const Labels& labels, const Shape& a, const Shape& b) {
  std::map<char, Index> sizes;
  for (const auto& [names, shape] : {std::pair(&labels.a, &a), std::pair(&labels.b, &b)}) {
    if (static_cast<int>(names->size()) != shape->rank())
      throw Error(fmt::format("einsum \"{}\": \"{}\" names {} axes, the operand is {}", spec, *names,
                              names->size(), to_string(*shape)));
    for (std::size_t i = 0; i < names->size(); ++i) {
      const Index size = (*shape)[static_cast<int>(i)];
      const auto [known, fresh] = sizes.emplace((*names)[i], size);
      if (!fresh && known->second != size)
        throw Error(fmt::format("einsum \"{}\": axis {} is {} in one operand and {} in the other", spec,
                                (*names)[i], known->second, size));
    }
  }
  return sizes;
}

// Integers are counted in the type of the result, whatever is summed first; so are 8-bit floats.
DType result_type(DType a, DType b) {
  const DType met = arithmetic_type(promote(a, b));
  if (is_f8(met)) return DType::f32;
  return met == DType::i8 || met == DType::u8 ? DType::i32 : met;
}

// Sums the axes that nothing else names away.
Value sum_unshared(Value x, std::string& names, const std::string& other, const std::string& out,
                   DType dtype) {
  Axes axes;
  std::string kept;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool shared = other.find(names[i]) != std::string::npos || out.find(names[i]) != std::string::npos;
    if (shared)
      kept += names[i];
    else
      axes.push_back(static_cast<Index>(i));
  }
  names = kept;
  if (axes.empty()) return x;
  if (is_f8(x.dtype())) x = cast(x, dtype);
  const Value total = sum(x, axes);
  return is_float(x.dtype()) ? total : cast(total, dtype);
}

Value in_order(Value x, const std::string& names, const std::string& order) {
  std::vector<Index> perm;
  for (char c : order) perm.push_back(static_cast<Index>(names.find(c)));
  return transpose(x, perm);
}

Index product(const std::map<char, Index>& sizes, const std::string& names) {
  Index size = 1;
  for (char c : names) size *= sizes.at(c);
  return size;
}

}  // namespace

Value einsum(std::string_view spec, Value a, Value b) {
  Labels labels = parse(spec);
  const std::map<char, Index> sizes = sizes_of(spec, labels, a.shape(), b.shape());
  const DType dtype = result_type(a.dtype(), b.dtype());
  a = sum_unshared(a, labels.a, labels.b, labels.out, dtype);
  b = sum_unshared(b, labels.b, labels.a, labels.out, dtype);
  std::string batch, rows, columns, depth;
  for (char c : labels.out) {
    const bool in_a = labels.a.find(c) != std::string::npos, in_b = labels.b.find(c) != std::string::npos;
    (in_a && in_b ? batch : in_a ? rows : columns) += c;
  }
  for (char c : labels.a)
    if (labels.out.find(c) == std::string::npos) depth += c;
  std::vector<Index> shape;
  for (char c : batch) shape.push_back(sizes.at(c));
  const auto matrix = [&](Value x, const std::string& names, const std::string& first,
                          const std::string& last) {
    std::vector<Index> extents = shape;
    extents.push_back(product(sizes, first));
    extents.push_back(product(sizes, last));
    return reshape(in_order(x, names, batch + first + last), Shape(extents));
  };
  const Value result = matmul(matrix(a, labels.a, rows, depth), matrix(b, labels.b, depth, columns));
  for (char c : rows + columns) shape.push_back(sizes.at(c));
  return in_order(reshape(result, Shape(shape)), batch + rows + columns, labels.out);
}

}  // namespace tilewright::ops
