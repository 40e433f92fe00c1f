// The parts under plan_loops: facts about a kernel's values, the choice of what is kept, and one loop's
// instructions.
#pragma once

#include "backends/printer/loop_plan.h"

#include <functional>
#include <set>

namespace tilewright::printer {

// Something an element loop must write.
struct Root {
  Instr::Kind kind;
  const tile::Op* op;    // null for keep
  tile::ValueId source;  // the tile evaluated (effect: the stored one)
  tile::ValueId target;  // reduce, scan, keep: what is written
  int level = 0;
};

// What a root reads: its source tile, and for effects the indices and mask.
std::vector<tile::ValueId> operands_of(const Root& root);

struct PlannedLoop {
  int level;
  std::vector<Index> shape;
  std::vector<Root> roots;
};

class LoopFacts {
 public:
  explicit LoopFacts(const tile::Kernel& kernel);

  const tile::Kernel& kernel() const { return kernel_; }
  const tile::Op* definition(tile::ValueId v) const {
    return definitions_[static_cast<std::size_t>(v)];
  }  // null: block arg
  int rank(tile::ValueId v) const { return kernel_.type(v).rank(); }
  int use_count(tile::ValueId v) const { return uses_[static_cast<std::size_t>(v)]; }
  bool is_block_arg(tile::ValueId v) const { return block_arg_[static_cast<std::size_t>(v)]; }
  bool buffered(tile::ValueId v) const { return buffered_.count(v) != 0; }
  void set_buffered(tile::ValueId v) { buffered_.insert(v); }
  const std::set<tile::ValueId>& all_buffered() const { return buffered_; }
  void restore_buffered(std::set<tile::ValueId> buffered) { buffered_ = std::move(buffered); }
  bool is_scalar_op(const tile::Op& op) const;
  // A reshape of a tile of one element to a scalar: planned like a reduction over no axis.
  bool takes_only_element(const tile::Op& op) const;
  // argsort, transpose, and reshape that does more than add or drop unit axes: an element of the result is
  // made of others than the operand's at its place.
  bool is_relayout(const tile::Op& op) const;
  // FLOPs to compute an element of v again from loads, buffered values and those `at_hand`.
  double redo_flops(tile::ValueId v, const std::function<bool(tile::ValueId)>& at_hand = {}) const;
  bool depends_on(tile::ValueId v, tile::ValueId target) const;
  // Whether computing v again would load from one of these views.
  bool loads_from(tile::ValueId v, const std::set<int>& views) const;

  enum class Nested : unsigned char { with, only };
  void collect_uses(const tile::Op& op, std::set<tile::ValueId>& used, Nested nested) const;

 private:
  // Whether v or something it is computed from passes, looking no further than values in buffers.
  bool any_source(tile::ValueId v, const std::function<bool(tile::ValueId)>& test) const;
  const tile::Kernel& kernel_;
  std::vector<const tile::Op*> definitions_;
  std::vector<int> uses_;
  std::vector<bool> block_arg_;
  std::set<tile::ValueId> buffered_;
};

// Adds keep roots for values that two loops need and that are dear to compute again.
void choose_kept(LoopFacts& facts, const LoopPolicy& policy, std::vector<PlannedLoop>& loops,
                 std::set<tile::ValueId>& buffers);

ElementLoop emit_loop(const LoopFacts& facts, const PlannedLoop& loop);

}  // namespace tilewright::printer
