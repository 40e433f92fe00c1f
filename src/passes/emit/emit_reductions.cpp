// What the loops of a program carry: reductions, and a dot, each multiplied by how the ones before it
// changed.
#include "ops/rows.h"
#include "passes/emit/emitter.h"
#include "passes/nest/dot_axes.h"

#include <tilewright/base/error.h>

#include <limits>

namespace tilewright::passes {

using tile::Monoid;
using tile::Prim;
using tile::Value;

void Emitter::hoist(int level) {
  for (std::size_t s = 0; s < nest_.exprs.size(); ++s) {
    const Expr& m = nest_.exprs[s];
    if (!m.reduced && m.level < level && m.kind != Expr::Kind::reduce && m.kind != Expr::Kind::dot)
      f_.value(static_cast<int>(s));
  }
}

void Emitter::hoist(const ReductionPass& pass) {
  if (!nest_.has_dots()) {
    hoist(pass.first_level);
  } else {
    for (int s : pass.exprs) {
      f_.hoist(expr(s).operands[0], pass.first_level);
      if (nest_.is_outer_dot(s)) columns_.hoist(expr(s).operands[1], pass.first_level);
    }
  }
  f_.hoist_dot_operands();
}

DType Emitter::carried_dtype(const Expr& m) const {
  const DType dtype = compute_dtype(expr(m.operands[0]).dtype);
  return shape_.carries_wide && m.monoid == Monoid::sum && dtype == DType::f32 ? DType::f64 : dtype;
}

Value Emitter::literal(DType dtype, Monoid monoid, const std::vector<Index>& shape) {
  const tile::Number number = identity(monoid, dtype);
  return is_float(dtype) ? k_.literal(dtype, number.f, shape) : k_.literal_int(dtype, number.i, shape);
}

Value Emitter::combine(Monoid monoid, Value a, Value b) {
  switch (monoid) {
    case Monoid::prod:
      return a * b;
    case Monoid::max:
      return tile::max(a, b);
    case Monoid::min:
      return tile::min(a, b);
    case Monoid::logical_and:
      return a & b;
    case Monoid::logical_or:
      return a | b;
    default:
      return a + b;
  }
}

std::vector<Index> Emitter::accumulator_shape(bool whole) const {
  std::vector<Index> shape = f_.whole_shape();
  if (!whole && f_.walks_tile()) {
    if (has_rows())
      shape[static_cast<std::size_t>(f_.reduced_axis())] = 1;
    else
      shape = {};
  }
  return shape;
}

bool Emitter::accumulates_tiles(const ReductionPass& pass) const {
  return shape_.accumulate_tiles && expr(pass.exprs.back()).level == pass.first_level;
}

void Emitter::find_terms(const ReductionPass& pass) {
  terms_.clear();
  const bool nested = nest_.reduced_variables().size() > 1 && f_.walks_tile();
  if (!nested || !accumulates_tiles(pass) || nest_.has_dots()) return;
  const std::vector<std::vector<bool>> depends = dependence(nest_);
  for (int s : pass.exprs) {
    const Expr &m = expr(s), &term = expr(m.operands[0]);
    const bool times = term.kind == Expr::Kind::product ||
                       (term.kind == Expr::Kind::op && s_.graph.node(term.node).op == &ops::kMul);
    if (m.monoid != Monoid::sum || !times || !is_float(term.dtype)) return terms_.clear();
    const auto alike = [&](int o) { return compute_dtype(expr(o).dtype) == compute_dtype(term.dtype); };
    std::optional<Terms> found;
    for (std::size_t side : {0u, 1u}) {
      const Terms t{term.operands[side], term.operands[1 - side]};
      if (depends[at(t.walked)][at(walked_)] && !depends[at(t.resting)][at(walked_)] && alike(t.walked) &&
          alike(t.resting))
        found = t;
    }
    if (!found) return terms_.clear();
    terms_.push_back(*found);
  }
}

// Adds, behind the innermost loop, what it summed times what does not change in it.
std::vector<Value> Emitter::add_scaled(const std::vector<Value>& before, const std::vector<Value>& sums) {
  s_.enter_body();
  std::vector<Value> out;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Value sum = f_.keep_rank(k_.reduce(Monoid::sum, sums[i], f_.reduced_axis()));
    out.push_back(before[i] + sum * k_.broadcast(f_.computed(terms_[i].resting), accumulator_shape(false)));
  }
  s_.leave_body();
  return out;
}

Value Emitter::initial_sum(const Expr& outer_dot) {
  return k_.literal(accumulator(outer_dot), 0.0, {shape_.rows, shape_.columns});
}

