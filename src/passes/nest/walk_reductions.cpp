// Walks reductions, scans, sorts and dots: what may share the reduced variables of the space.
#include "ops/rows.h"
#include "passes/nest/walker.h"

namespace tilewright::passes {

using ir::Node;
using ir::NodeId;
using ir::OpClass;

bool takes_whole_row(const Node& n) { return n.op->kind == OpClass::scan || n.op->kind == OpClass::argsort; }

bool reduces(const Node& n) { return n.op->kind == OpClass::reduce || takes_whole_row(n); }

Index reduced_size(const ir::Graph& graph, const Node& n) {
  const Shape& from = graph.type(n.operands[0]).shape;
  if (takes_whole_row(n)) return from[static_cast<int>(n.attrs.integer("axis"))];
  Index size = 1;
  for (Index a : n.attrs.integers("axes")) size *= from[static_cast<int>(a)];
  return size;
}

LastMatmul last_matmul(const ir::Graph& graph, const Group& group) {
  LastMatmul last;
  for (NodeId id : group.nodes) {
    const Node& n = graph.node(id);
    const bool reads = std::any_of(n.operands.begin(), n.operands.end(), [&](NodeId o) {
      while (is_inlined(graph.node(o)) && !graph.node(o).operands.empty()) o = graph.node(o).operands[0];
      return last.results.count(o) != 0;
    });
    if (n.op->kind == OpClass::matmul) {
      last = {id, {id}, {}};
    } else if (reads) {
      if (reduces(n) && reduced_size(graph, n) != 1) last.reductions.insert(id);
      last.results.insert(id);
    }
  }
  return last;
}

NodeId Walker::outer_matmul() {
  const LastMatmul last = last_matmul(graph_, group_);
  if (last.id < 0 || (reductions_ == Reductions::loops && !last.reductions.empty())) return -1;
  epilogue_reductions_ = last.reductions;
  return last.id;
}

void Walker::choose_dot_space(const Node& matmul) {
  const Shape& a = graph_.type(matmul.operands[0]).shape;
  std::vector<Index> extents = matmul.type.shape.extents();
  has_dot_ = true;
  const std::size_t depth = extents.size() - 1;  // rows, depth, columns
  extents.insert(extents.end() - 1, a[a.rank() - 1]);
  space_ = Shape(extents);
  reduced_axis_.assign(extents.size(), false);
  reduced_axis_[depth] = true;
  make_variables();
}

bool Walker::depends_on_reduced(const IndexExpr& e) const {
  for (std::size_t v = 0; v < nest_.extents.size(); ++v)
    if (nest_.reduced[v] && e.depends_on(static_cast<int>(v))) return true;
  return false;
}

int Walker::reduce_nothing(const Node& n, const Coordinates& at, int mask) {
  if (finds_place(*n.op->monoid)) return constant(DType::i64, Index{0}, -1);
  const std::vector<Index>& axes = n.attrs.integers("axes");
  Coordinates inner = at;
  for (Index a : axes) inner.insert(inner.begin() + static_cast<std::ptrdiff_t>(a), IndexExpr(0));
  return walk(n.operands[0], inner, mask);
}

int Walker::reduce(const Node& n, NodeId id, const Coordinates& at, int mask) {
  if (reduced_size(graph_, n) == 1) return reduce_nothing(n, at, mask);
  if (epilogue_reductions_.count(id)) return epilogue_reduction(n, id, at);
  for (const IndexExpr& e : at)
    if (depends_on_reduced(e)) throw Stop{Refusal::reduction_feeds_reduced_axis};
  const Shape& from = graph_.type(n.operands[0]).shape;
  std::vector<Index> extents;
  for (Index a : n.attrs.integers("axes")) extents.push_back(from[static_cast<int>(a)]);
  const Shape mine(extents), ours(reduced_extents_);
  if (mine.size() != ours.size()) throw Stop{Refusal::reduction_shapes_differ};
  const Coordinates along =
      mine == ours ? reduced_ : delinearize(linearize(reduced_, ours), mine, nest_.extents);
  Coordinates inner;
  std::size_t next_reduced = 0, next_kept = 0;
  const std::vector<Index>& axes = n.attrs.integers("axes");
  for (int axis = 0; axis < from.rank(); ++axis) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    inner.push_back(is_reduced ? along[next_reduced++] : at[next_kept++]);
  }
  const int operand = walk(n.operands[0], inner, inside(inner, from, mask));
  return push({.kind = Expr::Kind::reduce,
               .node = id,
               .operands = {operand},
               .dtype = compute_dtype(n.type.dtype),
               .monoid = *n.op->monoid});
}

