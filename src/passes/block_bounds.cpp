// Interval arithmetic over the rows, key by key, written as a kernel.
#include "passes/block_bounds.h"

#include "passes/dot_axes.h"
#include "passes/frame_values.h"
#include "passes/online.h"

#include <algorithm>
#include <map>

namespace tilewright::passes {

using tile::Builder;
using tile::Monoid;
using tile::Value;
using Along = Condition::Along;
using Kind = Condition::Kind;

namespace {

// With fewer blocks to a row, the second kernel's start costs more than what is left out.
constexpr Index kFewestBlocks = 4;
// Keys that are compared at once: loads of 32 KiB hide one another's latency.
constexpr Index kKeys = 4096;
// Sums of values inside these ends do not wrap around. Where one lies outside, every key may be needed.
constexpr Index kMostExact = Index{1} << 56;

std::size_t at(int v) { return static_cast<std::size_t>(v); }

Index blocks_along(const LoopSpace& space, int v) {
  return ceil_div(space.program.extents[at(v)], space.block(v));
}

void add_variables(const GroupProgram& program, const Condition& c,
                   const std::vector<std::vector<bool>>& depends, std::vector<bool>& on) {
  for (std::size_t v = 0; v < on.size(); ++v) {
    on[v] = on[v] || c.expression.depends_on(static_cast<int>(v));
    for (const Condition::Value& value : c.values) on[v] = on[v] || depends[at(value.sym)][v];
  }
  for (const Condition& part : c.parts) add_variables(program, part, depends, on);
}

tile::View bounds_view(EmitState& s, const BlockBounds& bounds, const TileShape& shape,
                       std::vector<tile::Operand>& starts) {
  const LoopSpace space(s.program, shape);
  Index step = bounds_count(s.program, bounds, shape) / 2;
  std::vector<Builder::SizeArg> extents = {2};
  std::vector<tile::Dim> strides = {{step, -1}};
  for (int v : bounds.variables) {
    step /= blocks_along(space, v);
    extents.push_back(blocks_along(space, v));
    strides.push_back({step, -1});
    const Index block = space.block(v);
    starts.push_back(block == 1 ? s.start(v) : s.start(v) / block);
  }
  return s.view({-1, shape.block_bounds, 0}, DType::i64, extents, strides, "blocks");
}

class BoundsEmitter {
 public:
  BoundsEmitter(const ir::Graph& graph, const GroupProgram& program, const BlockBounds& bounds,
                const TileShape& shape, const std::string& name, const std::vector<Temporary>& temporaries)
      : space_(program, shape),
        bounds_(bounds),
        extent_(program.extents[at(space_.walked)]),
        keys_at_once_(std::min(kKeys, extent_)),
        s_(graph, program, name, temporaries),
        k_(s_.k),
        keys_(s_, {-1, space_.walked, 1, keys_at_once_}, {true, space_.walked}),
        rows_(s_, {-1, shape.row, 1, shape.rows}, {true, -1}) {}

  EmittedKernel run() {
    choose_starts();
    prepare(bounds_.needed);
    const std::vector<Index> tile = {keys_at_once_};
    const std::vector<Value> none = {k_.literal_int(DType::i64, extent_, tile),
                                     k_.literal_int(DType::i64, 0, tile)};
    const std::vector<Value> found =
        k_.loop(Index{0}, extent_, keys_at_once_, none, [&](Value i, const std::vector<Value>& carried) {
          s_.start(space_.walked) = i;
          s_.enter_body();
          next_ = 0;
          Value needed = k_.broadcast(holds(bounds_.needed), tile);
          const Value key = k_.broadcast(keys_.variable(space_.walked), tile);
          if (extent_ % keys_at_once_ != 0) needed = needed & (key < extent_);
          std::vector<Value> ends = {tile::where(needed, tile::min(carried[0], key), carried[0]),
                                     tile::where(needed, tile::max(carried[1], key + 1), carried[1])};
          s_.leave_body();
          return ends;
        });
    const Index block = space_.block(space_.walked);
    store(0, k_.reduce(Monoid::min, found[0], 0) / block * block);
    store(1, k_.reduce(Monoid::max, found[1], 0));
    return {k_.finish(grid_), std::move(s_.sources),
            "finds which blocks the next kernel's masks of loaded values leave"};
  }

