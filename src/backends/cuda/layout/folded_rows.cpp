// Follows each carried tile to all that touches its registers.
#include "backends/cuda/layout/folded_rows.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace tilewright::cuda {

using printer::ElementLoop;
using printer::Instr;
using printer::LoopPlan;
using printer::Step;
using tile::Monoid;
using tile::OpKind;
using tile::Prim;
using tile::ValueId;

namespace {

std::optional<Monoid> monoid_of(const Instr& in) {
  if (in.kind != Instr::Kind::compute || !in.op || in.op->kind != OpKind::apply) return std::nullopt;
  switch (in.op->prim) {
    case Prim::add:
      return Monoid::sum;
    case Prim::max:
      return Monoid::max;
    case Prim::min:
      return Monoid::min;
    default:
      return std::nullopt;
  }
}

// Extremes of integers are left out: no loop that carries tiles of them is known to be short of registers.
bool is_identity(Monoid monoid, DType dtype, const tile::Number& number) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (monoid == Monoid::sum) return number == tile::Number{};
  return is_float(dtype) && number.f == (monoid == Monoid::max ? -kInfinity : kInfinity);
}

const Instr* instr_of(const ElementLoop& loop, const printer::Ref& ref) {
  return ref.is_scalar() ? nullptr : &loop.body[static_cast<std::size_t>(ref.instr)];
}

bool holds(const LoopPlan& plan, const Instr& in, ValueId buffer) {
  return in.kind != Instr::Kind::compute && in.value >= 0 && plan.storage(in.value) == buffer;
}

// What the steps do with buffers that hand on a tile to one another: those of loops inside loops.
class Uses {
 public:
  Uses(const LayoutInput& input, std::set<ValueId> buffers) : input_(input), buffers_(std::move(buffers)) {}

  bool allow_folding() {
    for (ValueId buffer : buffers_) {
      buffer_ = buffer;
      walk(input_.plan.steps);
    }
    return !other_ && begins_ && monoid_ && reduced_;
  }

 private:
  void walk(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (step.kind == Step::Kind::elements) look_at(step.loop);
      const auto is_it = [&](ValueId v) { return input_.plan.storage(v) == buffer_; };
      const auto is_one = [&](ValueId v) { return buffers_.count(input_.plan.storage(v)) > 0; };
      for (const auto& [from, to] : step.moves)
        other_ = other_ || (is_it(from) && !is_one(to)) || (is_it(to) && !is_one(from));
      if (step.kind == Step::Kind::dot || step.kind == Step::Kind::relayout)
        other_ = other_ || std::any_of(step.op->operands.begin(), step.op->operands.end(), is_it) ||
                 std::any_of(step.op->results.begin(), step.op->results.end(), is_it);
      for (const auto& body : step.body) walk(body);
    }
  }

  void look_at(const ElementLoop& loop) {
    for (const Instr& in : loop.body) {
      if (!holds(input_.plan, in, buffer_)) continue;
      if (in.kind == Instr::Kind::keep)
        keep(loop, in);
      else if (in.kind == Instr::Kind::reload)
        reload(loop, static_cast<int>(&in - loop.body.data()));
      else
        other_ = true;
    }
  }

  // Its identity, or itself and what is computed combined.
  void keep(const ElementLoop& loop, const Instr& in) {
    const Instr* from = instr_of(loop, in.operands[0]);
    if (from && from->op && from->op->kind == OpKind::constant) {
      begins_ = true;
      starts_.push_back(from->op->number);
      return check();
    }
    const auto monoid = from ? monoid_of(*from) : std::nullopt;
    const auto itself = [&](const printer::Ref& ref) {
      const Instr* operand = instr_of(loop, ref);
      return operand && holds(input_.plan, *operand, buffer_);
    };
    if (!from || !monoid || std::count_if(from->operands.begin(), from->operands.end(), itself) != 1) {
      other_ = true;
      return;
    }
    meet(*monoid);
  }

  // Judges a reload of the tile: by a step that combines elements with it, or by its reduction.
  void reload(const ElementLoop& loop, int at) {
    int users = 0;
    for (const Instr& in : loop.body) {
      const auto reads = [&](const printer::Ref& ref) { return !ref.is_scalar() && ref.instr == at; };
      if (std::none_of(in.operands.begin(), in.operands.end(), reads)) continue;
      ++users;
      if (in.kind == Instr::Kind::reduce) {
        other_ = other_ || in.op->axis != long_axes(loop.shape)[0];
        reduced_ = true;
        meet(in.op->monoid);
      } else if (!monoid_of(in) || !only_kept(loop, in)) {
        other_ = true;
      }
    }
    other_ = other_ || users != 1;
  }

  bool only_kept(const ElementLoop& loop, const Instr& combined) const {
    const auto at = static_cast<int>(&combined - loop.body.data());
    return std::all_of(loop.body.begin(), loop.body.end(), [&](const Instr& in) {
      const auto reads = [&](const printer::Ref& ref) { return !ref.is_scalar() && ref.instr == at; };
      return std::none_of(in.operands.begin(), in.operands.end(), reads) ||
             (in.kind == Instr::Kind::keep && holds(input_.plan, in, buffer_));
    });
  }

  void meet(Monoid monoid) {
    other_ = other_ || (monoid_ && *monoid_ != monoid);
    monoid_ = monoid;
    check();
  }

  void check() {
    if (!monoid_) return;
    const DType dtype = input_.kernel.type(buffer_).dtype;
    for (const tile::Number& start : starts_) other_ = other_ || !is_identity(*monoid_, dtype, start);
  }

  const LayoutInput& input_;
  const std::set<ValueId> buffers_;
  ValueId buffer_ = -1;  // of these, the one that is looked at
  bool begins_ = false, reduced_ = false, other_ = false;
  std::optional<Monoid> monoid_;
  std::vector<tile::Number> starts_;
};

