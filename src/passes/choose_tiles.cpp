// Tile shapes from strides, extents and what the target keeps on chip.
#include "passes/choose_tiles.h"

#include "passes/dot_axes.h"
#include "passes/online.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tilewright::passes {

namespace {

using tile::TargetKind;

// Elements a program of a pointwise kernel handles on the CPU: ~1 µs of memory time, which amortises its
// start.
constexpr Index kPointwiseElements = 4096;
// On a GPU: one 16-byte access for each of 128 threads. Measured on an H200, 2^28 f32 elements: 512 elements
// a program reach 4,279 GB/s, 4096 in 128 threads 3,860 (docs/notes/2026-11-21-first-h200.md).
constexpr Index kPointwiseBytesGpu = 128 * 16;
constexpr Index kShortBlock = 256;
// Edge of the square tiles that turn a transposed access around; 64 f32 are 4 cache lines.
constexpr Index kTransposeEdge = 64;
// Rows and columns of a block of a column reduction.
constexpr Index kColumnBlock = 512;
constexpr Index kColumnRows = 32;

std::size_t at(int v) { return static_cast<std::size_t>(v); }

class Chooser {
 public:
  Chooser(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target)
      : graph_(graph), program_(program), target_(target) {}

  TileShape run() {
    if (program_.extents.empty()) return {};
    const std::vector<int> reduced = program_.reduced_variables();
    return reduced.empty() ? pointwise() : reduction(reduced);
  }

 private:
  Index extent(int v) const { return program_.extents[at(v)]; }
  bool gpu() const { return target_.kind == TargetKind::cuda; }

  // Elements moved with unit stride along v, over all loads and stores: the more, the better v is as the
  // column axis.
  double contiguity(int v) const {
    double weight = 0;
    auto add = [&](const IndexExpr& e, DType dtype, double importance) {
      if (std::abs(e.factor(v)) != 1) return;
      double elements = 1;
      for (int u = 0; u < static_cast<int>(program_.extents.size()); ++u)
        if (e.depends_on(u)) elements *= static_cast<double>(extent(u));
      weight += elements * static_cast<double>(size_bytes(dtype)) * importance;
    };
    for (const Sym& s : program_.syms)
      if (s.kind == Sym::Kind::load) add(s.offset, s.dtype, 1);
    // A store that is not coalesced costs whole lines both ways.
    for (const ProgramOutput& o : program_.outputs)
      add(o.offset, o.node >= 0 ? graph_.type(o.node).dtype : DType::f32, 1.5);
    return weight;
  }

  int best_column(const std::vector<int>& among) const {
    int best = among.back();
    double most = contiguity(best);
    for (int v : among)
      if (const double c = contiguity(v); c > most) {
        best = v;
        most = c;
      }
    return best;
  }

  // A variable that some full-size load walks contiguously while the column does not.
  int turned_variable(int column) const {
    for (const Sym& s : program_.syms) {
      if (s.kind != Sym::Kind::load || !s.offset.is_affine() || std::abs(s.offset.factor(column)) == 1)
        continue;
      if (!s.offset.depends_on(column)) continue;
      for (int v : program_.parallel_variables())
        if (v != column && std::abs(s.offset.factor(v)) == 1 && extent(v) >= 8) return v;
    }
    return -1;
  }

  // A gather whose index is the same along the column: with one row per tile it is a block load.
  bool picks_rows(int column) const {
    constexpr Index kWorthwhile = 64;  // shorter rows are better gathered several at once
    return extent(column) >= kWorthwhile &&
           std::any_of(program_.syms.begin(), program_.syms.end(), [&](const Sym& s) {
             return s.dynamic.size() == 1 && std::abs(s.offset.factor(column)) == 1;
           });
  }

  // Bytes of the widest element read or written at full size.
  Index widest_access() const {
    Index widest = 1;
    for (const Sym& s : program_.syms)
      if (s.kind == Sym::Kind::load && s.node >= 0)
        widest = std::max(widest, static_cast<Index>(size_bytes(s.dtype)));
    for (const ProgramOutput& o : program_.outputs)
      if (o.node >= 0) widest = std::max(widest, static_cast<Index>(size_bytes(graph_.type(o.node).dtype)));
    return widest;
  }

