// Runs each row's eval on blocks of the operands.
#include "ops/elementwise_group.h"

#include "ops/row_parts.h"

#include <tilewright/base/thread_pool.h>

#include <algorithm>
#include <map>

namespace tilewright::ops {

namespace {

constexpr Index kBlock = 4096;            // 32 KiB a value: a chain of a few stays in L2
constexpr Index kParallelFrom = 1 << 20;  // starting threads costs about what this many elements do

void copy_block(const HostTensor& from, Index from_at, HostTensor& to, Index to_at, Index n) {
  if (is_float(to.type.dtype))
    std::copy_n(from.f.begin() + from_at, n, to.f.begin() + to_at);
  else
    std::copy_n(from.i.begin() + from_at, n, to.i.begin() + to_at);
}

// One thread's blocks: values by slot, operands from outside first, then the group's nodes.
class BlockRunner {
 public:
  BlockRunner(const ir::Graph& graph, const ElementwiseGroup& group,
              const std::function<const HostTensor&(ir::NodeId)>& value)
      : graph_(graph), group_(group) {
    for (ir::NodeId id : group.nodes)
      for (ir::NodeId operand : graph.node(id).operands)
        if (!std::binary_search(group.nodes.begin(), group.nodes.end(), operand) && !slots_.count(operand))
          outside_.push_back({&value(operand), slots_[operand] = static_cast<int>(slots_.size())});
    for (ir::NodeId id : group.nodes) slots_[id] = static_cast<int>(slots_.size());
    blocks_.resize(slots_.size());
  }

  void run(Index begin, Index n, std::vector<HostTensor>& results) {
    for (const auto& [whole, slot] : outside_) {
      HostTensor& block = block_of(slot);
      if (block.type.shape != Shape({n})) block = empty_host({whole->type.dtype, {n}});
      copy_block(*whole, begin, block, 0, n);
    }
    for (ir::NodeId id : group_.nodes) {
      const ir::Node& node = graph_.node(id);
      std::vector<const HostTensor*> operands;
      operands.reserve(node.operands.size());
      for (ir::NodeId operand : node.operands) operands.push_back(&block_of(slots_.at(operand)));
      HostTensor& block = block_of(slots_.at(id));
      const bool same_every_time = node.op->kind == ir::OpClass::constant;
      if (same_every_time && block.type.shape == Shape({n})) continue;
      block = node.op->eval(operands, node.attrs, {node.type.dtype, {n}});
    }
    for (std::size_t i = 0; i < group_.stored.size(); ++i)
      copy_block(block_of(slots_.at(group_.stored[i])), 0, results[i], begin, n);
  }

 private:
  HostTensor& block_of(int slot) { return blocks_[static_cast<std::size_t>(slot)]; }

  const ir::Graph& graph_;
  const ElementwiseGroup& group_;
  std::map<ir::NodeId, int> slots_;
  std::vector<std::pair<const HostTensor*, int>> outside_;
  std::vector<HostTensor> blocks_;
};

}  // namespace

bool is_elementwise(const ir::Op& op) {
  return op.kind == OpClass::pointwise || op.kind == OpClass::cast || op.kind == OpClass::constant;
}

void evaluate_group(const ir::Graph& graph, const ElementwiseGroup& group,
                    const std::function<const HostTensor&(ir::NodeId)>& value,
                    std::vector<HostTensor>& results) {
  results.clear();
  for (ir::NodeId id : group.stored) results.push_back(empty_host(graph.type(id)));
  auto run = [&](Index begin, Index end, int) {
    BlockRunner runner(graph, group, value);
    for (Index at = begin; at < end; at += kBlock) runner.run(at, std::min(kBlock, end - at), results);
  };
  if (group.count < kParallelFrom) return run(0, group.count, 0);
  ThreadPool pool(0, {.spin_us = 0, .pin = false});
  pool.parallel_for(group.count, run);
}

}  // namespace tilewright::ops
