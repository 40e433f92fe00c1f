// What a program stores: its outputs, or partial results where programs share a reduction.
#include "passes/emit/emitter.h"
#include "passes/nest/tile_shape.h"
#include "passes/tiling/epilogue_parts.h"

#include <algorithm>

namespace tilewright::passes {

using tile::Builder;
using tile::Value;

void Emitter::store(const ProgramOutput& o) {
  if (o.accumulate) return accumulate(o);
  const DType dtype = s_.graph.type(o.node).dtype;
  const std::optional<Frame::Picked> placed = out_.placed(o.dynamic);
  if (!o.offset.is_affine() || (!o.dynamic.empty() && !placed)) return scatter_output(o, dtype);
  Frame::Access a =
      out_.block_access({o.offset, EmitState::source_of(o.node), dtype, s_.buffer_name(o.node), placed});
  Value v = k_.cast(out_.fit(out_.value(o.expr), a.row_dim >= 0, a.column_dim >= 0), dtype);
  const auto write = [&] { k_.store(a.view, a.starts, v, {.dims = a.dims(), .bounded = a.bounded}); };
  const std::optional<Value> first = is_first_of_its_writers(o);
  if (!first) return write();
  only_where(*first, write);
}

std::optional<Value> Emitter::is_first_of_its_writers(const ProgramOutput& o) {
  std::optional<Value> first;
  for (int v : nest_.parallel_variables()) {
    if (o.offset.depends_on(v) || ceil_div(s_.extent(v), block(v)) == 1) continue;
    const Value here = s_.start(v) == Index{0};
    first = first ? *first & here : here;
  }
  return first;
}

void Emitter::scatter_output(const ProgramOutput& o, DType dtype) {
  tile::View flat = s_.flat_view(o.node, dtype);
  Value index = out_.dynamic_index(o.offset, o.dynamic);
  Value computed_value =
      out_.value(o.expr);  // before index.type(): emitting moves the table that type() points into
  Value stored = k_.cast(k_.broadcast(computed_value, index.type().shape), dtype);
  k_.scatter(flat, {index}, stored, out_.overhang_mask());
}

void Emitter::accumulate(const ProgramOutput& o) {
  const DType dtype = o.node >= 0 ? s_.graph.type(o.node).dtype : s_.temporaries[at(-1 - o.node)].dtype;
  tile::View flat = s_.flat_view(o.node, dtype);
  Value index = out_.dynamic_index(o.offset, o.dynamic);
  const std::vector<Index> frame = out_.whole_shape();
  std::optional<Value> mask = out_.overhang_mask();
  if (o.mask >= 0) mask = mask ? *mask & out_.value(o.mask) : out_.value(o.mask);
  k_.atomic_add(flat, {k_.broadcast(index, frame)}, k_.cast(k_.broadcast(out_.value(o.expr), frame), dtype),
                mask);
}

void Emitter::store_outputs_looped() {
  if (!nest_.has_dots()) hoist(nest_.levels() + 1);
  bool any_reduced = false;
  for (const ProgramOutput& o : nest_.outputs) {
    if (is_in_parts(nest_, shape_, o)) continue;
    if (nest_.is_stored_along_reduced(o))
      any_reduced = true;
    else
      store(o);
  }
  store_epilogue_reductions();
  if (!any_reduced) return;
  std::vector<int> scans;
  std::vector<Value> initial;
  for (int s = 0; s < static_cast<int>(nest_.exprs.size()); ++s) {
    const Expr& m = expr(s);
    if (m.kind != Expr::Kind::scan) continue;
    scans.push_back(s);
    initial.push_back(literal(carried_dtype(m), m.monoid, accumulator_shape(false)));
  }
  loop_over_reduced(initial, [&](const std::vector<Value>& carried) {
    std::vector<Value> next;
    next.reserve(scans.size());
    for (std::size_t i = 0; i < scans.size(); ++i) next.push_back(scan_block(scans[i], carried[i]));
    for (const ProgramOutput& o : nest_.outputs)
      if (nest_.is_stored_along_reduced(o)) store(o);
    return next;
  });
}

// The scan of this block behind what the blocks before it come to; gives what they come to with this one.
Value Emitter::scan_block(int s, const Value& before) {
  const Expr& m = expr(s);
  const Value block = block_operand(m);
  const Value within = k_.scan(m.monoid, block, f_.reduced_axis());
  const Value start = k_.broadcast(k_.cast(before, within.dtype()), within.type().shape);
  f_.set_in_body(s, combine(m.monoid, start, within));
  const Value total = f_.keep_rank(k_.reduce(m.monoid, block, f_.reduced_axis()));
  return combine(m.monoid, before, k_.cast(total, before.dtype()));
}

// Stores epilogue reductions as epilogue_reductions.h lays them out: the first coordinate is the program's
// place among those that share what is reduced.
void Emitter::store_epilogue_reductions() {
  const std::vector<int> all = epilogue_reductions_in_parts(nest_, shape_);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Expr& m = expr(all[i]);
    Frame::Access to;
    std::vector<Builder::SizeArg> extents;
    for (int v : nest_.parallel_variables())
      if (m.offset.depends_on(v)) {
        extents.push_back(ceil_div(s_.extent(v), block(v)));
        to.starts.push_back(place_of_block(v));
      }
    for (int v : nest_.parallel_variables()) {
      if (m.offset.depends_on(v)) continue;
      add_dim(v, to, extents);
    }
    std::vector<tile::Dim> strides(extents.size());
    Index step = 1;
    for (std::size_t d = extents.size(); d-- > 0;) {
      strides[d] = {step, -1};
      step *= extents[d].dim.value;
    }
    to.view = s_.view({-1, shape_.epilogue_reductions + static_cast<int>(i), 0}, m.dtype, extents, strides,
                      "parts");
    k_.store(to.view, to.starts, out_.fit(out_.value(all[i]), to.row_dim >= 0, to.column_dim >= 0),
             {.dims = to.dims(), .bounded = to.bounded});
  }
}

