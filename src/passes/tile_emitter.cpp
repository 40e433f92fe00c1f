// GroupProgram → tile IR: the grid, the loops over reduced variables, and what is stored.
#include "passes/tile_emitter.h"
#include "passes/frame_values.h"
#include "passes/online.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <limits>
#include <map>

namespace tilewright::passes {

using tile::Builder;
using tile::Monoid;
using tile::Prim;
using tile::Value;

tile::Number identity(Monoid monoid, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double value = 0;
  switch (monoid) {
    case Monoid::prod:
    case Monoid::logical_and:
      value = 1;
      break;
    case Monoid::max:
    case Monoid::argmax:
      value = -kInfinity;
      break;
    case Monoid::min:
    case Monoid::argmin:
      value = kInfinity;
      break;
    default:
      break;
  }
  if (is_float(dtype)) return {value, 0};
  return {0, float_to_int(dtype, value)};  // infinities become the type's limits
}

namespace {

class Emitter {
 public:
  Emitter(const ir::Graph& graph, const GroupProgram& program, const TileShape& shape,
          const std::string& name, const std::vector<Temporary>& temporaries)
      : program_(program),
        shape_(shape),
        s_(graph, program, name, temporaries),
        k_(s_.k),
        dot_(program.dot()),
        walked_(walked_variable(program, shape)),
        f_(s_, loop_frame(), {shape.looped, walked_}),
        columns_(s_, {walked_, shape.column, shape.depth, shape.columns, true, true}, {true, walked_}),
        result_(s_, result_frame(), {shape.looped, -1}),
        out_(dot_ >= 0 ? result_ : f_) {}

  EmittedKernel run() {
    declare_constants();
    choose_starts();
    if (!shape_.looped) {
      for (const ProgramOutput& o : program_.outputs) store(o);
    } else {
      // Indices of the parallel axes stand before the loops that share them.
      if (dot_ < 0)
        for (int v : {shape_.row, shape_.column})
          if (v >= 0 && v != walked_) f_.variable(v);
      for (const ReductionPass& pass : reduction_passes(s_.graph, program_)) reduction_pass(pass);
      if (shape_.splits > 1)
        store_partials();
      else
        store_outputs_looped();
    }
    return {k_.finish(grid_), std::move(s_.sources)};
  }

 private:
  static std::size_t at(int v) { return static_cast<std::size_t>(v); }
  const Sym& sym(int s) const { return program_.syms[at(s)]; }
  bool has_rows() const { return shape_.row >= 0 || dot_ >= 0 || program_.has_inner_dots(); }
  // The reduced variable the innermost loop walks in blocks, or that the tile holds whole.
  static int walked_variable(const GroupProgram& program, const TileShape& shape) {
    if (shape.depth_variable >= 0) return shape.depth_variable;
    for (int v : {shape.column, shape.row})
      if (v >= 0 && program.reduced[at(v)]) return v;
    return -1;
  }
  // What stands in the loops: with a dot its operand a, rows × depth, whose other operand, depth × columns,
  // and whose result, rows × columns, have frames of their own.
  Frame loop_frame() const {
    if (dot_ < 0) return result_frame();
    const bool plain = program_.levels() == 1 && !program_.has_inner_dots();
    return {shape_.row, walked_, shape_.rows, shape_.depth, true, plain};
  }
  Frame result_frame() const { return {shape_.row, shape_.column, shape_.rows, shape_.columns, has_rows()}; }
  Index block(int v) const {
    if (v == shape_.depth_variable) return shape_.depth;
    return v == shape_.row ? shape_.rows : v == shape_.column ? shape_.columns : 1;
  }

  void declare_constants() {
    if (dot_ >= 0) {
      k_.constant("BM", shape_.rows), k_.constant("BN", shape_.columns), k_.constant("BK", shape_.depth);
      return;
    }
    if (shape_.column >= 0) k_.constant("BN", shape_.columns);
    if (has_rows()) k_.constant("BM", shape_.rows);
  }

  // --- the grid
  struct Part {
    int variable;  // -1: the split
    Index extent, block;
  };

