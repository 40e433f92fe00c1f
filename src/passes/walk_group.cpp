// Walks a group from its outputs back to memory, composing index expressions.
#include "passes/walk_group.h"

#include "passes/fold_index.h"

#include <algorithm>
#include <map>

namespace tilewright::passes {

using ir::Node;
using ir::NodeId;
using ir::OpClass;

using Coordinates = std::vector<IndexExpr>;

namespace {

class Walker {
 public:
  Walker(const ir::Graph& graph, const Group& group)
      : graph_(graph),
        group_(group),
        members_(group.nodes.begin(), group.nodes.end()),
        has_matmul_(std::any_of(group.nodes.begin(), group.nodes.end(),
                                [&](NodeId id) { return graph.node(id).op->kind == OpClass::matmul; })) {}

  GroupProgram run() {
    choose_space();
    for (NodeId o : group_.outputs) add_output(o);
    const bool accumulates = std::any_of(program_.outputs.begin(), program_.outputs.end(),
                                         [](const ProgramOutput& o) { return o.accumulate; });
    // Each addition must happen once, which a space with reduced axes does not promise.
    if (accumulates && !program_.reduced_variables().empty()) throw Stop{Refusal::opaque};
    drop_unused();
    return std::move(program_);
  }

 private:
  // What was walked before it turned out that nothing needs it: a choice that positions decide, an index that
  // became a view's.
  void drop_unused() {
    std::vector<int> stored;
    for (const ProgramOutput& o : program_.outputs) {
      stored.push_back(o.sym);
      for (auto [s, stride] : o.dynamic) stored.push_back(s);
      if (o.mask >= 0) stored.push_back(o.mask);
    }
    const std::vector<bool> used = program_.made_of(stored);
    std::vector<int> place(used.size(), -1);
    std::vector<Sym> kept;
    const auto move = [&](int& s) {
      if (s >= 0) s = place[static_cast<std::size_t>(s)];
    };
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) continue;
      place[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(program_.syms[i]));
      for (int& o : kept.back().operands) move(o);
      for (auto& [o, stride] : kept.back().dynamic) move(o);
      move(kept.back().mask);
    }
    program_.syms = std::move(kept);
    for (ProgramOutput& o : program_.outputs) {
      move(o.sym);
      for (auto& [s, stride] : o.dynamic) move(s);
      move(o.mask);
    }
  }

  bool reduces(const Node& n) const { return n.op->kind == OpClass::reduce || n.op->kind == OpClass::scan; }

  // Elements behind one result; 1 means that the reduction or scan changes nothing.
  Index reduced_size(const Node& n) const {
    const Shape& from = graph_.type(n.operands[0]).shape;
    if (n.op->kind == OpClass::scan) return from[static_cast<int>(n.attrs.integer("axis"))];
    Index size = 1;
    for (Index a : n.attrs.integers("axes")) size *= from[static_cast<int>(a)];
    return size;
  }

  // The last matmul of the group, unless a reduction of the group reads what comes of it.
  const Node* outer_matmul() const {
    const Node* last = nullptr;
    std::set<NodeId> after;
    for (NodeId id : group_.nodes) {
      const Node& n = graph_.node(id);
      const bool reads = std::any_of(n.operands.begin(), n.operands.end(), [&](NodeId o) {
        while (is_inlined(graph_.node(o)) && !graph_.node(o).operands.empty()) o = graph_.node(o).operands[0];
        return after.count(o) != 0;
      });
      if (n.op->kind == OpClass::matmul) {
        last = &n;
        after = {id};
      } else if (reads) {
        if (reduces(n) && reduced_size(n) != 1) last = nullptr;
        after.insert(id);
      }
    }
    return last;
  }

