// Interval arithmetic over the rows, key by key, written as a kernel.
#include "passes/emit/emit_block_bounds.h"

#include "passes/emit/frame_values.h"

#include <algorithm>
#include <functional>
#include <map>

namespace tilewright::passes {

using tile::Builder;
using tile::Monoid;
using tile::Value;
using Along = Condition::Along;
using Kind = Condition::Kind;

namespace {

// Keys that are compared at once: loads of 32 KiB hide one another's latency.
constexpr Index kKeys = 4096;
// Sums of values inside these ends do not wrap around. Where one lies outside, every key may be needed.
constexpr Index kMostExact = Index{1} << 56;

class BoundsEmitter {
 public:
  BoundsEmitter(const ir::Graph& graph, const LoopNest& nest, const BlockBounds& bounds,
                const TileShape& shape, const std::string& name, const std::vector<Temporary>& temporaries)
      : space_(nest, shape),
        bounds_(bounds),
        extent_(nest.extents[at(space_.walked)]),
        block_(space_.block(space_.walked)),
        keys_at_once_(std::min(kKeys, extent_)),
        s_(graph, nest, name, temporaries),
        k_(s_.k),
        keys_(s_, {-1, space_.walked, 1, keys_at_once_}, {true, space_.walked}),
        rows_(s_, {-1, shape.row, 1, shape.rows}, {true, -1}) {}

