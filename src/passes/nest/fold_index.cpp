// Folds an index by its ops: arithmetic, comparisons, and what bools make of them.
#include "passes/nest/fold_index.h"

#include "ops/rows.h"
#include "passes/nest/condition.h"

namespace tilewright::passes {

namespace {

using Folded = std::optional<std::variant<int, Expr>>;

class Folder {
 public:
  Folder(const ir::Graph& graph, const LoopNest& nest, const ir::Op& op, const std::vector<int>& operands)
      : graph_(graph), nest_(nest), op_(op), operands_(operands) {}

  Folded run() const {
    if (&op_ == &ops::kWhere) return where();
    if (&op_ == &ops::kBitAnd || &op_ == &ops::kBitOr) return both_bools();
    if (&op_ == &ops::kBitNot && is_bool(expr(0).dtype) && truth(0)) return boolean(!*truth(0));
    if (operands_.size() != 2) return {};
    const std::optional<IndexExpr> a = index(operands_[0]), b = index(operands_[1]);
    if (!a || !b) return {};
    if (Folded compared = comparison(range(*a - *b, nest_.extents))) return compared;
    if (&op_ == &ops::kAdd) return of(*a + *b);
    if (&op_ == &ops::kSub) return of(*a - *b);
    if (&op_ == &ops::kMul && b->is_constant()) return of(*a * b->constant());
    if (&op_ == &ops::kMul && a->is_constant()) return of(*b * a->constant());
    // Division truncates, which is the floor only where the dividend is never negative.
    if (!b->is_constant() || b->constant() <= 0 || range(*a, nest_.extents).low < 0) return {};
    if (&op_ == &ops::kDiv) return of(floor_div(*a, b->constant(), nest_.extents));
    if (&op_ == &ops::kRem) return of(remainder(*a, b->constant(), nest_.extents));
    return {};
  }

 private:
  // Largest constant that is folded: far from where 64-bit arithmetic wraps around.
  static constexpr Index kMost = Index{1} << 40;

  const Expr& at(int expr) const { return nest_.exprs[static_cast<std::size_t>(expr)]; }
  const Expr& expr(std::size_t operand) const { return at(operands_[operand]); }
  std::optional<IndexExpr> index(int expr) const {
    const Expr& s = at(expr);
    if (s.dtype != DType::i64) return {};
    if (s.kind == Expr::Kind::index) return s.offset;
    if (s.kind == Expr::Kind::constant && std::abs(s.number.i) < kMost) return IndexExpr(s.number.i);
    return {};
  }
  std::optional<bool> truth(std::size_t operand) const {
    if (expr(operand).kind != Expr::Kind::constant) return {};
    return expr(operand).number.i != 0;
  }

  static Expr boolean(bool value) {
    return {.kind = Expr::Kind::constant, .dtype = DType::boolean, .number = {0, value ? 1 : 0}};
  }
  Folded of(const IndexExpr& e) const {
    const IndexRange r = range(e, nest_.extents);
    if (r.low < -kMost || r.high > kMost) return {};
    return Expr{.kind = Expr::Kind::index, .offset = e, .dtype = DType::i64};
  }

  // Folds the comparison of a and b, whose difference lies in `d`.
  Folded comparison(const IndexRange& d) const {
    const auto decide = [](bool always, bool never) -> Folded {
      if (always) return boolean(true);
      return never ? Folded(boolean(false)) : std::nullopt;
    };
    const bool zero = d.low == 0 && d.high == 0, apart = d.low > 0 || d.high < 0;
    if (&op_ == &ops::kLt) return decide(d.high < 0, d.low >= 0);
    if (&op_ == &ops::kLe) return decide(d.high <= 0, d.low > 0);
    if (&op_ == &ops::kGt) return decide(d.low > 0, d.high <= 0);
    if (&op_ == &ops::kGe) return decide(d.low >= 0, d.high < 0);
    if (&op_ == &ops::kEq) return decide(zero, apart);
    if (&op_ == &ops::kNe) return decide(apart, zero);
    if (&op_ == &ops::kMaximum && d.low >= 0) return operands_[0];
    if (&op_ == &ops::kMaximum && d.high <= 0) return operands_[1];
    if (&op_ == &ops::kMinimum && d.high <= 0) return operands_[0];
    if (&op_ == &ops::kMinimum && d.low >= 0) return operands_[1];
    return {};
  }

  Folded where() const {
    const std::optional<bool> condition = truth(0);
    if (!condition) return {};
    return operands_[*condition ? 1 : 2];
  }

  Folded both_bools() const {
    if (!is_bool(expr(0).dtype)) return {};
    const bool neutral = &op_ == &ops::kBitAnd;
    for (std::size_t i : {0, 1})
      if (const std::optional<bool> t = truth(i)) return operands_[*t == neutral ? 1 - i : i];
    return without_implied();
  }

  // Keeps, of two bools under "and", the one that implies the other, under "or" the implied one; also where
  // the other is a part of an operand of the same op.
  Folded without_implied() const {
    const auto covers = [&](int a, int b) {
      return &op_ == &ops::kBitAnd ? implies(condition(a), condition(b))
                                   : implies(condition(b), condition(a));
    };
    for (std::size_t i : {0, 1})
      if (covers(operands_[i], operands_[1 - i])) return operands_[i];
    for (std::size_t i : {0, 1}) {
      const Expr& other = expr(1 - i);
      if (other.kind != Expr::Kind::op || graph_.node(other.node).op != &op_) continue;
      for (std::size_t part : {0, 1}) {
        if (!covers(operands_[i], other.operands[part])) continue;
        Expr rest = other;
        rest.operands = {operands_[i], other.operands[1 - part]};
        return rest;
      }
    }
    return {};
  }

  // What a bool says of positions.
  Condition condition(int expr) const {
    const Expr& s = at(expr);
    if (s.kind != Expr::Kind::op || !is_bool(s.dtype)) return {};
    const ir::Op* op = graph_.node(s.node).op;
    if (op == &ops::kBitAnd) return both(condition(s.operands[0]), condition(s.operands[1]));
    if (op == &ops::kBitOr) return either(condition(s.operands[0]), condition(s.operands[1]));
    if (op == &ops::kBitNot) return negated(condition(s.operands[0]));
    if (s.operands.size() != 2) return {};
    const std::optional<IndexExpr> a = index(s.operands[0]), b = index(s.operands[1]);
    return a && b ? compared(*op, {.expression = *a - *b}, nest_.extents) : Condition{};
  }

  const ir::Graph& graph_;
  const LoopNest& nest_;
  const ir::Op& op_;
  const std::vector<int>& operands_;
};

}  // namespace

Folded fold_index(const ir::Graph& graph, const LoopNest& nest, const ir::Op& op,
                  const std::vector<int>& operands) {
  return Folder(graph, nest, op, operands).run();
}

bool always_inside(const IndexExpr& index, Index extent, const Extents& extents) {
  const IndexRange r = range(index, extents);
  return r.low >= 0 && r.high < extent;
}

}  // namespace tilewright::passes
