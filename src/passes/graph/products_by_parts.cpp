#include "passes/graph/products_by_parts.h"

#include "ops/composites.h"
#include "ops/functions.h"
#include "ops/rows.h"
#include "passes/graph/replace_nodes.h"

#include <tilewright/tile/tensor_rate.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace tilewright::passes {

namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpClass;
using ir::Value;

constexpr int kParts = 3;  // of 8 bits each
// Of a part's numbers, beside those of the part before, of whose last bit they are at most half. Two bits of
// room: beside the largest f32 a part is twice as large.
constexpr double kScale = 0x1p-7;
constexpr Index kMostGrowth = 8;  // of a result beside its operands: chosen
constexpr std::size_t kMostSeen = 64;

struct Sizes {
  double batch = 1;
  Index m = 1, n = 1, k = 1;
};

Sizes sizes_of(const Shape& a, const Shape& result) {
  const int rank = result.rank();
  Sizes s{.m = result[rank - 2], .n = result[rank - 1], .k = a[rank - 1]};
  for (int i = 0; i + 2 < rank; ++i) s.batch *= static_cast<double>(result[i]);
  return s;
}

// Microseconds by multiply-adds of f32.
double by_vectors_us(const Sizes& s, const tile::Target& target) {
  double best = std::numeric_limits<double>::infinity();
  for (const tile::DotTile& t : target.vector_dots.tiles) {
    const double programs = s.batch * static_cast<double>(ceil_div(s.m, t.rows) * ceil_div(s.n, t.columns));
    const double waves = std::ceil(programs / std::max(1, target.units));
    const double flops = 2.0 * static_cast<double>(t.rows * t.columns * s.k);
    best = std::min(best, tile::shared_tiles_us(t, flops, waves, target.flops_per_s, target));
  }
  return best;
}

// Microseconds of a product of parts, `pairs` of them behind one another.
double by_unit_us(const Sizes& s, int pairs, const std::vector<tile::DotTile>& tiles,
                  const tile::MatrixUnit& unit, const tile::Target& target) {
  double best = std::numeric_limits<double>::infinity();
  for (const tile::DotTile& t : tiles) {
    const tile::TensorTiles all{
        .bm = t.rows,
        .bn = t.columns,
        .k = s.k * pairs,
        .programs = s.batch * static_cast<double>(ceil_div(s.m, t.rows) * ceil_div(s.n, t.columns)),
        .group_m = std::min(unit.rate->group_m, ceil_div(s.m, t.rows)),
        .inside_m = s.m,
        .inside_n = s.n};
    best = std::min(best, tile::tensor_tiles_us(all, *unit.rate, target));
  }
  return best;
}

// Microseconds of the products by parts, of the kernels that write the parts, and of sums that go to memory
// and come back between the products.
double by_parts_us(const Sizes& s, const tile::MatrixUnit& unit, const tile::MatrixOperands& parts,
                   const tile::Target& target) {
  double us = 0;
  for (int pairs = 1; pairs <= kParts; ++pairs)
    us += by_unit_us(s, pairs, pairs == 1 ? parts.two_level_tiles : parts.tiles, unit, target);
  const double operands = s.batch * static_cast<double>((s.m + s.n) * s.k),
               sums = s.batch * static_cast<double>(s.m * s.n);
  const double bytes = operands * kParts * (4 + 2) + sums * 4 * 2 * (kParts - 1);
  return us + (bytes / target.bytes_per_s(bytes) + 2 * target.launch_s) * 1e6;
}

// Whether a value was made of a product's result, by what a kernel computes between two products.
bool comes_from_product(const Graph& graph, NodeId value) {
  std::set<NodeId> seen;
  std::vector<NodeId> left{value};
  while (!left.empty() && seen.size() < kMostSeen) {
    const NodeId id = left.back();
    left.pop_back();
    if (!seen.insert(id).second) continue;
    const Node& n = graph.node(id);
    if (n.op->kind == OpClass::matmul) return true;
    left.insert(left.end(), n.operands.begin(), n.operands.end());
  }
  return false;
}

class Writer {
 public:
  explicit Writer(const tile::Target& target) : target_(target) {
    for (const tile::MatrixUnit& unit : target.matrix_units) {
      if (!unit.rate) continue;
      for (const tile::MatrixOperands& row : unit.operands)
        if (row.dtype == DType::bf16 && !row.two_level_tiles.empty()) unit_ = &unit, parts_ = &row;
      if (unit_ != nullptr) return;
    }
  }

  bool can() const { return unit_ != nullptr && !target_.tf32 && !target_.any_size; }