Walker::EpilogueCoordinates Walker::epilogue_coordinates(const Node& n) const {
  const Shape &from = graph_.type(n.operands[0]).shape, result(parallel_extents_);
  if (n.op->kind != OpClass::reduce || from.size() != result.size() || from.size() == 0)
    throw Stop{Refusal::reduction_shapes_differ};
  EpilogueCoordinates out{.all = delinearize(linearize(parallel_, result), from, nest_.extents)};
  const std::vector<Index>& axes = n.attrs.integers("axes");
  std::vector<Index> reduced;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    (is_reduced ? out.along : out.kept).push_back(out.all[static_cast<std::size_t>(axis)]);
    if (is_reduced) reduced.push_back(from[axis]);
  }
  out.reduced = Shape(reduced);
  return out;
}

NodeId Walker::epilogue_reduction_of(NodeId id) const {
  if (epilogue_reductions_.empty()) return -1;
  std::set<NodeId> seen;
  std::vector<NodeId> open = {id};
  while (!open.empty()) {
    const NodeId next = open.back();
    open.pop_back();
    if (epilogue_reductions_.count(next)) return next;
    if (!is_member(next) && !is_inlined(graph_.node(next))) continue;
    for (NodeId o : graph_.node(next).operands)
      if (seen.insert(o).second) open.push_back(o);
  }
  return -1;
}

int Walker::epilogue_reduction(const Node& n, NodeId id, const Coordinates& at) {
  if (finds_place(*n.op->monoid)) throw Stop{Refusal::dots_are_not_b2b};
  const EpilogueCoordinates where = epilogue_coordinates(n);
  if (at != where.kept) throw Stop{Refusal::shapes_differ};
  const int operand = walk(n.operands[0], where.all, -1);
  return push({.kind = Expr::Kind::epilogue_reduction,
               .node = id,
               .operands = {operand},
               .offset = linearize(where.along, where.reduced),
               .dtype = compute_dtype(n.type.dtype),
               .monoid = *n.op->monoid});
}

