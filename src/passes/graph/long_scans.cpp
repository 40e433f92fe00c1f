// A long scan as totals of blocks, a scan of these, and scans of the blocks that begin with what it gives.
#include "passes/graph/long_scans.h"

#include "ops/functions.h"
#include "ops/rows.h"
#include "passes/graph/replace_nodes.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace tilewright::passes {

namespace {

using ir::OpClass;
using ir::Value;

constexpr Index kBlock = 4096;  // chosen: a million elements are 256 blocks
constexpr Index kFewRows = 16, kManyBlocks = 128,
                kWorthTwoReads = 1 << 15;  // docs/notes/2026-11-30-long-rows.md

// Elements of one scan. Threads that share a tile keep it in the registers of one block: a row, or as many
// columns as an access takes of what lies side by side. A program of one thread walks memory and is bounded
// by what tile IR allows, with strips of a few columns; where there are few rows to share out, by what makes
// it worth while to read twice. How many threads there are does not count: the sums would depend on it. Rows
// of any length (tensor/size_family.cpp) it walks block by block.
Index longest(const tile::Target& target, const ir::Type& type, Index axis) {
  Index before = 1, columns = 1;
  for (int i = 0; i < static_cast<int>(axis); ++i) before *= type.shape[i];
  for (int i = static_cast<int>(axis) + 1; i < type.shape.rank(); ++i) columns *= type.shape[i];
  const auto size = static_cast<Index>(size_bytes(type.dtype));
  const Index side_by_side = std::max<Index>(target.vector_bytes / size, 1);
  if (!target.shares_tiles() && target.row_bytes == 0) return std::numeric_limits<Index>::max();
  if (!target.shares_tiles())
    return before * ceil_div(columns, side_by_side) < kFewRows ? kWorthTwoReads : Index{1} << 20;
  if (target.row_bytes == 0) return kBlock;  // rows of any length
  const Index least = std::clamp<Index>(columns, 1, side_by_side);
  return std::max<Index>(target.held_elements(size) / least, 1);
}

// The op itself: the building functions would widen integers.
Value scan(const ir::Op& op, Value x, Index axis) {
  return {x.graph, x.graph->add(op, {x.id}, {{"axis", axis}})};
}

// The most elements of a scan in one program, and how many blocks keep all units busy. Whether what a block
// comes to is its scan's last element, which has the same bits under every schedule, and so on any number of
// threads; a sum by itself is added up as the schedule says, which is chosen for the threads.
struct Limits {
  Index most = 0;
  Index busy = 0;
  bool totals_by_scan = false;
};

Value in_blocks(const ir::Op& op, Value x, Index axis, const Limits& limits);

Value combined(const ir::Op& op, Value a, Value b) {
  if (&op == &ops::kCumsum) return a + b;
  if (&op == &ops::kCumprod) return a * b;
  TW_CHECK(&op == &ops::kCummax || &op == &ops::kCummin, "a scan that is not known here");
  return &op == &ops::kCummax ? ops::maximum(a, b) : ops::minimum(a, b);
}

const ir::Op& reduction(const ir::Op& op) {
  if (&op == &ops::kCumsum) return ops::kSum;
  if (&op == &ops::kCumprod) return ops::kProd;
  return &op == &ops::kCummax ? ops::kMax : ops::kMin;
}

// The divisor of a length that is nearest to kBlock, if there is one that makes a block: of no more elements
// than a program holds, and, where these are few blocks, of not many more than kBlock. Multiples of 8 come
// first: their rows begin where accesses may.
std::optional<Index> whole_block(Index length, const Limits& limits) {
  constexpr Index kLeast = 256, kAccess = 8;
  std::optional<Index> best;
  const auto far = [](Index n) {
    return std::abs(std::log2(double(n) / kBlock)) + (n % kAccess != 0 ? 2 : 0);
  };
  const Index most = std::min({limits.most, length / 2, std::max(length / limits.busy, 2 * kBlock)});
  for (Index n = kLeast; n <= most; ++n)
    if (length % n == 0 && (!best || far(n) < far(*best))) best = n;
  return best;
}

Value reduced(const ir::Op& op, Value x, Index axis) {
  return {x.graph, x.graph->add(op, {x.id}, {{"axes", std::vector<Index>{axis}}})};
}

// The last element of each row's scan, picked by a sum of which all other terms are 0. The unit axis makes it
// another node than the scan that is the result: that one would be stored for both.
Value last_of_scans(const ir::Op& op, Value x, Index axis) {
  const Value scans = scan(op, ops::unsqueeze(x, axis), axis + 1);
  const Value is_last =
      ops::eq(ops::iota(*x.graph, scans.shape(), axis + 1), x.shape()[static_cast<int>(axis)] - 1);
  return ops::squeeze(reduced(ops::kSum, ops::where(is_last, scans, 0.0), axis + 1), axis);
}

// Blocks of equal length, which are read twice and written once: what each comes to, what comes before each,
// and the scan of each from there.
Value from_totals(const ir::Op& op, Value x, Index axis, Index block, const Limits& limits) {
  const int at = static_cast<int>(axis);
  const DType dtype = compute_dtype(x.dtype());
  std::vector<Index> extents = x.shape().extents();
  const Index blocks = extents[static_cast<std::size_t>(at)] / block;
  extents[static_cast<std::size_t>(at)] = blocks;
  extents.insert(extents.begin() + at + 1, block);
  const Value whole = ops::cast(ops::reshape(x, Shape(extents)), dtype);
  const bool exact = &op == &ops::kCummax || &op == &ops::kCummin || !is_float(dtype);
  const Value totals = limits.totals_by_scan && !exact ? last_of_scans(op, whole, axis + 1)
                                                       : reduced(reduction(op), whole, axis + 1);
  const Value before =
      in_blocks(op, ops::slice_axis(ops::cast(totals, dtype), axis, {0, blocks - 1}), axis, limits);
  // Ahead of the first block stands what changes nothing: of extremes, the first element itself.
  Value first = ops::cast(ops::slice_axis(x, axis, {0, 1}), dtype);
  if (&op == &ops::kCumsum || &op == &ops::kCumprod)
    first = ops::constant(*x.graph, dtype, first.shape(), &op == &ops::kCumprod ? 1 : 0);
  const Value start =
      ops::broadcast_to(ops::unsqueeze(ops::concat({first, before}, axis), axis + 1), whole.shape());
  return ops::reshape(ops::cast(combined(op, start, scan(op, whole, axis + 1)), x.dtype()), x.shape());
}

Value in_blocks(const ir::Op& op, Value x, Index axis, const Limits& limits) {
  const int at = static_cast<int>(axis);
  const Index length = x.shape()[at];
  if (length <= limits.most) return scan(op, x, axis);
  if (const auto whole = whole_block(length, limits)) return from_totals(op, x, axis, *whole, limits);
  const Index block = std::min(kBlock, limits.most), blocks = (length + block - 1) / block;
  // What the last block lacks is behind every element: any value will do.
  const Value padded = ops::pad_axis(x, axis, 0, blocks * block - length);
  return ops::slice_axis(from_totals(op, padded, axis, block, limits), axis, {0, length});
}

}  // namespace

ir::Graph with_scans_in_blocks(const ir::Graph& graph, const tile::Target& target) {
  const auto most = [&](const ir::Node& n) { return longest(target, n.type, n.attrs.integer("axis")); };
  const auto is_long = [&](const ir::Node& n) {
    return n.op->kind == OpClass::scan && n.type.shape[static_cast<int>(n.attrs.integer("axis"))] > most(n);
  };
  return replace_nodes(graph, is_long, [&](const ir::Node& n, Value x) {
    const bool shares = target.shares_tiles();
    return in_blocks(*n.op, x, n.attrs.integer("axis"),
                     {most(n), shares ? 2 * target.units : kManyBlocks, !shares});
  });
}

}  // namespace tilewright::passes
