// LoopNest → tile IR: the grid, and the loops over reduced variables.
#include "passes/emit/tile_emitter.h"

#include "passes/emit/emitter.h"
#include "passes/nest/dot_axes.h"
#include "passes/nest/epilogue_reductions.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <map>

namespace tilewright::passes {

using tile::Builder;
using tile::Value;

EmittedKernel Emitter::run() {
  declare_constants();
  choose_starts();
  if (!shape_.looped) {
    for (const ProgramOutput& o : nest_.outputs) store(o);
  } else {
    // Indices of the parallel axes stand before the loops that share them.
    if (!has_dot_blocks())
      for (int v : {shape_.row, shape_.column})
        if (v >= 0 && v != walked_) f_.variable(v);
    for (const ReductionPass& pass : reduction_passes(s_.graph, nest_))
      shape_.combines ? merge_pass(pass) : reduction_pass(pass);
    if (shape_.split_k > 1 && !shape_.combines)
      store_partials();
    else
      store_outputs_looped();
  }
  return {k_.finish(grid_), std::move(s_.sources), std::move(note_), std::move(known_blocks_)};
}

TileAxes Emitter::loop_frame() const {
  if (dot_ < 0) return result_frame();
  const bool plain = nest_.levels() == 1 && !nest_.has_inner_dots();
  return {shape_.row, walked_, shape_.rows, shape_.depth, true, plain};
}

Index Emitter::block(int v) const {
  if (v == shape_.depth_variable) return shape_.depth;
  return v == shape_.row ? shape_.rows : v == shape_.column ? shape_.columns : 1;
}

void Emitter::declare_constants() {
  if (has_dot_blocks()) {
    k_.constant("BM", shape_.rows), k_.constant("BN", shape_.columns);
    if (dot_ >= 0) k_.constant("BK", shape_.depth);
    return;
  }
  if (shape_.column >= 0) k_.constant("BN", shape_.columns);
  if (has_rows()) k_.constant("BM", shape_.rows);
}

void Emitter::choose_starts() {
  std::vector<Part> parts;  // fastest first
  for (int v : {shape_.column, shape_.row})
    if (v >= 0 && !nest_.reduced[at(v)]) parts.push_back({v, s_.extent(v), block(v)});
  for (int v : nearest_first())
    if (v != shape_.row && v != shape_.column) parts.push_back({v, s_.extent(v), 1});
  if (shape_.split_k > 1 && !shape_.combines) parts.push_back({-1, shape_.split_k, 1});
  if (has_dot_blocks()) {
    // Blocks of columns, of rows, and the rest are grid axes of their own: schedules order them.
    const auto take = [&](const std::vector<int>& variables) {
      const auto wanted = [&](const Part& p) {
        return std::find(variables.begin(), variables.end(), p.variable) != variables.end();
      };
      std::vector<Part> taken;
      std::copy_if(parts.begin(), parts.end(), std::back_inserter(taken), wanted);
      std::erase_if(parts, wanted);
      return taken;
    };
    add_grid_axis(take(column_variables()));
    add_grid_axis(take({shape_.row}));
  }
  if (!has_dot_blocks() || !parts.empty()) add_grid_axis(parts);
  for (int v = 0; v < static_cast<int>(nest_.extents.size()); ++v)
    if (v == walked_ || nest_.inner[at(v)] || holds_whole(v)) s_.start(v) = k_.literal_int(DType::i64, 0);
  for (int v : nest_.reduced_variables())
    if (v != walked_) TW_CHECK(shape_.looped || holds_whole(v), "several reduced variables need loops");
}

// The parallel variables as programs take them, those first along which something large lies closely, or is
// the same: what one program leaves of a memory page, or of a line in the cache, is read by the next. Ties
// are in the result's order.
std::vector<int> Emitter::nearest_first() const {
  std::vector<int> variables = nest_.parallel_variables();
  std::reverse(variables.begin(), variables.end());
  if (has_dot_blocks()) return variables;
  struct Walk {
    const IndexExpr* offset;
    Index bytes;  // of an element
    double elements;
  };
  std::vector<Walk> walks;
  const auto add = [&](const IndexExpr& offset, DType dtype) {
    walks.push_back({&offset, static_cast<Index>(size_bytes(dtype)), touched(offset, nest_)});
  };
  for (const Expr& e : nest_.exprs)
    if (e.kind == Expr::Kind::load && e.offset.is_affine() && e.dynamic.empty()) add(e.offset, e.dtype);
  for (const ProgramOutput& o : nest_.outputs)
    if (o.expr >= 0 && o.offset.is_affine()) add(o.offset, expr(o.expr).dtype);
  double most = 0;
  for (const Walk& w : walks) most = std::max(most, w.elements);
  constexpr double kLarge = 0.25;  // of the most elements: chosen, not measured
  std::map<int, Index> least;
  for (const Walk& w : walks)
    for (int v : variables)
      if (w.elements >= kLarge * most) {
        const Index step = std::abs(w.offset->factor(v)) * w.bytes;
        least[v] = least.count(v) > 0 ? std::min(least[v], step) : step;
      }
  std::stable_sort(variables.begin(), variables.end(), [&](int a, int b) { return least[a] < least[b]; });
  return variables;
}

// The variables of the columns: both parts of an axis that scales or epilogue reductions cut in two.
std::vector<int> Emitter::column_variables() const {
  std::vector<int> out;
  if (shape_.column >= 0) out.push_back(shape_.column);
  if (!nest_.accumulates_scaled() && epilogue_reductions_of(nest_).empty()) return out;
  const Expr& dot = expr(dot_axes(nest_).dot);
  const std::vector<std::vector<bool>> depends = dependence(nest_);
  for (int v : nest_.parallel_variables())
    if (v != shape_.column && depends[at(dot.operands[1])][at(v)] && !depends[at(dot.operands[0])][at(v)])
      out.push_back(v);
  return out;
}

void Emitter::add_grid_axis(std::vector<Part> parts) {
  std::erase_if(parts, [&](const Part& p) {
    const bool single = ceil_div(p.extent, p.block) == 1 && !(shape_.any_size && p.extent > 1);
    if (single && p.variable >= 0) s_.start(p.variable) = k_.literal_int(DType::i64, 0);
    return single;
  });
  std::vector<std::pair<Builder::SizeArg, Index>> axis;
  Value rest;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Index count = ceil_div(parts[i].extent, parts[i].block);
    if (i == 0) {
      rest = k_.program_id(static_cast<int>(grid_.size()));
      if (dot_ < 0) k_.name_value(rest, "pid");
    }
    Value coordinate = i + 1 == parts.size() ? rest : rest % count;
    if (i + 1 < parts.size()) rest = rest / count;
    if (parts[i].variable < 0) {
      split_ = coordinate;
    } else {
      places_[parts[i].variable] = coordinate;
      s_.start(parts[i].variable) = parts[i].block == 1 ? coordinate : coordinate * parts[i].block;
      const bool row = parts[i].variable == shape_.row;
      if (parts[i].block > 1 && (row || parts[i].variable == shape_.column))
        k_.name_value(s_.start(parts[i].variable), row ? "first_row" : "first_column");
    }
    axis.push_back({Builder::SizeArg(parts[i].extent), parts[i].block});
  }
  if (axis.empty()) axis.push_back({Builder::SizeArg(1), 1});
  grid_.push_back(std::move(axis));
}

