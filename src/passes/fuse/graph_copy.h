// A graph anew, in which some nodes are written together, in a way of their own, where the first of them is
// needed. (Nodes that are replaced one at a time: graph/replace_nodes.h.)
#pragma once

#include "ir/graph.h"

#include <optional>
#include <vector>

namespace tilewright::passes {

class GraphCopy {
 public:
  explicit GraphCopy(const ir::Graph& graph);
  virtual ~GraphCopy() = default;
  GraphCopy(const GraphCopy&) = delete;
  GraphCopy& operator=(const GraphCopy&) = delete;

  // The new graph. None where what is written together needs its own result.
  std::optional<ir::Graph> run();

 protected:
  // Nodes that are left out: nothing but what is written together reads them.
  virtual bool is_left_out(ir::NodeId) const { return false; }
  virtual bool is_written_together(ir::NodeId id) const = 0;
  // Names the nodes that it writes by renamed(); false where add() of what they need was false.
  virtual bool write_together() = 0;

  // Writes a node, behind what it needs.
  bool add(ir::NodeId id);
  ir::NodeId& renamed(ir::NodeId id) { return renamed_[static_cast<std::size_t>(id)]; }
  ir::Value value(ir::NodeId id) { return {&out_, renamed(id)}; }

  const ir::Graph& graph_;
  ir::Graph out_;

 private:
  std::vector<ir::NodeId> renamed_;  // by the node's number in `graph_`; -1: not written yet
  bool writing_ = false;
};

}  // namespace tilewright::passes
