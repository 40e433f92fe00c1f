// Walks what moves no data, and loads: coordinates of a result become those of its operands.
#include "ops/rows.h"
#include "ops/stored_rows.h"
#include "passes/nest/fold_index.h"
#include "passes/nest/walker.h"

namespace tilewright::passes {

using ir::Node;
using ir::NodeId;
using ir::OpClass;

int Walker::inlined(const Node& n, NodeId id, const Coordinates& at, int mask) {
  const auto at_axis = [&](Index axis) { return at[static_cast<std::size_t>(axis)]; };
  switch (n.op->kind) {
    case OpClass::constant:
      return constant(n.type.dtype, n.attrs.items().at("value"), id);
    case OpClass::iota:
      return push({.kind = Expr::Kind::index,
                   .node = id,
                   .offset = at_axis(n.attrs.integer("axis")),
                   .dtype = DType::i64});
    case OpClass::concat:
      return concat(n, at, mask);
    case OpClass::pad:
      return pad(n, at, mask);
    default:
      break;
  }
  // A reshape of memory is that memory, counted in other axes: what no coordinates of the source undo again.
  if (n.op->kind == OpClass::reshape)
    if (const NodeId stored = storage_node(graph_, id);
        !is_member(stored) && !is_inlined(graph_.node(stored)) && !ops::has_pitch(graph_.node(stored)))
      return load(stored, linearize(at, n.type.shape), mask);
  const Shape& from = graph_.type(n.operands[0]).shape;
  Coordinates inner(static_cast<std::size_t>(from.rank()));
  for (std::size_t i = 0; i < inner.size(); ++i) {
    const auto axis = static_cast<int>(i);
    if (n.op->kind == OpClass::transpose)
      inner[static_cast<std::size_t>(n.attrs.integers("perm")[i])] = IndexExpr();
    else if (n.op->kind == OpClass::expand)
      inner[i] = from[axis] == 1 ? IndexExpr(0) : at[i];
    else if (n.op->kind == OpClass::slice)
      inner[i] = at[i] * n.attrs.integers("step")[i] + n.attrs.integers("start")[i];
  }
  if (n.op->kind == OpClass::transpose)
    for (std::size_t i = 0; i < inner.size(); ++i)
      inner[static_cast<std::size_t>(n.attrs.integers("perm")[i])] = at[i];
  if (n.op->kind == OpClass::reshape) inner = reshape(at, n.type.shape, from);
  return walk(n.operands[0], inner, mask);
}

Coordinates Walker::reshape(const Coordinates& at, const Shape& to, const Shape& from) const {
  Coordinates moved = delinearize(linearize(at, to), from, nest_.extents);
  std::size_t divisions = 0;
  for (const IndexExpr& e : moved) divisions += e.divisions();
  if (divisions > kMostExprs && group_.nodes.size() > 1) throw Stop{Refusal::too_long};
  return moved;
}

int Walker::constant(DType dtype, const ir::Attr& value, NodeId id) {
  const DType d = compute_dtype(dtype);
  tile::Number number;
  if (const Index* i = std::get_if<Index>(&value))
    number = is_float(d) ? tile::Number{static_cast<double>(*i), 0} : tile::Number{0, wrap_to(d, *i)};
  else
    number = is_float(d) ? tile::Number{std::get<double>(value), 0}
                         : tile::Number{0, float_to_int(d, std::get<double>(value))};
  return push({.kind = Expr::Kind::constant, .node = id, .dtype = d, .number = number});
}

namespace {

// The cost of looking for a part, beside its exprs: it is loaded under a mask, which is code for each lane
// (16 ms of Clang where there are few, more than twice that from 24 parts on; an operation takes 2).
constexpr std::size_t kPartOperations = 18;

// Parts without a mask are not told apart by it. Where stacks of stacks are walked again and again that adds
// up: a gradient of twelve took a minute.
constexpr int kMostPartsOfOne = 16;

}  // namespace

int Walker::in_range(const IndexExpr& e, Index low, Index high) {
  return push({.kind = Expr::Kind::in_range, .offset = e, .dtype = DType::boolean, .low = low, .high = high});
}

int Walker::both(int a, int b) {
  if (a < 0 || b < 0) return std::max(a, b);
  Expr zero{.kind = Expr::Kind::constant, .dtype = DType::boolean};
  const int no = push(zero);
  return push({.kind = Expr::Kind::where, .operands = {a, b, no}, .dtype = DType::boolean});
}

int Walker::inside(const Coordinates& at, const Shape& shape, int mask) {
  int all = -1;
  for (int axis = 0; mask >= 0 && axis < shape.rank(); ++axis) {
    const IndexExpr& e = at[static_cast<std::size_t>(axis)];
    if (!always_inside(e, shape[axis], nest_.extents)) all = both(all, in_range(e, 0, shape[axis]));
  }
  return all;
}

int Walker::pad(const Node& n, const Coordinates& at, int mask) {
  const Shape& from = graph_.type(n.operands[0]).shape;
  Coordinates inner;
  int inside = -1;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const Index low = n.attrs.integers("low")[i];
    inner.push_back(at[i] - low);
    if (low != 0 || n.attrs.integers("high")[i] != 0)
      inside = both(inside, in_range(inner.back(), 0, from[axis]));
  }
  const int value = walk(n.operands[0], inner, both(mask, inside));
  if (inside < 0) return value;
  const DType dtype = nest_.exprs[static_cast<std::size_t>(value)].dtype;
  const int fill = constant(dtype, n.attrs.items().at("value"), -1);
  return push({.kind = Expr::Kind::where, .operands = {inside, value, fill}, .dtype = compute_dtype(dtype)});
}