std::vector<Value> Emitter::loop_over_reduced(const std::vector<Value>& initial, const Body& body) {
  std::vector<int> outer;
  for (int v : nest_.reduced_variables())
    if (v != walked_) outer.push_back(v);
  return nest(outer, 0, initial, body);
}

std::vector<Value> Emitter::nest(const std::vector<int>& outer, std::size_t depth,
                                 const std::vector<Value>& initial, const Body& body) {
  const bool innermost = depth == outer.size();
  const int v = innermost ? walked_ : outer[depth];
  tile::Operand lower = Index{0}, upper = s_.extent(v);
  if (innermost && part_) std::tie(lower, upper) = *part_;
  const bool shared = shape_.split_k_variable < 0 ? innermost : v == shape_.split_k_variable;
  if (shared && shape_.split_k > 1) {
    Value first = split_ * shape_.split_k_length;
    const bool part = innermost && part_;
    lower = part ? tile::max(first, lower) : first;
    // Parts of one length have loops of known trips.
    if (part || s_.extent(v) % shape_.split_k_length != 0)
      upper = tile::min(first + shape_.split_k_length, upper);
    else
      upper = first + shape_.split_k_length;
  }
  std::vector<Value> begin = initial;
  if (innermost && !terms_.empty())
    begin.assign(initial.size(), literal(initial[0].dtype(), tile::Monoid::sum, accumulator_shape(true)));
  const std::vector<Value> last =
      k_.loop(lower, upper, block(v), begin, [&](Value i, const std::vector<Value>& carried) {
        s_.start(v) = i;
        if (innermost) k_.name_value(i, dot_ >= 0 && !nest_.has_inner_dots() ? "depth" : "column");
        if (!innermost) return nest(outer, depth + 1, carried, body);
        s_.enter_body();
        std::vector<Value> next = body(carried);
        s_.leave_body();
        return next;
      });
  return innermost && !terms_.empty() ? add_scaled(initial, last) : last;
}

EmittedKernel emit_tiles(const ir::Graph& graph, const LoopNest& nest, const TileShape& shape,
                         const std::string& name, const std::vector<Temporary>& temporaries) {
  return Emitter(graph, nest, shape, name, temporaries).run();
}

}  // namespace tilewright::passes