 private:
  void choose_starts() {
    for (Value& start : s_.starts) start = k_.literal_int(DType::i64, 0);
    std::vector<std::pair<Builder::SizeArg, Index>> axis;
    Index programs = 1;
    for (int v : bounds_.variables) programs *= blocks_along(space_, v);
    Value rest;
    if (programs > 1) rest = k_.program_id(0);
    for (auto v = bounds_.variables.rbegin(); v != bounds_.variables.rend(); ++v) {
      const Index count = blocks_along(space_, *v), block = space_.block(*v);
      if (count == 1) continue;
      programs /= count;
      const Value here = programs == 1 ? rest : rest % count;
      if (programs > 1) rest = rest / count;
      s_.start(*v) = block == 1 ? here : here * block;
      axis.push_back({Builder::SizeArg(s_.extent(*v)), block});
    }
    if (axis.empty()) axis.push_back({Builder::SizeArg(1), 1});
    grid_.push_back(std::move(axis));
  }

  // Of a comparison: the least of what the keys have no part in, and whether it was summed exactly.
  struct Prepared {
    Value rest;
    std::optional<Value> wild;
  };

  static Value wild(Value v) { return (v > kMostExact) | (v < -kMostExact); }
  static void also(std::optional<Value>& all, Value more) { all = all ? *all | more : more; }
  bool may_be_wild(int sym) const { return s_.program.syms[at(sym)].dtype == DType::i64; }

  // Floors are not of negative numbers, nor of rows and keys at once.
  bool walks_plainly(const IndexExpr::Term& t) const {
    if (!t.div_mod) return true;
    for (int v = 0; v < static_cast<int>(s_.program.extents.size()); ++v)
      if (v != space_.walked && t.div_mod->inner.depends_on(v)) return false;
    return range(t.div_mod->inner, s_.program.extents).low >= 0;
  }
  bool walks(const IndexExpr::Term& t) const {
    return t.div_mod ? t.div_mod->inner.depends_on(space_.walked) : t.variable == space_.walked;
  }
  bool decides(const Condition& c) const {
    constexpr Index kMostFactors = 16;
    Index factors = 0;
    for (const Condition::Value& v : c.values) factors += std::abs(v.factor);
    return factors <= kMostFactors &&
           std::all_of(c.expression.terms().begin(), c.expression.terms().end(),
                       [&](const IndexExpr::Term& t) { return !walks(t) || walks_plainly(t); });
  }

  void prepare(const Condition& c) {
    for (const Condition& part : c.parts) prepare(part);
    if (c.kind != Kind::not_positive || !decides(c)) return;
    IndexExpr still = c.expression.constant();
    for (const IndexExpr::Term& t : c.expression.terms())
      if (!walks(t)) still = still + term(t);
    Prepared p{keys_.bound(least(still, space_)), {}};
    for (const Condition::Value& v : c.values) {
      if (v.along == Along::walked) continue;
      const Value value = v.along == Along::rows ? least_of_rows(v) : integer(keys_.value(v.sym));
      if (may_be_wild(v.sym)) also(p.wild, wild(value));
      p.rest = p.rest + value * v.factor;
    }
    prepared_.push_back(p);
  }

  Value integer(Value v) { return v.dtype() == DType::i64 ? v : k_.cast(v, DType::i64); }

  // The least or the most of a block's rows, by the sign of the factor.
  Value least_of_rows(const Condition::Value& v) {
    const int row = space_.shape.row;
    const Monoid monoid = v.factor > 0 ? Monoid::min : Monoid::max;
    if (const auto known = of_rows_.find({v.sym, monoid}); known != of_rows_.end()) return known->second;
    Value all = k_.broadcast(integer(rows_.value(v.sym)), {space_.shape.rows});
    if (rows_.ragged(row))
      all = tile::where(k_.broadcast(rows_.variable(row) < s_.extent(row), {space_.shape.rows}), all,
                        k_.literal_int(DType::i64, identity(monoid, DType::i64).i, {space_.shape.rows}));
    return of_rows_[{v.sym, monoid}] = k_.reduce(monoid, all, 0);
  }