bool is_root(const Instr& in) { return in.kind != Instr::Kind::compute && in.kind != Instr::Kind::reload; }

// A reduction of a folded tile.
bool reduces_folded(const LoopPlan& plan, const ElementLoop& loop, const Instr& in,
                    const std::set<ValueId>& folded) {
  if (in.kind != Instr::Kind::reduce) return false;
  const Instr* from = instr_of(loop, in.operands[0]);
  return from && from->kind == Instr::Kind::reload && folded.count(plan.storage(from->value)) > 0;
}

}  // namespace

bool walks_folded_row(const LoopPlan& plan, const ElementLoop& loop, const std::set<ValueId>& folded) {
  if (folded.empty()) return false;
  return std::all_of(loop.body.begin(), loop.body.end(), [&](const Instr& in) {
    if (!is_root(in)) return true;
    if (in.kind != Instr::Kind::keep) return reduces_folded(plan, loop, in, folded);
    const Instr* from = instr_of(loop, in.operands[0]);
    return folded.count(plan.storage(in.value)) > 0 && from && from->op && from->op->kind == OpKind::constant;
  });
}

// The tiles that loops carry, by those that are moved into one another.
static std::set<std::set<ValueId>> carried_tiles(const LayoutInput& input, const Layouts& layouts) {
  std::map<ValueId, std::set<ValueId>> class_of;
  for_each_step(input.plan.steps, [&](const Step& step) {
    if (step.kind != Step::Kind::loop) return;
    for (std::size_t i = 1; i < step.op->blocks[0].args.size(); ++i) {
      const ValueId buffer = input.plan.storage(step.op->blocks[0].args[i]);
      const auto layout = layouts.buffers.find(buffer);
      if (layout == layouts.buffers.end() || layout->second.part != Part::all) continue;
      const TileFrame& f = layouts.frame(layout->second);
      if (f.map == RowMap::strided && f.row_steps() > 1) class_of[buffer] = {buffer};
    }
  });
  for_each_step(input.plan.steps, [&](const Step& step) {
    for (const auto& [from, to] : step.moves) {
      const auto a = class_of.find(input.plan.storage(from)), b = class_of.find(input.plan.storage(to));
      if (a == class_of.end() || b == class_of.end()) continue;
      std::set<ValueId> both = a->second;
      both.insert(b->second.begin(), b->second.end());
      for (ValueId v : both) class_of[v] = both;
    }
  });
  std::set<std::set<ValueId>> all;
  for (const auto& [buffer, together] : class_of) all.insert(together);
  return all;
}

std::set<ValueId> find_folded_rows(const LayoutInput& input, const Layouts& layouts) {
  std::set<ValueId> folded;
  const std::set<std::set<ValueId>> carried = carried_tiles(input, layouts);
  for (const std::set<ValueId>& together : carried)
    if (Uses(input, together).allow_folding()) folded.insert(together.begin(), together.end());
  // A loop that reduces others beside them walks all rows of a thread.
  for (std::size_t before = folded.size() + 1; before != folded.size();) {
    before = folded.size();
    for_each_step(input.plan.steps, [&](const Step& step) {
      if (step.kind != Step::Kind::elements) return;
      const ElementLoop& loop = step.loop;
      const auto reduces = [&](const Instr& in) { return reduces_folded(input.plan, loop, in, folded); };
      if (std::none_of(loop.body.begin(), loop.body.end(), reduces) ||
          walks_folded_row(input.plan, loop, folded))
        return;
      // No value that hands it on is left alone.
      for (const Instr& in : loop.body) {
        if (!reduces(in)) continue;
        const ValueId whole = input.plan.storage(instr_of(loop, in.operands[0])->value);
        for (const std::set<ValueId>& together : carried)
          if (together.count(whole) > 0)
            for (ValueId v : together) folded.erase(v);
      }
    });
  }
  return folded;
}

}  // namespace tilewright::cuda