int Walker::concat(const Node& n, const Coordinates& at, int mask) {
  const auto axis = static_cast<std::size_t>(n.attrs.integer("axis"));
  int result = -1;
  Index start = n.type.shape[static_cast<int>(axis)];
  for (std::size_t i = n.operands.size(); i-- > 0;) {
    const Index extent = graph_.type(n.operands[i]).shape[static_cast<int>(axis)];
    start -= extent;
    if (extent == 0) continue;
    Coordinates inner = at;
    inner[axis] = at[axis] - start;
    const IndexRange where = range(inner[axis], nest_.extents);
    if (where.high < 0 || where.low >= extent) continue;  // a slice of the whole that is not of this part
    if (where.low >= 0 && where.high < extent) return walk(n.operands[i], inner, mask);
    const int inside = in_range(inner[axis], 0, extent);
    code_ += kPartOperations;
    // A part of one element along the axis is the same element wherever it is asked for: no mask keeps it in
    // its memory, and it is computed once for all places.
    const bool one = extent == 1 && parts_of_one_ < kMostPartsOfOne;
    if (one) inner[axis] = 0, ++parts_of_one_;
    const int value = walk(n.operands[i], inner, one ? mask : both(mask, inside));
    const DType dtype = compute_dtype(n.type.dtype);
    result = result < 0
                 ? value
                 : push({.kind = Expr::Kind::where, .operands = {inside, value, result}, .dtype = dtype});
  }
  // A concat of empty pieces alone has no element; a reduction over it still asks for one.
  return result < 0 ? push({.kind = Expr::Kind::constant, .dtype = compute_dtype(n.type.dtype)}) : result;
}

int Walker::load(NodeId id, const IndexExpr& offset, int mask) {
  return push(
      {.kind = Expr::Kind::load, .node = id, .offset = offset, .mask = mask, .dtype = graph_.type(id).dtype});
}

int Walker::take(const Node& n, const Coordinates& at, int mask) {
  const auto axis = static_cast<std::ptrdiff_t>(n.attrs.integer("axis"));
  const auto rank = static_cast<std::ptrdiff_t>(graph_.type(n.operands[1]).shape.rank());
  const int index = walk(n.operands[1], Coordinates(at.begin() + axis, at.begin() + axis + rank), mask);
  Coordinates inner(at.begin(), at.begin() + axis);
  inner.push_back(0);
  inner.insert(inner.end(), at.begin() + axis + rank, at.end());
  if (is_position_inside(index, n.operands[0], axis)) {
    inner[static_cast<std::size_t>(axis)] = nest_.exprs[static_cast<std::size_t>(index)].offset;
    return walk(n.operands[0], inner, mask);
  }
  return indirect(n.operands[0], inner, static_cast<int>(axis), index, mask);
}

