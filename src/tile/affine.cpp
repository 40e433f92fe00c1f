// Affine arithmetic; whatever overflows or is not affine becomes an opaque variable.
#include <tilewright/tile/affine.h>

#include <algorithm>

#include "tile/prim_eval.h"

namespace tilewright::tile {

namespace {

using Variable = Affine::Variable;

Affine single(Variable variable, int index) { return {0, {{variable, index, 1}}}; }

std::optional<Affine> combine(Prim prim, const std::vector<Affine>& v) {
  const bool constant = std::all_of(v.begin(), v.end(), [](const Affine& a) { return a.is_constant(); });
  if (constant && prim != Prim::select) {
    const auto number = [&](std::size_t i) { return i < v.size() ? v[i].constant : 0; };
    return Affine{eval_i64(prim, DType::i64, number(0), number(1)), {}};
  }
  if (prim == Prim::add) return add_scaled(v[0], v[1], 1);
  if (prim == Prim::sub) return add_scaled(v[0], v[1], -1);
  if (prim == Prim::neg) return add_scaled({}, v[0], -1);
  if (prim == Prim::mul && v[1].is_constant()) return add_scaled({}, v[0], v[1].constant);
  if (prim == Prim::mul && v[0].is_constant()) return add_scaled({}, v[1], v[0].constant);
  return std::nullopt;
}

std::optional<Index> known_value(const Known& known, const Dim& dim) {
  return dim.is_constant() ? std::optional(dim.value) : known.scalars[static_cast<std::size_t>(dim.scalar)];
}

Known with_grid(const Kernel& kernel, Known known) {
  for (const GridAxis& axis : kernel.grid) {
    std::optional<Index> count = 1;
    for (const GridFactor& f : axis) {
      const std::optional<Index> extent = known_value(known, f.extent);
      count = count && extent ? std::optional(*count * block_count(*extent, f.block)) : std::nullopt;
    }
    known.grid.push_back(count);
  }
  return known;
}

}  // namespace

std::optional<Affine> add_scaled(const Affine& a, const Affine& b, Index factor) {
  Affine sum = a;
  Index product = 0;
  if (__builtin_mul_overflow(b.constant, factor, &product) ||
      __builtin_add_overflow(sum.constant, product, &sum.constant))
    return std::nullopt;
  for (const Affine::Term& t : b.terms) {
    if (__builtin_mul_overflow(t.factor, factor, &product)) return std::nullopt;
    const auto before = [](const Affine::Term& x, const Affine::Term& y) {
      return std::pair(x.variable, x.index) < std::pair(y.variable, y.index);
    };
    auto at = std::lower_bound(sum.terms.begin(), sum.terms.end(), t, before);
    if (at == sum.terms.end() || before(t, *at)) at = sum.terms.insert(at, {t.variable, t.index, 0});
    if (__builtin_add_overflow(at->factor, product, &at->factor)) return std::nullopt;
    if (at->factor == 0) sum.terms.erase(at);
  }
  return sum;
}

Index Affine::factor_of(Variable variable, int index) const {
  for (const Term& t : terms)
    if (t.variable == variable && t.index == index) return t.factor;
  return 0;
}

bool Affine::depends_on(Variable variable) const {
  return std::any_of(terms.begin(), terms.end(), [&](const Term& t) { return t.variable == variable; });
}

Known known_statically(const Kernel& kernel) {
  return with_grid(kernel, {.scalars = std::vector<std::optional<Index>>(kernel.scalars.size())});
}

Known known_at_launch(const Kernel& kernel, const std::vector<std::int64_t>& scalars) {
  Known known = {.scalars = std::vector<std::optional<Index>>(kernel.scalars.size())};
  for (std::size_t i = 0; i < kernel.scalars.size(); ++i)
    if (kernel.scalars[i].dtype == DType::i64) known.scalars[i] = scalars.at(i);
  return with_grid(kernel, std::move(known));
}

AffineTable::AffineTable(const Kernel& kernel, Known known) : known_(std::move(known)) {
  visit(kernel, kernel.body);
}

void AffineTable::visit(const Kernel& kernel, const Block& block) {
  const auto is_index = [&](ValueId id) { return kernel.type(id) == TileType{DType::i64, {}}; };
  for (const Op& op : block.ops) {
    if (op.results.size() == 1 && is_index(op.results[0])) forms_[op.results[0]] = form_of(kernel, op);
    if (op.kind == OpKind::loop) {
      const std::vector<ValueId>& args = op.blocks[0].args;
      loops_[args[0]] = &op;
      forms_[args[0]] = single(Variable::loop, args[0]);
      for (std::size_t i = 1; i < args.size(); ++i)
        if (is_index(args[i])) forms_[args[i]] = single(Variable::opaque, args[i]);
    }
    for (const Block& inner : op.blocks) visit(kernel, inner);
    if (!op.blocks.empty())
      for (ValueId id : op.results)
        if (is_index(id)) forms_[id] = single(Variable::opaque, id);
  }
}

Affine AffineTable::form_of(const Kernel& kernel, const Op& op) const {
  Affine opaque = single(Variable::opaque, op.results[0]);
  switch (op.kind) {
    case OpKind::constant:
      return {op.number.i, {}};
    case OpKind::program_id:
      if (known_.grid[static_cast<std::size_t>(op.param)] == 1) return {};  // the only coordinate is 0
      return single(Variable::program, op.param);
    case OpKind::scalar_param: {
      const std::optional<Index>& value = known_.scalars[static_cast<std::size_t>(op.param)];
      return value ? Affine{*value, {}} : single(Variable::scalar, op.param);
    }
    case OpKind::apply: {
      std::vector<Affine> operands;
      for (ValueId id : op.operands) {
        if (kernel.type(id).dtype != DType::i64) return opaque;
        operands.push_back(of(id));
      }
      return combine(op.prim, operands).value_or(opaque);
    }
    default:
      return opaque;
  }
}

const Affine& AffineTable::of(ValueId scalar) const& { return forms_.at(scalar); }

std::optional<Index> AffineTable::trip_count(const Op& loop) const {
  const Affine& step = of(loop.operands[2]);
  const auto distance = add_scaled(of(loop.operands[1]), of(loop.operands[0]), -1);
  if (!step.is_constant() || step.constant <= 0 || !distance || !distance->is_constant()) return std::nullopt;
  return distance->constant <= 0 ? 0 : (distance->constant - 1) / step.constant + 1;
}

std::optional<Range> AffineTable::range_of(Variable variable, int index) const {
  if (variable == Variable::program) {
    const std::optional<Index>& count = known_.grid[static_cast<std::size_t>(index)];
    if (!count || *count == 0) return std::nullopt;
    return Range{0, *count - 1};
  }
  if (variable == Variable::loop) {
    const Op& loop = loop_of(index);
    const Affine& lower = of(loop.operands[0]);
    const std::optional<Index> trips = trip_count(loop);
    if (!lower.is_constant() || !trips || *trips == 0) return std::nullopt;
    return Range{lower.constant, lower.constant + (*trips - 1) * of(loop.operands[2]).constant};
  }
  return std::nullopt;
}

std::optional<Range> AffineTable::range(const Affine& affine) const {
  Range total{affine.constant, affine.constant};
  for (const Affine::Term& t : affine.terms) {
    const std::optional<Range> r = range_of(t.variable, t.index);
    if (!r) return std::nullopt;
    Index low = 0, high = 0;
    if (__builtin_mul_overflow(t.factor, t.factor > 0 ? r->low : r->high, &low) ||
        __builtin_mul_overflow(t.factor, t.factor > 0 ? r->high : r->low, &high) ||
        __builtin_add_overflow(total.low, low, &total.low) ||
        __builtin_add_overflow(total.high, high, &total.high))
      return std::nullopt;
  }
  return total;
}

}  // namespace tilewright::tile
