// einsum: pairs of operands are put in the order of a matrix product by views, and back; of several the pair
// that leaves least goes first.
#include "ops/functions.h"
#include "ops/promote.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

namespace tilewright::ops {

namespace {

// Names of axes are letters. The axes that an ellipsis stands for are named by these numbers, from the last.
constexpr char kEllipsisAxes = 1, kMostEllipsisAxes = 32;
bool is_of_ellipsis(char name) { return name < kEllipsisAxes + kMostEllipsisAxes; }

struct Factor {
  Value value;
  std::string names;  // of its axes
};
struct Named {
  std::vector<Factor> operands;
  std::string out;
};

void check_letters(std::string_view spec, const std::string& labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (!((labels[i] >= 'a' && labels[i] <= 'z') || (labels[i] >= 'A' && labels[i] <= 'Z')))
      throw Error(
          fmt::format("einsum \"{}\": '{}' is no axis name; axes are letters, or ...", spec, labels[i]));
    if (labels.find(labels[i], i + 1) != std::string::npos)
      throw Error(fmt::format("einsum \"{}\": axis {} is named twice in \"{}\": diagonals are not taken",
                              spec, labels[i], labels));
  }
}

constexpr std::string_view kEllipsis = "...";

// The letters beside an ellipsis.
std::string letters_of(std::string_view spec, std::string names) {
  if (const std::size_t at = names.find(kEllipsis); at != std::string::npos)
    names.erase(at, kEllipsis.size());
  check_letters(spec, names);
  return names;
}

// The names with those of `count` axes in the place of an ellipsis.
std::string expanded(std::string names, int count) {
  const std::size_t at = names.find(kEllipsis);
  if (at == std::string::npos) return names;
  std::string axes;
  for (int i = count; i > 0; --i) axes += static_cast<char>(kEllipsisAxes + i - 1);
  return names.replace(at, kEllipsis.size(), axes);
}

// The operand with names for all of its axes.
Factor named(std::string_view spec, const std::string& names, const Value& value) {
  const int rank = value.shape().rank(), letters = static_cast<int>(letters_of(spec, names).size());
  const bool open = names.find(kEllipsis) != std::string::npos;
  if (letters > rank || (!open && letters < rank) || rank - letters > kMostEllipsisAxes)
    throw Error(fmt::format("einsum \"{}\": \"{}\" names {} axes, the operand is {}", spec, names, letters,
                            to_string(value.shape())));
  return {value, expanded(names, rank - letters)};
}

Named parse(std::string_view spec, const std::vector<Value>& values) {
  std::string text(spec);
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos)
    throw Error(fmt::format("einsum \"{}\": want \"axes of a, axes of b -> axes of the result\"", spec));
  std::vector<std::string> parts{""};
  for (const char c : text.substr(0, arrow)) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() != values.size())
    throw Error(
        fmt::format("einsum \"{}\": it is of {} operands, {} are given", spec, parts.size(), values.size()));
  Named all;
  int of_ellipsis = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    all.operands.push_back(named(spec, parts[i], values[i]));
    const std::string& names = all.operands.back().names;
    of_ellipsis =
        std::max(of_ellipsis, static_cast<int>(std::count_if(names.begin(), names.end(), is_of_ellipsis)));
  }
  const std::string out = text.substr(arrow + 2);
  letters_of(spec, out);
  all.out = expanded(out, of_ellipsis);
  for (const char c : all.out)
    if (std::none_of(all.operands.begin(), all.operands.end(),
                     [&](const Factor& o) { return o.names.find(c) != std::string::npos; }))
      throw Error(fmt::format("einsum \"{}\": the result's axis {} is in no operand", spec, c));
  return all;
}

// Axes of an ellipsis broadcast: one of extent 1 goes where another operand has more. What axes with one name
// have in common is checked.
void settle_sizes(std::string_view spec, std::vector<Factor>& operands) {
  std::map<char, Index> sizes;
  for (const Factor& o : operands)
    for (std::size_t i = 0; i < o.names.size(); ++i) {
      const Index size = o.value.shape()[static_cast<int>(i)];
      const auto [known, fresh] = sizes.emplace(o.names[i], size);
      if (fresh || known->second == size) continue;
      const bool broadcasts = is_of_ellipsis(o.names[i]);
      if (broadcasts && known->second == 1)
        known->second = size;
      else if (broadcasts && size != 1)
        throw Error(
            fmt::format("einsum \"{}\": axes of ... do not broadcast: {} and {}", spec, known->second, size));
      else if (!broadcasts)
        throw Error(fmt::format("einsum \"{}\": axis {} is {} in one operand and {} in the other", spec,
                                o.names[i], known->second, size));
    }
  for (Factor& o : operands)
    for (std::size_t i = o.names.size(); i-- > 0;)
      if (o.value.shape()[static_cast<int>(i)] != sizes.at(o.names[i])) {
        o.value = squeeze(o.value, static_cast<Index>(i));
        o.names.erase(i, 1);
      }
}