  // Scalar start of every variable: from the program id, or 0 for a reduced one that fits the tile.
  void choose_starts() {
    std::vector<Part> parts;  // fastest first
    for (int v : {shape_.column, shape_.row})
      if (v >= 0 && !program_.reduced[at(v)]) parts.push_back({v, s_.extent(v), block(v)});
    const std::vector<int> parallel = program_.parallel_variables();
    for (auto v = parallel.rbegin(); v != parallel.rend(); ++v)
      if (*v != shape_.row && *v != shape_.column) parts.push_back({*v, s_.extent(*v), 1});
    if (shape_.splits > 1) parts.push_back({-1, shape_.splits, 1});
    if (dot_ >= 0) {
      // Blocks of columns, of rows, and the rest are grid axes of their own: schedules order them.
      const auto take = [&](int v) {
        std::vector<Part> taken;
        std::copy_if(parts.begin(), parts.end(), std::back_inserter(taken),
                     [&](const Part& p) { return p.variable == v && v >= 0; });
        std::erase_if(parts, [&](const Part& p) { return p.variable == v && v >= 0; });
        return taken;
      };
      add_grid_axis(take(shape_.column));
      add_grid_axis(take(shape_.row));
    }
    if (dot_ < 0 || !parts.empty()) add_grid_axis(parts);
    for (int v = 0; v < static_cast<int>(program_.extents.size()); ++v)
      if (v == walked_ || program_.inner[at(v)]) s_.start(v) = k_.literal_int(DType::i64, 0);
    for (int v : program_.reduced_variables())
      if (v != walked_) TW_CHECK(shape_.looped, "several reduced variables need loops");
  }

