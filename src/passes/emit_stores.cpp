// What a program stores: its outputs, or partial results where programs share a reduction.
#include "passes/emitter.h"

#include <algorithm>

namespace tilewright::passes {

using tile::Builder;
using tile::Value;

void Emitter::store(const ProgramOutput& o) {
  if (o.accumulate) return accumulate(o);
  const DType dtype = s_.graph.type(o.node).dtype;
  if (!o.offset.is_affine()) return scatter_output(o, dtype);
  FrameValues::Access a =
      out_.block_access({o.offset, EmitState::source_of(o.node), dtype, s_.buffer_name(o.node)});
  Value v = k_.cast(out_.fit(out_.value(o.sym), a.row_dim >= 0, a.column_dim >= 0), dtype);
  const auto write = [&] { k_.store(a.view, a.starts, v, {.dims = a.dims(), .bounded = a.bounded}); };
  const std::optional<Value> first = is_first_of_its_writers(o);
  if (!first) return write();
  k_.branch(
      *first,
      [&] {
        write();
        return std::vector<Value>{};
      },
      [] { return std::vector<Value>{}; });
}

std::optional<Value> Emitter::is_first_of_its_writers(const ProgramOutput& o) {
  std::optional<Value> first;
  for (int v : program_.parallel_variables()) {
    if (o.offset.depends_on(v) || ceil_div(s_.extent(v), block(v)) == 1) continue;
    const Value here = s_.start(v) == Index{0};
    first = first ? *first & here : here;
  }
  return first;
}

void Emitter::scatter_output(const ProgramOutput& o, DType dtype) {
  tile::View flat = s_.flat_view(o.node, dtype);
  Value index = out_.index_value(o.offset);
  Value computed_value =
      out_.value(o.sym);  // before index.type(): emitting moves the table that type() points into
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
  k_.atomic_add(flat, {k_.broadcast(index, frame)}, k_.cast(k_.broadcast(out_.value(o.sym), frame), dtype),
                mask);
}

void Emitter::store_outputs_looped() {
  if (dot_ < 0) hoist(program_.levels() + 1);
  bool any_reduced = false;
  for (const ProgramOutput& o : program_.outputs) {
    if (sym(o.sym).reduced || (walked_ >= 0 && o.offset.depends_on(walked_)))
      any_reduced = true;
    else
      store(o);
  }
  if (!any_reduced) return;
  loop_over_reduced({}, [&](const std::vector<Value>&) {
    for (const ProgramOutput& o : program_.outputs)
      if (sym(o.sym).reduced || o.offset.depends_on(walked_)) store(o);
    return std::vector<Value>{};
  });
}

void Emitter::store_partials() {
  int temporary = 0;
  std::vector<int> shared = reductions(1);
  if (dot_ >= 0) shared.push_back(dot_);
  for (int s : shared) {
    std::vector<Builder::SizeArg> extents;
    std::vector<tile::Dim> strides;
    std::vector<tile::Operand> starts;
    Index size = 1;
    for (int v : program_.parallel_variables()) size *= s_.extent(v);
    extents.push_back(shape_.splits);
    strides.push_back({size, -1});
    starts.push_back(split_);
    int row_dim = -1, column_dim = -1;
    bool bounded = false;
    Index step = size;
    for (int v : program_.parallel_variables()) {
      step /= s_.extent(v);
      if (v == shape_.row) row_dim = static_cast<int>(extents.size());
      if (v == shape_.column) column_dim = static_cast<int>(extents.size());
      bounded = bounded || (out_.is_tile(v) && out_.ragged(v));
      extents.push_back(s_.extent(v));
      strides.push_back({step, -1});
      starts.push_back(s_.start(v));
    }
    Value v = out_.fit(out_.value(s), row_dim >= 0, column_dim >= 0);
    tile::View partial = s_.view({-1, temporary++, 0}, v.dtype(), extents, strides, "partial");
    tile::StoreOptions options{.dims = {}, .bounded = bounded};
    if (row_dim >= 0) options.dims.push_back(row_dim);
    if (column_dim >= 0) options.dims.push_back(column_dim);
    k_.store(partial, starts, v, options);
  }
}

}  // namespace tilewright::passes
