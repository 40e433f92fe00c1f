// Winners as text, buckets of shapes.
#include "runtime/stored_winner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace tilewright::runtime {

namespace {

// The next power of two in magnitude, of either sign, as views may run backwards. A size with no larger power
// in its type stays.
Index next_power(Index size) {
  constexpr Index kLargest = Index{1} << 62;
  if (size > kLargest || size < -kLargest) return size;
  const auto up = static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(std::abs(size))));
  return size < 0 ? -up : size == 0 ? 0 : up;
}

}  // namespace

StoredWinner StoredWinner::parse(const std::string& text) {
  StoredWinner out;
  std::istringstream lines(text);
  for (std::string* line : {&out.schedule, &out.tiles, &out.library}) std::getline(lines, *line);
  return out;
}

std::string StoredWinner::text() const {
  return schedule + "\n" + tiles + (library.empty() ? "" : "\n" + library);
}

std::vector<tile::ConstParam> StoredWinner::tile_constants() const {
  std::vector<tile::ConstParam> out;
  std::istringstream words(tiles);
  for (std::string word; words >> word;) {
    const std::size_t equals = std::min(word.find('='), word.size() - 1);
    out.push_back({word.substr(0, equals), std::atoll(word.c_str() + equals + 1)});
  }
  return out;
}

std::string shape_bucket(const tile::Kernel& kernel) {
  std::string text;
  const auto add_rounded = [&](const std::vector<tile::Dim>& dims) {
    for (const tile::Dim& d : dims)
      text += d.is_constant() ? fmt::format("{} ", next_power(d.value)) : fmt::format("s{} ", d.scalar);
  };
  for (const tile::ViewParam& view : kernel.views) {
    text += fmt::format("{} of ", name(view.dtype));
    add_rounded(view.extents);
    text += "by ";
    add_rounded(view.strides);
  }
  tile::for_each_op(kernel.body, [&](const tile::Op& op) {
    const bool index = op.results.size() == 1 && kernel.type(op.results[0]).rank() == 0 &&
                       is_integer(kernel.type(op.results[0]).dtype);
    if (index || op.kind == tile::OpKind::constant) return;
    text += fmt::format("\n{} {} {} {} {} {}:", static_cast<int>(op.kind), static_cast<int>(op.prim),
                        static_cast<int>(op.monoid), op.param, op.axis, static_cast<int>(op.precision));
    if (op.kind == tile::OpKind::argsort) text += fmt::format(" {}", static_cast<int>(op.order));
    for (const tile::ValueId result : op.results)
      text += fmt::format(" {}{}", name(kernel.type(result).dtype), kernel.type(result).rank());
  });
  return text;
}

double tile_distance(const std::vector<tile::ConstParam>& a, const std::vector<tile::ConstParam>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name) return std::numeric_limits<double>::infinity();
    sum += std::fabs(std::log(static_cast<double>(a[i].value) / static_cast<double>(b[i].value)));
  }
  return sum;
}

}  // namespace tilewright::runtime
