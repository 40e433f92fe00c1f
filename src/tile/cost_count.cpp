// Walks a program with its scalars evaluated and its tiles only counted.
#include "tile/cost_count.h"

#include <tilewright/tile/affine.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "tile/sampled_programs.h"
#include "tile/scalar_values.h"

namespace tilewright::tile {

namespace {

bool is_special(Prim prim) {
  return (prim >= Prim::sqrt && prim <= Prim::sigmoid) || prim == Prim::pow || prim == Prim::atan2;
}

// Philox4x32-10: per round two wide products (high and low words), four xors, two key additions.
constexpr double kRandomOps = 100;

void add_ops(const Kernel& kernel, const Op& op, double times, perf::Cost& work) {
  const auto size = [&](ValueId id) { return static_cast<double>(kernel.type(id).size()); };
  const auto dtype = [&](ValueId id) { return compute_dtype(kernel.type(id).dtype); };
  switch (op.kind) {
    case OpKind::apply: {
      const ValueId operand = op.operands[op.prim == Prim::select ? 1 : 0];
      // One number per program is nothing beside the tiles.
      if (kernel.type(op.results[0]).rank() == 0 && !is_float(dtype(operand))) return;
      work.vector[dtype(operand)] += times * info(op.prim).flops * size(op.results[0]);
      if (is_special(op.prim)) work.special_ops += times * size(op.results[0]);
      return;
    }
    case OpKind::reduce:
    case OpKind::scan:
      work.vector[dtype(op.operands[0])] += times * size(op.operands[0]);
      return;
    case OpKind::argsort: {  // comparisons of a merge sort
      const double length =
          static_cast<double>(kernel.type(op.operands[0]).shape[static_cast<std::size_t>(op.axis)]);
      work.vector[dtype(op.operands[0])] +=
          times * size(op.operands[0]) * std::ceil(std::log2(std::max(length, 2.0)));
      return;
    }
    case OpKind::dot: {
      const double inner = static_cast<double>(kernel.type(op.operands[0]).shape[1]);
      work.matrix[kernel.type(op.operands[0]).dtype] += times * 2 * inner * size(op.results[0]);
      return;
    }
    case OpKind::random:
      work.vector[DType::i32] += times * kRandomOps * size(op.results[0]);
      return;
    default:
      return;
  }
}

bool has_control(const Block& block) {
  return std::any_of(block.ops.begin(), block.ops.end(), [](const Op& op) { return !op.blocks.empty(); });
}

class ProgramCounter {
 public:
  ProgramCounter(const Kernel& kernel, const std::vector<std::int64_t>& scalars,
                 const std::map<const Op*, double>& by_data, Counts& counts)
      : kernel_(kernel), by_data_(by_data), counts_(counts), scalars_(kernel, scalars) {}

  // One program that stands for `weight` of them.
  void run(const std::vector<Index>& program, double weight) {
    scalars_.start(program);
    walk(kernel_.body, weight, counts_);
  }

 private:
  void walk(const Block& block, double times, Counts& into) {
    for (const Op& op : block.ops) {
      if (op.kind == OpKind::loop) {
        walk_loop(op, times, into);
      } else if (op.kind == OpKind::branch) {
        walk_branch(op, times, into);
      } else {
        scalars_.evaluate(op);
        add_ops(kernel_, op, times, into.work);
        add_access(op, times, into);
      }
    }
  }

  void walk_loop(const Op& op, double times, Counts& into) {
    const Block& body = op.blocks[0];
    for (ValueId id : body.args) scalars_.of(id) = std::nullopt;
    for (ValueId id : op.results) scalars_.of(id) = std::nullopt;
    const auto lower = scalars_.of(op.operands[0]), upper = scalars_.of(op.operands[1]),
               step = scalars_.of(op.operands[2]);
    if (!lower || !upper || !step || *step <= 0) {
      into.exact = false;
      const auto rounds = by_data_.find(&op);
      return walk(body, times * (rounds != by_data_.end() ? rounds->second : 1), into);
    }
    const Index trips = *upper <= *lower ? 0 : (*upper - *lower - 1) / *step + 1;
    // Only what is inside another loop or branch can differ between iterations.
    constexpr Index kMaxWalked = 64;
    const Index walked = has_control(body) ? std::min(trips, kMaxWalked) : std::min<Index>(trips, 1);
    if (has_control(body) && walked < trips) into.exact = false;
    for (Index i = 0; i < walked; ++i) {
      scalars_.of(body.args[0]) = *lower + *step * (i * trips / walked);
      walk(body, times * static_cast<double>(trips) / static_cast<double>(walked), into);
    }
  }

  void walk_branch(const Op& op, double times, Counts& into) {
    for (ValueId id : op.results) scalars_.of(id) = std::nullopt;
    if (const auto condition = scalars_.of(op.operands[0]))
      return walk(op.blocks[*condition != 0 ? 0 : 1], times, into);
    Counts sides[2] = {into, into};
    for (std::size_t side : {0, 1}) walk(op.blocks[side], times, sides[side]);
    const auto weight = [](const Counts& c) {
      return std::accumulate(c.accessed.begin(), c.accessed.end(), c.work.flops(),
                             [](double sum, const auto& entry) { return sum + entry.second; });
    };
    into = weight(sides[0]) >= weight(sides[1]) ? std::move(sides[0]) : std::move(sides[1]);
    into.exact = false;
  }

  // --- memory

  void add_access(const Op& op, double times, Counts& into) const {
    switch (op.kind) {
      case OpKind::load:
      case OpKind::gather:
        into.accessed[&op] += times * static_cast<double>(kernel_.type(op.results[0]).size());
        return;
      case OpKind::store:
      case OpKind::scatter:
      case OpKind::atomic_add:
        into.accessed[&op] += times * static_cast<double>(kernel_.type(op.operands[0]).size());
        return;
      default:
        return;
    }
  }

  const Kernel& kernel_;
  const std::map<const Op*, double>& by_data_;
  Counts& counts_;
  ScalarValues scalars_;
};

// Whether all programs do the same work: no loop or branch depends on which program runs.
bool uniform(const Kernel& kernel, const AffineTable& table) {
  bool same = true;
  for_each_op(kernel.body, [&](const Op& op) {
    if (op.kind == OpKind::loop && !table.trip_count(op)) same = false;
    if (op.kind == OpKind::branch) same = false;
  });
  return same;
}

}  // namespace

Counts count_launch(const Kernel& kernel, const std::vector<std::int64_t>& scalars, Index most_sampled,
                    const std::map<const Op*, double>& by_data) {
  Counts counts;
  const std::vector<Index> grid = grid_extents(kernel, scalars);
  const Index programs = std::accumulate(grid.begin(), grid.end(), Index{1}, std::multiplies<>());
  if (programs == 0) return counts;
  const AffineTable table(kernel, known_at_launch(kernel, scalars));
  const Index sampled = uniform(kernel, table) ? 1 : std::min(programs, most_sampled);
  if (sampled > 1 && sampled < programs) counts.exact = false;
  ProgramCounter counter(kernel, scalars, by_data, counts);
  for (const std::vector<Index>& program : sampled_programs(grid, sampled))
    counter.run(program, static_cast<double>(programs) / static_cast<double>(sampled));
  return counts;
}

}  // namespace tilewright::tile