// One more dimension of a view, which a variable walks.
void Emitter::add_dim(int v, Frame::Access& to, std::vector<Builder::SizeArg>& extents) {
  if (v == shape_.row) to.row_dim = static_cast<int>(extents.size());
  if (v == shape_.column) to.column_dim = static_cast<int>(extents.size());
  to.bounded = to.bounded || (out_.is_tile(v) && out_.ragged(v));
  extents.push_back(s_.extent(v));
  to.starts.push_back(s_.start(v));
}

Value Emitter::place_of_block(int v) {
  const auto place = places_.find(v);
  return place == places_.end() ? k_.literal_int(DType::i64, 0) : place->second;
}

Frame::Access Emitter::partial(const SharedPart& part, int temporary, Value split) {
  const std::vector<int> variables = partial_variables(nest_, shape_, part.expr);
  Frame::Access to;
  Index step = 1;
  for (int v : variables) step *= s_.extent(v);
  std::vector<Builder::SizeArg> extents = {shape_.split_k};
  std::vector<tile::Dim> strides = {{step, -1}};
  to.starts.push_back(split);
  for (int v : variables) {
    step /= s_.extent(v);
    add_dim(v, to, extents);
    strides.push_back({step, -1});
  }
  to.view = s_.view({-1, temporary, 0}, part.dtype, extents, strides, "partial");
  return to;
}

void Emitter::store_partials() {
  const std::vector<SharedPart> parts = shared_parts(nest_);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int s = parts[i].expr;
    const Frame::Access to = partial(parts[i], static_cast<int>(i), split_);
    const Value mine = parts[i].extreme ? extremes_.at(s) : out_.value(s);
    Value v = out_.fit(mine, to.row_dim >= 0, to.column_dim >= 0);
    const auto write = [&] { k_.store(to.view, to.starts, v, {.dims = to.dims(), .bounded = to.bounded}); };
    // The first of several blocks of columns stores what stands beside the dot.
    const bool shares = dot_ >= 0 && !nest_.is_outer_dot(s) && shape_.column >= 0 &&
                        ceil_div(s_.extent(shape_.column), shape_.columns) > 1;
    if (shares)
      only_where(s_.start(shape_.column) == Index{0}, write);
    else
      write();
  }
}

void Emitter::only_where(Value condition, const std::function<void()>& write) {
  k_.branch(
      condition,
      [&] {
        write();
        return std::vector<Value>{};
      },
      [] { return std::vector<Value>{}; });
}

}  // namespace tilewright::passes
