// Counting over a program's exprs, and the floor that follows.
#include "passes/tiling/group_cost.h"

#include "passes/masks/loop_range.h"
#include "passes/nest/dot_axes.h"
#include "passes/nest/online.h"
#include "passes/nest/tile_shape.h"
#include "passes/tiling/epilogue_parts.h"
#include "passes/tiling/split_k_b2b.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tilewright::passes {

namespace {

// How often each expr is computed in a program with a dot: once for each point it depends on, what an operand
// is made of again for every block of the result that reads it.
std::vector<double> dot_points(const ir::Graph& graph, const LoopNest& nest, const TileShape& shape) {
  const auto blocks = [&](int v, Index block) {
    return v < 0 ? 1.0 : static_cast<double>(ceil_div(nest.extents[at(v)], block));
  };
  std::vector<double> points;
  // Masks leave a share of the blocks of each loop.
  const LoopSpace space(nest, shape);
  double passes = 0;
  std::map<int, double> dot_share;
  for (const ReductionPass& pass : reduction_passes(graph, nest)) {
    const double share = walked_share(needed_blocks(graph, space, pass.exprs), space).value_or(1);
    passes += share;
    for (int s : pass.exprs) dot_share[s] = share;
  }
  if (nest.stores_reduced_values()) passes += 1;  // walked once more to be stored
  const std::vector<std::vector<bool>> depends = dependence(nest);
  for (std::size_t s = 0; s < depends.size(); ++s) {
    double count = nest.exprs[s].reduced                    ? passes
                   : nest.is_outer_dot(static_cast<int>(s)) ? dot_share.at(static_cast<int>(s))
                                                            : 1;
    for (std::size_t v = 0; v < depends[s].size(); ++v)
      if (depends[s][v]) count *= static_cast<double>(nest.extents[v]);
    points.push_back(count);
  }
  for (std::size_t side : {0, 1}) {
    const double again = side == 0 ? blocks(shape.column, shape.columns) : blocks(shape.row, shape.rows);
    std::vector<int> operands;
    for (int s : nest.outer_dots()) operands.push_back(nest.exprs[at(s)].operands[side]);
    const std::vector<bool> needed = nest.made_of(operands);
    for (std::size_t s = 0; s < needed.size(); ++s)
      if (needed[s]) points[s] *= again;
  }
  return points;
}

// Multiply-adds of a dot's own: its points times its depth.
double dot_flops_of(const LoopNest& nest, const std::vector<double>& points, int s) {
  double depth = 1;
  const Expr& m = nest.exprs[at(s)];
  for (std::size_t v = 0; v < nest.extents.size(); ++v)
    if (m.inner ? m.offset.depends_on(static_cast<int>(v)) : nest.reduced[v])
      depth *= static_cast<double>(nest.extents[v]);
  return 2 * points[at(s)] * depth;
}

// How often each expr of a program of sums is computed: once for each point that it depends on, and again in
// every program of the grid that shares these.
std::vector<double> sum_points(const LoopNest& nest, const TileShape& shape) {
  std::vector<double> points;
  for (const std::vector<bool>& depends : dependence(nest)) {
    double count = 1;
    for (std::size_t v = 0; v < depends.size(); ++v) {
      const int variable = static_cast<int>(v);
      const Index block = variable == shape.row ? shape.rows : variable == shape.column ? shape.columns : 1;
      if (depends[v])
        count *= static_cast<double>(nest.extents[v]);
      else if (!nest.reduced[v])
        count *= static_cast<double>(ceil_div(nest.extents[v], block));
    }
    points.push_back(count);
  }
  return points;
}

void count_flops(const ir::Graph& graph, const LoopNest& nest, const std::vector<double>& points,
                 GroupCost& cost) {
  for (std::size_t i = 0; i < nest.exprs.size(); ++i) {
    const Expr& s = nest.exprs[i];
    if (s.kind == Expr::Kind::dot) cost.dot_flops += dot_flops_of(nest, points, static_cast<int>(i));
    if (s.kind == Expr::Kind::op) cost.flops += points[i] * graph.node(s.node).op->flops;
    if (s.kind == Expr::Kind::reduce || s.kind == Expr::Kind::scan ||
        s.kind == Expr::Kind::epilogue_reduction)
      cost.flops += points[at(s.operands[0])];
    if (s.kind == Expr::Kind::argsort) {  // comparisons of a merge sort
      const auto length = static_cast<double>(nest.extents[at(nest.reduced_variables()[0])]);
      cost.flops += points[at(s.operands[0])] * std::ceil(std::log2(length));
    }
    if (s.kind == Expr::Kind::random) cost.flops += points[i] * 40;
    if (s.kind == Expr::Kind::product) cost.flops += points[i];
  }
}

// Fewer programs than units leave the others idle, though a unit alone has more than its share of the memory.
void count_programs(const LoopNest& nest, const TileShape& shape, const tile::Target& target,
                    GroupCost& cost) {
  const auto programs = static_cast<double>(program_count(nest, shape));
  if (programs > 0) cost.busy = std::min(1.0, programs / (target.alone_share * target.units));
  if (shape.split_k > 1) cost.launches = 2;
  cost.launches += static_cast<int>(finishing_programs(nest, shape).size());
  for (int s : epilogue_reductions_in_parts(nest, shape)) {  // written by one kernel, read by the next
    const double bytes = 2 * static_cast<double>(elements_of_parts(nest, shape, s)) *
                         static_cast<double>(size_bytes(nest.exprs[at(s)].dtype));
    cost.move(bytes, bytes / 2, target);
  }
}

// Whether a reduction is of what dots inside its loop give.
bool is_of_inner_dots(const LoopNest& nest, int reduction) {
  const std::vector<bool> parts = nest.made_of({reduction});
  for (std::size_t s = 0; s < parts.size(); ++s)
    if (parts[s] && nest.exprs[s].inner) return true;
  return false;
}

// A loop before the dot's, as of the epilogue reductions of rows that are then multiplied: in a kernel of few
// large tiles nothing else runs while a round waits for memory.
double waiting_seconds(const ir::Graph& graph, const LoopNest& nest, const TileShape& shape,
                       const tile::Target& target) {
  if (target.round_wait_s == 0) return 0;
  const LoopSpace space(nest, shape);
  if (space.walked < 0) return 0;
  const Index extent = nest.extents[at(space.walked)];
  const double rounds = static_cast<double>(ceil_div(extent, space.block(space.walked))),
               waves = std::ceil(static_cast<double>(program_count(nest, shape)) / target.units);
  double seconds = 0;
  for (const ReductionPass& pass : reduction_passes(graph, nest))
    if (std::none_of(pass.exprs.begin(), pass.exprs.end(),
                     [&](int s) { return nest.is_outer_dot(s) || is_of_inner_dots(nest, s); }))
      seconds += waves * rounds * target.round_wait_s;
  return seconds;
}

// Once for each point of the space, or of its parallel axes.
std::vector<double> plain_points(const LoopNest& nest) {
  double all = 1, parallel = 1;
  for (std::size_t v = 0; v < nest.extents.size(); ++v) {
    all *= static_cast<double>(nest.extents[v]);
    if (!nest.reduced[v]) parallel *= static_cast<double>(nest.extents[v]);
  }
  std::vector<double> points;
  points.reserve(nest.exprs.size());
  for (const Expr& s : nest.exprs) points.push_back(s.reduced ? all : parallel);
  return points;
}

// Elements of a load from where an index says: a place for each value of what the index or the offset
// follows.
double picked(const LoopNest& nest, std::size_t load, const std::vector<std::vector<bool>>& depends) {
  double elements = 1;
  for (std::size_t v = 0; v < nest.extents.size(); ++v)
    if (depends[load][v]) elements *= static_cast<double>(nest.extents[v]);
  return elements;
}

}  // namespace

