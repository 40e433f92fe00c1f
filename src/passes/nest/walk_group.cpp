// Walks a group from its outputs back to memory, composing index expressions.
#include "passes/nest/walk_group.h"

#include "ops/stored_rows.h"
#include "passes/nest/fold_index.h"
#include "passes/nest/walker.h"

namespace tilewright::passes {

using ir::Node;
using ir::NodeId;
using ir::OpClass;

LoopNest Walker::run() {
  nest_.exprs.reserve(2 * group_.nodes.size());
  choose_space();
  for (NodeId o : group_.outputs) add_output(o);
  const bool accumulates = std::any_of(nest_.outputs.begin(), nest_.outputs.end(),
                                       [](const ProgramOutput& o) { return o.accumulate || o.keeps >= 0; });
  // Additions and placed blocks must happen once each, which a space with reduced axes does not promise.
  if (accumulates && !nest_.reduced_variables().empty()) throw Stop{Refusal::opaque};
  drop_unused();
  return std::move(nest_);
}

void Walker::drop_unused() {
  std::vector<int> stored;
  for (const ProgramOutput& o : nest_.outputs) {
    stored.push_back(o.expr);
    for (auto [s, stride] : o.dynamic) stored.push_back(s);
    if (o.mask >= 0) stored.push_back(o.mask);
  }
  const std::vector<bool> used = nest_.made_of(stored);
  if (std::find(used.begin(), used.end(), false) == used.end()) return;
  std::vector<int> place(used.size(), -1);
  std::vector<Expr> kept;
  const auto move = [&](int& s) {
    if (s >= 0) s = place[static_cast<std::size_t>(s)];
  };
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    place[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(nest_.exprs[i]));
    for (int& o : kept.back().operands) move(o);
    for (auto& [o, stride] : kept.back().dynamic) move(o);
    move(kept.back().mask);
  }
  nest_.exprs = std::move(kept);
  for (ProgramOutput& o : nest_.outputs) {
    move(o.expr);
    for (auto& [s, stride] : o.dynamic) move(s);
    move(o.mask);
  }
}

void Walker::choose_space() {
  anchor_ = outer_matmul();
  if (anchor_ >= 0) return choose_dot_space(graph_.node(anchor_));
  for (NodeId id : group_.nodes) {
    const Node& n = graph_.node(id);
    if (!reduces(n) || reduced_size(graph_, n) == 1) continue;
    space_ = graph_.type(n.operands[0]).shape;
    std::vector<Index> axes = n.op->kind == OpClass::reduce ? n.attrs.integers("axes")
                                                            : std::vector<Index>{n.attrs.integer("axis")};
    reduced_axis_.assign(static_cast<std::size_t>(space_.rank()), false);
    for (Index a : axes) reduced_axis_[static_cast<std::size_t>(a)] = true;
    return make_variables();
  }
  for (NodeId id : group_.outputs) {
    const Node& n = graph_.node(id);
    const bool scatters = n.op->kind == OpClass::scatter_add || n.op->kind == OpClass::scatter_add_along ||
                          n.op->kind == OpClass::update_slice;
    const Shape& shape = scatters ? graph_.type(n.operands[1]).shape : n.type.shape;
    if (id == group_.outputs[0] || shape.size() > space_.size()) space_ = shape;
  }
  reduced_axis_.assign(static_cast<std::size_t>(space_.rank()), false);
  make_variables();
}

void Walker::make_variables() {
  for (int axis = 0; axis < space_.rank(); ++axis) {
    if (space_[axis] == 1 && !reduced_axis_[static_cast<std::size_t>(axis)]) {
      identity_.push_back(0);
    } else {
      identity_.push_back(IndexExpr::variable(static_cast<int>(nest_.extents.size())));
      nest_.extents.push_back(space_[axis]);
      nest_.reduced.push_back(reduced_axis_[static_cast<std::size_t>(axis)]);
      nest_.inner.push_back(false);
    }
    (reduced_axis_[static_cast<std::size_t>(axis)] ? reduced_ : parallel_).push_back(identity_.back());
    (reduced_axis_[static_cast<std::size_t>(axis)] ? reduced_extents_ : parallel_extents_)
        .push_back(space_[axis]);
  }
}

std::optional<Coordinates> Walker::coordinates_behind(NodeId anchor, NodeId id) {
  if (id == anchor) return parallel_;
  if (const auto known = behind_anchor_.find(id); known != behind_anchor_.end()) return known->second;
  const Node& n = graph_.node(id);
  const bool moves = n.op->kind == OpClass::transpose || n.op->kind == OpClass::reshape;
  const bool computes = is_member(id) && (n.op->kind == OpClass::pointwise || n.op->kind == OpClass::cast);
  std::optional<Coordinates> at;
  for (std::size_t o = 0; (moves || computes) && !at && o < n.operands.size(); ++o)
    at = coordinates_behind(anchor, n.operands[o]);
  if (at && n.op->kind == OpClass::reshape) at = reshape(*at, graph_.type(n.operands[0]).shape, n.type.shape);
  if (at && n.op->kind == OpClass::transpose) {
    Coordinates moved;
    for (Index axis : n.attrs.integers("perm")) moved.push_back((*at)[static_cast<std::size_t>(axis)]);
    at = std::move(moved);
  }
  return behind_anchor_[id] = at;
}