  void add_grid_axis(std::vector<Part> parts) {
    std::erase_if(parts, [&](const Part& p) {
      const bool single = ceil_div(p.extent, p.block) == 1;
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
      if (parts[i].variable < 0)
        split_ = coordinate;
      else
        s_.start(parts[i].variable) = parts[i].block == 1 ? coordinate : coordinate * parts[i].block;
      axis.push_back({Builder::SizeArg(parts[i].extent), parts[i].block});
    }
    if (axis.empty()) axis.push_back({Builder::SizeArg(1), 1});
    grid_.push_back(std::move(axis));
  }

  // --- what is stored
  void store(const ProgramOutput& o) {
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

  // Programs that differ only in variables an output does not walk would all write it, as those of the blocks
  // of columns would what depends on the rows: the first of them does.
  std::optional<Value> is_first_of_its_writers(const ProgramOutput& o) {
    std::optional<Value> first;
    for (int v : program_.parallel_variables()) {
      if (o.offset.depends_on(v) || ceil_div(s_.extent(v), block(v)) == 1) continue;
      const Value here = s_.start(v) == Index{0};
      first = first ? *first & here : here;
    }
    return first;
  }

  void scatter_output(const ProgramOutput& o, DType dtype) {
    tile::View flat = s_.flat_view(o.node, dtype);
    Value index = out_.index_value(o.offset);
    Value computed_value =
        out_.value(o.sym);  // before index.type(): emitting moves the table that type() points into
    Value stored = k_.cast(k_.broadcast(computed_value, index.type().shape), dtype);
    k_.scatter(flat, {index}, stored, out_.overhang_mask());
  }

  void accumulate(const ProgramOutput& o) {
    const DType dtype = o.node >= 0 ? s_.graph.type(o.node).dtype : s_.temporaries[at(-1 - o.node)].dtype;
    tile::View flat = s_.flat_view(o.node, dtype);
    Value index = out_.dynamic_index(o.offset, o.dynamic);
    const std::vector<Index> frame = out_.whole_shape();
    std::optional<Value> mask = out_.overhang_mask();
    if (o.mask >= 0) mask = mask ? *mask & out_.value(o.mask) : out_.value(o.mask);
    k_.atomic_add(flat, {k_.broadcast(index, frame)}, k_.cast(k_.broadcast(out_.value(o.sym), frame), dtype),
                  mask);
  }

  // --- loops over the reduced variables
  std::vector<int> reductions(int level) const {
    std::vector<int> out;
    for (std::size_t s = 0; s < program_.syms.size(); ++s)
      if (program_.syms[s].kind == Sym::Kind::reduce && program_.syms[s].level == level)
        out.push_back(static_cast<int>(s));
    return out;
  }

  // What does not change inside the loop stands before it.
  void hoist(int level) {
    for (std::size_t s = 0; s < program_.syms.size(); ++s) {
      const Sym& m = program_.syms[s];
      if (!m.reduced && m.level < level && m.kind != Sym::Kind::reduce && m.kind != Sym::Kind::dot)
        f_.value(static_cast<int>(s));
    }
  }

  // In a program with a dot, other values may belong to the frame of the result.
  void hoist(const ReductionPass& pass) {
    if (dot_ < 0) {
      hoist(pass.first_level);
    } else {
      for (int s : pass.syms) {
        f_.hoist(sym(s).operands[0], pass.first_level);
        if (s == dot_) columns_.hoist(sym(s).operands[1], pass.first_level);
      }
    }
    f_.hoist_dot_operands();
  }

  static bool is_index(Monoid m) { return m == Monoid::argmax || m == Monoid::argmin; }
  static Monoid extreme(Monoid m) { return m == Monoid::argmax ? Monoid::max : Monoid::min; }

  Value literal(DType dtype, Monoid monoid, const std::vector<Index>& shape) {
    const tile::Number number = identity(monoid, dtype);
    return is_float(dtype) ? k_.literal(dtype, number.f, shape) : k_.literal_int(dtype, number.i, shape);
  }

  Value combine(Monoid monoid, Value a, Value b) {
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

  // The operand's tile shape inside the loop: it may not vary along the parallel tile axis.
  std::vector<Index> accumulator_shape(bool whole) const {
    std::vector<Index> shape = f_.whole_shape();
    if (!whole) {
      if (has_rows())
        shape[static_cast<std::size_t>(f_.reduced_axis())] = 1;
      else
        shape = {};
    }
    return shape;
  }

  // Several levels in one loop: no whole tiles are carried, since each level needs the one before complete.
  bool accumulates_tiles(const ReductionPass& pass) const {
    return shape_.accumulate_tiles && sym(pass.syms.back()).level == pass.first_level;
  }

  void reduction_pass(const ReductionPass& pass) {
    hoist(pass);
    std::vector<Value> initial;
    for (int s : pass.syms) {
      const Sym& m = sym(s);
      if (s == dot_) {
        initial.push_back(k_.literal(accumulator(m.dtype), 0.0, {shape_.rows, shape_.columns}));
        continue;
      }
      const DType operand_dtype = compute_dtype(sym(m.operands[0]).dtype);
      const bool whole = accumulates_tiles(pass) && !is_index(m.monoid);
      initial.push_back(literal(operand_dtype, m.monoid, accumulator_shape(whole)));
      if (is_index(m.monoid)) initial.push_back(k_.literal_int(DType::i64, 0, accumulator_shape(false)));
    }
    f_.moving_from(pass.first_level);
    std::vector<Value> last = loop_over_reduced(
        initial, [&](const std::vector<Value>& carried) { return accumulate_block(pass, carried); });
    f_.rest();
    std::size_t next = 0;
    for (int s : pass.syms) {
      const Sym& m = sym(s);
      Value v = last[next++];
      if (s == dot_)
        v = v.dtype() == m.dtype ? v : k_.cast(v, m.dtype);
      else if (is_index(m.monoid))
        v = last[next++];
      else if (accumulates_tiles(pass))
        v = f_.keep_rank(k_.reduce(m.monoid, v, f_.reduced_axis()));
      f_.set(s, v);
      if (dot_ >= 0) out_.set(s, v);
    }
  }

  using Moved = std::map<int, std::pair<Value, Value>>;  // reduction → its old value and its new one

  std::vector<Value> accumulate_block(const ReductionPass& pass, const std::vector<Value>& carried) {
    std::vector<Value> out;
    Moved moved;
    factors_.clear();
    for (std::size_t i = 0; i < pass.syms.size(); ++i) {
      const int s = pass.syms[i];
      const Sym& m = sym(s);
      Value before = carried[out.size()];
      if (s != dot_ && is_index(m.monoid)) {
        const auto [best, where_best] = better_of(m, before, carried[out.size() + 1]);
        out.push_back(best);
        out.push_back(where_best);
        continue;
      }
      Value scaled = before;
      if (pass.factors[i] && pass.factors[i]->kind != Change::Kind::none)
        scaled = before * factor(*pass.factors[i], moved);
      if (s == dot_) {
        Value a = f_.dot_operand(m.operands[0], m.meet), b = columns_.dot_operand(m.operands[1], m.meet);
        out.push_back(k_.dot(a, b, scaled));
        continue;
      }
      Value operand = block_operand(m);
      if (!accumulates_tiles(pass)) operand = f_.keep_rank(k_.reduce(m.monoid, operand, f_.reduced_axis()));
      Value after = combine(m.monoid, scaled, operand);
      out.push_back(after);
      if (sym(pass.syms.back()).level == pass.first_level) continue;
      moved[s] = {before, finite(m, after)};
      f_.set_in_body(s, moved[s].second);
    }
    return out;
  }

  // What this block adds to a reduction: nothing outside the space.
  Value block_operand(const Sym& m) {
    Value operand = k_.broadcast(f_.full(f_.computed(m.operands[0])), accumulator_shape(true));
    if (!f_.ragged(walked_)) return operand;
    Value inside = f_.variable(walked_) < s_.extent(walked_);
    return tile::where(k_.broadcast(inside, operand.type().shape), operand,
                       literal(operand.dtype(), m.monoid, operand.type().shape));
  }

  std::pair<Value, Value> better_of(const Sym& m, Value best, Value where_best) {
    Value operand = block_operand(m);
    Value here = f_.keep_rank(k_.reduce(extreme(m.monoid), operand, f_.reduced_axis()));
    Value index = f_.keep_rank(k_.reduce(m.monoid, operand, f_.reduced_axis())) + s_.start(walked_);
    Value better = m.monoid == Monoid::argmax ? here > best : here < best;
    if (is_float(here.dtype()))
      better = better | (k_.apply(Prim::isnan, {here}) & ~k_.apply(Prim::isnan, {best}));
    return {tile::where(better, here, best), tile::where(better, index, where_best)};
  }

  // A maximum of nothing so far is -inf, from which no difference can be taken: what is subtracted is 0 then.
  Value finite(const Sym& m, Value v) {
    if (!is_float(v.dtype()) || (m.monoid != Monoid::max && m.monoid != Monoid::min)) return v;
    const double nothing = identity(m.monoid, v.dtype()).f;
    return tile::where(v == nothing, 0.0, v);
  }

  // Reductions of one level often need the same factor.
  Value factor(const Change& c, const Moved& moved) {
    for (const auto& [known, value] : factors_)
      if (*known == c) return value;
    factors_.emplace_back(&c, change(c, moved));
    return factors_.back().second;
  }

  Value change(const Change& c, const Moved& moved) {
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
        return part(0) * f_.computed(c.sym);
      case Change::Kind::none:
        break;
    }
    TW_CHECK(false, "no change has no value");
  }

  std::pair<Value, Value> ends(const Change& c, const Moved& moved) {
    if (c.kind == Change::Kind::old_to_new) return moved.at(c.sym);
    const auto [before, after] = ends(*c.parts[0], moved);
    const Value bound = f_.computed(c.sym);
    if (c.kind == Change::Kind::at_least) return {tile::max(before, bound), tile::max(after, bound)};
    return {tile::min(before, bound), tile::min(after, bound)};
  }

  using Body = std::function<std::vector<Value>(const std::vector<Value>&)>;

  std::vector<Value> loop_over_reduced(const std::vector<Value>& initial, const Body& body) {
    std::vector<int> outer;
    for (int v : program_.reduced_variables())
      if (v != walked_) outer.push_back(v);
    return nest(outer, 0, initial, body);
  }

  std::vector<Value> nest(const std::vector<int>& outer, std::size_t depth, const std::vector<Value>& initial,
                          const Body& body) {
    const bool innermost = depth == outer.size();
    const int v = innermost ? walked_ : outer[depth];
    tile::Operand lower = Index{0}, upper = s_.extent(v);
    if (innermost && shape_.splits > 1) {
      Value first = split_ * shape_.split_length;
      lower = first;
      // Parts of one length have loops of known trips.
      upper = first + shape_.split_length;
      if (s_.extent(v) % shape_.split_length != 0)
        upper = tile::min(first + shape_.split_length, s_.extent(v));
    }
    std::vector<Value> last =
        k_.loop(lower, upper, block(v), initial, [&](Value i, const std::vector<Value>& carried) {
          s_.start(v) = i;
          if (!innermost) return nest(outer, depth + 1, carried, body);
          ++s_.body;
          s_.in_loop = true;
          return body(carried);
        });
    s_.in_loop = false;
    ++s_.body;  // what was computed in there is not there any more
    return last;
  }

  void store_outputs_looped() {
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

  // Partials lie [splits][parallel variables], row-major over the parallel variables in order.
  void store_partials() {
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

  const GroupProgram& program_;
  const TileShape& shape_;
  EmitState s_;
  Builder& k_;
  const int dot_;  // sym, or -1
  const int walked_;
  FrameValues f_;                 // in the loops
  FrameValues columns_, result_;  // of a dot: operand b, and what it gives
  FrameValues& out_;              // what is stored
  Value split_;
  std::vector<std::pair<const Change*, Value>> factors_;  // of the loop body that is being written
  std::vector<std::vector<std::pair<Builder::SizeArg, Index>>> grid_;
};

}  // namespace

EmittedKernel emit_tiles(const ir::Graph& graph, const GroupProgram& program, const TileShape& shape,
                         const std::string& name, const std::vector<Temporary>& temporaries) {
  return Emitter(graph, program, shape, name, temporaries).run();
}

Index program_count(const GroupProgram& program, const TileShape& shape) {
  Index count = shape.splits;
  for (int v : program.parallel_variables()) {
    const Index block = v == shape.row ? shape.rows : v == shape.column ? shape.columns : 1;
    count *= ceil_div(program.extents[static_cast<std::size_t>(v)], block);
  }
  return count;
}

}  // namespace tilewright::passes
