// Walks a program from its outputs, with the frame that each value is asked for in.
#include "passes/nest/dot_frames.h"

#include "passes/nest/dot_axes.h"

#include <set>
#include <tuple>
#include <utility>

namespace tilewright::passes {

namespace {

struct TileAxes {
  int row = -1, column = -1;
  friend bool operator==(const TileAxes&, const TileAxes&) = default;
  friend auto operator<=>(const TileAxes&, const TileAxes&) = default;
};

void exchange(Expr& dot) {
  std::swap(dot.operands[0], dot.operands[1]);
  std::swap(dot.operand_dtypes[0], dot.operand_dtypes[1]);
}

// The frames are the emitter's (emitter.h): operand a of the outer dots is rows × walked, b walked × columns,
// what they give rows × columns; without them the loop's frame is the result's, too.
class Frames {
 public:
  explicit Frames(LoopNest& nest)
      : nest_(nest), depends_(dependence(nest)), settled_(nest.exprs.size()), in_blocks_(nest.inner) {
    const DotAxes axes = dot_axes(nest);
    const bool outer = nest.dot() >= 0, scaled_accumulation = nest.accumulates_scaled();
    loop_ = {axes.m, scaled_accumulation ? axes.n : axes.k};
    result_ = outer ? TileAxes{axes.m, axes.n} : loop_;
    columns_ = {axes.k, axes.n};
    for (const TileAxes& f : {loop_, result_})
      for (int v : {f.row, f.column})
        if (v >= 0) in_blocks_[at(v)] = true;
  }

  bool fit() {
    const std::vector<Spans> spans = spans_of_values();
    for (const ProgramOutput& o : nest_.outputs) {
      if (!is_inside(o.offset, result_) || !visit(o.expr, result_)) return false;
      // Elements that are all the same are no place's own.
      const auto repeats = [&](bool spans_axis, int v) {
        return spans_axis && v >= 0 && !o.offset.depends_on(v);
      };
      if (repeats(spans[at(o.expr)].rows, result_.row) || repeats(spans[at(o.expr)].columns, result_.column))
        return false;
      if (o.mask >= 0 && !visit(o.mask, result_)) return false;
      for (auto [s, stride] : o.dynamic)
        if (!visit(s, result_)) return false;
    }
    return true;
  }

 private:
  // Axes of the result's frame that a value fills, whether it varies along them or not: what dots give does,
  // what a loop reduces beside them fills its rows.
  struct Spans {
    bool rows = false, columns = false;
  };
  std::vector<Spans> spans_of_values() const {
    std::vector<Spans> all;
    for (const Expr& m : nest_.exprs) {
      Spans spans;
      if (m.kind == Expr::Kind::dot)
        spans = {true, true};
      else if (m.kind == Expr::Kind::reduce)
        spans = {true, nest_.accumulates_scaled()};
      else if (m.kind == Expr::Kind::epilogue_reduction)
        spans = {!reduces_along(m, result_.row), !reduces_along(m, result_.column)};
      else
        for (int o : m.operands) spans.rows |= all[at(o)].rows, spans.columns |= all[at(o)].columns;
      all.push_back(spans);
    }
    return all;
  }
  static bool reduces_along(const Expr& epilogue_reduction, int v) {
    return v >= 0 && epilogue_reduction.offset.depends_on(v);
  }

  bool walks(int expr, int v) const { return v >= 0 && depends_[at(expr)][at(v)]; }

  bool is_inside(const IndexExpr& e, const TileAxes& frame) const {
    for (int v = 0; v < static_cast<int>(in_blocks_.size()); ++v)
      if (in_blocks_[at(v)] && v != frame.row && v != frame.column && e.depends_on(v)) return false;
    return true;
  }

  bool visit(int s, const TileAxes& frame) {
    if (!seen_.insert({s, frame}).second) return true;
    const Expr& m = nest_.exprs[at(s)];
    if (m.kind == Expr::Kind::dot && m.inner) return visit_inner(s, frame);
    if (m.kind == Expr::Kind::dot)
      return is_reduced_frame(frame) && visit(m.operands[0], loop_) && visit(m.operands[1], columns_);
    if (m.kind == Expr::Kind::reduce) return is_reduced_frame(frame) && visit(m.operands[0], loop_);
    const bool epilogue_reduction = m.kind == Expr::Kind::epilogue_reduction;
    if (epilogue_reduction ? frame != result_ : !is_inside(m.offset, frame)) return false;
    for (int o : m.operands)
      if (!visit(o, frame)) return false;
    for (auto [o, stride] : m.dynamic)
      if (!visit(o, frame)) return false;
    return m.mask < 0 || visit(m.mask, frame);
  }

  // What a loop leaves is there in its own frame and in the result's alone.
  bool is_reduced_frame(const TileAxes& frame) const { return frame == loop_ || frame == result_; }

  bool visit_inner(int s, const TileAxes& frame) {
    Expr& m = nest_.exprs[at(s)];
    const auto crosses = [&](int a, int b) { return walks(a, frame.column) || walks(b, frame.row); };
    if (crosses(m.operands[0], m.operands[1])) {
      // Once it was asked for as it stands, or exchanged, it stays so.
      if (crosses(m.operands[1], m.operands[0]) || settled_[at(s)]) return false;
      exchange(m);
    }
    settled_[at(s)] = true;
    const int depth = m.offset.single_variable();
    return visit(m.operands[0], {frame.row, depth}) && visit(m.operands[1], {depth, frame.column});
  }

  LoopNest& nest_;
  std::vector<std::vector<bool>> depends_;
  std::vector<bool> settled_;    // inner dots: which way round
  std::vector<bool> in_blocks_;  // variables of which tiles walk more than one value
  TileAxes loop_, result_, columns_;
  std::set<std::tuple<int, TileAxes>> seen_;
};

}  // namespace

bool fits_frames(LoopNest& nest) {
  if (!nest.has_dots()) return true;
  return !nest.reduced_variables().empty() && Frames(nest).fit();
}

void exchange_added_dots(LoopNest& nest) {
  for (Expr& s : nest.exprs)
    if (s.inner) exchange(s);
}

}  // namespace tilewright::passes