std::vector<Value> Emitter::initial_values(const ReductionPass& pass) {
  std::vector<Value> initial;
  for (int s : pass.exprs) {
    const Expr& m = expr(s);
    if (nest_.is_outer_dot(s)) {
      const bool wide = shape_.carries_wide && accumulator(m) == DType::f32;
      initial.push_back(wide ? k_.literal(DType::f64, 0.0, {shape_.rows, shape_.columns}) : initial_sum(m));
      continue;
    }
    const std::vector<Index> shape = accumulator_shape(accumulates_tiles(pass) && terms_.empty());
    initial.push_back(literal(carried_dtype(m), m.monoid, shape));
    if (finds_place(m.monoid)) initial.push_back(k_.literal_int(place_dtype(pass), 0, shape));
  }
  return initial;
}

void Emitter::reduction_pass(const ReductionPass& pass) {
  hoist(pass);
  find_terms(pass);
  const std::vector<Value> initial = initial_values(pass);
  restrict_loop(pass);
  f_.moving_from(pass.first_level);
  std::vector<Value> last = loop_over_reduced(initial, [&](const std::vector<Value>& carried) {
    std::vector<Value> next = accumulate_block(pass, carried);
    note_known_blocks();
    return next;
  });
  f_.rest();
  part_.reset();
  set_results(pass, last);
  terms_.clear();
}

void Emitter::set_results(const ReductionPass& pass, const std::vector<Value>& last) {
  std::size_t next = 0;
  for (int s : pass.exprs) {
    const Expr& m = expr(s);
    Value v = last[next++];
    const bool whole = accumulates_tiles(pass) && terms_.empty();
    if (nest_.is_outer_dot(s)) {
      v = v.dtype() == m.dtype ? v : k_.cast(v, m.dtype);
    } else if (finds_place(m.monoid)) {
      Placed found = {v, last[next++]};
      if (whole) found = first_extreme(m, found);
      extremes_[s] = found.extreme;
      v = found.place;
    } else if (whole) {
      v = f_.keep_rank(k_.reduce(m.monoid, v, f_.reduced_axis()));
    } else {
      v = k_.cast(v, compute_dtype(expr(m.operands[0]).dtype));
    }
    f_.set(s, v);
    if (dot_ >= 0) out_.set(s, v);
  }
}

std::vector<Value> Emitter::accumulate_block(const ReductionPass& pass, const std::vector<Value>& carried) {
  std::vector<Value> out;
  Moved moved;
  factors_.clear();
  for (std::size_t i = 0; i < pass.exprs.size(); ++i) {
    const int s = pass.exprs[i];
    const Expr& m = expr(s);
    Value before = carried[out.size()];
    if (!nest_.is_outer_dot(s) && finds_place(m.monoid)) {
      const Placed after = better_of(m, {before, carried[out.size() + 1]}, placed_block(pass, m));
      out.insert(out.end(), {after.extreme, after.place});
      continue;
    }
    const auto scaled = [&] {
      const bool changes = pass.factors[i] && pass.factors[i]->kind != Change::Kind::none;
      return changes ? before * k_.cast(factor(*pass.factors[i], moved), before.dtype()) : before;
    };
    // Added by itself, the product is there before the sum is touched.
    const bool apart = nest_.is_outer_dot(s) && shape_.two_level_accumulation;
    const Value sum = apart ? initial_sum(m) : scaled();
    if (nest_.is_outer_dot(s)) {
      Value a = f_.dot_operand(m.operands[0], m.operand_dtypes[0]),
            b = columns_.dot_operand(m.operands[1], m.operand_dtypes[1]);
      const Value product = k_.dot(a, b, sum, shape_.precision);
      out.push_back(apart ? scaled() + k_.cast(product, before.dtype()) : product);
      continue;
    }
    if (nest_.accumulates_scaled()) f_.load_beside_dots(m.operands[0]);
    Value operand = terms_.empty() ? block_operand(m) : block_operand(m, terms_[i].walked);
    if (!accumulates_tiles(pass) && f_.walks_tile())
      operand = f_.keep_rank(k_.reduce(m.monoid, operand, f_.reduced_axis()));
    const DType dtype = operand.dtype();
    Value after = combine(m.monoid, sum, k_.cast(operand, sum.dtype()));
    out.push_back(after);
    if (expr(pass.exprs.back()).level == pass.first_level) continue;
    moved[s] = {k_.cast(before, dtype), finite(m, k_.cast(after, dtype))};
    f_.set_in_body(s, moved[s].second);
  }
  return out;
}

Value Emitter::block_operand(const Expr& m, int term) {
  Value operand = k_.broadcast(f_.full(f_.computed(term)), accumulator_shape(true));
  if (!f_.ragged(walked_)) return operand;
  Value inside = f_.variable(walked_) < s_.extent(walked_);
  return tile::where(k_.broadcast(inside, operand.type().shape), operand,
                     literal(operand.dtype(), m.monoid, operand.type().shape));
}

