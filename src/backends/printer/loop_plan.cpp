// Planning of element loops: roots (what must be written) are gathered between control ops, put into levels
// by the reductions they wait for, and each level's roots of one shape share a loop.
#include "backends/printer/loop_plan.h"

#include "backends/printer/kept_lines.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace tilewright::printer {

using tile::Block;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

bool is_effect(OpKind kind) {
  return kind == OpKind::store || kind == OpKind::scatter || kind == OpKind::atomic_add;
}

class LoopPlanner {
 public:
  LoopPlanner(const Kernel& kernel, const LoopPolicy& policy)
      : kernel_(kernel), policy_(policy), facts_(kernel), uses_(view_uses(kernel)) {
    tile::for_each_op(kernel.body, [&](const Op& op) {
      if (op.kind != OpKind::loop) return;
      const Block& body = op.blocks[0];
      for (std::size_t i = 1; i < body.args.size(); ++i)
        next_of_[body.ops.back().operands[i - 1]] = body.args[i];
    });
  }

  LoopPlan run() {
    LoopPlan plan;
    plan.steps = plan_block(kernel_.body, {});
    plan.buffers.assign(buffers_.begin(), buffers_.end());
    plan.aliases = aliases_;
    return plan;
  }

 private:
  struct Segment {
    std::vector<const Op*> ops;  // straight-line ops since the last control op
    std::vector<Root> roots;
    std::set<ValueId> used_later;  // behind it, or in the blocks of the op that ends it
  };

  // `targets`: where the block's yield operands go (carried args or branch results).
  std::vector<Step> plan_block(const Block& block, const std::vector<ValueId>& targets) {
    std::vector<Step> steps;
    Segment segment;
    for (std::size_t at = 0; at < block.ops.size(); ++at) {
      const Op& op = block.ops[at];
      if (op.kind == OpKind::yield) {
        finish_block(op, targets, segment, steps);
        return steps;
      }
      const std::set<int> overwritten = views_overwritten_by(op);
      if (!overwritten.empty()) keep_what_was_loaded(overwritten, block, at, segment);
      if (is_control(op)) {
        add_control_roots(op, block, segment);
        keep_what_is_used_later(block, at, segment);
        flush(segment, steps);
        plan_control(op, steps);
        continue;
      }
      if (!overwritten.empty()) flush(segment, steps);
      segment.ops.push_back(&op);
      add_root(op, segment);
      if (!overwritten.empty()) flush(segment, steps);
    }
    flush(segment, steps);
    return steps;
  }

  // Views that the op, or an op in its blocks, writes and the kernel reads.
  std::set<int> views_overwritten_by(const Op& op) const {
    std::set<int> views;
    if (is_effect(op.kind) && uses_[static_cast<std::size_t>(op.param)].read) views.insert(op.param);
    for (const Block& block : op.blocks)
      for (const Op& inner : block.ops) views.merge(views_overwritten_by(inner));
    return views;
  }

  // Values are loaded again where they are used: before their view is overwritten, what is still needed is
  // kept. (What an outer block needs was kept before the op that holds this block.)
  void keep_what_was_loaded(const std::set<int>& views, const Block& block, std::size_t store_at,
                            Segment& segment) {
    std::set<ValueId> used;
    facts_.collect_uses(block.ops[store_at], used, LoopFacts::Nested::only);
    for (std::size_t at = store_at + 1; at < block.ops.size(); ++at)
      facts_.collect_uses(block.ops[at], used, LoopFacts::Nested::with);
    for (std::size_t at = 0; at < store_at; ++at)
      for (ValueId v : block.ops[at].results)
        if (used.count(v) && facts_.rank(v) > 0 && !facts_.buffered(v) && !produced_by_root(v, segment) &&
            facts_.loads_from(v, views))
          add_keep(v, v, segment);
  }

  bool is_control(const Op& op) const {
    if (op.kind == OpKind::transpose && policy_.read_in_place.count(op.results[0])) return false;
    return op.kind == OpKind::dot || op.kind == OpKind::loop || op.kind == OpKind::branch ||
           facts_.is_relayout(op);
  }

  void add_root(const Op& op, Segment& segment) {
    if (is_effect(op.kind) && facts_.rank(op.operands[0]) > 0)
      segment.roots.push_back({Instr::Kind::effect, &op, op.operands[0], -1});
    else if (op.kind == OpKind::reduce || facts_.takes_only_element(op))
      segment.roots.push_back({Instr::Kind::reduce, &op, op.operands[0], op.results[0]});
    else if (op.kind == OpKind::scan)
      segment.roots.push_back({Instr::Kind::scan, &op, op.operands[0], op.results[0]});
  }