  bool is_worth(const Node& n, const Value& a, const Value& b) const {
    if (n.op->kind != OpClass::matmul || n.type.dtype != DType::f32 || a.dtype() != DType::f32) return false;
    const Sizes s = sizes_of(a.shape(), n.type.shape);
    if (s.batch == 0 || std::min({s.m, s.n, s.k}) == 0) return false;
    if (s.m * s.n > kMostGrowth * (s.m + s.n) * s.k) return false;
    const Index reach = unit_->b2b ? unit_->b2b->most_columns : 0;
    if (std::min(s.m, s.n) <= reach && s.batch > 1 &&
        (comes_from_product(*a.graph, a.id) || comes_from_product(*b.graph, b.id)))
      return false;
    return by_parts_us(s, *unit_, *parts_, target_) < parts_->worth_parts * by_vectors_us(s, target_);
  }

  // The parts of an operand behind one another along its depth, in memory: the largest first, or last. Each
  // is `length` long, and so are rows of memory multiples of what the unit's blocks start at; the rest is
  // zeros.
  enum class Largest { first, last };
  Value parts(Value x, Index depth_axis, Index length, Largest largest) {
    const Node& n = x.graph->node(x.id);
    if (n.op == &ops::kTranspose) {  // parts of what lies in memory, as it lies
      const std::vector<Index> perm = n.attrs.integers("perm");
      const Value inner{x.graph, n.operands[0]};
      return ops::transpose(parts(inner, perm[static_cast<std::size_t>(depth_axis)], length, largest), perm);
    }
    const auto [known, is_new] = known_.insert({{x.id, depth_axis, largest}, x});
    if (!is_new) return known->second;
    std::vector<Value> all;
    constexpr double most = 0x1.FEp127;  // of bf16: beyond, an f32 would round to infinity
    const auto part = [&](const Value& v) { return all.emplace_back(ops::cast(v, DType::bf16)); };
    Value rounded = part(ops::where(ops::isfinite(x), ops::clamp(x, -most, most), x)), left = x;
    for (int i = 1; i < kParts; ++i) {
      left = (left - ops::cast(rounded, DType::f32)) * (1 / kScale);
      rounded = part(left);
    }
    for (Value& v : all) v = filled(v, depth_axis, length);
    if (largest == Largest::last) std::reverse(all.begin(), all.end());
    const Index last = x.shape().rank() - 1, columns = x.shape()[static_cast<int>(last)];
    Value memory = ops::concat(all, depth_axis);
    if (depth_axis != last) memory = filled(memory, last, aligned(columns));
    memory.id = x.graph->add(ops::kCast, {memory.id}, {{"dtype", std::string(name(DType::bf16))}});
    if (depth_axis != last) memory = ops::slice_axis(memory, last, {.stop = columns});
    return known_.at({x.id, depth_axis, largest}) = memory;
  }

  Value product(const Node& n, const Value& a, const Value& b) {
    const Index rank = a.shape().rank();
    const Index k = aligned(a.shape()[static_cast<int>(rank - 1)]);
    const Value as = parts(a, rank - 1, k, Largest::first), bs = parts(b, rank - 2, k, Largest::last);
    // The sum of the products of so many parts of each, whose scales are the same.
    const auto level = [&](Index pairs) {
      const Value left = ops::slice_axis(as, rank - 1, {.stop = pairs * k}),
                  right = ops::slice_axis(bs, rank - 2, {.start = (kParts - pairs) * k});
      ir::Attrs attrs{{"dtype", std::string(name(DType::f32))}, {ops::kPartsAttr, pairs}};
      return Value{a.graph, a.graph->add(ops::kMatmul, {left.id, right.id}, attrs, n.location)};
    };
    Value sum = level(kParts);
    for (Index pairs = kParts - 1; pairs > 0; --pairs) {
      const Value above = level(pairs), both = above + sum * kScale;
      sum = pairs > 1 ? both : ops::where(ops::isfinite(above), both, above);
    }
    return sum;
  }

 private:
  Index aligned(Index elements) const {
    return round_up(elements,
                    ceil_div(unit_->blocks.align_bytes, static_cast<Index>(size_bytes(DType::bf16))));
  }
  static Value filled(const Value& x, Index axis, Index length) {
    const Index fill = length - x.shape()[static_cast<int>(axis)];
    return fill > 0 ? ops::pad_axis(x, axis, 0, fill) : x;
  }

  const tile::Target& target_;
  const tile::MatrixUnit* unit_ = nullptr;
  const tile::MatrixOperands* parts_ = nullptr;
  std::map<std::tuple<NodeId, Index, Largest>, Value> known_;  // parts of operands of the new graph
};

}  // namespace

Graph with_products_by_parts(const Graph& graph, const tile::Target& target) {
  Writer writer(target);
  if (!writer.can()) return graph;
  return replace_nodes(graph, [&](const Node& n, const std::vector<Value>& x) -> std::optional<Value> {
    if (x.size() != 2 || !writer.is_worth(n, x[0], x[1])) return std::nullopt;
    return writer.product(n, x[0], x[1]);
  });
}

}  // namespace tilewright::passes
