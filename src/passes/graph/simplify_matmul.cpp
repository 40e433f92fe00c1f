// Rewrites of matrix products.
#include "ops/stored_rows.h"
#include "passes/graph/simplify_parts.h"

#include <algorithm>
#include <numeric>

namespace tilewright::passes {

namespace {

using ir::OpClass;
using ir::Value;
using Replacement = std::optional<Value>;

Value through_views(Value v) {
  while (is_a(v, ops::kReshape) || is_a(v, ops::kExpand)) v = operand_of(v);
  return v;
}

bool is_reduction(Value v, tile::Monoid monoid) {
  const ir::Node& n = node_of(v);
  return n.op->kind == OpClass::reduce && *n.op->monoid == monoid;
}

// exp(x - max x): between 0 and 1, so that sums of its multiples are finite when those of its quotients are.
bool is_exp_below_maximum(Value v) {
  if (!is_a(v, ops::kExp)) return false;
  const Value shifted = operand_of(v);
  if (!is_a(shifted, ops::kSub)) return false;
  const Value maximum = through_views(operand_of(shifted, 1));
  return is_reduction(maximum, tile::Monoid::max) && same(operand_of(maximum), operand_of(shifted));
}

// The maximum of `x`, or what is at least that.
bool is_at_least_maximum(Value v, Value x) {
  v = through_views(v);
  if (is_a(v, ops::kMaximum))
    return is_at_least_maximum(operand_of(v), x) || is_at_least_maximum(operand_of(v, 1), x);
  return is_reduction(v, tile::Monoid::max) && same(operand_of(v), x);
}

// exp(x - m) for m at least max x: weights between 0 and 1.
bool is_weight(Value v) {
  if (is_a(v, ops::kCast)) v = operand_of(v);
  if (!is_a(v, ops::kExp)) return false;
  const Value shifted = operand_of(v);
  return is_a(shifted, ops::kSub) && is_at_least_maximum(operand_of(shifted, 1), operand_of(shifted));
}

// One over the sum of `e` along its last axis, at every place of that axis.
std::optional<Value> inverse_of_row_sum(Value v, Value e) {
  if (!is_a(v, ops::kExpand)) return {};
  const Value column = operand_of(v), inverse = through_views(v);
  if (column.shape()[column.shape().rank() - 1] != 1 || !is_a(inverse, ops::kReciprocal)) return {};
  const Value sum = through_views(operand_of(inverse));
  if (!is_reduction(sum, tile::Monoid::sum) || !same(operand_of(sum), e)) return {};
  const std::vector<Index>& axes = node_of(sum).attrs.integers("axes");
  if (axes.size() != 1 || axes[0] != e.shape().rank() - 1) return {};
  return column;
}

// The quotients of a softmax are taken of the product's few columns instead of its long rows, and the sum
// need not be known before the product begins. Quotients that are narrowed for the product: the exponentials
// are, which lie between 0 and 1 as well.
Replacement softmax_after_product(const Candidate& n) {
  if (n.op.kind != OpClass::matmul) return {};
  const Shape& rows = n.x[0].shape();
  if (rows[rows.rank() - 1] == 0) return {};  // the product is 0, and 0 times 1 / 0 is not
  const bool narrowed = is_a(n.x[0], ops::kCast) && is_float(n.x[0].dtype());
  const Value quotients = narrowed ? operand_of(n.x[0]) : n.x[0];
  if (!is_a(quotients, ops::kMul) || size_bytes(quotients.dtype()) < size_bytes(n.x[0].dtype())) return {};
  for (std::size_t i : {0, 1}) {
    const Value e = operand_of(quotients, i);
    if (!is_exp_below_maximum(e)) continue;
    const std::optional<Value> column = inverse_of_row_sum(operand_of(quotients, 1 - i), e);
    if (!column || (!narrowed && column->dtype() != n.type.dtype)) continue;
    ir::Graph& graph = *e.graph;
    if (narrowed) {
      const Value product = ops::matmul(ops::cast(e, n.x[0].dtype()), n.x[1], column->dtype());
      return ops::cast(product * ops::broadcast_to(*column, n.type.shape), n.type.dtype);
    }
    const Value product{&graph, graph.add(n.op, {e.id, n.x[1].id}, n.attrs)};
    return ops::mul(product, ops::broadcast_to(*column, n.type.shape));
  }
  return {};
}

Value swapped(Value v) { return ops::swap_axes(v, -1, -2); }

// The swapped value, if the graph has it.
std::optional<Value> known_swapped(Value v) {
  const bool transposed = is_a(v, ops::kTranspose);
  const Value base = transposed ? operand_of(v) : v;
  const auto rank = static_cast<std::size_t>(v.shape().rank());
  std::vector<Index> straight(rank);
  std::iota(straight.begin(), straight.end(), 0);
  std::vector<Index> perm = transposed ? node_of(v).attrs.integers("perm") : straight;
  std::swap(perm[rank - 1], perm[rank - 2]);
  if (perm == straight) return base;
  const auto id = v.graph->find(ops::kTranspose, {base.id}, {{"perm", perm}});
  return id ? std::optional(Value{v.graph, *id}) : std::nullopt;
}

// Gradients come as transposed products of transposed operands. A product that is written as it is read costs
// no copy, and its operands are views whichever way they lie.
Replacement transpose_of_matmul(const Candidate& n) {
  if (!n.is(ops::kTranspose)) return {};
  const bool narrowed = is_a(n.x[0], ops::kCast);
  const Value product = narrowed ? operand_of(n.x[0]) : n.x[0];
  if (!n.is_read_once(n.x[0]) || !n.is_read_once(product)) return {};
  const std::vector<Index>& perm = n.attrs.integers("perm");
  const Index rank = product.shape().rank();
  if (node_of(product).op->kind != OpClass::matmul || perm.back() != rank - 2) return {};
  ir::Graph& graph = *product.graph;
  const Value a = swapped(operand_of(product, 1)), b = swapped(operand_of(product, 0));
  Value transposed{&graph, graph.add(ops::kMatmul, {a.id, b.id}, node_of(product).attrs)};
  if (narrowed) transposed = ops::cast(transposed, n.type.dtype);
  std::vector<Index> rest;
  rest.reserve(perm.size());
  for (Index axis : perm) rest.push_back(axis == rank - 1 ? rank - 2 : axis == rank - 2 ? rank - 1 : axis);
  return ops::transpose(transposed, rest);
}

// The product, if the graph has it, in its operands' type or in f32.
std::optional<ir::NodeId> known_product(const ir::Graph& graph, ir::NodeId a, ir::NodeId b) {
  if (const auto plain = graph.find(ops::kMatmul, {a, b})) return plain;
  return graph.find(ops::kMatmul, {a, b}, {{"dtype", std::string(name(DType::f32))}});
}

// The same product in another order, if the graph has it: Σ_k e_k Σ_d a_d b_dk = Σ_d a_d Σ_k e_k b_dk. Of
// weights between 0 and 1 alone: a partial sum over d is then at most the number of keys times the largest
// that the written order meets, and Σ_k e_k b_dk that many times the largest b, neither far from what
// overflows there; any other e could make it infinite beside an a of 0. f16 would not hold it.
Replacement row_sum_of_product(const Candidate& n) {
  if (!n.is(ops::kSum) || !is_a(n.x[0], ops::kMul) || !is_float(n.type.dtype)) return {};
  const Index last = n.x[0].shape().rank() - 1;
  if (n.attrs.integers("axes") != std::vector<Index>{last}) return {};
  for (std::size_t i : {0, 1}) {
    Value product = operand_of(n.x[0], i), e = operand_of(n.x[0], 1 - i);
    if (is_a(product, ops::kCast)) product = operand_of(product);
    if (node_of(product).op->kind != OpClass::matmul || !is_weight(e)) continue;
    const Value a = operand_of(product), b = operand_of(product, 1);
    const std::optional<Value> transposed = known_swapped(b);
    if (!transposed) continue;
    ir::Graph& graph = *e.graph;
    std::optional<ir::NodeId> other;
    if (e.dtype() == b.dtype()) other = known_product(graph, e.id, transposed->id);
    const ir::Attrs narrow{{"dtype", std::string(name(b.dtype()))}};
    if (const auto cast = graph.find(ops::kCast, {e.id}, narrow); cast && !other)
      other = known_product(graph, *cast, transposed->id);
    if (!other || graph.type(*other).shape.size() >= product.shape().size()) continue;
    if (graph.type(*other).dtype == DType::f16) continue;
    const auto wide = [&](Value v) { return ops::cast(v, n.type.dtype); };
    return ops::sum(ops::mul(wide(a), wide({&graph, *other})), {last});
  }
  return {};
}

// The scaled value that the graph has is read instead of the one before it.
Replacement scaled_row_sum(const Candidate& n) {
  if (!n.is(ops::kMul) || !is_float(n.type.dtype)) return {};
  ir::Graph& graph = *n.x[0].graph;
  for (std::size_t i : {0, 1}) {
    const Value factor = n.x[i], column = n.x[1 - i];
    const Value sum = is_a(column, ops::kReshape) ? operand_of(column) : column;
    if (!n.is_read_once(column) || !n.is_read_once(sum)) continue;
    if (!is_a(sum, ops::kSum) || !is_a(operand_of(sum), ops::kMul)) continue;
    const Value product = operand_of(sum);
    const Shape& wide = product.shape();
    const Index last = wide.rank() - 1;
    if (node_of(sum).attrs.integers("axes") != std::vector<Index>{last}) continue;
    const auto stretched = graph.find(ops::kExpand, {factor.id}, {{"shape", wide.extents()}});
    if (!stretched || factor.shape().rank() != wide.rank() || factor.shape()[static_cast<int>(last)] != 1)
      continue;
    for (std::size_t side : {0, 1}) {
      const Value x = operand_of(product, side), other = operand_of(product, 1 - side);
      auto scaled = graph.find(ops::kMul, {x.id, *stretched});
      if (!scaled) scaled = graph.find(ops::kMul, {*stretched, x.id});
      if (scaled && *scaled != product.id)
        return ops::reshape(ops::sum(ops::mul(other, Value{&graph, *scaled}), {last}), n.type.shape);
    }
  }
  return {};
}

// Axes of a product's batch that are summed make its depth longer: weights that every batch shares, keys that
// several heads share. Between the two only batch axes may be split or merged.
Replacement sum_of_products(const Candidate& n) {
  if (!n.is(ops::kSum) || n.attrs.has(ops::kApart)) return {};
  Value product = n.x[0];
  for (const ir::Op* step : {&ops::kReshape, &ops::kCast}) {
    if (!n.is_read_once(product)) return {};
    if (is_a(product, *step) && is_float(product.dtype())) product = operand_of(product);
  }
  if (!n.is_read_once(product)) return {};
  if (node_of(product).op->kind != OpClass::matmul) return {};
  const Shape& shape = n.x[0].shape();
  const int rank = shape.rank(), inner_rank = product.shape().rank();
  const std::vector<Index>& axes = n.attrs.integers("axes");
  if (rank < 3 || axes.empty() || axes.back() >= rank - 2) return {};
  for (int i : {1, 2})
    if (shape[rank - i] != product.shape()[inner_rank - i]) return {};
  const Value a = operand_of(product), b = operand_of(product, 1);
  // Batch axes that are kept come first, those that are summed beside the depth.
  const auto deeper = [&](Value v, bool depth_last) {
    const Index rows = v.shape()[inner_rank - 2], columns = v.shape()[inner_rank - 1];
    std::vector<Index> split(shape.begin(), shape.end() - 2), perm, joined;
    split.insert(split.end(), {rows, columns});
    Index depth = depth_last ? columns : rows;
    for (int i = 0; i + 2 < rank; ++i)
      if (std::find(axes.begin(), axes.end(), i) == axes.end())
        perm.push_back(i), joined.push_back(shape[i]);
      else
        depth *= shape[i];
    if (depth_last) perm.push_back(rank - 2);
    perm.insert(perm.end(), axes.begin(), axes.end());
    if (!depth_last) perm.push_back(rank - 2);
    perm.push_back(rank - 1);
    joined.insert(joined.end(), {depth_last ? rows : depth, depth_last ? depth : columns});
    return ops::reshape(ops::transpose(ops::reshape(v, Shape(split)), perm), Shape(joined));
  };
  if (product.shape().size() == 0 || a.shape()[inner_rank - 1] == 0) return {};
  const Value left = deeper(a, true), right = deeper(b, false);
  ir::Graph& graph = *a.graph;
  const Value sum{&graph, graph.add(ops::kMatmul, {left.id, right.id}, node_of(product).attrs)};
  if (sum.type() == n.type) return sum;
  const bool narrower = is_float(sum.dtype()) && size_bytes(n.type.dtype) < size_bytes(sum.dtype());
  return narrower ? Replacement(ops::cast(sum, n.type.dtype)) : std::nullopt;
}

// Products that are added up at indices, as the gradient of matrices that blocks of rows have picked, are
// added up before they are rounded.
Replacement scatter_of_products(const Candidate& n) {
  if (!n.is(ops::kScatterAdd) || !is_float(n.type.dtype) || size_bytes(n.type.dtype) != 2) return {};
  Value product = n.x[1];
  while (n.is_read_once(product) && is_a(product, ops::kReshape)) product = operand_of(product);
  if (!n.is_read_once(product) || node_of(product).op->kind != OpClass::matmul) return {};
  const Value wide = ops::matmul(operand_of(product), operand_of(product, 1), DType::f32);
  return ops::cast(
      ops::scatter_add(n.x[0], ops::reshape(wide, n.x[1].shape()), n.attrs.integer("axis"), n.type.shape),
      n.type.dtype);
}

constexpr Rewrite kMatmulRewrites[] = {
    {"transpose_of_matmul", "transpose(matmul(a, b)) = matmul(transpose(b), transpose(a))",
     transpose_of_matmul},
    {"row_sum_of_product",
     "sum(matmul(a, b) * e, last) = sum(a * matmul(e, transpose(b)), last) for e = exp(x - m) with m at "
     "least "
     "max x, where that matmul is there and smaller",
     row_sum_of_product},
    {"scaled_row_sum", "c * sum(a * b, last) = sum(a * (b * expand c), last) where b * expand c is there",
     scaled_row_sum},
    {"scatter_of_products", "scatter_add(index, matmul(a, b)) of 16 bits = one of f32, rounded once",
     scatter_of_products},
    {"sum_of_products", "sum(matmul(a, b), batch axes) = one matmul whose depth holds them", sum_of_products},
    {"softmax_after_product",
     "matmul(e * expand(1 / sum e), v) = matmul(e, v) * (1 / sum e) for e = exp(x - max x), of at least one "
     "element a row, e narrowed where the quotients are",
     softmax_after_product},
};

}  // namespace

std::span<const Rewrite> matmul_rewrites() { return kMatmulRewrites; }

}  // namespace tilewright::passes