int Walker::take_along(const Node& n, Coordinates at, int mask) {
  const int index = walk(n.operands[1], at, mask);
  const Index axis = n.attrs.integer("axis");
  if (is_position_inside(index, n.operands[0], axis)) {
    at[static_cast<std::size_t>(axis)] = nest_.exprs[static_cast<std::size_t>(index)].offset;
    return walk(n.operands[0], at, mask);
  }
  at[static_cast<std::size_t>(axis)] = 0;
  return indirect(n.operands[0], at, static_cast<int>(axis), index, mask);
}

int Walker::dynamic_slice(const Node& n, const Coordinates& at, int mask) {
  const NodeId source = n.operands[0], stored = storage_node(graph_, source);
  if (is_member(stored) || is_inlined(graph_.node(stored)) ||
      (ops::has_pitch(graph_.node(stored)) && stored != source))
    throw Stop{Refusal::indirect_through_fused};
  const Shape& shape = graph_.type(source).shape;
  Shape room = shape;
  for (int i = 0; i < room.rank(); ++i) room[i] -= n.type.shape[i];
  Placed place =
      placed(at, n.operands[1], stored == source ? ops::stored_shape(graph_.node(stored)) : shape, room);
  return push({.kind = Expr::Kind::load,
               .node = stored,
               .offset = std::move(place.offset),
               .dynamic = std::move(place.dynamic),
               .mask = mask,
               .dtype = n.type.dtype});
}

bool Walker::is_position_inside(int index, NodeId source, Index axis) const {
  const Expr& s = nest_.exprs[static_cast<std::size_t>(index)];
  return s.kind == Expr::Kind::index &&
         always_inside(s.offset, graph_.type(source).shape[static_cast<int>(axis)], nest_.extents);
}

// Rows from an index on, as a product reads them: the index, and how far from it.
std::pair<int, IndexExpr> Walker::moved_index(int index) const {
  const Expr& s = nest_.exprs[static_cast<std::size_t>(index)];
  if (!has_matmul_ || s.kind != Expr::Kind::op || graph_.node(s.node).op != &ops::kAdd) return {index, 0};
  for (std::size_t side : {0, 1}) {
    const Expr& by = nest_.exprs[static_cast<std::size_t>(s.operands[side])];
    if (by.kind == Expr::Kind::index && by.offset.single_variable() >= 0)
      return {s.operands[1 - side], by.offset};
  }
  return {index, 0};
}

int Walker::indirect(NodeId source, Coordinates at, int axis, int index, int mask) {
  const Shape& shape = graph_.type(source).shape;
  const NodeId stored = storage_node(graph_, source);
  if (is_member(stored) || is_inlined(graph_.node(stored))) throw Stop{Refusal::indirect_through_fused};
  const auto [from, moved] = moved_index(index);
  at[static_cast<std::size_t>(axis)] = moved;
  if (ops::has_pitch(graph_.node(stored)) && stored != source) throw Stop{Refusal::indirect_through_fused};
  const Shape places = stored == source ? ops::stored_shape(graph_.node(stored)) : shape;
  return push({.kind = Expr::Kind::load,
               .node = stored,
               .offset = linearize(at, places),
               .dynamic = {{from, row_major_strides(places)[static_cast<std::size_t>(axis)]}},
               .mask = both(mask, valid_index(from, shape[axis], moved)),
               .dtype = graph_.type(source).dtype});
}

int Walker::valid_index(int index, Index extent, const IndexExpr& moved) {
  return push({.kind = Expr::Kind::in_range,
               .operands = {index},
               .offset = moved,
               .dtype = DType::boolean,
               .low = 0,
               .high = extent});
}

}  // namespace tilewright::passes