  // The outer neighbour of the column: the next variable outwards that is parallel.
  int outer_neighbour(int column) const {
    int best = -1;
    for (int v : program_.parallel_variables())
      if (v != column && (best < 0 || (v < column && v > best) || (best > column && v < column))) best = v;
    return best;
  }

  // Arithmetic takes longer than memory: more elements to a thread, for chains of instructions that overlap.
  bool is_compute_bound() const {
    const GroupCost cost = group_cost(graph_, program_, target_);
    return cost.flops / target_.flops_per_s > cost.bytes / target_.memory_bytes_per_s;
  }

  TileShape pointwise() const {
    const std::vector<int> parallel = program_.parallel_variables();
    TileShape t;
    t.column = best_column(parallel);
    const Index wanted =
        gpu() && !is_compute_bound() ? kPointwiseBytesGpu / widest_access() : kPointwiseElements;
    if (const int turned = turned_variable(t.column); turned >= 0) {
      t.row = turned;
      t.rows = std::min(extent(turned), kTransposeEdge);
      t.columns = std::min(extent(t.column), kTransposeEdge);
      return t;
    }
    t.columns = std::min(extent(t.column), wanted);
    if (t.columns * 2 <= wanted && parallel.size() > 1 && !picks_rows(t.column)) {
      t.row = outer_neighbour(t.column);
      t.rows = std::clamp<Index>(wanted / t.columns, 1, extent(t.row));
      if (t.rows == 1) t.row = -1;
    }
    return t;
  }

  // f32 bytes per element that a program keeps of a row: one value, computed in f32. A scan is never cut: its
  // row is taken whole, whatever its length.
  bool fits(Index elements) const { return has_scan() || elements * 4 <= target_.row_bytes; }

  bool has_scan() const {
    return std::any_of(program_.syms.begin(), program_.syms.end(),
                       [](const Sym& s) { return s.kind == Sym::Kind::scan; });
  }

  TileShape reduction(const std::vector<int>& reduced) const {
    const std::vector<int> parallel = program_.parallel_variables();
    std::vector<int> all = parallel;
    all.insert(all.end(), reduced.begin(), reduced.end());
    int column = best_column(all);
    const bool along_row = program_.reduced[at(column)];
    TileShape t =
        along_row ? row_reduction(column, reduced.size() > 1, parallel) : column_reduction(column, reduced);
    if (t.looped) split(t, reduced);
    return t;
  }

  // On the CPU a loop over a block walks several streams, which take some pages to get up to speed.
  Index loop_block() const { return gpu() ? kPointwiseElements : 8 * kPointwiseElements; }

  TileShape row_reduction(int column, bool several, const std::vector<int>& parallel) const {
    TileShape t;
    t.column = column;
    t.looped = several || !fits(extent(column));
    if (t.looped) {
      // On a target that keeps no row: blocks that rows of most lengths are made of.
      t.columns = std::min(extent(column), target_.row_bytes > 0 ? loop_block() : kShortBlock);
      t.accumulate_tiles = gpu();
      return t;
    }
    t.columns = extent(column);
    // Short rows: several to a program.
    const Index wanted = gpu() ? kPointwiseElements : 512;
    if (!parallel.empty() && t.columns * 2 <= wanted) {
      t.row = parallel.back();
      Index rows = std::clamp<Index>(wanted / t.columns, 1, extent(t.row));
      if (gpu()) rows = std::min(rows, std::max<Index>(1, parallel_points() / (target_.units * 2)));
      t.rows = rows;
      if (rows == 1) t.row = -1, t.rows = 1;
    }
    return t;
  }

  TileShape column_reduction(int column, const std::vector<int>& reduced) const {
    TileShape t;
    t.column = column;
    t.row = reduced.back();
    t.columns = std::min(extent(column), kColumnBlock);
    if (gpu()) t.columns = std::min<Index>(t.columns, 128);
    const bool dependent = program_.levels() > 1 || stores_reduced() || has_scan();
    if (dependent && reduced.size() == 1) {
      // The whole reduced axis on chip, over a narrow strip of columns.
      t.columns = std::min(extent(column), gpu() ? Index{32} : Index{64});
      t.rows = extent(t.row);
      if (fits(t.rows * t.columns)) return t;
      t.columns = std::min(extent(column), gpu() ? Index{128} : kColumnBlock);
    }
    t.looped = true;
    t.rows = std::min(extent(t.row), kColumnRows);
    t.accumulate_tiles = gpu();
    return t;
  }