int Walker::dot(const Node& n, NodeId id, const Coordinates& at, int mask) {
  const auto rank = at.size();
  const bool inner =
      std::any_of(at.begin(), at.end(), [&](const IndexExpr& e) { return depends_on_reduced(e); });
  const bool of_parts = n.attrs.has(ops::kPartsAttr);
  if (inner && of_parts) throw Stop{Refusal::dots_are_not_b2b};
  const Shape& a_shape = graph_.type(n.operands[0]).shape;
  const Index depth_extent = a_shape[a_shape.rank() - 1];
  IndexExpr depth;
  bool transposed = false, scaled_accumulation = false;
  if (inner) {
    transposed = depends_on_reduced(at[rank - 2]);
    const bool columns = depends_on_reduced(at[rank - 1]);
    scaled_accumulation = !transposed && !columns;  // only a batch axis is reduced
    if ((transposed && columns) || (depth_extent > kMostInnerDepth && (has_dot_ || scaled_accumulation)) ||
        depth_extent == 0)
      throw Stop{Refusal::dots_are_not_b2b};
    depth = IndexExpr::variable(static_cast<int>(nest_.extents.size()));
    nest_.extents.push_back(depth_extent);
    nest_.reduced.push_back(false);
    nest_.inner.push_back(true);
  } else {
    // One loop: that of the matmul the space was chosen for, and one place in its result.
    const bool elsewhere = (outer_ && outer_->at != at) || (!epilogue_reductions_.empty() && at != parallel_);
    if (!has_dot_ || Shape(reduced_extents_).size() != depth_extent || elsewhere)
      throw Stop{Refusal::dots_are_not_b2b};
    depth = reduced_[0];
  }
  // A variable that walks both a row and a column of the result walks a diagonal: no tile does.
  for (std::size_t v = 0; v < nest_.extents.size(); ++v)
    if (at[rank - 2].depends_on(static_cast<int>(v)) && at[rank - 1].depends_on(static_cast<int>(v)))
      throw Stop{Refusal::shapes_differ};
  const auto operand = [&](NodeId o, std::size_t kept, bool depth_last) {
    const Shape& shape = graph_.type(o).shape;
    Coordinates inner_at;
    for (int axis = 0; axis + 2 < shape.rank(); ++axis)
      inner_at.push_back(shape[axis] == 1 ? IndexExpr(0)
                                          : at[rank - static_cast<std::size_t>(shape.rank() - axis)]);
    inner_at.push_back(depth_last ? at[kept] : depth);
    inner_at.push_back(depth_last ? depth : at[kept]);
    return walk(o, inner_at, inside(inner_at, shape, mask));
  };
  int a = operand(n.operands[0], rank - 2, true), b = operand(n.operands[1], rank - 1, false);
  // Blocks of rows stay while columns stream by: what dots inside the loop give are rows.
  if (!inner) {
    transposed = has_inner_dots(b);
    if (outer_ && outer_->transposed != transposed) throw Stop{Refusal::dots_are_not_b2b};
    outer_ = OuterDot{at, transposed};
  }
  std::array<DType, 2> operand_dtypes = {graph_.type(n.operands[0]).dtype, graph_.type(n.operands[1]).dtype};
  if (transposed) std::swap(a, b), std::swap(operand_dtypes[0], operand_dtypes[1]);
  // A result wider than its operands' accumulator type: the operands are cast to the result's type.
  const DType result = compute_dtype(n.type.dtype);
  if (size_bytes(result) > size_bytes(accumulator(operand_dtypes[0]))) operand_dtypes = {result, result};
  return push({.kind = Expr::Kind::dot,
               .node = id,
               .operands = {a, b},
               .offset = inner ? depth : IndexExpr(0),
               .dtype = compute_dtype(n.type.dtype),
               .operand_dtypes = operand_dtypes,
               .inner = inner,
               .two_level = of_parts && n.attrs.integer(ops::kPartsAttr) == 1,
               .scaled_accumulation = scaled_accumulation});
}

bool Walker::has_inner_dots(int expr) const {
  const std::vector<bool> parts = nest_.made_of({expr});
  for (std::size_t s = 0; s < parts.size(); ++s)
    if (parts[s] && nest_.exprs[s].inner) return true;
  return false;
}

int Walker::whole_row(const Node& n, NodeId id, const Coordinates& at, int mask) {
  const bool sorts = n.op->kind == OpClass::argsort;
  if (reduced_size(graph_, n) == 1)
    return sorts ? constant(DType::i32, Index{0}, -1) : walk(n.operands[0], at, mask);
  const auto axis = static_cast<std::size_t>(n.attrs.integer("axis"));
  const Shape& from = graph_.type(n.operands[0]).shape;
  const std::vector<int> reduced = nest_.reduced_variables();
  const bool whole = reduced.size() == 1 && at[axis] == IndexExpr::variable(reduced[0]) &&
                     nest_.extents[static_cast<std::size_t>(reduced[0])] == from[static_cast<int>(axis)];
  for (std::size_t i = 0; i < at.size(); ++i)
    if (i != axis && depends_on_reduced(at[i])) throw Stop{Refusal::row_is_not_whole};
  if (!whole) throw Stop{Refusal::row_is_not_whole};
  const int operand = walk(n.operands[0], at, inside(at, from, mask));
  return push({.kind = sorts ? Expr::Kind::argsort : Expr::Kind::scan,
               .node = id,
               .operands = {operand},
               .dtype = compute_dtype(n.type.dtype),
               .monoid = n.op->monoid.value_or(tile::Monoid::sum)});
}

}  // namespace tilewright::passes