  void add_keep(ValueId source, ValueId target, Segment& segment) {
    if (storage(source) == storage(target) && facts_.buffered(source)) return;
    for (const Root& r : segment.roots)
      if (r.kind == Instr::Kind::keep && r.source == source && r.target == target) return;
    segment.roots.push_back({Instr::Kind::keep, nullptr, source, target});
    buffers_.insert(target);
  }

  // Tile operands of a control op must stand in buffers, but for those of dots that are read in place.
  void add_control_roots(const Op& op, const Block& block, Segment& segment) {
    auto materialize = [&](ValueId v) {
      if (facts_.rank(v) > 0 && !policy_.read_in_place.count(v) && !facts_.buffered(v) &&
          !produced_by_root(v, segment))
        add_keep(v, v, segment);
    };
    if (op.kind == OpKind::dot) {
      materialize(op.operands[0]);
      materialize(op.operands[1]);
      if (can_accumulate_in_place(op)) {
        aliases_[op.results[0]] = op.operands[2];
      } else if (const ValueId carried = scaled_in_place(op); carried >= 0) {
        aliases_[op.results[0]] = carried;
        add_keep(op.operands[2], carried, segment);
      } else if (!policy_.dots_start_from_zeros || !is_zeros(facts_.definition(op.operands[2]))) {
        add_keep(op.operands[2], op.results[0], segment);
      }
    } else if (op.kind == OpKind::loop) {
      for (std::size_t i = 3; i < op.operands.size(); ++i) {
        const ValueId arg = op.blocks[0].args[i - 2];
        if (facts_.rank(arg) == 0) continue;
        if (is_left_for(op.operands[i], block))
          aliases_[arg] = op.operands[i];
        else
          add_keep(op.operands[i], arg, segment);
      }
    } else if (op.kind != OpKind::branch) {
      materialize(op.operands[0]);
    }
  }

  // What a loop of this block leaves for one other: it goes on in the same buffer.
  bool is_left_for(ValueId v, const Block& block) const {
    return facts_.use_count(v) == 1 && std::any_of(block.ops.begin(), block.ops.end(), [&](const Op& op) {
             return op.kind == OpKind::loop && facts_.definition(v) == &op;
           });
  }

  bool can_accumulate_in_place(const Op& dot) const {
    return facts_.is_block_arg(dot.operands[2]) && facts_.use_count(dot.operands[2]) == 1;
  }

  // The carried tile that is read only to be computed on and then added to, its next value the dot's result:
  // what is computed takes its place. Else -1.
  ValueId scaled_in_place(const Op& dot) const {
    const auto next = next_of_.find(dot.results[0]);
    if (next == next_of_.end() || facts_.use_count(dot.results[0]) != 1) return -1;
    const ValueId carried = next->second;
    const std::function<bool(ValueId)> leads_to_it = [&](ValueId v) {
      if (facts_.use_count(v) != 1) return false;
      const Op* op = facts_.definition(v);
      return v == carried || (op && (op->kind == OpKind::apply || op->kind == OpKind::cast) &&
                              std::any_of(op->operands.begin(), op->operands.end(), leads_to_it));
    };
    return leads_to_it(dot.operands[2]) ? carried : -1;
  }

  static bool produced_by_root(ValueId v, const Segment& segment) {
    return std::any_of(segment.roots.begin(), segment.roots.end(), [&](const Root& r) {
      return r.target == v && (r.kind == Instr::Kind::reduce || r.kind == Instr::Kind::scan);
    });
  }

  // Tiles that dots in a control op's blocks read from registers or an array.
  void collect_dot_operands(const Op& op, std::set<ValueId>& out) const {
    for (const Block& block : op.blocks)
      for (const Op& inner : block.ops) {
        if (inner.kind == OpKind::dot)
          for (ValueId v : {inner.operands[0], inner.operands[1]})
            if (!policy_.read_in_place.count(v)) out.insert(v);
        collect_dot_operands(inner, out);
      }
  }