  bool stores_reduced() const {
    return std::any_of(program_.outputs.begin(), program_.outputs.end(), [&](const ProgramOutput& o) {
      return program_.syms[static_cast<std::size_t>(o.sym)].reduced;
    });
  }

  double parallel_points() const {
    double points = 1;
    for (int v : program_.parallel_variables()) points *= static_cast<double>(extent(v));
    return points;
  }

  // Too few programs for the machine: several of them share a reduction and a second kernel merges their
  // partials.
  void split(TileShape& t, const std::vector<int>& reduced) const {
    if (program_.levels() != 1 || stores_reduced()) return;
    for (const Sym& s : program_.syms)
      if (s.kind == Sym::Kind::reduce &&
          (s.monoid == tile::Monoid::argmax || s.monoid == tile::Monoid::argmin))
        return;
    const int v = program_.reduced[at(t.column)] ? t.column : t.row;
    const Index block = v == t.column ? t.columns : t.rows;
    Index length = extent(v);
    double work = static_cast<double>(length);
    for (int u : reduced)
      if (u != v) work *= static_cast<double>(extent(u));
    const Index programs = program_count(program_, t);
    const Index wanted = target_.units * (gpu() ? 8 : 64);
    constexpr double kWorthSplitting =
        1 << 16;  // elements: below it the second launch costs more than it saves
    if (programs * 2 > wanted || work * static_cast<double>(programs) < kWorthSplitting) return;
    const Index splits = std::min(ceil_div(wanted, programs), ceil_div(length, block));
    if (splits < 2) return;
    t.split_length = round_up(ceil_div(length, splits), block);
    t.splits = ceil_div(length, t.split_length);
    if (t.splits < 2) t.splits = 1;
  }

  const ir::Graph& graph_;
  const GroupProgram& program_;
  const tile::Target& target_;
};

double touched(const IndexExpr& offset, const GroupProgram& program) {
  double elements = 1;
  for (std::size_t v = 0; v < program.extents.size(); ++v)
    if (offset.depends_on(static_cast<int>(v))) elements *= static_cast<double>(program.extents[v]);
  return elements;
}

}  // namespace

TileShape choose_tiles(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target) {
  if (program.dot() >= 0 || program.has_inner_dots()) return choose_dot_shape(program, target);
  return Chooser(graph, program, target).run();
}

// How often each sym is computed in a program with a dot: once for each point it depends on, what an operand
// is made of again for every block of the result that reads it.
std::vector<double> dot_points(const ir::Graph& graph, const GroupProgram& program,
                               const tile::Target& target) {
  const TileShape shape = choose_dot_shape(program, target);
  const std::vector<int> operands =
      program.dot() >= 0 ? program.syms[at(program.dot())].operands : std::vector<int>{};
  const auto blocks = [&](int v, Index block) {
    return v < 0 ? 1.0 : static_cast<double>(ceil_div(program.extents[at(v)], block));
  };
  std::vector<double> points;
  double passes = static_cast<double>(reduction_passes(graph, program).size());
  for (const ProgramOutput& o : program.outputs)
    if (program.syms[at(o.sym)].reduced) {  // walked once more to be stored
      passes += 1;
      break;
    }
  const std::vector<std::vector<bool>> depends = dependence(program);
  for (std::size_t s = 0; s < depends.size(); ++s) {
    double count = program.syms[s].reduced ? passes : 1;
    for (std::size_t v = 0; v < depends[s].size(); ++v)
      if (depends[s][v]) count *= static_cast<double>(program.extents[v]);
    points.push_back(count);
  }
  for (int side = 0; side < static_cast<int>(operands.size()); ++side) {
    std::vector<int> open = {operands[at(side)]};
    while (!open.empty()) {
      const int s = open.back();
      open.pop_back();
      points[at(s)] *= side == 0 ? blocks(shape.column, shape.columns) : blocks(shape.row, shape.rows);
      const std::vector<int>& next = program.syms[at(s)].operands;
      open.insert(open.end(), next.begin(), next.end());
    }
  }
  return points;
}

