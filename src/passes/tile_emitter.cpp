// GroupProgram → tile IR. In a frame with rows and columns every tile has rank 2 with unit axes where it does
// not vary, so that the builder's broadcasting does the rest; without rows tiles have rank 1.
#include "passes/tile_emitter.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <limits>

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
      : graph_(graph),
        program_(program),
        shape_(shape),
        k_(name),
        temporaries_(temporaries),
        values_(program.syms.size()),
        have_(program.syms.size(), 0) {}

  EmittedKernel run() {
    choose_variables();
    declare_constants();
    if (!shape_.looped) {
      for (const ProgramOutput& o : program_.outputs) store(o);
    } else {
      // Indices of the parallel axes stand before the loops that share them.
      for (int v : {shape_.row, shape_.column})
        if (v >= 0 && v != tile_reduced_) variable(v);
      for (int level = 1; level <= program_.levels(); ++level) reduction_pass(level);
      if (shape_.splits > 1)
        store_partials();
      else
        store_outputs_looped();
    }
    return {k_.finish({grid_}), std::move(sources_)};
  }

 private:
  // --- variables
  bool has_rows() const { return shape_.row >= 0; }
  bool ragged(int v) const {
    return v == tile_reduced_ ? shape_.looped && program_.extents[at(v)] % block(v) != 0
                              : program_.extents[at(v)] % block(v) != 0;
  }
  static std::size_t at(int v) { return static_cast<std::size_t>(v); }
  Index block(int v) const { return v == shape_.row ? shape_.rows : v == shape_.column ? shape_.columns : 1; }

  void declare_constants() {
    if (shape_.column >= 0) k_.constant("BN", shape_.columns);
    if (has_rows()) k_.constant("BM", shape_.rows);
  }

  // Scalar start of every variable: from the program id, or 0 for a reduced one that fits the tile.
  void choose_variables() {
    starts_.resize(program_.extents.size());
    for (int v : {shape_.row, shape_.column})
      if (v >= 0 && program_.reduced[at(v)]) tile_reduced_ = v;
    std::vector<int> order;  // fastest first
    for (int v : {shape_.column, shape_.row})
      if (v >= 0 && !program_.reduced[at(v)]) order.push_back(v);
    for (int v = static_cast<int>(program_.extents.size()) - 1; v >= 0; --v)
      if (!program_.reduced[at(v)] && v != shape_.row && v != shape_.column) order.push_back(v);
    struct Part {
      int variable;
      Index extent, block;
    };
    std::vector<Part> parts;
    for (int v : order) parts.push_back({v, program_.extents[at(v)], block(v)});
    if (shape_.splits > 1) parts.push_back({-1, shape_.splits, 1});
    std::erase_if(parts, [&](const Part& p) {
      const bool single = ceil_div(p.extent, p.block) == 1;
      if (single && p.variable >= 0) starts_[at(p.variable)] = k_.literal_int(DType::i64, 0);
      return single;
    });
    Value rest;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Index count = ceil_div(parts[i].extent, parts[i].block);
      if (i == 0) {
        rest = k_.program_id(0);
        k_.name_value(rest, "pid");
      }
      Value coordinate = i + 1 == parts.size() ? rest : rest % count;
      if (i + 1 < parts.size()) rest = rest / count;
      if (parts[i].variable < 0)
        split_ = coordinate;
      else
        starts_[at(parts[i].variable)] = parts[i].block == 1 ? coordinate : coordinate * parts[i].block;
      grid_.push_back({Builder::SizeArg(parts[i].extent), parts[i].block});
    }
    if (grid_.empty()) grid_.push_back({Builder::SizeArg(1), 1});
    if (tile_reduced_ >= 0) starts_[at(tile_reduced_)] = k_.literal_int(DType::i64, 0);
    for (int v : program_.reduced_variables())
      if (v != tile_reduced_) TW_CHECK(shape_.looped, "several reduced variables need loops");
  }

  bool is_tile(int v) const { return v >= 0 && (v == shape_.row || v == shape_.column); }

  // The variable's value: scalar, or a tile along its axis.
  Value variable(int v) {
    if (!is_tile(v) || block(v) == 1) return starts_[at(v)];
    auto& cached = v == tile_reduced_ ? reduced_index_ : index_[v];
    if (!cached.type_known) {
      Value i = starts_[at(v)] + k_.arange(block(v));
      if (has_rows()) i = k_.expand(i, v == shape_.row ? 1 : 0);
      cached = {i, true};
    }
    return cached.value;
  }

  Value index_value(const IndexExpr& e) {
    Value sum;
    bool any = false;
    auto plus = [&](Value v) {
      sum = any ? sum + v : v;
      any = true;
    };
    for (const IndexExpr::Term& t : e.terms()) {
      Value atom = t.div_mod ? div_mod(*t.div_mod) : variable(t.variable);
      plus(t.factor == 1 ? atom : atom * t.factor);
    }
    if (!any) return k_.literal_int(DType::i64, e.constant());
    return e.constant() == 0 ? sum : sum + e.constant();
  }

  // Floor semantics: the emitted indices are never negative inside the space; under a mask a wrong value is
  // not read.
  Value div_mod(const IndexExpr::DivMod& d) {
    Value inner = index_value(d.inner);
    return d.is_division ? inner / d.divisor : inner % d.divisor;
  }

  // --- values
  const Sym& sym(int s) const { return program_.syms[static_cast<std::size_t>(s)]; }

  Value value(int s) {
    const auto i = static_cast<std::size_t>(s);
    if (have_[i] != 0 && (have_[i] == kForever || have_[i] == scope_)) return values_[i];
    values_[i] = compute(s);
    have_[i] = sym(s).reduced && shape_.looped ? scope_ : kForever;
    return values_[i];
  }

  // In the type arithmetic uses. A value and its widened form live equally long.
  Value computed(int s) {
    Value v = value(s);
    if (compute_dtype(v.dtype()) == v.dtype()) return v;
    auto& [narrow, wide] = widened_[s];
    if (wide.id() < 0 || narrow != v.id()) {
      narrow = v.id();
      wide = k_.cast(v, compute_dtype(v.dtype()));
    }
    return wide;
  }

  Value compute(int s) {
    const Sym& m = sym(s);
    switch (m.kind) {
      case Sym::Kind::load:
        return load(m);
      case Sym::Kind::index:
        return index_value(m.offset);
      case Sym::Kind::constant:
        return is_float(m.dtype) ? k_.literal(m.dtype, m.number.f) : k_.literal_int(m.dtype, m.number.i);
      case Sym::Kind::op: {
        std::vector<Value> operands;
        for (int o : m.operands) operands.push_back(computed(o));
        const ir::Node& node = graph_.node(m.node);
        return node.op->lower(k_, operands, node.attrs);
      }
      case Sym::Kind::cast:
        return k_.cast(value(m.operands[0]), m.dtype);
      case Sym::Kind::in_range: {
        Value i = m.operands.empty() ? index_value(m.offset) : k_.cast(value(m.operands[0]), DType::i64);
        return (i >= m.low) & (i < m.high);
      }
      case Sym::Kind::where:
        return tile::where(value(m.operands[0]), computed(m.operands[1]), computed(m.operands[2]));
      case Sym::Kind::random:
        return k_.random(value(m.operands[0]), index_value(m.offset));
      case Sym::Kind::reduce:
        return keep_rank(k_.reduce(m.monoid, full(computed(m.operands[0])), reduced_axis()));
      case Sym::Kind::scan:
        return k_.scan(m.monoid, full(computed(m.operands[0])), reduced_axis());
    }
    TW_CHECK(false, "unknown sym");
  }

  int reduced_axis() const { return has_rows() && tile_reduced_ == shape_.column ? 1 : 0; }

  // Stretches the reduced axis (a value that does not vary along it still counts once per element).
  Value full(Value v) {
    std::vector<Index> shape = v.type().shape;
    if (shape.empty()) shape.assign(has_rows() ? 2 : 1, 1);
    shape[static_cast<std::size_t>(reduced_axis())] = block(tile_reduced_);
    return k_.broadcast(v, shape);
  }

  // A reduced tile keeps its unit axis in a frame of rank 2.
  Value keep_rank(Value v) { return has_rows() ? k_.expand(v, reduced_axis()) : v; }

  // --- memory
  tile::View view(const BufferSource& source, DType dtype, const std::vector<Builder::SizeArg>& extents,
                  const std::vector<tile::Dim>& strides, const std::string& name) {
    const Index bytes = source.offset * static_cast<Index>(size_bytes(dtype));
    constexpr Index kBufferAlign = 256;  // Backend::allocate promises it
    Index align = kBufferAlign;
    while (bytes % align != 0) align /= 2;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const tile::ViewParam& p = k_.param(tile::View{static_cast<int>(i)});
      if (sources_[i].node == source.node && sources_[i].temporary == source.temporary &&
          sources_[i].offset == source.offset && p.strides == strides && p.extents.size() == extents.size() &&
          std::equal(extents.begin(), extents.end(), p.extents.begin(),
                     [](const Builder::SizeArg& a, const tile::Dim& b) { return a.dim == b; }))
        return {static_cast<int>(i)};
    }
    sources_.push_back(source);
    return k_.view(unique_name(name), dtype, extents, {.strides = strides, .align_bytes = align});
  }

  // A buffer may be seen through several views; graph inputs may have any name.
  std::string unique_name(std::string name) {
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
    std::string unique = name;
    for (int n = 1; !names_.insert(unique).second; ++n) unique = fmt::format("{}_{}", name, n);
    return unique;
  }

  struct Access {
    tile::View view;
    std::vector<tile::Operand> starts;
    int row_dim = -1, column_dim = -1;
    bool bounded = false;
  };

  // One more, leading dimension of a view, walked by a value instead of a loop variable.
  struct Picked {
    Value start;
    Index stride;
    Index extent;
  };

  Access block_access(const IndexExpr& offset, BufferSource source, DType dtype, const std::string& name,
                      const std::optional<Picked>& picked = std::nullopt) {
    Access a;
    std::vector<Builder::SizeArg> extents;
    std::vector<tile::Dim> strides;
    source.offset += offset.constant();
    if (picked) {
      extents.push_back(picked->extent);
      strides.push_back({picked->stride, -1});
      a.starts.push_back(picked->start);
    }
    for (int v = 0; v < static_cast<int>(program_.extents.size()); ++v) {
      const Index stride = offset.factor(v);
      if (stride == 0) continue;
      if (v == shape_.row) a.row_dim = static_cast<int>(extents.size());
      if (v == shape_.column) a.column_dim = static_cast<int>(extents.size());
      a.bounded = a.bounded || (is_tile(v) && ragged(v));
      extents.push_back(program_.extents[at(v)]);
      strides.push_back({stride, -1});
      a.starts.push_back(starts_[at(v)]);
    }
    a.view = view(source, dtype, extents, strides, name);
    return a;
  }

  std::string buffer_name(ir::NodeId node) const {
    if (node < 0) return "partial";
    const ir::Node& n = graph_.node(node);
    return n.name.empty() ? fmt::format("t{}", node) : n.name;
  }
  static BufferSource source_of(ir::NodeId node) {
    return node >= 0 ? BufferSource{node, -1, 0} : BufferSource{-1, -1 - node, 0};
  }

  // An index that is one scalar for the tile picks a row: a block load from there, of row 0 where the mask
  // forbids it.
  std::optional<Value> load_picked_row(const Sym& m) {
    if (!m.offset.is_affine() || m.dynamic.size() != 1 || m.mask < 0) return std::nullopt;
    const auto [index, stride] = m.dynamic[0];
    Value valid = value(m.mask);
    Value row = k_.cast(value(index), DType::i64);
    if (row.rank() != 0 || valid.rank() != 0 || stride <= 0) return std::nullopt;
    Value start = tile::where(valid, row, Index{0});
    Value v =
        load_block(m, Picked{start, stride, ceil_div(buffer_elements(m.node) - m.offset.constant(), stride)});
    return tile::where(valid, k_.cast(v, compute_dtype(v.dtype())), 0.0);
  }

  Value load(const Sym& m) {
    if (std::optional<Value> picked = load_picked_row(m)) return *picked;
    if (!m.offset.is_affine() || !m.dynamic.empty() || m.mask >= 0) return gather(m);
    return load_block(m, std::nullopt);
  }

  Value load_block(const Sym& m, const std::optional<Picked>& picked) {
    Access a = block_access(m.offset, source_of(m.node), m.dtype, buffer_name(m.node), picked);
    const Index row_stride = shape_.row >= 0 ? std::abs(m.offset.factor(shape_.row)) : 0;
    const Index column_stride = shape_.column >= 0 ? std::abs(m.offset.factor(shape_.column)) : 0;
    tile::LoadOptions options;
    if (a.bounded) options.fill = 0.0;
    const bool turned = a.row_dim >= 0 && a.column_dim >= 0 && row_stride == 1 && column_stride != 1;
    if (a.row_dim >= 0 && a.column_dim >= 0) {
      options.shape = turned ? std::vector<Index>{shape_.columns, shape_.rows}
                             : std::vector<Index>{shape_.rows, shape_.columns};
      options.dims =
          turned ? std::vector<int>{a.column_dim, a.row_dim} : std::vector<int>{a.row_dim, a.column_dim};
    } else if (a.column_dim >= 0) {
      options.shape = {shape_.columns};
      options.dims = {a.column_dim};
    } else if (a.row_dim >= 0) {
      options.shape = {shape_.rows};
      options.dims = {a.row_dim};
    }
    Value v = k_.load(a.view, a.starts, options);
    if (turned) return k_.transpose(v);
    if (has_rows() && v.rank() == 1) return k_.expand(v, a.row_dim >= 0 ? 1 : 0);
    return v;
  }

  Index buffer_elements(ir::NodeId node) const {
    return node >= 0 ? graph_.type(node).shape.size()
                     : temporaries_[static_cast<std::size_t>(-1 - node)].elements;
  }

  Value dynamic_index(const IndexExpr& offset, const std::vector<std::pair<int, Index>>& dynamic) {
    Value i = index_value(offset);
    for (auto [s, stride] : dynamic) {
      Value step = k_.cast(value(s), DType::i64);
      i = i + (stride == 1 ? step : step * stride);
    }
    return i;
  }

  // Inside the space, for tiles that overhang it.
  std::optional<Value> overhang_mask() {
    std::optional<Value> mask;
    for (int v : {shape_.row, shape_.column}) {
      if (v < 0 || !ragged(v)) continue;
      Value inside = variable(v) < program_.extents[at(v)];
      mask = mask ? *mask & inside : inside;
    }
    return mask;
  }

  Value gather(const Sym& m) {
    tile::View flat =
        view(source_of(m.node), m.dtype, {buffer_elements(m.node)}, {{1, -1}}, buffer_name(m.node));
    Value index = dynamic_index(m.offset, m.dynamic);
    std::optional<Value> mask = overhang_mask();
    if (m.mask >= 0) mask = mask ? *mask & value(m.mask) : value(m.mask);
    return k_.gather(flat, {index}, {.mask = mask});
  }

  // The tile shape an output offset asks for, as the frame sees it.
  Value fit(Value v, bool rows, bool columns) {
    if (!has_rows()) return columns ? k_.broadcast(v, {shape_.columns}) : k_.reshape(v, {});
    if (rows && columns) return k_.broadcast(v, {shape_.rows, shape_.columns});
    if (rows) return k_.reshape(k_.broadcast(v, {shape_.rows, 1}), {shape_.rows});
    if (columns) return k_.reshape(k_.broadcast(v, {1, shape_.columns}), {shape_.columns});
    return v.rank() == 0 ? v : k_.reshape(v, {});
  }

  void store(const ProgramOutput& o) {
    if (o.accumulate) return accumulate(o);
    const DType dtype = graph_.type(o.node).dtype;
    if (!o.offset.is_affine()) return scatter_output(o, dtype);
    Access a = block_access(o.offset, source_of(o.node), dtype, buffer_name(o.node));
    Value v = k_.cast(fit(value(o.sym), a.row_dim >= 0, a.column_dim >= 0), dtype);
    tile::StoreOptions options{.dims = {}, .bounded = a.bounded};
    if (a.row_dim >= 0) options.dims.push_back(a.row_dim);
    if (a.column_dim >= 0) options.dims.push_back(a.column_dim);
    k_.store(a.view, a.starts, v, options);
  }

  void scatter_output(const ProgramOutput& o, DType dtype) {
    tile::View flat =
        view(source_of(o.node), dtype, {graph_.type(o.node).shape.size()}, {{1, -1}}, buffer_name(o.node));
    Value index = index_value(o.offset);
    Value computed_value =
        value(o.sym);  // before index.type(): emitting moves the table that type() points into
    Value stored = k_.cast(k_.broadcast(computed_value, index.type().shape), dtype);
    k_.scatter(flat, {index}, stored, overhang_mask());
  }

  void accumulate(const ProgramOutput& o) {
    const DType dtype =
        o.node >= 0 ? graph_.type(o.node).dtype : temporaries_[static_cast<std::size_t>(-1 - o.node)].dtype;
    tile::View flat =
        view(source_of(o.node), dtype, {buffer_elements(o.node)}, {{1, -1}}, buffer_name(o.node));
    Value index = dynamic_index(o.offset, o.dynamic);
    std::vector<Index> frame;
    if (has_rows())
      frame = {shape_.rows, shape_.columns};
    else if (shape_.column >= 0)
      frame = {shape_.columns};
    std::optional<Value> mask = overhang_mask();
    if (o.mask >= 0) mask = mask ? *mask & value(o.mask) : value(o.mask);
    k_.atomic_add(flat, {k_.broadcast(index, frame)}, k_.cast(k_.broadcast(value(o.sym), frame), dtype),
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
      if (!m.reduced && m.level < level && m.kind != Sym::Kind::reduce) value(static_cast<int>(s));
    }
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
    std::vector<Index> shape;
    if (has_rows())
      shape = {shape_.rows, shape_.columns};
    else
      shape = {shape_.columns};
    if (!whole) {
      if (has_rows())
        shape[static_cast<std::size_t>(reduced_axis())] = 1;
      else
        shape = {};
    }
    return shape;
  }

  void reduction_pass(int level) {
    hoist(level);
    const std::vector<int> syms = reductions(level);
    std::vector<Value> initial;
    for (int s : syms) {
      const Sym& m = sym(s);
      const DType operand_dtype = compute_dtype(sym(m.operands[0]).dtype);
      const bool whole = shape_.accumulate_tiles && !is_index(m.monoid);
      initial.push_back(literal(operand_dtype, m.monoid, accumulator_shape(whole)));
      if (is_index(m.monoid)) initial.push_back(k_.literal_int(DType::i64, 0, accumulator_shape(false)));
    }
    std::vector<Value> last = loop_over_reduced(
        initial, [&](const std::vector<Value>& carried) { return accumulate_block(syms, carried); });
    std::size_t next = 0;
    for (int s : syms) {
      const Sym& m = sym(s);
      Value v = last[next++];
      if (is_index(m.monoid))
        v = last[next++];
      else if (shape_.accumulate_tiles)
        v = keep_rank(k_.reduce(m.monoid, v, reduced_axis()));
      values_[static_cast<std::size_t>(s)] = v;
      have_[static_cast<std::size_t>(s)] = kForever;
    }
  }

  std::vector<Value> accumulate_block(const std::vector<int>& syms, const std::vector<Value>& carried) {
    std::vector<Value> out;
    std::size_t next = 0;
    for (int s : syms) {
      const Sym& m = sym(s);
      Value operand = k_.broadcast(full(computed(m.operands[0])), accumulator_shape(true));
      if (ragged(tile_reduced_)) {
        Value inside = variable(tile_reduced_) < program_.extents[at(tile_reduced_)];
        operand = tile::where(k_.broadcast(inside, operand.type().shape), operand,
                              literal(operand.dtype(), m.monoid, operand.type().shape));
      }
      if (is_index(m.monoid)) {
        Value best = carried[next], where_best = carried[next + 1];
        Value here = keep_rank(k_.reduce(extreme(m.monoid), operand, reduced_axis()));
        Value index = keep_rank(k_.reduce(m.monoid, operand, reduced_axis())) + starts_[at(tile_reduced_)];
        Value better = m.monoid == Monoid::argmax ? here > best : here < best;
        if (is_float(here.dtype()))
          better = better | (k_.apply(Prim::isnan, {here}) & ~k_.apply(Prim::isnan, {best}));
        out.push_back(tile::where(better, here, best));
        out.push_back(tile::where(better, index, where_best));
        next += 2;
        continue;
      }
      Value acc = carried[next++];
      out.push_back(combine(
          m.monoid, acc,
          shape_.accumulate_tiles ? operand : keep_rank(k_.reduce(m.monoid, operand, reduced_axis()))));
    }
    return out;
  }

  using Body = std::function<std::vector<Value>(const std::vector<Value>&)>;

  std::vector<Value> loop_over_reduced(const std::vector<Value>& initial, const Body& body) {
    std::vector<int> outer;
    for (int v : program_.reduced_variables())
      if (v != tile_reduced_) outer.push_back(v);
    return nest(outer, 0, initial, body);
  }

  std::vector<Value> nest(const std::vector<int>& outer, std::size_t depth, const std::vector<Value>& initial,
                          const Body& body) {
    const bool innermost = depth == outer.size();
    const int v = innermost ? tile_reduced_ : outer[depth];
    tile::Operand lower = Index{0}, upper = program_.extents[at(v)];
    if (innermost && shape_.splits > 1) {
      Value first = split_ * shape_.split_length;
      lower = first;
      upper = tile::min(first + shape_.split_length, program_.extents[at(v)]);
    }
    return k_.loop(lower, upper, block(v), initial, [&](Value i, const std::vector<Value>& carried) {
      starts_[at(v)] = i;
      if (!innermost) return nest(outer, depth + 1, carried, body);
      ++scope_;
      reduced_index_ = {};
      std::vector<Value> next = body(carried);
      reduced_index_ = {};
      return next;
    });
  }

  void store_outputs_looped() {
    hoist(program_.levels() + 1);
    bool any_reduced = false;
    for (const ProgramOutput& o : program_.outputs) {
      if (sym(o.sym).reduced || (tile_reduced_ >= 0 && o.offset.depends_on(tile_reduced_)))
        any_reduced = true;
      else
        store(o);
    }
    if (!any_reduced) return;
    loop_over_reduced({}, [&](const std::vector<Value>&) {
      for (const ProgramOutput& o : program_.outputs)
        if (sym(o.sym).reduced || o.offset.depends_on(tile_reduced_)) store(o);
      return std::vector<Value>{};
    });
  }

  // Partials lie [splits][parallel variables], row-major over the parallel variables in order.
  void store_partials() {
    int temporary = 0;
    for (int s : reductions(1)) {
      std::vector<Builder::SizeArg> extents;
      std::vector<tile::Dim> strides;
      std::vector<tile::Operand> starts;
      Index size = 1;
      for (int v : program_.parallel_variables()) size *= program_.extents[at(v)];
      extents.push_back(shape_.splits);
      strides.push_back({size, -1});
      starts.push_back(split_);
      int row_dim = -1, column_dim = -1;
      bool bounded = false;
      Index step = size;
      for (int v : program_.parallel_variables()) {
        step /= program_.extents[at(v)];
        if (v == shape_.row) row_dim = static_cast<int>(extents.size());
        if (v == shape_.column) column_dim = static_cast<int>(extents.size());
        bounded = bounded || (is_tile(v) && ragged(v));
        extents.push_back(program_.extents[at(v)]);
        strides.push_back({step, -1});
        starts.push_back(starts_[at(v)]);
      }
      Value v = fit(value(s), row_dim >= 0, column_dim >= 0);
      tile::View partial = view({-1, temporary++, 0}, v.dtype(), extents, strides, "partial");
      tile::StoreOptions options{.dims = {}, .bounded = bounded};
      if (row_dim >= 0) options.dims.push_back(row_dim);
      if (column_dim >= 0) options.dims.push_back(column_dim);
      k_.store(partial, starts, v, options);
    }
  }

  struct Cached {
    Value value;
    bool type_known = false;
  };
  static constexpr int kForever = -1;

  const ir::Graph& graph_;
  const GroupProgram& program_;
  const TileShape& shape_;
  Builder k_;
  const std::vector<Temporary>& temporaries_;
  std::vector<Value> values_;
  std::vector<int> have_;  // 0: not yet; kForever; else the loop body it belongs to
  int scope_ = 0;
  int tile_reduced_ = -1;
  std::vector<Value> starts_;
  std::map<int, std::pair<tile::ValueId, Value>> widened_;
  std::map<int, Cached> index_;
  Cached reduced_index_;
  Value split_;
  std::vector<std::pair<Builder::SizeArg, Index>> grid_;
  std::vector<BufferSource> sources_;
  std::set<std::string> names_;
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