std::optional<Coordinates> Walker::exchanged_coordinates(NodeId id) {
  if (anchor_ < 0 || !epilogue_reductions_.empty()) return std::nullopt;
  std::optional<Coordinates> at = coordinates_behind(anchor_, id);
  const Shape& shape = graph_.type(id).shape;
  if (!at || linearize(*at, shape) == linearize(parallel_, Shape(parallel_extents_))) return std::nullopt;
  const int innermost = parallel_.back().single_variable();
  return innermost >= 0 && linearize(*at, shape).factor(innermost) == 1 ? at : std::nullopt;
}

Coordinates Walker::output_coordinates(NodeId id) {
  const Shape &shape = graph_.type(id).shape, parallel(parallel_extents_);
  if (auto exchanged = exchanged_coordinates(id)) return *exchanged;
  if (shape.size() == parallel.size())
    return delinearize(linearize(parallel_, parallel), shape, nest_.extents);
  if (has_dot_) return row_coordinates(shape);
  if (shape == space_) return identity_;
  if (shape.size() == space_.size()) return delinearize(linearize(identity_, space_), shape, nest_.extents);
  throw Stop{Refusal::shapes_differ};
}

Coordinates Walker::row_coordinates(const Shape& shape) const {
  const Shape rows(std::vector<Index>(parallel_extents_.begin(), parallel_extents_.end() - 1));
  if (shape.size() != rows.size()) throw Stop{Refusal::shapes_differ};
  const Coordinates at(parallel_.begin(), parallel_.end() - 1);
  return delinearize(linearize(at, rows), shape, nest_.extents);
}

void Walker::add_output(NodeId id) {
  const Node& n = graph_.node(id);
  if (n.op->kind == OpClass::scatter_add || n.op->kind == OpClass::scatter_add_along)
    return add_scatter(id, n);
  if (n.op->kind == OpClass::update_slice) return add_update(id, n);
  Coordinates at;
  const NodeId epilogue_reduction = epilogue_reduction_of(id);
  if (epilogue_reduction >= 0 && graph_.type(epilogue_reduction).shape.size() == n.type.shape.size())
    at = delinearize(linearize(epilogue_coordinates(graph_.node(epilogue_reduction)).kept,
                               graph_.type(epilogue_reduction).shape),
                     n.type.shape, nest_.extents);
  else
    at = output_coordinates(id);
  const int expr = walk(id, at, -1);
  // What the loop of a dot has no part in gains nothing from standing in its kernel.
  const Expr& stored = nest_.exprs[static_cast<std::size_t>(expr)];
  if (has_dot_ && stored.level == 0 && !stored.reduced) throw Stop{Refusal::shapes_differ};
  nest_.outputs.push_back({id, expr, linearize(at, ops::stored_shape(n)), {}, -1, false});
}

void Walker::add_scatter(NodeId id, const Node& n) {
  const Coordinates at = output_coordinates(n.operands[1]);
  const int value = walk(n.operands[1], at, -1);
  const auto axis = static_cast<std::size_t>(n.attrs.integer("axis"));
  const Strides strides = row_major_strides(n.type.shape);
  const std::size_t index_rank = n.op->kind == OpClass::scatter_add
                                     ? static_cast<std::size_t>(graph_.type(n.operands[0]).shape.rank())
                                     : 1;
  Coordinates index_at = n.op->kind == OpClass::scatter_add
                             ? Coordinates(at.begin() + static_cast<std::ptrdiff_t>(axis),
                                           at.begin() + static_cast<std::ptrdiff_t>(axis + index_rank))
                             : at;
  IndexExpr offset = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (i >= axis && i < axis + index_rank) continue;
    const std::size_t target = i < axis ? i : i + 1 - index_rank;
    offset = offset + at[i] * strides[target];
  }
  const int index = walk(n.operands[0], index_at, -1);
  const int valid = valid_index(index, n.type.shape[static_cast<int>(axis)]);
  nest_.outputs.push_back({id, value, offset, {{index, strides[axis]}}, valid, true});
}

// Adds an update, which writes its block alone: what lies around it is copied there before, or is there
// already.
void Walker::add_update(NodeId id, const Node& n) {
  const NodeId stored = storage_node(graph_, n.operands[0]);
  if (is_member(stored) || is_inlined(graph_.node(stored)) || ops::has_pitch(graph_.node(stored)))
    throw Stop{Refusal::indirect_through_fused};
  const Coordinates at = output_coordinates(n.operands[1]);
  const int value = walk(n.operands[1], at, -1);
  const Shape& block = graph_.type(n.operands[1]).shape;
  Shape room = n.type.shape;
  for (int i = 0; i < room.rank(); ++i) room[i] -= block[i];
  Placed place = placed(at, n.operands[2], n.type.shape, room);
  nest_.outputs.push_back(
      {id, value, std::move(place.offset), std::move(place.dynamic), -1, false, n.operands[0]});
}