// A loop of one dot, of 16- and 8-bit operands that are blocks of memory as they stand. What is computed on
// the way, and chains of dots, go by the vector units: the schedules for matrix units do not take them.
bool fits_matrix_units(const GroupProgram& program) {
  if (program.has_inner_dots() || program.levels() > 1) return false;
  const Sym& dot = program.syms[at(program.dot())];
  return size_bytes(dot.meet) <= 2 && std::all_of(dot.operands.begin(), dot.operands.end(), [&](int operand) {
           return program.syms[at(operand)].kind == Sym::Kind::load;
         });
}

// Multiply-adds of a dot's own: its points times its depth.
double dot_flops_of(const GroupProgram& program, const std::vector<double>& points, int s) {
  double depth = 1;
  const Sym& m = program.syms[at(s)];
  for (std::size_t v = 0; v < program.extents.size(); ++v)
    if (m.inner ? m.offset.depends_on(static_cast<int>(v)) : program.reduced[v])
      depth *= static_cast<double>(program.extents[v]);
  return 2 * points[at(s)] * depth;
}

GroupCost group_cost(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target) {
  GroupCost cost;
  const bool dots = program.dot() >= 0 || program.has_inner_dots();
  const std::vector<double> points_of = dots ? dot_points(graph, program, target) : std::vector<double>{};
  double all = 1, parallel = 1;
  for (std::size_t v = 0; v < program.extents.size(); ++v) {
    all *= static_cast<double>(program.extents[v]);
    if (!program.reduced[v]) parallel *= static_cast<double>(program.extents[v]);
  }
  std::map<ir::NodeId, double> read;
  cost.dot_on_matrix_units = dots && fits_matrix_units(program);
  for (std::size_t i = 0; i < program.syms.size(); ++i) {
    const Sym& s = program.syms[i];
    const double points = dots ? points_of[i] : s.reduced ? all : parallel;
    if (s.kind == Sym::Kind::dot) cost.dot_flops += dot_flops_of(program, points_of, static_cast<int>(i));
    if (s.kind == Sym::Kind::load && s.node >= 0) {
      const ir::Type& type = graph.type(s.node);
      double elements = s.dynamic.empty() ? touched(s.offset, program) : points;
      if (s.dynamic.empty()) elements = std::min(elements, static_cast<double>(type.shape.size()));
      double& bytes = read[s.node];
      bytes = std::max(bytes, elements * static_cast<double>(size_bytes(type.dtype)));
    }
    if (s.kind == Sym::Kind::op) cost.flops += points * graph.node(s.node).op->flops;
    if (s.kind == Sym::Kind::reduce || s.kind == Sym::Kind::scan)
      cost.flops += dots ? points_of[at(s.operands[0])] : all;
    if (s.kind == Sym::Kind::random) cost.flops += points * 40;
  }
  for (const auto& [node, bytes] : read) cost.bytes += bytes;
  for (const ProgramOutput& o : program.outputs) {
    if (o.node < 0) continue;  // partial results: small beside what they are made of
    const ir::Type& type = graph.type(o.node);
    cost.bytes += static_cast<double>(type.shape.size()) * static_cast<double>(size_bytes(type.dtype)) *
                  (o.accumulate ? 2 : 1);
  }
  return cost;
}

double GroupCost::seconds(const tile::Target& target) const {
  // Data that fits the last-level cache moves at its speed.
  const double bandwidth = bytes * 2 < static_cast<double>(target.cache_bytes) ? target.cache_bytes_per_s
                                                                               : target.memory_bytes_per_s;
  const bool matrix = dot_on_matrix_units && target.matrix_flops_per_s > 0;
  const double dot_s = dot_flops / (matrix ? target.matrix_flops_per_s : target.flops_per_s);
  return target.launch_s + std::max(bytes / bandwidth, flops / target.flops_per_s + dot_s);
}

}  // namespace tilewright::passes
