// An f32 product as three of narrower parts, where these are predicted to take less time.
#include "passes/graph/products_by_parts.h"

#include "ops/composites.h"
#include "ops/functions.h"
#include "ops/rows.h"
#include "ops/stored_rows.h"
#include "passes/graph/made_of.h"
#include "passes/graph/replace_nodes.h"

#include <tilewright/perf/cost.h>
#include <tilewright/tile/plan.h>
#include <tilewright/tile/tensor_rate.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
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
// What a part's numbers count, beside those of the part before: they are at most half of its last bit, 2^-9.
// Two bits of room, as beside the largest f32 a part is twice as large.
constexpr double kScale = 0x1p-7;
constexpr Index kMostGrowth = 8;  // of a result beside its operands: chosen
constexpr std::size_t kMostSeen = 64;
constexpr Index kLeastOfFill = 16;  // of a depth is filled with zeros at most one in so many: chosen
static_assert(kParts * (kParts + 1) == 2 * perf::kPartProducts,
              "a bound on f32 products counts the same products");

struct Sizes {
  double batch = 1;
  Index m = 1, n = 1, k = 1;
  double operands = 0;  // elements of both in memory
};

// What is stretched along other axes than the last two.
const Node* stretched(const Value& x) {
  const Node& n = x.graph->node(x.id);
  if (n.op != &ops::kExpand) return nullptr;
  const Shape &from = x.graph->type(n.operands[0]).shape, &to = x.shape();
  const int rank = to.rank();
  return from[rank - 1] == to[rank - 1] && from[rank - 2] == to[rank - 2] ? &n : nullptr;
}

double elements_in_memory(const Value& x) {
  const Node* n = stretched(x);
  return static_cast<double>((n ? x.graph->type(n->operands[0]).shape : x.shape()).size());
}

Sizes sizes_of(const Value& a, const Value& b, const Shape& result) {
  const int rank = result.rank();
  Sizes s{.m = result[rank - 2], .n = result[rank - 1], .k = a.shape()[rank - 1]};
  Index batch = 1;
  for (int i = 0; i + 2 < rank; ++i) batch *= result[i];
  s.operands = elements_in_memory(a) + elements_in_memory(b);
  // Rows of all the batch meet one matrix.
  if (elements_in_memory(b) == static_cast<double>(s.k * s.n))
    s.m *= batch;
  else
    s.batch = static_cast<double>(batch);
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
        .inside_n = s.n,
        .two_level = pairs == 1};
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
  const double sums = s.batch * static_cast<double>(s.m * s.n);
  const double bytes = s.operands * (4 + 2 * kParts) + sums * 4 * 2 * (kParts - 1);
  return us + (bytes / target.bytes_per_s(bytes) + 2 * target.launch_s) * 1e6;
}

// Whether a value was made of a product's result, by what a kernel computes between two products.
bool comes_from_product(const Graph& graph, NodeId value) {
  return is_made_of(graph, value, kMostSeen,
                    [](const Node& n) { return n.op->kind == OpClass::matmul ? Look::found : Look::behind; });
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
    const Sizes s = sizes_of(a, b, n.type.shape);
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
    if (const Node* view = stretched(x)) {
      const Value all = parts({x.graph, view->operands[0]}, depth_axis, length, largest);
      std::vector<Index> extents = x.shape().extents();
      extents[static_cast<std::size_t>(depth_axis)] = kParts * length;
      return ops::broadcast_to(all, Shape(extents));
    }
    const auto [known, is_new] = known_.insert({{x.id, depth_axis, largest}, x});
    if (!is_new) return known->second;
    const Index last = x.shape().rank() - 1, columns = x.shape()[static_cast<int>(last)];
    std::vector<Value> all;
    const auto part = [&](const Value& v) { return all.emplace_back(ops::cast(v, DType::bf16)); };
    constexpr double most = 0x1.FEp127;  // of bf16: beyond, an f32 would round to infinity
    Value rounded = part(ops::where(ops::isfinite(x), ops::clamp(x, -most, most), x)), left = x;
    for (int i = 1; i < kParts; ++i) {
      left = (left - ops::cast(rounded, DType::f32)) * (1 / kScale);
      rounded = part(left);
    }
    for (Value& v : all) v = filled(filled(v, depth_axis, length), last, aligned(columns));
    if (largest == Largest::last) std::reverse(all.begin(), all.end());
    Value memory = behind_one_another(all, depth_axis);
    if (depth_axis != last) memory = ops::slice_axis(memory, last, {.stop = columns});
    return known_.at({x.id, depth_axis, largest}) = memory;
  }

  Value product(const Node& n, const Value& a, const Value& b) {
    const Index rank = a.shape().rank();
    const Index k = depth_of_parts(a.shape()[static_cast<int>(rank - 1)]);
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
  // Up to where the next part may be computed in its place, if that adds little to the product.
  Index depth_of_parts(Index k) const {
    const Index placed = round_up(k, tile::kBufferAlign / static_cast<Index>(size_bytes(DType::bf16)));
    return kLeastOfFill * (placed - k) <= k ? placed : aligned(k);
  }
  Index aligned(Index elements) const {
    return round_up(elements,
                    ceil_div(unit_->blocks.align_bytes, static_cast<Index>(size_bytes(DType::bf16))));
  }
  static Value copy(const Value& x, const ir::Attrs& more) {
    ir::Attrs attrs{{"dtype", std::string(name(x.dtype()))}};
    for (const auto& [key, value] : more.items()) attrs.set(key, value);
    return {x.graph, x.graph->add(ops::kCast, {x.id}, attrs)};
  }
  // Parts of equal shape in one piece of memory, each computed where it lies if a kernel can write it there:
  // as rows of the whole's pitch.
  static Value behind_one_another(std::vector<Value> parts, Index axis) {
    const Shape shape = parts[0].shape();
    Index rows = 1;
    for (int i = 0; i < static_cast<int>(axis); ++i) rows *= shape[i];
    const Index apart = shape.size() / rows;  // elements from one part to the next
    if (apart * static_cast<Index>(size_bytes(DType::bf16)) % tile::kBufferAlign != 0)
      return copy(ops::concat(parts, axis), {});
    for (Value& p : parts)
      p = copy(ops::reshape(p, {rows, apart}),
               rows > 1 ? ir::Attrs{{ops::kPitch, kParts * apart}} : ir::Attrs{});
    std::vector<Index> whole = shape.extents();
    whole[static_cast<std::size_t>(axis)] *= kParts;
    return ops::reshape(copy(ops::concat(parts, 1), {{ops::kPlaced, Index{1}}}), Shape(whole));
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
