// Dispatch, control and the checks of a checked run.
#include "backends/reference/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/compute.h"
#include "tile/print.h"

namespace tilewright::reference {

using tile::Block;
using tile::Op;
using tile::OpKind;
using tile::TileType;
using tile::ValueId;

namespace {

// Values have the precision of float64 and the range of their type. (Error bounds settle this themselves.)
void keep_range(DType dtype, std::vector<double>& values) {
  if (!is_float(dtype) || dtype == DType::f64) return;
  const double limit = max_finite(dtype);
  for (double& v : values)
    if (std::abs(v) > limit) v = round_to(dtype, v);
}

}  // namespace

void Machine::run(Index program) {
  program_ = program;
  for (std::size_t axis = 0; axis < launch_.grid.size(); ++axis) {
    coordinates_[axis] = program % launch_.grid[axis];
    program /= launch_.grid[axis];
  }
  run_block(kernel_.body);
}

// Stops before the yield: its operands are read by the loop or branch.
void Machine::run_block(const Block& block) {
  for (const Op& op : block.ops)
    if (op.kind != OpKind::yield) run_op(op);
}

void Machine::run_op(const Op& op) {
  switch (op.kind) {
    case OpKind::scalar_param:
    case OpKind::program_id:
      return define_scalar(op);
    case OpKind::load:
      return run_load(op);
    case OpKind::store:
      return run_store(op);
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::atomic_add:
      return run_indexed(op);
    case OpKind::loop:
      return run_loop(op);
    case OpKind::branch:
      return run_branch(op);
    default:
      compute(kernel_, op, values_);
      if (launch_.bounds)
        launch_.bounds->compute(op, values_);
      else
        keep_range(kernel_.type(op.results[0]).dtype, at(values_, op.results[0]).f);
  }
}

void Machine::set_index(ValueId id, std::int64_t value) {
  at(values_, id).i.assign(1, value);
  if (launch_.bounds) at(values_, id).error.assign(1, 0);
}

void Machine::define_scalar(const Op& op) {
  const ValueId id = op.results[0];
  const auto param = static_cast<std::size_t>(op.param);
  const DType dtype = kernel_.type(id).dtype;
  const std::int64_t bits = op.kind == OpKind::program_id ? coordinates_[param] : launch_.scalars[param];
  if (is_float(dtype)) at(values_, id).f.assign(1, tile::scalar_value(dtype, bits));
  set_index(id, is_float(dtype) ? 0 : bits);
}

// --- memory

void Machine::run_load(const Op& op) {
  const BoundView& view = launch_.views[static_cast<std::size_t>(op.param)];
  const BlockWalk walk = walk_block(kernel_, op, view, values_);
  check_promise(op, view);
  if (launch_.shadow) check_block(op, walk);
  load_block(op, view, walk, at(values_, op.results[0]));
  if (launch_.bounds) launch_.bounds->load(op, walk, values_);
}

void Machine::run_store(const Op& op) {
  const BoundView& view = launch_.views[static_cast<std::size_t>(op.param)];
  const BlockWalk walk = walk_block(kernel_, op, view, values_);
  check_promise(op, view);
  if (launch_.shadow) check_block(op, walk);
  store_block(view, walk, at(values_, op.operands[0]));
  if (launch_.bounds) launch_.bounds->store(op, walk, values_);
}

void Machine::run_indexed(const Op& op) {
  const BoundView& view = launch_.views[static_cast<std::size_t>(op.param)];
  check_indexed(op, view);
  BoundsTracker* bounds = launch_.bounds;
  if (op.kind == OpKind::gather) {
    gather(kernel_, op, view, values_);
    if (bounds) bounds->gather(op, view, values_);
  } else if (op.kind == OpKind::scatter) {
    scatter(kernel_, op, view, values_);
    if (bounds) bounds->scatter(op, view, values_);
  } else {
    if (bounds) bounds->atomic_add(op, view, values_);  // looks at what is there before
    atomic_add(kernel_, op, view, values_);
  }
}

// --- control

void Machine::copy(const std::vector<ValueId>& from, std::size_t skip, const std::vector<ValueId>& to,
                   std::size_t to_skip) {
  for (std::size_t i = skip; i < from.size(); ++i) at(values_, to[i - skip + to_skip]) = at(values_, from[i]);
}

void Machine::mark_undecided(const std::vector<ValueId>& results) {
  for (ValueId id : results) {
    const TileType& type = kernel_.type(id);
    const double error = is_bool(type.dtype) ? 1 : std::numeric_limits<double>::infinity();
    at(values_, id).error.assign(static_cast<std::size_t>(type.size()), error);
  }
}

void Machine::run_loop(const Op& op) {
  const std::int64_t lower = scalar(values_, op.operands[0]), upper = scalar(values_, op.operands[1]),
                     step = scalar(values_, op.operands[2]);
  if (step <= 0) trap(op, fmt::format("the step is {}", step));
  const Block& body = op.blocks[0];
  const std::vector<ValueId>& next = body.ops.back().operands;
  copy(op.operands, 3, body.args, 1);
  Values staged(next.size());
  for (std::int64_t i = lower; i < upper; i += std::min(step, upper - i)) {
    set_index(body.args[0], i);
    run_block(body);
    // A yielded value may be another carried one: all are read before any is written.
    for (std::size_t v = 0; v < next.size(); ++v) staged[v] = at(values_, next[v]);
    for (std::size_t v = 0; v < next.size(); ++v) std::swap(at(values_, body.args[v + 1]), staged[v]);
  }
  for (std::size_t v = 0; v < op.results.size(); ++v)
    at(values_, op.results[v]) = at(values_, body.args[v + 1]);
  if (!launch_.bounds) return;
  const bool decided = std::all_of(op.operands.begin(), op.operands.begin() + 3,
                                   [&](ValueId id) { return at(values_, id).error[0] == 0; });
  if (decided) return;
  launch_.bounds->undecided(op.blocks);
  mark_undecided(op.results);
}

void Machine::run_branch(const Op& op) {
  const Block& block = op.blocks[scalar(values_, op.operands[0]) != 0 ? 0 : 1];
  run_block(block);
  copy(block.ops.back().operands, 0, op.results, 0);
  if (!launch_.bounds || at(values_, op.operands[0]).error[0] == 0) return;
  launch_.bounds->undecided(op.blocks);
  mark_undecided(op.results);
}

// --- checks

void Machine::trap(const Op& op, const std::string& message) const {
  std::string text = fmt::format("kernel {}: {}: {}", kernel_.name, to_string(kernel_, op), message);
  text += fmt::format(" in program ({})", fmt::join(coordinates_, coordinates_ + launch_.grid.size(), ","));
  if (!op.location.empty()) text += fmt::format(" (at {})", op.location);
  throw Trap(text);
}

void Machine::check_promise(const Op& op, const BoundView& view) {
  if (op.bounded) return;
  const std::size_t first = op.kind == OpKind::store ? 1 : 0;
  const TileType& type = kernel_.type(first == 0 ? op.results[0] : op.operands[0]);
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const auto axis = std::find(op.tile_dims.begin(), op.tile_dims.end(), static_cast<int>(d));
    const Index walked =
        axis == op.tile_dims.end() ? 1 : type.shape[static_cast<std::size_t>(axis - op.tile_dims.begin())];
    const Index start = scalar(values_, op.operands[first + d]);
    if (start < 0 || start > view.extents[d] - walked)
      trap(op, fmt::format("dim {} goes from {} to {} in a view of {}", d, start, start + walked,
                           view.extents[d]));
  }
}