double bytes_of(const ir::Type& type) {
  return static_cast<double>(type.shape.size()) * static_cast<double>(size_bytes(type.dtype));
}

GroupCost group_cost(const ir::Graph& graph, const CutProgram& cut, const tile::Target& target) {
  const auto& [nest, form, tiles] = cut;
  GroupCost cost;
  const bool dots = nest.has_dots(), sums = dots && !form.has_dots();
  std::vector<double> points;
  if (!dots)
    points = plain_points(nest);
  else
    points = dot_points(graph, nest, sums ? choose_dot_shape(nest, target) : tiles);
  if (sums)
    count_flops(graph, form, sum_points(form, tiles), cost);
  else
    count_flops(graph, nest, points, cost);
  if (dots) count_programs(form, tiles, target, cost);
  if (dots && !sums) {
    cost.dots = dot_rate(nest, target);
    cost.waiting_s = waiting_seconds(graph, nest, tiles, target);
  }
  std::vector<std::vector<bool>> depends;  // where a load asks for it
  std::vector<std::pair<ir::NodeId, double>> read;
  for (std::size_t i = 0; i < nest.exprs.size(); ++i) {
    const Expr& s = nest.exprs[i];
    if (s.kind != Expr::Kind::load || s.node < 0) continue;
    const ir::Type& type = graph.type(s.node);
    if (!s.dynamic.empty() && depends.empty()) depends = dependence(nest);
    const double elements = s.dynamic.empty()
                                ? std::min(touched(s.offset, nest), static_cast<double>(type.shape.size()))
                                : std::min(points[i], picked(nest, i, depends));
    read.push_back({s.node, elements * static_cast<double>(size_bytes(type.dtype))});
  }
  std::sort(read.begin(), read.end());
  for (std::size_t i = 0; i < read.size(); ++i) {  // of a node's loads the one that reads most
    const auto& [node, bytes] = read[i];
    if (i + 1 == read.size() || read[i + 1].first != node)
      cost.move(bytes, bytes_of(graph.type(node)), target);
  }
  for (const ProgramOutput& o : nest.outputs) {
    if (o.node < 0) continue;  // partial results: small beside what they are made of
    const ir::Type& type = graph.type(o.node);
    // What is copied around a block is not counted: it is the same in whatever group.
    const double block = touched(o.offset, nest) * static_cast<double>(size_bytes(type.dtype));
    cost.move(o.keeps >= 0 ? block : bytes_of(type) * (o.accumulate ? 2 : 1), bytes_of(type), target);
  }
  return cost;
}

double GroupCost::seconds(const tile::Target& target) const {
  const double dot_s = dot_flops > 0 ? dot_flops / dots.flops_per_s : 0;
  return launches * target.launch_s + waiting_s +
         std::max(memory_s, flops / target.flops_per_s + dot_s) / busy;
}

}  // namespace tilewright::passes
