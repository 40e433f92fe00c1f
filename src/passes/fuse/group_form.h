// The canonical form of a group: what it computes, whatever its nodes are called and wherever they stand. The
// groups of a network's layers are equal but for names, and have one form. Groups that differ in the numbers
// of their random keys alone, as layers with dropout do, have one price.
#pragma once

#include "passes/nest/loop_nest.h"

#include <tilewright/base/hash.h>

namespace tilewright::passes {

struct GroupForm {
  Hash128 key;                    // equal for groups of one form
  Hash128 price_key;              // equal for those of one price: without the numbers of random keys
  std::vector<ir::NodeId> nodes;  // by their numbers in the form
};

class GroupForms {
 public:
  explicit GroupForms(const ir::Graph& graph);

  // Numbers the group's nodes in their order, then, in the order in which these read them, the views and
  // buffers behind. The key has each node with its attributes, its type and the numbers of its operands; of a
  // buffer its type and how its rows lie.
  Hash128 price_key_of(const Group& group);
  GroupForm of(const Group& group);

 private:
  void number(ir::NodeId id);
  void add_operands(ir::NodeId id);
  void add_node(ir::NodeId id, std::uint64_t mark);

  const ir::Graph& graph_;
  std::vector<std::uint64_t> nodes_, buffers_;  // hashes, beside the graph's nodes
  std::vector<int> numbers_;                    // of the group that is looked at; -1: none yet
  std::vector<ir::NodeId> numbered_;
  std::vector<std::uint64_t> code_;
  std::vector<bool> is_key_number_;          // constants that random keys alone are made of
  std::vector<std::uint64_t> keys_numbers_;  // hashes of those in the group
};

}  // namespace tilewright::passes