  // A tile value of this block that a later op (or the control op's own blocks) uses is kept unless it is
  // cheap to redo: a loop's dot would redo all of it in every round.
  void keep_what_is_used_later(const Block& block, std::size_t control_at, Segment& segment) {
    std::set<ValueId> used;
    facts_.collect_uses(block.ops[control_at], used, LoopFacts::Nested::only);
    for (std::size_t at = control_at + 1; at < block.ops.size(); ++at)
      facts_.collect_uses(block.ops[at], used, LoopFacts::Nested::with);
    std::set<ValueId> multiplied;
    collect_dot_operands(block.ops[control_at], multiplied);
    for (const Op* op : segment.ops)
      for (ValueId v : op->results)
        if (facts_.rank(v) > 0 && !facts_.buffered(v) && !produced_by_root(v, segment) &&
            ((used.count(v) > 0 &&
              (facts_.redo_flops(v) > policy_.keep_above_flops || multiplied.count(v) > 0)) ||
             is_loaded_early(block.ops[control_at], v, used)))
          add_keep(v, v, segment);
    segment.used_later = std::move(used);
  }

  // A row or column that is loaded before the dot for what is computed behind it. Itself, not what is made of
  // it: that would wait for it.
  bool is_loaded_early(const Op& control, ValueId v, const std::set<ValueId>& used) const {
    if (!policy_.load_before_dots || control.kind != OpKind::dot) return false;
    const std::vector<Index>& shape = kernel_.type(v).shape;
    const auto long_axes = std::count_if(shape.begin(), shape.end(), [](Index e) { return e != 1; });
    return long_axes == 1 && facts_.definition(v)->kind == OpKind::load &&
           std::any_of(used.begin(), used.end(), [&](ValueId later) { return facts_.depends_on(later, v); });
  }

  void plan_control(const Op& op, std::vector<Step>& steps) {
    if (op.kind == OpKind::loop) return plan_loop(op, steps);
    if (op.kind == OpKind::branch) return plan_branch(op, steps);
    Step step;
    step.kind = op.kind == OpKind::dot ? Step::Kind::dot : Step::Kind::relayout;
    step.op = &op;
    if (!aliases_.count(op.results[0])) buffers_.insert(op.results[0]);
    facts_.set_buffered(op.results[0]);
    steps.push_back(std::move(step));
  }

  // What only this block wrote to a buffer is not there for what follows: the block may not have run.
  std::vector<Step> plan_nested(const Block& block, const std::vector<ValueId>& targets) {
    const std::set<ValueId> before = facts_.all_buffered();
    std::vector<Step> steps = plan_block(block, targets);
    facts_.restore_buffered(before);
    return steps;
  }