Walker::Placed Walker::placed(const Coordinates& at, NodeId start, const Shape& whole, const Shape& room) {
  const Strides strides = row_major_strides(whole);
  Placed out;
  for (int axis = 0; axis < room.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    out.offset = out.offset + at[i] * strides[i];
    if (room[axis] == 0) continue;
    const int s = walk(start, {IndexExpr(axis)}, -1);
    const Expr& begin = nest_.exprs[static_cast<std::size_t>(s)];
    if (begin.kind == Expr::Kind::constant) {
      out.offset = out.offset + std::clamp<Index>(begin.number.i, 0, room[axis]) * strides[i];
      continue;
    }
    const int inside =
        push({.kind = Expr::Kind::clamp, .operands = {s}, .dtype = DType::i64, .low = 0, .high = room[axis]});
    out.dynamic.push_back({inside, strides[i]});
  }
  return out;
}

int Walker::push(Expr expr) {
  for (int o : expr.operands) inherit(expr, o);
  for (auto [o, stride] : expr.dynamic) inherit(expr, o);
  if (expr.mask >= 0) inherit(expr, expr.mask);
  for (std::size_t v = 0; v < nest_.extents.size(); ++v)
    if (nest_.reduced[v] && expr.offset.depends_on(static_cast<int>(v))) expr.reduced = true;
  const bool reduces = expr.kind == Expr::Kind::reduce || (expr.kind == Expr::Kind::dot && !expr.inner);
  if (reduces || takes_whole_row(expr)) ++expr.level;
  if (reduces) expr.reduced = false;
  code_ += expr.offset.divisions();
  nest_.exprs.push_back(std::move(expr));
  if (nest_.exprs.size() + code_ > kMostExprs && group_.nodes.size() > 1) throw Stop{Refusal::too_long};
  return static_cast<int>(nest_.exprs.size()) - 1;
}

void Walker::inherit(Expr& expr, int operand) const {
  const Expr& o = nest_.exprs[static_cast<std::size_t>(operand)];
  expr.reduced = expr.reduced || o.reduced;
  expr.level = std::max(expr.level, o.level);
}

int Walker::walk(NodeId id, const Coordinates& at, int mask) {
  const auto last = last_done_.find(id);
  for (int d = last == last_done_.end() ? -1 : last->second; d >= 0;) {
    const Done& done = done_[static_cast<std::size_t>(d)];
    if (done.mask == mask && done.at == at) return done.expr;
    d = done.before;
  }
  const int expr = compute(id, at, mask);
  const auto [place, is_first] = last_done_.try_emplace(id, -1);
  done_.push_back({at, mask, expr, place->second});
  place->second = static_cast<int>(done_.size()) - 1;
  return expr;
}

int Walker::compute(NodeId id, const Coordinates& at, int mask) {
  const Node& n = graph_.node(id);
  if (is_inlined(n)) return inlined(n, id, at, mask);
  if (!is_member(id)) return load(id, linearize(at, ops::stored_shape(n)), mask);
  if (takes_whole_row(n) && has_matmul_) throw Stop{Refusal::dots_are_not_b2b};
  switch (n.op->kind) {
    case OpClass::pointwise: {
      Expr s{.kind = Expr::Kind::op, .node = id, .dtype = compute_dtype(n.type.dtype)};
      for (NodeId o : n.operands) s.operands.push_back(walk(o, at, mask));
      if (auto folded = fold_index(graph_, nest_, *n.op, s.operands)) {
        if (const int* known = std::get_if<int>(&*folded)) return *known;
        return push(std::get<Expr>(std::move(*folded)));
      }
      return push(std::move(s));
    }
    case OpClass::cast:
      if (n.attrs.has(ops::kPlaced) && group_.nodes.size() > 1) throw Stop{Refusal::opaque};
      return push({.kind = Expr::Kind::cast,
                   .node = id,
                   .operands = {walk(n.operands[0], at, mask)},
                   .dtype = n.type.dtype});
    case OpClass::random:
      return push({.kind = Expr::Kind::random,
                   .node = id,
                   .operands = {walk(n.operands[0], {}, -1)},
                   .offset = linearize(at, n.type.shape) + n.attrs.integer("offset"),
                   .dtype = DType::i64});
    case OpClass::reduce:
      return reduce(n, id, at, mask);
    case OpClass::scan:
    case OpClass::argsort:
      return whole_row(n, id, at, mask);
    case OpClass::matmul:
      return dot(n, id, at, mask);
    case OpClass::take:
      return take(n, at, mask);
    case OpClass::take_along:
      return take_along(n, at, mask);
    case OpClass::dynamic_slice:
      return dynamic_slice(n, at, mask);
    default:
      throw Stop{Refusal::opaque};
  }
}

LoopNest walk_group(const ir::Graph& graph, const Group& group, Reductions reductions) {
  return Walker(graph, group, reductions).run();
}

}  // namespace tilewright::passes