  EmittedKernel run() {
    choose_starts();
    find_limits(bounds_.needed);
    if (has_masks()) find_limits(bounds_.broken);
    // The first and the last key that are needed, and, in whole blocks, the last that no mask breaks.
    const std::vector<Value> found =
        over_keys({extent_, -1, -1}, [&](Value key, const std::vector<Value>& carried) {
          Value needed = spread(holds(bounds_.needed));
          if (extent_ % keys_at_once_ != 0) needed = needed & (key < extent_);
          std::vector<Value> next = {tile::where(needed, tile::min(carried[0], key), carried[0]),
                                     tile::where(needed, tile::max(carried[1], key), carried[1]), carried[2]};
          if (has_masks()) {
            Value kept = ~spread(holds(bounds_.broken));
            if (extent_ % (block_ * keys_at_once_) != 0) kept = kept & (key < extent_ / block_ * block_);
            next[2] = tile::where(kept, tile::max(carried[2], key), carried[2]);
          }
          return next;
        });
    store(0, k_.reduce(Monoid::min, found[0], 0) / block_);
    store(1, block_after(k_.reduce(Monoid::max, found[1], 0)));
    if (has_masks()) store_run(k_.reduce(Monoid::max, found[2], 0));
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

  bool has_masks() const { return !bounds_.masks.empty(); }

  // Numbers of keys, which begin with these, over all keys.
  using Body = std::function<std::vector<Value>(Value key, const std::vector<Value>& carried)>;
  std::vector<Value> over_keys(const std::vector<Index>& first, const Body& body) {
    std::vector<Value> carried;
    carried.reserve(first.size());
    for (Index n : first) carried.push_back(k_.literal_int(DType::i32, n, {keys_at_once_}));
    return k_.loop(Index{0}, extent_, keys_at_once_, carried, [&](Value i, const std::vector<Value>& now) {
      s_.start(space_.walked) = i;
      s_.enter_body();
      const Value key = k_.cast(keys_.variable(space_.walked), DType::i32);
      std::vector<Value> next = body(key, now);
      s_.leave_body();
      return next;
    });
  }

  // The blocks up to the last key that no mask breaks, from the last one before it on that some mask does.
  void store_run(Value last) {
    const std::vector<Value> found = over_keys({-1}, [&](Value key, const std::vector<Value>& carried) {
      const Value broken = spread(holds(bounds_.broken)) & (key < last);
      return std::vector{tile::where(broken, tile::max(carried[0], key), carried[0])};
    });
    store(2, block_after(k_.reduce(Monoid::max, found[0], 0)));
    store(3, (last + 1) / block_);
  }

  // The one that begins behind a key's; of no key, -1, the first.
  Value block_after(Value key) { return (key + block_) / block_; }

  static Value wild(Value v) { return (v > kMostExact) | (v < -kMostExact); }
  bool may_be_wild(int expr) const { return s_.nest.exprs[at(expr)].dtype == DType::i64; }

  // Floors are not of negative numbers, nor of rows and keys at once.
  bool walks_plainly(const IndexExpr::Term& t) const {
    if (!t.div_mod) return true;
    for (int v = 0; v < static_cast<int>(s_.nest.extents.size()); ++v)
      if (v != space_.walked && t.div_mod->inner.depends_on(v)) return false;
    return range(t.div_mod->inner, s_.nest.extents).low >= 0;
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

  // Upper bounds of the key-dependent terms of comparisons. A single value of the keys to which nothing is
  // added is compared as it is, however large; where it is subtracted, with its lower bound.
  void find_limits(const Condition& c) {
    for (const Condition& part : c.parts) find_limits(part);
    if (c.kind != Kind::not_positive || !decides(c)) return;
    IndexExpr still = c.expression.constant();
    for (const IndexExpr::Term& t : c.expression.terms())
      if (!walks(t)) still = still + term(t);
    Value rest = keys_.bound(least(still, space_));
    std::optional<Value> outside;
    for (const Condition::Value& v : c.values) {
      if (v.along == Along::walked) continue;
      const Value value = least_of(v);
      rest = rest + value * v.factor;
      if (!may_be_wild(v.expr)) continue;
      outside = outside ? *outside | wild(value) : wild(value);
      // Rows whose sums wrapped around may lie anywhere, not only those of the least.
      if (c.summed && v.along == Along::rows)
        outside = *outside | wild(least_of({v.expr, -v.factor, v.along}));
    }
    const bool at_least = alone(c) && alone(c)->factor < 0;
    const Value limit = at_least ? rest : -rest;
    const Value all =
        k_.literal_int(DType::i64, identity(at_least ? Monoid::max : Monoid::min, DType::i64).i);
    limits_.emplace(&c, outside ? tile::where(*outside, all, limit) : limit);
  }

  Value integer(Value v) { return v.dtype() == DType::i64 ? v : k_.cast(v, DType::i64); }

  // The least or the most of a block's rows, by the sign of the factor, or what all rows share.
  Value least_of(const Condition::Value& v) {
    if (v.along != Along::rows) return integer(keys_.value(v.expr));
    const int row = space_.shape.row;
    const Monoid monoid = v.factor > 0 ? Monoid::min : Monoid::max;
    if (const auto known = of_rows_.find({v.expr, monoid}); known != of_rows_.end()) return known->second;
    Value all = k_.broadcast(integer(rows_.value(v.expr)), {space_.shape.rows});
    if (rows_.ragged(row))
      all = tile::where(k_.broadcast(rows_.variable(row) < s_.extent(row), {space_.shape.rows}), all,
                        k_.literal_int(DType::i64, identity(monoid, DType::i64).i, {space_.shape.rows}));
    return of_rows_[{v.expr, monoid}] = k_.reduce(monoid, all, 0);
  }

  // For each of the keys, whether a condition may hold for some row of the block.
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
    const Value limit = limits_.at(&c);
    if (const Condition::Value* v = alone(c)) {
      const Value value = integer(keys_.value(v->expr)),
                  test = v->factor > 0 ? value <= limit : value >= limit;
      return c.summed && may_be_wild(v->expr) ? spread(test) | spread(wild(value)) : test;
    }
    Value sum = k_.literal_int(DType::i64, 0);
    std::optional<Value> outside;
    for (const IndexExpr::Term& t : c.expression.terms())
      if (walks(t)) sum = sum + keys_.index_value(term(t));
    for (const Condition::Value& v : c.values) {
      if (v.along != Along::walked) continue;
      const Value value = integer(keys_.value(v.expr));
      if (may_be_wild(v.expr)) outside = outside ? spread(*outside) | spread(wild(value)) : wild(value);
      sum = sum + value * v.factor;
    }
    const Value test = sum <= limit;
    return outside ? spread(test) | spread(*outside) : test;
  }

  const Condition::Value* alone(const Condition& c) const {
    const Condition::Value* found = nullptr;
    for (const Condition::Value& v : c.values) {
      if (v.along != Along::walked) continue;
      if (found || std::abs(v.factor) != 1) return nullptr;
      found = &v;
    }
    const bool stands = std::any_of(c.expression.terms().begin(), c.expression.terms().end(),
                                    [&](const IndexExpr::Term& t) { return walks(t); });
    return stands ? nullptr : found;
  }

  IndexExpr term(const IndexExpr::Term& t) const {
    if (!t.div_mod) return IndexExpr::variable(t.variable) * t.factor;
    const IndexExpr::DivMod& d = *t.div_mod;
    const Extents& extents = s_.nest.extents;
    return (d.is_division ? floor_div(d.inner, d.divisor, extents) : remainder(d.inner, d.divisor, extents)) *
           t.factor;
  }

  void store(Index kind, Value v) {
    const PlacedBounds at = place_bounds(s_, bounds_, space_.shape, kind);
    k_.store(at.view, at.starts, k_.cast(v, DType::i64));
  }

  const LoopSpace space_;
  const BlockBounds& bounds_;
  const Index extent_, block_, keys_at_once_;
  EmitState s_;
  Builder& k_;
  FrameValues keys_, rows_;
  std::map<std::pair<int, Monoid>, Value> of_rows_;
  std::map<const Condition*, Value> limits_;  // of the comparisons that decide
  std::vector<std::vector<std::pair<Builder::SizeArg, Index>>> grid_;
};

}  // namespace

PlacedBounds place_bounds(EmitState& s, const BlockBounds& bounds, const TileShape& shape, Index kind) {
  const LoopSpace space(s.nest, shape);
  Index step = bounds_count(s.nest, bounds, shape) / bounds.kinds();
  std::vector<tile::Builder::SizeArg> extents = {bounds.kinds()};
  std::vector<tile::Dim> strides = {{step, -1}};
  std::vector<tile::Operand> starts = {kind};
  for (int v : bounds.variables) {
    step /= blocks_along(space, v);
    extents.push_back(blocks_along(space, v));
    strides.push_back({step, -1});
    const Index block = space.block(v);
    starts.push_back(block == 1 ? s.start(v) : s.start(v) / block);
  }
  return {s.view({-1, shape.block_bounds, 0}, DType::i64, extents, strides, "blocks"), std::move(starts)};
}

LoadedBounds load_block_bounds(EmitState& state, const BlockBounds& bounds, const TileShape& shape) {
  const LoopSpace space(state.nest, shape);
  const Index extent = state.nest.extents[at(space.walked)], block = space.block(space.walked);
  // What is loaded lies inside: said once more, positions are known to be small, and multiples of the block.
  const auto load = [&](Index kind, std::string_view name) {
    const PlacedBounds at = place_bounds(state, bounds, shape, kind);
    const tile::Value number = state.k.load(at.view, at.starts);
    const tile::Value place = tile::max(tile::min(number, ceil_div(extent, block)), Index{0}) * block;
    state.k.name_value(place, std::string(name));
    return place;
  };
  const auto inside = [&](tile::Value end) { return extent % block == 0 ? end : tile::min(end, extent); };
  LoadedBounds out{
      .first = load(0, "needed_first"), .end = inside(load(1, "needed_end")), .masks = bounds.masks};
  if (!out.masks.empty()) out.whole_first = load(2, "whole_first"), out.whole_end = load(3, "whole_end");
  return out;
}

EmittedKernel emit_block_bounds(const ir::Graph& graph, const LoopNest& nest, const BlockBounds& bounds,
                                const TileShape& shape, const std::string& name,
                                const std::vector<Temporary>& temporaries) {
  return BoundsEmitter(graph, nest, bounds, shape, name, temporaries).run();
}

}  // namespace tilewright::passes