  void plan_loop(const Op& op, std::vector<Step>& steps) {
    const Block& body = op.blocks[0];
    std::vector<ValueId> targets(body.args.begin() + 1, body.args.end());
    Step init{.kind = Step::Kind::assign};
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (facts_.rank(targets[i]) == 0)
        init.moves.push_back({op.operands[i + 3], targets[i]});
      else
        facts_.set_buffered(targets[i]);
    }
    if (!init.moves.empty()) steps.push_back(std::move(init));
    Step step{.kind = Step::Kind::loop, .op = &op};
    step.body[0] = plan_nested(body, targets);
    steps.push_back(std::move(step));
    for (std::size_t i = 0; i < targets.size(); ++i) {
      aliases_[op.results[i]] = targets[i];
      if (facts_.rank(targets[i]) > 0) facts_.set_buffered(op.results[i]);
    }
  }

  void plan_branch(const Op& op, std::vector<Step>& steps) {
    Step step{.kind = Step::Kind::branch, .op = &op};
    for (ValueId r : op.results)
      if (facts_.rank(r) > 0) buffers_.insert(r);
    for (int side : {0, 1})
      step.body[side] = plan_nested(op.blocks[static_cast<std::size_t>(side)], op.results);
    for (ValueId r : op.results)
      if (facts_.rank(r) > 0) facts_.set_buffered(r);
    steps.push_back(std::move(step));
  }

  // The yield: new values go straight into their targets unless something still reads what they overwrite.
  void finish_block(const Op& yield, const std::vector<ValueId>& targets, Segment& segment,
                    std::vector<Step>& steps) {
    Step moves{.kind = Step::Kind::assign};
    std::vector<std::size_t> tiles;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const ValueId v = yield.operands[i];
      if (storage(v) == storage(targets[i])) continue;
      if (facts_.rank(v) == 0)
        moves.moves.push_back({v, targets[i]});
      else
        tiles.push_back(i);
    }
    for (std::size_t i : tiles) {
      const ValueId v = yield.operands[i];
      const bool lives_already = facts_.buffered(v) || produced_by_root(v, segment);
      if (!lives_already && (tiles.size() == 1 || !read_by_others(targets[i], yield, i, segment))) {
        add_keep(v, targets[i], segment);
      } else {
        if (!lives_already) add_keep(v, v, segment);
        moves.moves.push_back({v, targets[i]});
      }
    }
    flush(segment, steps);
    if (!moves.moves.empty()) steps.push_back(std::move(moves));
  }

  // Whether writing `target` at the end could come before another read of it: other yielded values or later
  // loops.
  bool read_by_others(ValueId target, const Op& yield, std::size_t own, const Segment& segment) const {
    for (std::size_t i = 0; i < yield.operands.size(); ++i)
      if (i != own && facts_.depends_on(yield.operands[i], target)) return true;
    return std::any_of(segment.roots.begin(), segment.roots.end(), [&](const Root& r) {
      return facts_.depends_on(r.source, target) && r.source != yield.operands[own];
    });
  }

  ValueId storage(ValueId v) const {
    for (auto it = aliases_.find(v); it != aliases_.end(); it = aliases_.find(v)) v = it->second;
    return v;
  }

  // Turns a segment's roots into steps, level by level.
  void flush(Segment& segment, std::vector<Step>& steps) {
    std::map<ValueId, int> levels;
    auto level_of = [&](const std::vector<ValueId>& operands) {
      int level = 0;
      for (ValueId v : operands)
        if (auto it = levels.find(v); it != levels.end()) level = std::max(level, it->second);
      return level;
    };
    int last = 0;
    std::map<const Op*, int> op_level;
    for (const Op* op : segment.ops) {
      const int level = level_of(op->operands);
      const bool waits =
          op->kind == OpKind::reduce || op->kind == OpKind::scan || facts_.takes_only_element(*op);
      for (ValueId v : op->results) levels[v] = level + (waits ? 1 : 0);
      op_level[op] = level;
      last = std::max(last, level + (waits ? 1 : 0));
    }
    for (Root& r : segment.roots) {
      r.level = r.op ? op_level.at(r.op) : level_of({r.source});
      if (r.op && is_effect(r.op->kind)) r.level = level_of(r.op->operands);
      // A target that is a carried arg is written last, after every read of its old value.
      if (r.kind == Instr::Kind::keep && facts_.is_block_arg(r.target)) r.level = last;
    }
    // First of their levels: the tiles' loops read them.
    const std::vector<Root> lines =
        kept_lines(facts_, policy_.lines, {segment.ops, segment.roots, levels, segment.used_later});
    segment.roots.insert(segment.roots.begin(), lines.begin(), lines.end());
    std::vector<PlannedLoop> loops;
    for (int level = 0; level <= last; ++level)
      for (const Root& r : segment.roots)
        if (r.level == level) loop_for(r, level, loops).roots.push_back(r);
    choose_kept(facts_, policy_, loops, buffers_);
    for (int level = 0; level <= last; ++level) {
      for (const Op* op : segment.ops)
        if (op_level.at(op) == level && facts_.is_scalar_op(*op))
          steps.push_back({.kind = Step::Kind::scalar, .op = op});
      for (PlannedLoop& loop : loops) {
        if (loop.level != level) continue;
        Step step{.kind = Step::Kind::elements};
        step.loop = emit_loop(facts_, loop);
        steps.push_back(std::move(step));
        for (const Root& r : loop.roots)
          if (r.target >= 0 && facts_.rank(r.target) > 0) {
            buffers_.insert(r.target);
            facts_.set_buffered(r.target);
          }
      }
    }
    segment = {};
  }

  PlannedLoop& loop_for(const Root& root, int level, std::vector<PlannedLoop>& loops) {
    const std::vector<Index>& shape = kernel_.type(root.source).shape;
    for (PlannedLoop& l : loops)
      if (l.level == level && l.shape == shape) return l;
    loops.push_back({level, shape, {}});
    return loops.back();
  }

  const Kernel& kernel_;
  const LoopPolicy& policy_;
  LoopFacts facts_;
  std::vector<tile::ViewUse> uses_;
  std::set<ValueId> buffers_;
  std::map<ValueId, ValueId> aliases_;
  std::map<ValueId, ValueId> next_of_;  // what a loop yields → the carried argument that it is next
};

}  // namespace

bool is_zeros(const Op* op) { return op && op->kind == OpKind::constant && op->number == tile::Number{}; }

LoopPlan plan_loops(const Kernel& kernel, const LoopPolicy& policy) {
  return LoopPlanner(kernel, policy).run();
}

}  // namespace tilewright::printer
