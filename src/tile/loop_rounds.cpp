// Walks programs by their integer scalars alone.
#include <tilewright/tile/affine.h>
#include <tilewright/tile/loop_rounds.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "tile/sampled_programs.h"
#include "tile/scalar_values.h"

namespace tilewright::tile {

namespace {

// The smallest, in rounds, of the axes along which the loop's index walks.
std::optional<double> axis_rounds(const Kernel& kernel, const AffineTable& table, const Op& loop) {
  const Affine& step = table.of(loop.operands[2]);
  if (!step.is_constant() || step.constant <= 0) return std::nullopt;
  std::optional<double> least;
  for_each_op(loop.blocks[0], [&](const Op& op) {
    if (op.kind != OpKind::load && op.kind != OpKind::store) return;
    const ViewParam& view = kernel.views[static_cast<std::size_t>(op.param)];
    const std::size_t first = op.kind == OpKind::store ? 1 : 0;
    for (std::size_t d = 0; d < view.extents.size(); ++d) {
      const Index factor = std::abs(
          table.of(op.operands[first + d]).factor_of(Affine::Variable::loop, loop.blocks[0].args[0]));
      if (factor == 0 || !view.extents[d].is_constant()) continue;
      const auto rounds = static_cast<double>(ceil_div(view.extents[d].value, step.constant * factor));
      least = std::min(least.value_or(rounds), rounds);
    }
  });
  return least;
}

// Share of the rounds along an axis that are run, where data decides: half, as under a causal mask. Chosen,
// not measured.
constexpr double kLeftByData = 0.5;
constexpr std::size_t kLoopBounds = 3;  // operands before those that it carries

class RoundCounter {
 public:
  explicit RoundCounter(const Kernel& kernel) : kernel_(kernel), scalars_(kernel, arguments_) {}

  void run(const std::vector<Index>& program) {
    scalars_.start(program);
    walk(kernel_.body);
  }

  std::map<const Op*, double> means() const {
    std::map<const Op*, double> out;
    for (const auto& [loop, seen] : seen_)
      if (seen.known) out[loop] = seen.entered > 0 ? seen.rounds / seen.entered : 0;
    return out;
  }
  std::vector<const Op*> unknown() const {
    std::vector<const Op*> out;
    for_each_op(kernel_.body, [&](const Op& op) {
      const auto seen = seen_.find(&op);
      if (seen != seen_.end() && !seen->second.known) out.push_back(&op);
    });
    return out;
  }

 private:
  struct Seen {
    double entered = 0, rounds = 0;
    bool known = true;
  };

  void walk(const Block& block) {
    for (const Op& op : block.ops) {
      if (op.kind == OpKind::loop)
        walk_loop(op);
      else if (op.blocks.empty())
        scalars_.evaluate(op);
      else
        for (const Block& inner : op.blocks) walk(inner);
      if (!op.blocks.empty())
        for (const ValueId id : op.results) scalars_.of(id) = std::nullopt;
    }
  }

  void walk_loop(const Op& op) {
    const Block& body = op.blocks[0];
    const auto lower = scalars_.of(op.operands[0]), upper = scalars_.of(op.operands[1]),
               step = scalars_.of(op.operands[2]);
    for (const ValueId id : body.args) scalars_.of(id) = std::nullopt;
    Seen& seen = seen_[&op];
    seen.entered += 1;
    const bool known = lower && upper && step && *step > 0;
    seen.known = seen.known && known;
    const Index rounds = known && *upper > *lower ? (*upper - *lower - 1) / *step + 1 : 0;
    seen.rounds += static_cast<double>(rounds);
    const bool nests =
        std::any_of(body.ops.begin(), body.ops.end(), [](const Op& inner) { return !inner.blocks.empty(); });
    if (!nests || (known && rounds == 0)) return;
    constexpr Index kWalked = 8;  // an even sample: what is inside may follow the round
    for (Index i = 0; i < (known ? std::min(rounds, kWalked) : 1); ++i) {
      if (known) scalars_.of(body.args[0]) = *lower + *step * (i * rounds / std::min(rounds, kWalked));
      walk(body);
    }
  }

  const Kernel& kernel_;
  const std::vector<std::int64_t> arguments_;  // none: what follows from them is not known
  ScalarValues scalars_;
  std::map<const Op*, Seen> seen_;  // by address: look up only
};

}  // namespace

std::map<const Op*, double> loop_rounds(const Kernel& kernel) {
  bool loops = false, follows_program = false;
  const AffineTable table(kernel, known_statically(kernel));
  std::map<const Op*, double> out;
  for_each_op(kernel.body, [&](const Op& op) {
    if (op.kind != OpKind::loop) return;
    loops = true;
    if (const auto trips = table.trip_count(op))
      out[&op] = static_cast<double>(*trips);
    else
      follows_program = true;
  });
  if (!loops || !follows_program) return out;
  std::vector<Index> grid;
  for (const GridAxis& axis : kernel.grid) {
    Index extent = 1;
    for (const GridFactor& f : axis) extent *= f.extent.is_constant() ? ceil_div(f.extent.value, f.block) : 1;
    grid.push_back(extent);
  }
  const Index programs = std::accumulate(grid.begin(), grid.end(), Index{1}, std::multiplies<>());
  constexpr Index kMostSampled = 128;
  RoundCounter counter(kernel);
  for (const std::vector<Index>& program : sampled_programs(grid, std::min(programs, kMostSampled)))
    counter.run(program);
  out.merge(counter.means());
  std::map<ValueId, const Op*> first_of;  // by what loops that data decides carry on
  for (const Op* loop : counter.unknown()) {
    const Op* first = loop;
    for (std::size_t i = kLoopBounds; i < loop->operands.size(); ++i)
      if (const auto before = first_of.find(loop->operands[i]); before != first_of.end())
        first = before->second;
    for (const ValueId id : loop->results) first_of[id] = first;
    if (const auto rounds = axis_rounds(kernel, table, *loop); rounds && !out.count(first))
      out[first] = kLeftByData * *rounds;
    if (first != loop) out[loop] = 0;
  }
  return out;
}

}  // namespace tilewright::tile