  // Whether it may hold for some row of the block, for each of the keys.
  Value holds(const Condition& c) {
    switch (c.kind) {
      case Kind::never:
        return k_.literal_int(DType::boolean, 0);
      case Kind::always:
      case Kind::unknown:
        return k_.literal_int(DType::boolean, 1);
      case Kind::not_positive:
        return compared(c);
      case Kind::both:
      case Kind::either:
        break;
    }
    Value all = spread(holds(c.parts[0]));
    for (std::size_t i = 1; i < c.parts.size(); ++i) {
      const Value part = spread(holds(c.parts[i]));
      all = c.kind == Kind::both ? all & part : all | part;
    }
    return all;
  }
  Value spread(Value v) { return k_.broadcast(v, {keys_at_once_}); }

  Value compared(const Condition& c) {
    if (!decides(c)) return k_.literal_int(DType::boolean, 1);
    const Prepared& p = prepared_[next_++];
    Value sum = p.rest;
    std::optional<Value> outside = p.wild;
    for (const IndexExpr::Term& t : c.expression.terms())
      if (walks(t)) sum = sum + keys_.index_value(term(t));
    for (const Condition::Value& v : c.values) {
      if (v.along != Along::walked) continue;
      const Value value = integer(keys_.value(v.sym));
      if (may_be_wild(v.sym)) outside = outside ? spread(*outside) | spread(wild(value)) : wild(value);
      sum = sum + value * v.factor;
    }
    const Value test = spread(sum <= Index{0});
    return outside ? test | spread(*outside) : test;
  }

  IndexExpr term(const IndexExpr::Term& t) const {
    if (!t.div_mod) return IndexExpr::variable(t.variable) * t.factor;
    const IndexExpr::DivMod& d = *t.div_mod;
    const Extents& extents = s_.program.extents;
    return (d.is_division ? floor_div(d.inner, d.divisor, extents) : remainder(d.inner, d.divisor, extents)) *
           t.factor;
  }

  void store(Index which, Value v) {
    std::vector<tile::Operand> starts;
    const tile::View view = bounds_view(s_, bounds_, space_.shape, starts);
    starts.insert(starts.begin(), which);
    k_.store(view, starts, v);
  }

  const LoopSpace space_;
  const BlockBounds& bounds_;
  const Index extent_, keys_at_once_;
  EmitState s_;
  Builder& k_;
  FrameValues keys_, rows_;
  std::map<std::pair<int, Monoid>, Value> of_rows_;
  std::vector<Prepared> prepared_;  // of the comparisons that decide, as they come
  std::size_t next_ = 0;
  std::vector<std::vector<std::pair<Builder::SizeArg, Index>>> grid_;
};

}  // namespace

std::optional<BlockBounds> find_block_bounds(const ir::Graph& graph, const GroupProgram& program,
                                             const TileShape& shape) {
  const bool chain = program.dot() >= 0 && program.has_inner_dots();
  const LoopSpace space(program, shape);
  if (!chain || space.walked < 0) return std::nullopt;
  if (ceil_div(program.extents[at(space.walked)], space.block(space.walked)) < kFewestBlocks)
    return std::nullopt;
  BlockBounds out{{.kind = Kind::never}, {}};
  for (const ReductionPass& pass : reduction_passes(graph, program))
    out.needed = either(out.needed, needed(graph, program, pass.syms));
  if (!out.needed.of_vectors()) return std::nullopt;
  std::vector<bool> on(program.extents.size());
  add_variables(program, out.needed, dependence(program), on);
  for (int v : program.parallel_variables())
    if (on[at(v)]) out.variables.push_back(v);
  return out;
}

Index bounds_count(const GroupProgram& program, const BlockBounds& bounds, const TileShape& shape) {
  const LoopSpace space(program, shape);
  Index count = 2;
  for (int v : bounds.variables) count *= blocks_along(space, v);
  return count;
}

EmittedKernel emit_block_bounds(const ir::Graph& graph, const GroupProgram& program,
                                const BlockBounds& bounds, const TileShape& shape, const std::string& name,
                                const std::vector<Temporary>& temporaries) {
  return BoundsEmitter(graph, program, bounds, shape, name, temporaries).run();
}

std::pair<Value, Value> load_block_bounds(EmitState& state, const BlockBounds& bounds,
                                          const TileShape& shape) {
  std::vector<tile::Operand> first;
  const tile::View view = bounds_view(state, bounds, shape, first);
  std::vector<tile::Operand> end = first;
  first.insert(first.begin(), Index{0});
  end.insert(end.begin(), Index{1});
  return {state.k.load(view, first), state.k.load(view, end)};
}

}  // namespace tilewright::passes