// A tile of places is as narrow as they allow.
DType Emitter::place_dtype(const ReductionPass& pass) const {
  const bool narrow = accumulates_tiles(pass) && !shape_.any_size &&
                      s_.extent(walked_) <= std::numeric_limits<std::int32_t>::max();
  return narrow ? DType::i32 : DType::i64;
}

// A block's own extreme and its place, or, where whole tiles are carried, every element and where it stands.
Emitter::Placed Emitter::placed_block(const ReductionPass& pass, const Expr& m) {
  const Value operand = block_operand(m);
  if (accumulates_tiles(pass)) {
    const Value place = k_.cast(f_.variable(walked_), place_dtype(pass));
    return {operand, k_.broadcast(place, operand.type().shape)};
  }
  return {f_.keep_rank(k_.reduce(extreme_of(m.monoid), operand, f_.reduced_axis())),
          f_.keep_rank(k_.reduce(m.monoid, operand, f_.reduced_axis())) + s_.start(walked_)};
}

// What comes later is better if it is beyond what was before, or the first NaN.
Emitter::Placed Emitter::better_of(const Expr& m, const Placed& before, const Placed& here) {
  Value better =
      ~(m.monoid == Monoid::argmax ? here.extreme <= before.extreme : here.extreme >= before.extreme);
  if (is_float(here.extreme.dtype())) better = better & ~k_.apply(Prim::isnan, {before.extreme});
  return {tile::where(better, here.extreme, before.extreme), tile::where(better, here.place, before.place)};
}

// The extreme of a carried tile, and the first place of those elements that are it.
Emitter::Placed Emitter::first_extreme(const Expr& m, const Placed& carried) {
  const Value extreme = f_.keep_rank(k_.reduce(extreme_of(m.monoid), carried.extreme, f_.reduced_axis()));
  Value is_it = carried.extreme == extreme;
  if (is_float(extreme.dtype())) is_it = is_it | k_.apply(Prim::isnan, {carried.extreme});
  const Value nowhere = literal(carried.place.dtype(), Monoid::min, carried.place.type().shape);
  const Value place = k_.reduce(Monoid::min, tile::where(is_it, carried.place, nowhere), f_.reduced_axis());
  return {extreme, k_.cast(f_.keep_rank(place), DType::i64)};
}

Value Emitter::finite(const Expr& m, Value v) {
  if (!is_float(v.dtype()) || (m.monoid != Monoid::max && m.monoid != Monoid::min)) return v;
  const double nothing = identity(m.monoid, v.dtype()).f;
  return tile::where(v == nothing, 0.0, v);
}

Value Emitter::factor(const Change& c, const Moved& moved) {
  for (const auto& [known, of, value] : factors_)
    if (*known == c && of == &moved) return value;
  Value v = change(c, moved);
  k_.name_value(v, "rescale");
  factors_.emplace_back(&c, &moved, v);
  return v;
}

Value Emitter::change(const Change& c, const Moved& moved) {
  const auto part = [&](std::size_t i) { return change(*c.parts[i], moved); };
  switch (c.kind) {
    case Change::Kind::old_to_new:
    case Change::Kind::at_least:
    case Change::Kind::at_most: {
      const auto [before, after] = ends(c, moved);
      return after - before;
    }
    case Change::Kind::exp:
      return k_.apply(Prim::exp, {part(0)});
    case Change::Kind::exp2:
      return k_.apply(Prim::exp2, {part(0)});
    case Change::Kind::product:
      return part(0) * part(1);
    case Change::Kind::inverse:
      return 1.0 / part(0);
    case Change::Kind::sum:
      return part(0) + part(1);
    case Change::Kind::negative:
      return -part(0);
    case Change::Kind::scaled:
      return part(0) * f_.computed(c.expr);
    case Change::Kind::none:
      break;
  }
  TW_CHECK(false, "no change has no value");
}

// Where the block's own exprs are made of the new end, too, it is written once.
std::pair<Value, Value> Emitter::ends(const Change& c, const Moved& moved) {
  if (c.kind == Change::Kind::old_to_new) return moved.at(c.expr);
  const auto [before, after] = ends(*c.parts[0], moved);
  const Value bound = f_.computed(c.expr);
  const auto clamp = [&](Value v) {
    return c.kind == Change::Kind::at_least ? tile::max(v, bound) : tile::min(v, bound);
  };
  const Change& inner = *c.parts[0];
  const auto known = f_.written(inner.kind == Change::Kind::old_to_new ? inner.expr : inner.clamped);
  if (!known || known->id() != after.id()) return {clamp(before), clamp(after)};
  if (!f_.written(c.clamped)) f_.set_in_body(c.clamped, clamp(after));
  return {clamp(before), *f_.written(c.clamped)};
}

}  // namespace tilewright::passes
