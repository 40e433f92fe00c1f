// Exprs to tile ops, each once a frame (once a loop body where it depends on what the loop walks).
#include "passes/emit/frame_values.h"

#include "ops/rows.h"
#include "passes/emit/tile_emitter.h"
#include "passes/nest/dot_axes.h"
#include "passes/tiling/kept_block.h"

#include <tilewright/base/error.h>

#include <algorithm>

namespace tilewright::passes {

using tile::Value;

Value FrameValues::variable(int v) {
  if (!is_tile(v) || block(v) == 1) return s_.start(v);
  if (auto it = index_.find(v); it != index_.end() && is_there(it->second.body)) return it->second.value;
  Value i = s_.start(v) + k_.arange(block(v));
  k_.name_value(i, v == frame_.row ? "row_index" : "column_index");
  if (frame_.has_rows) i = k_.expand(i, v == frame_.row ? 1 : 0);
  // Only the reduced variable's start changes from one loop body to the next.
  index_[v] = {i, lifetime(v == loops_.reduced && loops_.looped)};
  return i;
}

Value FrameValues::index_value(const IndexExpr& e) {
  Value sum;
  bool any = false;
  auto plus = [&](Value v) {
    sum = any ? sum + v : v;
    any = true;
  };
  for (const IndexExpr::Term& t : e.terms()) {
    Value atom = t.div_mod ? div_mod(*t.div_mod) : variable(t.variable);
    plus(t.factor == 1 ? atom : atom * t.factor);
  }
  if (!any) return k_.literal_int(DType::i64, e.constant());
  return e.constant() == 0 ? sum : sum + e.constant();
}

// Floor semantics: the emitted indices are never negative inside the space; under a mask a wrong value is not
// read.
Value FrameValues::div_mod(const IndexExpr::DivMod& d) {
  Value inner = index_value(d.inner);
  return d.is_division ? inner / d.divisor : inner % d.divisor;
}

std::optional<Value> FrameValues::written(int s) const {
  const auto i = static_cast<std::size_t>(s);
  return have_[i] != 0 && is_there(have_[i]) ? std::optional(values_[i]) : std::nullopt;
}

Value FrameValues::value(int s) {
  if (const std::optional<Value> known = written(s)) return *known;
  const auto i = static_cast<std::size_t>(s);
  values_[i] = compute(s);
  const bool changes = (expr(s).reduced && loops_.looped) || expr(s).level >= moving_level_;
  have_[i] = lifetime(changes);
  return values_[i];
}

void FrameValues::set_in_body(int s, Value v) {
  values_[static_cast<std::size_t>(s)] = v;
  have_[static_cast<std::size_t>(s)] = s_.body();
}

void FrameValues::set(int s, Value v) {
  values_[static_cast<std::size_t>(s)] = v;
  have_[static_cast<std::size_t>(s)] = kForever;
}

// A value from before a loop may be widened in it, and again behind it.
Value FrameValues::computed(int s) {
  Value v = value(s);
  if (compute_dtype(v.dtype()) == v.dtype()) return v;
  auto& [narrow, wide, body] = widened_[s];
  if (wide.id() < 0 || narrow != v.id() || !is_there(body)) {
    narrow = v.id();
    wide = k_.cast(v, compute_dtype(v.dtype()));
    body = lifetime(false);
  }
  return wide;
}

Value FrameValues::compute(int s) {
  const Expr& m = expr(s);
  switch (m.kind) {
    case Expr::Kind::load:
      return load(s);
    case Expr::Kind::index:
      return index_value(m.offset);
    case Expr::Kind::constant:
      return is_float(m.dtype) ? k_.literal(m.dtype, m.number.f) : k_.literal_int(m.dtype, m.number.i);
    case Expr::Kind::op: {
      std::vector<Value> operands;
      operands.reserve(m.operands.size());
      for (int o : m.operands) operands.push_back(computed(o));
      const ir::Node& node = s_.graph.node(m.node);
      const Value v = node.op->lower(k_, operands, node.attrs);
      // Its readers may stand in several loops, each with a copy.
      if (s_.is_shared_term(s)) k_.round(v);
      return v;
    }
    case Expr::Kind::cast:
      return k_.cast(value(m.operands[0]), m.dtype);
    case Expr::Kind::in_range: {
      Value i = m.operands.empty() ? index_value(m.offset) : k_.cast(value(m.operands[0]), DType::i64);
      if (!m.operands.empty() && !(m.offset == IndexExpr(0))) i = i + index_value(m.offset);
      return (i >= m.low) & (i < m.high);
    }
    case Expr::Kind::clamp:
      return tile::max(tile::min(k_.cast(value(m.operands[0]), DType::i64), m.high), m.low);
    case Expr::Kind::where:
      return tile::where(value(m.operands[0]), computed(m.operands[1]), computed(m.operands[2]));
    case Expr::Kind::random:
      return k_.random(value(m.operands[0]), index_value(m.offset));
    case Expr::Kind::reduce:
      return reduce(m);
    case Expr::Kind::scan:
      return k_.scan(m.monoid, full(computed(m.operands[0])), reduced_axis());
    case Expr::Kind::argsort:
      return k_.argsort(full(computed(m.operands[0])), reduced_axis(),
                        ops::order_attr(s_.graph.node(m.node).attrs));
    case Expr::Kind::dot:
      TW_CHECK(m.inner, "the loop of a dot sets it");
      return inner_dot(s);
    case Expr::Kind::epilogue_reduction:
      return epilogue_reduction(m);
    case Expr::Kind::product:
      return computed(m.operands[0]) * computed(m.operands[1]);
  }
  TW_CHECK(false, "a expr of no kind");
}

// Reduces both axes along the rows first: what each row is multiplied by, as a group by its scale, is then
// multiplied by its sum.
Value FrameValues::reduce(const Expr& m) {
  if (!reduces_rows()) return keep_rank(k_.reduce(m.monoid, full(computed(m.operands[0])), reduced_axis()));
  const Expr& of = expr(m.operands[0]);
  Value by;
  int rows = m.operands[0];
  if (m.monoid == tile::Monoid::sum && of.kind == Expr::Kind::product)
    for (std::size_t side : {0u, 1u}) {
      Value factor = computed(of.operands[side]);
      if (by.id() >= 0 || factor.rank() != 2 || factor.type().shape[1] != 1) continue;
      by = factor;
      rows = of.operands[1 - side];
    }
  Value each = k_.expand(k_.reduce(m.monoid, full(computed(rows)), 1), 1);
  if (by.id() >= 0) each = each * by;
  each = k_.broadcast(each, {frame_.rows, 1});
  return k_.expand(k_.reduce(m.monoid, each, 0), 0);
}

// The reduction of what the tile holds: elements that overhang the space change nothing.
Value FrameValues::epilogue_reduction(const Expr& m) {
  Value v = k_.broadcast(computed(m.operands[0]), {frame_.rows, frame_.columns});
  for (int reduced : {frame_.column, frame_.row}) {
    if (reduced < 0 || !m.offset.depends_on(reduced)) continue;
    if (ragged(reduced)) {
      const tile::Number nothing = identity(m.monoid, v.dtype());
      const std::vector<Index> shape = v.type().shape;
      Value inside = k_.broadcast(variable(reduced) < s_.extent(reduced), shape);
      v = tile::where(inside, v,
                      is_float(v.dtype()) ? k_.literal(v.dtype(), nothing.f, shape)
                                          : k_.literal_int(v.dtype(), nothing.i, shape));
    }
    const int axis = reduced == frame_.column ? 1 : 0;
    v = k_.expand(k_.reduce(m.monoid, v, axis), axis);
  }
  return v;
}

// A frame of rows and depth, or of depth and columns.
FrameValues& FrameValues::operand_frame(int dot, int side) {
  std::unique_ptr<FrameValues>& frame = operand_frames_[{dot, side}];
  if (frame) return *frame;
  const int depth = expr(dot).offset.single_variable();
  const Index extent = is_deep(dot) ? loops_.depth : round_up(s_.extent(depth), loops_.unit);
  const TileAxes f = side == 0 ? TileAxes{frame_.row, depth, frame_.rows, extent, true, true}
                               : TileAxes{depth, frame_.column, extent, frame_.columns, true, true};
  frame = std::make_unique<FrameValues>(
      s_, f, FrameLoops{true, side == 0 ? -1 : loops_.reduced, loops_.depth, loops_.unit});
  return *frame;
}

void FrameValues::hoist(int of, int level) {
  std::vector<bool> open(static_cast<std::size_t>(of) + 1);
  open.back() = true;
  std::vector<int> resting;
  for (int s = of; s >= 0; --s) {
    const Expr& m = expr(s);
    if (!open[static_cast<std::size_t>(s)] || m.kind == Expr::Kind::dot) continue;
    if (m.kind == Expr::Kind::reduce && m.level < level) continue;
    if (!m.reduced && m.level < level) {
      resting.push_back(s);
      continue;
    }
    for (int o : m.operands) open[static_cast<std::size_t>(o)] = true;
    for (auto [o, stride] : m.dynamic) open[static_cast<std::size_t>(o)] = true;
    if (m.mask >= 0) open[static_cast<std::size_t>(m.mask)] = true;
  }
  for (auto s = resting.rbegin(); s != resting.rend(); ++s) value(*s);
}

void FrameValues::hoist_dot_operands() {
  for (int s = 0; s < static_cast<int>(s_.nest.exprs.size()); ++s)
    if (expr(s).inner && !is_deep(s))
      for (int side : {0, 1})
        operand_frame(s, side).hoist(expr(s).operands[static_cast<std::size_t>(side)], 1);
}

bool FrameValues::is_deep(int dot) const {
  return s_.extent(expr(dot).offset.single_variable()) > loops_.depth;
}

void FrameValues::load_beside_dots(int of) {
  std::vector<bool> open(static_cast<std::size_t>(of) + 1);
  open.back() = true;
  std::vector<int> loads;
  for (int s = of; s >= 0; --s) {
    const Expr& m = expr(s);
    if (!open[static_cast<std::size_t>(s)] || m.kind == Expr::Kind::dot) continue;
    if (m.kind == Expr::Kind::load && m.dynamic.empty() && m.mask < 0) loads.push_back(s);
    for (int o : m.operands) open[static_cast<std::size_t>(o)] = true;
  }
  for (auto s = loads.rbegin(); s != loads.rend(); ++s) value(*s);
}

Value FrameValues::inner_dot(int s) {
  const Expr& m = expr(s);
  const auto plus = [&](Value sum) {
    Value a = operand_frame(s, 0).dot_operand(m.operands[0], m.operand_dtypes[0]);
    Value b = operand_frame(s, 1).dot_operand(m.operands[1], m.operand_dtypes[1]);
    return k_.dot(a, b, sum);
  };
  const DType acc = accumulator(m);
  Value sum = k_.literal(acc, 0.0, {frame_.rows, frame_.columns});
  if (is_deep(s)) {
    const int depth = m.offset.single_variable();
    sum = k_.loop(Index{0}, s_.extent(depth), loops_.depth, {sum}, [&](Value i, const auto& carried) {
      k_.name_value(i, "depth");
      s_.start(depth) = i;
      s_.enter_body();
      Value next = plus(carried[0]);
      s_.leave_body();
      return std::vector<Value>{next};
    })[0];
  } else {
    sum = plus(sum);
  }
  if (feeds_exponential(s)) k_.name_value(sum, "scores");
  return acc == m.dtype ? sum : k_.cast(sum, m.dtype);
}

// Element by element: what attention calls scores.
bool FrameValues::feeds_exponential(int dot) const {
  const auto reaches = [&](int s, const auto& self) -> bool {
    const Expr& m = expr(s);
    if (s == dot) return true;
    const bool pointwise =
        m.kind == Expr::Kind::op || m.kind == Expr::Kind::cast || m.kind == Expr::Kind::where;
    return pointwise &&
           std::any_of(m.operands.begin(), m.operands.end(), [&](int o) { return self(o, self); });
  };
  for (std::size_t i = 0; i < s_.nest.exprs.size(); ++i) {
    const Expr& m = s_.nest.exprs[i];
    if (m.kind == Expr::Kind::op && s_.graph.node(m.node).op->name == "exp" &&
        reaches(m.operands[0], reaches))
      return true;
  }
  return false;
}

Value FrameValues::dot_operand(int s, DType operand_dtype) {
  const std::vector<Index> shape = {frame_.rows, frame_.columns};
  if (const KeptBlock kept = kept_block(s_.nest, dot_axes(s_.nest), s); !kept.used.empty()) {
    Value used = value(kept.used[0]);
    for (std::size_t i = 1; i < kept.used.size(); ++i) used = used & value(kept.used[i]);
    return tile::where(k_.broadcast(used, shape),
                       k_.broadcast(k_.cast(value(kept.load), operand_dtype), shape), 0.0);
  }
  Value v = k_.broadcast(k_.cast(value(s), operand_dtype), shape);
  // Outside the space a load gives 0, what is computed from it anything.
  if (expr(s).kind == Expr::Kind::load) return v;
  for (int walked : {frame_.row, frame_.column}) {
    const bool summed =
        walked >= 0 && (walked == loops_.reduced || s_.nest.inner[static_cast<std::size_t>(walked)]);
    if (summed && ragged(walked))
      v = tile::where(k_.broadcast(variable(walked) < s_.extent(walked), shape), v, 0.0);
  }
  return v;
}

}  // namespace tilewright::passes