  // The result of a matmul and its depth, which stays a variable even where it is 1.
  void choose_dot_space(const Node& matmul) {
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

  // The iteration space: a matmul's, that of the first reduction's operand, else the largest output's.
  void choose_space() {
    if (const Node* matmul = outer_matmul()) return choose_dot_space(*matmul);
    for (NodeId id : group_.nodes) {
      const Node& n = graph_.node(id);
      if (!reduces(n) || reduced_size(n) == 1) continue;
      space_ = graph_.type(n.operands[0]).shape;
      std::vector<Index> axes = n.op->kind == OpClass::reduce ? n.attrs.integers("axes")
                                                              : std::vector<Index>{n.attrs.integer("axis")};
      reduced_axis_.assign(static_cast<std::size_t>(space_.rank()), false);
      for (Index a : axes) reduced_axis_[static_cast<std::size_t>(a)] = true;
      return make_variables();
    }
    for (NodeId id : group_.outputs) {
      const Node& n = graph_.node(id);
      const bool scatters = n.op->kind == OpClass::scatter_add || n.op->kind == OpClass::scatter_add_along;
      const Shape& shape = scatters ? graph_.type(n.operands[1]).shape : n.type.shape;
      if (id == group_.outputs[0] || shape.size() > space_.size()) space_ = shape;
    }
    reduced_axis_.assign(static_cast<std::size_t>(space_.rank()), false);
    make_variables();
  }

  void make_variables() {
    for (int axis = 0; axis < space_.rank(); ++axis) {
      if (space_[axis] == 1 && !reduced_axis_[static_cast<std::size_t>(axis)]) {
        identity_.push_back(0);
      } else {
        identity_.push_back(IndexExpr::variable(static_cast<int>(program_.extents.size())));
        program_.extents.push_back(space_[axis]);
        program_.reduced.push_back(reduced_axis_[static_cast<std::size_t>(axis)]);
        program_.inner.push_back(false);
      }
      (reduced_axis_[static_cast<std::size_t>(axis)] ? reduced_ : parallel_).push_back(identity_.back());
      (reduced_axis_[static_cast<std::size_t>(axis)] ? reduced_extents_ : parallel_extents_)
          .push_back(space_[axis]);
    }
  }

  // The part of the space an output walks: all of it, its parallel axes, or of a dot's the rows: what was
  // reduced along them stands beside the result.
  Coordinates output_coordinates(const Shape& shape) {
    const Shape parallel(parallel_extents_);
    if (shape.size() == parallel.size())
      return delinearize(linearize(parallel_, parallel), shape, program_.extents);
    if (has_dot_) return row_coordinates(shape);
    if (shape == space_) return identity_;
    if (shape.size() == space_.size())
      return delinearize(linearize(identity_, space_), shape, program_.extents);
    throw Stop{Refusal::shapes_differ};
  }

  Coordinates row_coordinates(const Shape& shape) const {
    const Shape rows(std::vector<Index>(parallel_extents_.begin(), parallel_extents_.end() - 1));
    if (shape.size() != rows.size()) throw Stop{Refusal::shapes_differ};
    const Coordinates at(parallel_.begin(), parallel_.end() - 1);
    return delinearize(linearize(at, rows), shape, program_.extents);
  }

  void add_output(NodeId id) {
    const Node& n = graph_.node(id);
    if (n.op->kind == OpClass::scatter_add || n.op->kind == OpClass::scatter_add_along)
      return add_scatter(id, n);
    const Coordinates at = output_coordinates(n.type.shape);
    const int sym = walk(id, at, -1);
    // Arithmetic on rows that the loop has no part in gains nothing from standing in its kernel.
    const bool rows_alone = has_dot_ && n.type.shape.size() != Shape(parallel_extents_).size();
    if (rows_alone && program_.syms[static_cast<std::size_t>(sym)].level == 0)
      throw Stop{Refusal::shapes_differ};
    program_.outputs.push_back({id, sym, linearize(at, n.type.shape), {}, -1, false});
  }

  void add_scatter(NodeId id, const Node& n) {
    const Shape& update = graph_.type(n.operands[1]).shape;
    const Coordinates at = output_coordinates(update);
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
    program_.outputs.push_back({id, value, offset, {{index, strides[axis]}}, valid, true});
  }

  int push(Sym sym) {
    for (int o : sym.operands) inherit(sym, o);
    for (auto [o, stride] : sym.dynamic) inherit(sym, o);
    if (sym.mask >= 0) inherit(sym, sym.mask);
    for (std::size_t v = 0; v < program_.extents.size(); ++v)
      if (program_.reduced[v] && sym.offset.depends_on(static_cast<int>(v))) sym.reduced = true;
    const bool reduces = sym.kind == Sym::Kind::reduce || (sym.kind == Sym::Kind::dot && !sym.inner);
    if (reduces || sym.kind == Sym::Kind::scan) ++sym.level;
    if (reduces) sym.reduced = false;
    program_.syms.push_back(std::move(sym));
    return static_cast<int>(program_.syms.size()) - 1;
  }
  void inherit(Sym& sym, int operand) const {
    const Sym& o = program_.syms[static_cast<std::size_t>(operand)];
    sym.reduced = sym.reduced || o.reduced;
    sym.level = std::max(sym.level, o.level);
  }

  int walk(NodeId id, const Coordinates& at, int mask) {
    for (const auto& [where, under, sym] : done_[id])
      if (under == mask && where == at) return sym;
    const int sym = compute(id, at, mask);
    done_[id].push_back({at, mask, sym});
    return sym;
  }

  int compute(NodeId id, const Coordinates& at, int mask) {
    const Node& n = graph_.node(id);
    if (is_inlined(n)) return inlined(n, id, at, mask);
    if (!members_.count(id)) return load(id, at, mask);
    if (n.op->kind == OpClass::scan && has_matmul_) throw Stop{Refusal::dots_do_not_chain};
    switch (n.op->kind) {
      case OpClass::pointwise: {
        Sym s{.kind = Sym::Kind::op, .node = id, .dtype = compute_dtype(n.type.dtype)};
        for (NodeId o : n.operands) s.operands.push_back(walk(o, at, mask));
        if (auto folded = fold_index(program_, *n.op, s.operands)) {
          if (const int* known = std::get_if<int>(&*folded)) return *known;
          return push(std::get<Sym>(std::move(*folded)));
        }
        return push(std::move(s));
      }
      case OpClass::cast:
        return push({.kind = Sym::Kind::cast,
                     .node = id,
                     .operands = {walk(n.operands[0], at, mask)},
                     .dtype = n.type.dtype});
      case OpClass::random:
        return push({.kind = Sym::Kind::random,
                     .node = id,
                     .operands = {walk(n.operands[0], {}, -1)},
                     .offset = linearize(at, n.type.shape) + n.attrs.integer("offset"),
                     .dtype = DType::i64});
      case OpClass::reduce:
        return reduce(n, id, at);
      case OpClass::scan:
        return scan(n, id, at);
      case OpClass::matmul:
        return dot(n, id, at);
      case OpClass::take:
        return take(n, at, mask);
      case OpClass::take_along:
        return take_along(n, at, mask);
      default:
        throw Stop{Refusal::opaque};
    }
  }

  int inlined(const Node& n, NodeId id, const Coordinates& at, int mask) {
    const auto at_axis = [&](Index axis) { return at[static_cast<std::size_t>(axis)]; };
    switch (n.op->kind) {
      case OpClass::constant:
        return constant(n.type.dtype, n.attrs.items().at("value"), id);
      case OpClass::iota:
        return push({.kind = Sym::Kind::index,
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

  // Unit axes are dropped and added without arithmetic, the rest goes through the row-major position.
  Coordinates reshape(const Coordinates& at, const Shape& to, const Shape& from) const {
    return delinearize(linearize(at, to), from, program_.extents);
  }

  // Integer constants keep all 64 bits, so they come as Index.
  int constant(DType dtype, const ir::Attr& value, NodeId id) {
    const DType d = compute_dtype(dtype);
    tile::Number number;
    if (const Index* i = std::get_if<Index>(&value))
      number = is_float(d) ? tile::Number{static_cast<double>(*i), 0} : tile::Number{0, wrap_to(d, *i)};
    else
      number = is_float(d) ? tile::Number{std::get<double>(value), 0}
                           : tile::Number{0, float_to_int(d, std::get<double>(value))};
    return push({.kind = Sym::Kind::constant, .node = id, .dtype = d, .number = number});
  }

  int in_range(const IndexExpr& e, Index low, Index high) {
    return push(
        {.kind = Sym::Kind::in_range, .offset = e, .dtype = DType::boolean, .low = low, .high = high});
  }
  int both(int a, int b) {
    if (a < 0 || b < 0) return std::max(a, b);
    Sym zero{.kind = Sym::Kind::constant, .dtype = DType::boolean};
    const int no = push(zero);
    return push({.kind = Sym::Kind::where, .operands = {a, b, no}, .dtype = DType::boolean});
  }

  int pad(const Node& n, const Coordinates& at, int mask) {
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
    const DType dtype = program_.syms[static_cast<std::size_t>(value)].dtype;
    const int fill = constant(dtype, n.attrs.items().at("value"), -1);
    return push({.kind = Sym::Kind::where, .operands = {inside, value, fill}, .dtype = compute_dtype(dtype)});
  }

  int concat(const Node& n, const Coordinates& at, int mask) {
    const auto axis = static_cast<std::size_t>(n.attrs.integer("axis"));
    int result = -1;
    Index start = n.type.shape[static_cast<int>(axis)];
    for (std::size_t i = n.operands.size(); i-- > 0;) {
      const Index extent = graph_.type(n.operands[i]).shape[static_cast<int>(axis)];
      start -= extent;
      if (extent == 0) continue;
      Coordinates inner = at;
      inner[axis] = at[axis] - start;
      const int inside = in_range(inner[axis], 0, extent);
      const int value = walk(n.operands[i], inner, both(mask, inside));
      const DType dtype = compute_dtype(n.type.dtype);
      result = result < 0
                   ? value
                   : push({.kind = Sym::Kind::where, .operands = {inside, value, result}, .dtype = dtype});
    }
    // Of nothing but empty pieces no element exists; a reduction over it still asks for one.
    return result < 0 ? push({.kind = Sym::Kind::constant, .dtype = compute_dtype(n.type.dtype)}) : result;
  }

  int load(NodeId id, const Coordinates& at, int mask) {
    const ir::Type& type = graph_.type(id);
    return push({.kind = Sym::Kind::load,
                 .node = id,
                 .offset = linearize(at, type.shape),
                 .mask = mask,
                 .dtype = type.dtype});
  }

  int take(const Node& n, const Coordinates& at, int mask) {
    const auto axis = static_cast<std::ptrdiff_t>(n.attrs.integer("axis"));
    const auto rank = static_cast<std::ptrdiff_t>(graph_.type(n.operands[1]).shape.rank());
    const int index = walk(n.operands[1], Coordinates(at.begin() + axis, at.begin() + axis + rank), mask);
    Coordinates inner(at.begin(), at.begin() + axis);
    inner.push_back(0);
    inner.insert(inner.end(), at.begin() + axis + rank, at.end());
    if (is_position_inside(index, n.operands[0], axis)) {
      inner[static_cast<std::size_t>(axis)] = program_.syms[static_cast<std::size_t>(index)].offset;
      return walk(n.operands[0], inner, mask);
    }
    return indirect(n.operands[0], inner, static_cast<int>(axis), index, mask);
  }

  int take_along(const Node& n, Coordinates at, int mask) {
    const int index = walk(n.operands[1], at, mask);
    const Index axis = n.attrs.integer("axis");
    if (is_position_inside(index, n.operands[0], axis)) {
      at[static_cast<std::size_t>(axis)] = program_.syms[static_cast<std::size_t>(index)].offset;
      return walk(n.operands[0], at, mask);
    }
    at[static_cast<std::size_t>(axis)] = 0;
    return indirect(n.operands[0], at, static_cast<int>(axis), index, mask);
  }

  // An index made of loop variables alone, which always lies inside: the element is a view's.
  bool is_position_inside(int index, NodeId source, Index axis) const {
    const Sym& s = program_.syms[static_cast<std::size_t>(index)];
    return s.kind == Sym::Kind::index &&
           always_inside(s.offset, graph_.type(source).shape[static_cast<int>(axis)], program_.extents);
  }

  // An index outside [0, extent) reads zero.
  int indirect(NodeId source, const Coordinates& at, int axis, int index, int mask) {
    const Shape& shape = graph_.type(source).shape;
    const NodeId stored = storage_node(graph_, source);
    if (members_.count(stored) || is_inlined(graph_.node(stored)))
      throw Stop{Refusal::indirect_through_fused};
    return push({.kind = Sym::Kind::load,
                 .node = stored,
                 .offset = linearize(at, shape),
                 .dynamic = {{index, row_major_strides(shape)[static_cast<std::size_t>(axis)]}},
                 .mask = both(mask, valid_index(index, shape[axis])),
                 .dtype = graph_.type(source).dtype});
  }

  int valid_index(int index, Index extent) {
    return push({.kind = Sym::Kind::in_range,
                 .operands = {index},
                 .dtype = DType::boolean,
                 .low = 0,
                 .high = extent});
  }

  bool depends_on_reduced(const IndexExpr& e) const {
    for (std::size_t v = 0; v < program_.extents.size(); ++v)
      if (program_.reduced[v] && e.depends_on(static_cast<int>(v))) return true;
    return false;
  }

  // A reduction over unit axes is its operand, or the index 0.
  int reduce_nothing(const Node& n, const Coordinates& at) {
    if (*n.op->monoid == tile::Monoid::argmax || *n.op->monoid == tile::Monoid::argmin)
      return constant(DType::i64, Index{0}, -1);
    const std::vector<Index>& axes = n.attrs.integers("axes");
    Coordinates inner = at;
    for (Index a : axes) inner.insert(inner.begin() + static_cast<std::ptrdiff_t>(a), IndexExpr(0));
    return walk(n.operands[0], inner, -1);
  }

  int reduce(const Node& n, NodeId id, const Coordinates& at) {
    if (reduced_size(n) == 1) return reduce_nothing(n, at);
    for (const IndexExpr& e : at)
      if (depends_on_reduced(e)) throw Stop{Refusal::reduction_feeds_reduced_axis};
    const Shape& from = graph_.type(n.operands[0]).shape;
    std::vector<Index> extents;
    for (Index a : n.attrs.integers("axes")) extents.push_back(from[static_cast<int>(a)]);
    const Shape mine(extents), ours(reduced_extents_);
    if (mine.size() != ours.size()) throw Stop{Refusal::reduction_shapes_differ};
    const Coordinates along =
        mine == ours ? reduced_ : delinearize(linearize(reduced_, ours), mine, program_.extents);
    Coordinates inner;
    std::size_t next_reduced = 0, next_kept = 0;
    const std::vector<Index>& axes = n.attrs.integers("axes");
    for (int axis = 0; axis < from.rank(); ++axis) {
      const bool is_reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
      inner.push_back(is_reduced ? along[next_reduced++] : at[next_kept++]);
    }
    const int operand = walk(n.operands[0], inner, -1);
    return push({.kind = Sym::Kind::reduce,
                 .node = id,
                 .operands = {operand},
                 .dtype = compute_dtype(n.type.dtype),
                 .monoid = *n.op->monoid});
  }

  // Leading axes of the operands are broadcast to the result's. A result that is needed along the reduced
  // axes is computed block by block inside their loop, over a variable of its own; the operand that walks
  // them comes second, whichever it is in the graph.
  int dot(const Node& n, NodeId id, const Coordinates& at) {
    const auto rank = at.size();
    const bool inner =
        std::any_of(at.begin(), at.end(), [&](const IndexExpr& e) { return depends_on_reduced(e); });
    const Shape& a_shape = graph_.type(n.operands[0]).shape;
    const Index depth_extent = a_shape[a_shape.rank() - 1];
    IndexExpr depth;
    bool turned = false;
    if (inner) {
      turned = depends_on_reduced(at[rank - 2]);
      if (turned == depends_on_reduced(at[rank - 1]) || depth_extent > kMostInnerDepth || depth_extent == 0)
        throw Stop{Refusal::dots_do_not_chain};
      depth = IndexExpr::variable(static_cast<int>(program_.extents.size()));
      program_.extents.push_back(depth_extent);
      program_.reduced.push_back(false);
      program_.inner.push_back(true);
    } else {
      // One loop: that of the matmul the space was chosen for, and one result of it.
      if (!has_dot_ || Shape(reduced_extents_).size() != depth_extent || walked_outer_)
        throw Stop{Refusal::dots_do_not_chain};
      walked_outer_ = true;
      depth = reduced_[0];
    }
    // A variable that walks both a row and a column of the result walks a diagonal: no tile does.
    for (std::size_t v = 0; v < program_.extents.size(); ++v)
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
      return walk(o, inner_at, -1);
    };
    int a = operand(n.operands[0], rank - 2, true), b = operand(n.operands[1], rank - 1, false);
    // Blocks of rows stay while columns stream by: what dots inside the loop give are rows.
    if (!inner) turned = has_inner_dots(b);
    if (turned) std::swap(a, b);
    const DType da = graph_.type(n.operands[0]).dtype, db = graph_.type(n.operands[1]).dtype;
    return push({.kind = Sym::Kind::dot,
                 .node = id,
                 .operands = {a, b},
                 .offset = inner ? depth : IndexExpr(0),
                 .dtype = compute_dtype(n.type.dtype),
                 .meet = da == db ? da : DType::f32,  // 8-bit floats of two types
                 .inner = inner});
  }

  bool has_inner_dots(int sym) const {
    const std::vector<bool> parts = program_.made_of({sym});
    for (std::size_t s = 0; s < parts.size(); ++s)
      if (parts[s] && program_.syms[s].inner) return true;
    return false;
  }

  int scan(const Node& n, NodeId id, const Coordinates& at) {
    if (reduced_size(n) == 1) return walk(n.operands[0], at, -1);
    const auto axis = static_cast<std::size_t>(n.attrs.integer("axis"));
    const Shape& from = graph_.type(n.operands[0]).shape;
    const std::vector<int> reduced = program_.reduced_variables();
    const bool whole = reduced.size() == 1 && at[axis] == IndexExpr::variable(reduced[0]) &&
                       program_.extents[static_cast<std::size_t>(reduced[0])] == from[static_cast<int>(axis)];
    for (std::size_t i = 0; i < at.size(); ++i)
      if (i != axis && depends_on_reduced(at[i])) throw Stop{Refusal::scan_needs_whole_row};
    if (!whole) throw Stop{Refusal::scan_needs_whole_row};
    const int operand = walk(n.operands[0], at, -1);
    return push({.kind = Sym::Kind::scan,
                 .node = id,
                 .operands = {operand},
                 .dtype = compute_dtype(n.type.dtype),
                 .monoid = *n.op->monoid});
  }

  struct Done {
    Coordinates at;
    int mask;
    int sym;
  };
  const ir::Graph& graph_;
  const Group& group_;
  std::set<NodeId> members_;
  bool has_matmul_;
  Shape space_;
  bool has_dot_ = false;
  bool walked_outer_ = false;
  std::vector<bool> reduced_axis_;
  Coordinates identity_, parallel_, reduced_;
  std::vector<Index> parallel_extents_, reduced_extents_;
  std::map<NodeId, std::vector<Done>> done_;
  GroupProgram program_;
};

}  // namespace

GroupProgram walk_group(const ir::Graph& graph, const Group& group) { return Walker(graph, group).run(); }

}  // namespace tilewright::passes