// Integers are counted in the type of the result, whatever is summed first; so are 8-bit floats.
DType result_type(const std::vector<Factor>& operands) {
  DType met = operands[0].value.dtype();
  for (const Factor& o : operands) met = promote(met, o.value.dtype());
  met = arithmetic_type(met);
  if (is_f8(met)) return DType::f32;
  return met == DType::i8 || met == DType::u8 ? DType::i32 : met;
}

bool has(const std::string& names, char name) { return names.find(name) != std::string::npos; }

// Sums the axes away that `needed` does not name.
void sum_unneeded(Factor& x, const std::string& needed, DType dtype) {
  Axes axes;
  std::string kept;
  for (std::size_t i = 0; i < x.names.size(); ++i) {
    if (has(needed, x.names[i]))
      kept += x.names[i];
    else
      axes.push_back(static_cast<Index>(i));
  }
  x.names = kept;
  if (axes.empty()) return;
  if (is_f8(x.value.dtype())) x.value = cast(x.value, dtype);
  const Value total = sum(x.value, axes);
  x.value = is_float(total.dtype()) ? total : cast(total, dtype);
}

Value in_order(const Value& x, const std::string& names, const std::string& order) {
  std::vector<Index> perm;
  for (const char c : order) perm.push_back(static_cast<Index>(names.find(c)));
  return transpose(x, perm);
}

Index extent(const Factor& x, char name) { return x.value.shape()[static_cast<int>(x.names.find(name))]; }

// The names that a product of two has: those that `needed` names.
std::string names_of_product(const Factor& a, const Factor& b, const std::string& needed) {
  std::string names;
  for (const char c : a.names + b.names)
    if (has(needed, c) && !has(names, c)) names += c;
  return names;
}

// The product of two, with axes in the order of `out`.
Factor product(Factor a, Factor b, const std::string& out, DType dtype) {
  sum_unneeded(a, b.names + out, dtype);
  sum_unneeded(b, a.names + out, dtype);
  std::string batch, rows, columns, depth;
  for (const char c : out)
    (has(a.names, c) && has(b.names, c) ? batch : has(a.names, c) ? rows : columns) += c;
  for (const char c : a.names)
    if (!has(out, c)) depth += c;
  const auto extents_of = [&](const std::string& names) {
    std::vector<Index> extents;
    for (const char c : names) extents.push_back(extent(has(a.names, c) ? a : b, c));
    return extents;
  };
  const auto matrix = [&](const Factor& x, const std::string& first, const std::string& last) {
    std::vector<Index> extents = extents_of(batch);
    for (const std::string& side : {first, last}) {
      Index size = 1;
      for (const Index each : extents_of(side)) size *= each;
      extents.push_back(size);
    }
    return reshape(in_order(x.value, x.names, batch + first + last), Shape(extents));
  };
  const Value result = matmul(matrix(a, rows, depth), matrix(b, depth, columns));
  const std::string names = batch + rows + columns;
  return {in_order(reshape(result, Shape(extents_of(names))), names, out), out};
}

// What all operands but two name, and the result.
std::string needed_beside(const Named& all, std::size_t a, std::size_t b) {
  std::string needed = all.out;
  for (std::size_t i = 0; i < all.operands.size(); ++i)
    if (i != a && i != b) needed += all.operands[i].names;
  return needed;
}

// The pair whose product has the fewest elements.
std::pair<std::size_t, std::size_t> smallest_pair(const Named& all) {
  std::pair<std::size_t, std::size_t> best{0, 1};
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t b = 1; b < all.operands.size(); ++b)
    for (std::size_t a = 0; a < b; ++a) {
      const Factor &x = all.operands[a], &y = all.operands[b];
      double elements = 1;
      for (const char c : names_of_product(x, y, needed_beside(all, a, b)))
        elements *= static_cast<double>(extent(has(x.names, c) ? x : y, c));
      if (elements < least) least = elements, best = {a, b};
    }
  return best;
}

}  // namespace

Value einsum(std::string_view spec, const std::vector<Value>& values) {
  Named all = parse(spec, values);
  settle_sizes(spec, all.operands);
  std::vector<Factor>& left = all.operands;
  const DType dtype = result_type(left);
  while (left.size() > 2) {
    const auto [a, b] = smallest_pair(all);
    left[a] = product(left[a], left[b], names_of_product(left[a], left[b], needed_beside(all, a, b)), dtype);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(b));
  }
  if (left.size() == 2) return product(left[0], left[1], all.out, dtype).value;
  sum_unneeded(left[0], all.out, dtype);
  return in_order(left[0].value, left[0].names, all.out);
}

}  // namespace tilewright::ops
