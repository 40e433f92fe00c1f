// The Builder's loops and branches, and the end of a kernel.
#include <fmt/format.h>

#include <functional>
#include <iterator>

#include "tile/builder_state.h"
#include "tile/rules.h"
#include "tile/verify_parts.h"

namespace tilewright::tile {

namespace {
// Ops go to `block` until it is closed, or until the user's body throws.
class OpenBlock {
 public:
  OpenBlock(std::vector<Block*>& open, Block& block) : open_(open), depth_(open.size()) {
    open.push_back(&block);
  }
  ~OpenBlock() { close(); }
  OpenBlock(const OpenBlock&) = delete;
  OpenBlock& operator=(const OpenBlock&) = delete;
  void close() const { open_.resize(depth_); }

 private:
  std::vector<Block*>& open_;
  std::size_t depth_;
};
}  // namespace

std::vector<Value> Builder::loop(const Operand& lower, const Operand& upper, const Operand& step,
                                 const std::vector<Value>& initial, const LoopBody& body,
                                 const Location& where) {
  live(where);
  if (!body) fail(where, "loop: there is no body");
  Op op{.kind = OpKind::loop};
  op.operands = {scalar_index(lower, {"loop", "the lower bound"}).id(),
                 scalar_index(upper, {"loop", "the upper bound"}).id(),
                 scalar_index(step, {"loop", "the step"}).id()};
  for (std::size_t i = 0; i < initial.size(); ++i)
    check(initial[i], {"loop", "initial value", static_cast<int>(i)}, where);
  Block block;
  Value induction = fresh({DType::i64, {}});
  block.args.push_back(induction.id());
  std::vector<Value> carried;
  for (const Value& v : initial) {
    op.operands.push_back(v.id());
    carried.push_back(fresh(TileType(v.type())));
    block.args.push_back(carried.back().id());
  }
  const OpenBlock open(state_->open, block);
  std::vector<Value> next = body(induction, carried);
  Op end{.kind = OpKind::yield};
  if (next.size() != initial.size())
    fail(where, fmt::format("loop: the body returns {} values, {} are carried", next.size(), initial.size()));
  for (std::size_t i = 0; i < next.size(); ++i) {
    check(next[i], {"loop", "carried value", static_cast<int>(i)}, where);
    if (next[i].type() != initial[i].type())
      fail(where, fmt::format("loop: carried value {} changes from {} to {}", i, to_string(initial[i].type()),
                              to_string(next[i].type())));
    end.operands.push_back(next[i].id());
  }
  push_effect(std::move(end), where);
  open.close();
  op.blocks.push_back(std::move(block));
  std::vector<Value> results;
  results.reserve(initial.size());
  for (const Value& v : initial) results.push_back(fresh(TileType(v.type())));
  for (const Value& v : results) op.results.push_back(v.id());
  push_effect(std::move(op), where);
  return results;
}

std::vector<Value> Builder::branch(const Value& condition, const BranchBody& then_body,
                                   const BranchBody& else_body, const Location& where) {
  check(condition, {"branch", "the condition"}, where);
  if (!then_body || !else_body) fail(where, "branch: a side has no body");
  if (condition.rank() != 0 || !is_bool(condition.dtype()))
    fail(where,
         fmt::format("branch: the condition must be a bool scalar, got {}", to_string(condition.type())));
  Op op{.kind = OpKind::branch, .operands = {condition.id()}};
  std::vector<TileType> yielded[2];
  for (int side : {0, 1}) {
    Block block;
    const OpenBlock open(state_->open, block);
    Op end{.kind = OpKind::yield};
    for (const Value& v : side == 0 ? then_body() : else_body()) {
      check(v, {"branch", "result", static_cast<int>(end.operands.size())}, where);
      end.operands.push_back(v.id());
      yielded[side].push_back(v.type());
    }
    push_effect(std::move(end), where);
    open.close();
    op.blocks.push_back(std::move(block));
  }
  if (yielded[0] != yielded[1]) fail(where, "branch: the two sides yield different types");
  std::vector<Value> results;
  for (const TileType& type : yielded[0]) {
    results.push_back(fresh(type));
    op.results.push_back(results.back().id());
  }
  push_effect(std::move(op), where);
  return results;
}

namespace {

// Products that are added to something, and of which another op makes more.
void round_shared_products(Kernel& kernel) {
  std::vector<int> readers(kernel.values.size());
  std::vector<bool> added(kernel.values.size());
  for_each_op(kernel.body, [&](const Op& op) {
    for (const ValueId v : op.operands) {
      ++readers[static_cast<std::size_t>(v)];
      if (is_sum(op)) added[static_cast<std::size_t>(v)] = true;
    }
  });
  const std::function<void(Block&)> mark = [&](Block& block) {
    for (Op& op : block.ops) {
      for (Block& inner : op.blocks) mark(inner);
      if (op.results.size() != 1 || !is_product(op, kernel.type(op.results[0]).dtype)) continue;
      const auto v = static_cast<std::size_t>(op.results[0]);
      op.rounded = op.rounded || (readers[v] > 1 && added[v]);
    }
  };
  mark(kernel.body);
}

}  // namespace

Kernel Builder::finish(const std::vector<std::vector<std::pair<SizeArg, Index>>>& grid,
                       const Location& where) {
  BuilderState& state = live(where);
  if (state.open.size() > 1)
    fail(where, fmt::format("kernel {}: finish() inside the body of a loop or branch", state.name));
  std::vector<GridAxis> axes;
  for (const auto& axis : grid) {
    GridAxis& factors = axes.emplace_back();
    const Use use{"grid", "the extent of axis", static_cast<int>(axes.size()) - 1};
    for (const auto& [extent, block] : axis) factors.push_back({size(extent, use, where), block});
  }
  state.finished = true;
  Kernel kernel = std::move(state.kernel);
  kernel.grid = std::move(axes);
  kernel.values.assign(std::make_move_iterator(state.values.begin()),
                       std::make_move_iterator(state.values.end()));
  kernel.views.assign(std::make_move_iterator(state.views.begin()),
                      std::make_move_iterator(state.views.end()));
  round_shared_products(kernel);
  const OpProblem problem = first_problem(kernel);
  if (!problem.is_there()) return kernel;
  const std::string message = fmt::format("kernel {}: {}", kernel.name, to_string(kernel, problem));
  // The message names the line of the op at fault, where one is known: finish()'s own would only mislead.
  if (problem.op && !problem.op->location.empty()) throw Error(message);
  fail(where, message);
}

}  // namespace tilewright::tile