void Machine::check_block(const Op& op, const BlockWalk& walk) {
  const Touch how = op.kind == OpKind::load ? Touch::read : Touch::store;
  for (Index r = walk.outer.begin; r < walk.outer.end; ++r)
    for (Index c = walk.inner.begin; c < walk.inner.end; ++c) {
      const Index offset = walk.offset + r * walk.outer.stride + c * walk.inner.stride;
      if (std::string problem = launch_.shadow->touch(op.param, offset, program_, how); !problem.empty())
        trap(op, fmt::format("element [{},{}] of the block: {}", r, c, problem));
    }
}

void Machine::check_indexed(const Op& op, const BoundView& view) {
  const std::size_t first = op.kind == OpKind::gather ? 0 : 1;
  const Touch how = op.kind == OpKind::gather    ? Touch::read
                    : op.kind == OpKind::scatter ? Touch::scatter
                                                 : Touch::add;
  for_each_indexed(kernel_, op, view, values_, [&](std::size_t n, Index offset) {
    for (std::size_t d = 0; d < view.extents.size(); ++d) {
      const Index index = at(values_, op.operands[first + d]).i[n];
      if (index < 0 || index >= view.extents[d])
        trap(op, fmt::format("element {}: index {} along dim {} of {}", n, index, d, view.extents[d]));
    }
    if (!launch_.shadow) return;
    if (std::string problem = launch_.shadow->touch(op.param, offset, program_, how); !problem.empty())
      trap(op, fmt::format("element {}: {}", n, problem));
  });
}

}  // namespace tilewright::reference
