// Facts, keeping, and the instructions of one element loop.
#include "backends/printer/loop_emit.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tilewright::printer {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

LoopFacts::LoopFacts(const Kernel& kernel)
    : kernel_(kernel),
      definitions_(kernel.values.size()),
      uses_(kernel.values.size()),
      block_arg_(kernel.values.size()) {
  tile::for_each_op(kernel.body, [&](const Op& op) {
    for (ValueId v : op.results) definitions_[static_cast<std::size_t>(v)] = &op;
    for (ValueId v : op.operands) ++uses_[static_cast<std::size_t>(v)];
    for (const tile::Block& b : op.blocks)
      for (ValueId v : b.args) block_arg_[static_cast<std::size_t>(v)] = true;
  });
}

bool LoopFacts::is_scalar_op(const Op& op) const {
  switch (op.kind) {
    case OpKind::reduce:
    case OpKind::loop:
    case OpKind::branch:
    case OpKind::yield:
      return false;
    case OpKind::store:
    case OpKind::scatter:
    case OpKind::atomic_add:
      return rank(op.operands[0]) == 0;
    default:
      return rank(op.results[0]) == 0 && !takes_only_element(op);
  }
}

bool LoopFacts::takes_only_element(const Op& op) const {
  return op.kind == OpKind::reshape && rank(op.results[0]) == 0 && rank(op.operands[0]) > 0;
}

namespace {
std::vector<Index> non_unit(const std::vector<Index>& shape) {
  std::vector<Index> out;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(out), [](Index e) { return e != 1; });
  return out;
}
}  // namespace

bool LoopFacts::is_relayout(const Op& op) const {
  if (op.kind == OpKind::argsort) return true;
  if (op.kind == OpKind::transpose) return non_unit(kernel_.type(op.operands[0]).shape).size() == 2;
  return op.kind == OpKind::reshape && rank(op.operands[0]) > 0 && rank(op.results[0]) > 0 &&
         non_unit(kernel_.type(op.operands[0]).shape) != non_unit(kernel_.type(op.results[0]).shape);
}

double LoopFacts::redo_flops(ValueId v, const std::function<bool(ValueId)>& at_hand) const {
  std::set<ValueId> seen;
  double flops = 0;
  const std::function<void(ValueId)> count = [&](ValueId each) {
    if (rank(each) == 0 || buffered(each) || !definition(each) || (at_hand && at_hand(each)) ||
        !seen.insert(each).second)
      return;
    const Op& op = *definition(each);
    // Loads are free here: their index arithmetic is scalar, and the row is in cache. Reductions and scans
    // are kept anyway.
    if (op.kind == OpKind::load || op.kind == OpKind::reduce || op.kind == OpKind::scan) return;
    if (op.kind == OpKind::apply) flops += info(op.prim).flops;
    if (op.kind == OpKind::cast) flops += 1;
    if (op.kind == OpKind::gather) flops += 2;
    if (op.kind == OpKind::random) flops += 40;  // ten rounds of Philox
    for (ValueId o : op.operands) count(o);
  };
  count(v);
  return flops;
}

bool LoopFacts::any_source(ValueId v, const std::function<bool(ValueId)>& test) const {
  std::set<ValueId> seen;
  const std::function<bool(ValueId)> visit = [&](ValueId each) {
    if (!seen.insert(each).second) return false;
    if (test(each)) return true;
    const Op* op = definition(each);
    return op && !buffered(each) && std::any_of(op->operands.begin(), op->operands.end(), visit);
  };
  return visit(v);
}

bool LoopFacts::depends_on(ValueId v, ValueId target) const {
  return any_source(v, [=](ValueId each) { return each == target; });
}

bool LoopFacts::loads_from(ValueId v, const std::set<int>& views) const {
  return any_source(v, [&](ValueId each) {
    const Op* op = definition(each);
    return op && !buffered(each) && (op->kind == OpKind::load || op->kind == OpKind::gather) &&
           views.count(op->param);
  });
}

void LoopFacts::collect_uses(const Op& op, std::set<ValueId>& used, Nested nested) const {
  if (nested == Nested::with) used.insert(op.operands.begin(), op.operands.end());
  for (const tile::Block& b : op.blocks)
    for (const Op& inner : b.ops) collect_uses(inner, used, Nested::with);
}

std::vector<ValueId> operands_of(const Root& root) {
  return root.kind == Instr::Kind::effect ? root.op->operands : std::vector<ValueId>{root.source};
}

namespace {

class KeepChooser {
 public:
  KeepChooser(LoopFacts& facts, const LoopPolicy& policy, std::vector<PlannedLoop>& loops,
              std::set<ValueId>& buffers)
      : facts_(facts), policy_(policy), loops_(loops), buffers_(buffers) {}

  void run() {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      const std::vector<Root> roots = loops_[i].roots;
      std::set<ValueId> seen;
      for (const Root& r : roots)
        for (ValueId v : operands_of(r)) visit(v, seen);
      for (const Root& r : roots)
        for (ValueId v : operands_of(r)) mark(v, i);
      for (const Root& r : roots)
        if (r.target >= 0) written_.insert(r.target);
    }
  }

 private:
  bool stops(ValueId v) const {
    return facts_.rank(v) == 0 || facts_.buffered(v) || written_.count(v) || kept_.count(v) ||
           !facts_.definition(v);
  }

  void visit(ValueId v, std::set<ValueId>& seen) {
    if (stops(v) || !seen.insert(v).second) return;
    const Op& op = *facts_.definition(v);
    if (auto first = first_loop_.find(v); first != first_loop_.end() && first->second.second) {
      const bool loaded = op.kind == OpKind::load || op.kind == OpKind::gather;
      if ((loaded && policy_.keep_loads) || redo_flops(v) > policy_.keep_above_flops) {
        const ValueId kept = policy_.keep_unscaled ? unscaled(v) : v;
        PlannedLoop& loop = loops_[first->second.first];
        loop.roots.push_back({Instr::Kind::keep, nullptr, kept, kept, loop.level});
        buffers_.insert(kept);
        kept_.insert(kept);
        return;
      }
    }
    for (ValueId o : op.operands) visit(o, seen);
  }

  // What v is a number times, where that is a tile which is not at hand yet; else v.
  ValueId unscaled(ValueId v) const {
    const Op& op = *facts_.definition(v);
    if (op.kind != OpKind::apply || op.prim != tile::Prim::mul) return v;
    for (std::size_t side : {0u, 1u}) {
      const ValueId x = op.operands[side];
      const Op* by = facts_.definition(op.operands[1 - side]);
      const bool number = by && (by->kind == OpKind::constant ||
                                 (by->kind == OpKind::broadcast && facts_.rank(by->operands[0]) == 0));
      if (number) return stops(x) ? v : x;
    }
    return v;
  }

  double redo_flops(ValueId v) const {
    return facts_.redo_flops(v, [&](ValueId each) { return each != v && stops(each); });
  }

  // Remembers the first loop that evaluates v, and whether it does so at v's own full shape (only then can it
  // keep it).
  void mark(ValueId v, std::size_t loop) {
    if (stops(v)) return;
    const bool full = facts_.kernel().type(v).shape == loops_[loop].shape;
    auto [it, fresh] = first_loop_.insert({v, {loop, full}});
    if (!fresh && (it->second.second || !full)) return;
    if (!fresh) it->second = {loop, full};
    for (ValueId o : facts_.definition(v)->operands) mark(o, loop);
  }

  LoopFacts& facts_;
  const LoopPolicy& policy_;
  std::vector<PlannedLoop>& loops_;
  std::set<ValueId>& buffers_;
  std::set<ValueId> written_, kept_;
  std::map<ValueId, std::pair<std::size_t, bool>> first_loop_;
};

class LoopEmitter {
 public:
  LoopEmitter(const LoopFacts& facts, const PlannedLoop& planned) : facts_(facts), planned_(planned) {
    loop_.shape = planned.shape;
  }

  ElementLoop run() {
    std::vector<std::vector<Ref>> operands;
    for (const Root& r : planned_.roots) {
      std::vector<Ref> refs;
      for (ValueId v : operands_of(r)) refs.push_back(evaluate(v, full_axes(v)));
      operands.push_back(std::move(refs));
    }
    // Everything is read before anything is written: a buffer may be rewritten from its own old elements.
    for (std::size_t i = 0; i < planned_.roots.size(); ++i) {
      const Root& r = planned_.roots[i];
      loop_.body.push_back({r.kind, r.op, r.target, full_axes(r.source), operands[i]});
    }
    return std::move(loop_);
  }

 private:
  std::vector<int> full_axes(ValueId v) const {
    std::vector<int> axes;
    const std::vector<Index>& shape = facts_.kernel().type(v).shape;
    axes.reserve(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) axes.push_back(shape[i] == 1 ? -1 : static_cast<int>(i));
    return axes;
  }

  Ref evaluate(ValueId v, const std::vector<int>& axes) {
    if (facts_.rank(v) == 0) return {-1, v};
    const auto key = std::make_pair(v, axes);
    if (auto it = done_.find(key); it != done_.end()) return {it->second, -1};
    Instr instr{Instr::Kind::compute, facts_.definition(v), v, axes, {}};
    if (facts_.buffered(v)) {
      instr.kind = Instr::Kind::reload;
    } else {
      TW_CHECK(instr.op != nullptr, "a block argument must be buffered");
      if (std::optional<Ref> through = pass_through(*instr.op, v, axes)) return *through;
      for (ValueId o : instr.op->operands) instr.operands.push_back(evaluate(o, axes_of_operand(o, axes)));
    }
    loop_.body.push_back(std::move(instr));
    const int at = static_cast<int>(loop_.body.size()) - 1;
    done_[key] = at;
    return {at, -1};
  }

  std::vector<int> axes_of_operand(ValueId operand, const std::vector<int>& axes) const {
    return facts_.rank(operand) == 0 ? std::vector<int>{} : axes;
  }

  // Broadcasts, unit reshapes and unit transposes only rename axes.
  std::optional<Ref> pass_through(const Op& op, ValueId v, const std::vector<int>& axes) {
    if (op.kind != OpKind::broadcast && op.kind != OpKind::reshape && op.kind != OpKind::transpose)
      return std::nullopt;
    const ValueId o = op.operands[0];
    const std::vector<Index>& from = facts_.kernel().type(o).shape;
    const std::vector<Index>& to = facts_.kernel().type(v).shape;
    std::vector<int> inner;
    if (op.kind == OpKind::broadcast) {
      for (std::size_t i = 0; i < from.size(); ++i) inner.push_back(from[i] == 1 ? -1 : axes[i]);
    } else {
      std::vector<int> walked;
      for (std::size_t i = 0; i < to.size(); ++i)
        if (to[i] != 1) walked.push_back(axes[i]);
      std::size_t next = 0;
      for (Index e : from) inner.push_back(e == 1 ? -1 : walked.at(next++));
    }
    return evaluate(o, inner);
  }

  const LoopFacts& facts_;
  const PlannedLoop& planned_;
  ElementLoop loop_;
  std::map<std::pair<ValueId, std::vector<int>>, int> done_;
};

}  // namespace

void choose_kept(LoopFacts& facts, const LoopPolicy& policy, std::vector<PlannedLoop>& loops,
                 std::set<ValueId>& buffers) {
  KeepChooser(facts, policy, loops, buffers).run();
}

ElementLoop emit_loop(const LoopFacts& facts, const PlannedLoop& loop) {
  return LoopEmitter(facts, loop).run();
}

namespace {

std::string text(const Kernel& kernel, const ElementLoop& loop, const std::string& indent) {
  constexpr std::string_view kinds[] = {"compute", "reload", "effect", "reduce", "scan", "keep"};
  std::string out = fmt::format("{}elements [{}]\n", indent, fmt::join(loop.shape, ","));
  for (std::size_t i = 0; i < loop.body.size(); ++i) {
    const Instr& in = loop.body[i];
    std::vector<std::string> refs;
    refs.reserve(in.operands.size());
    for (const Ref& r : in.operands)
      refs.push_back(r.is_scalar() ? fmt::format("%{}", r.scalar) : fmt::format("#{}", r.instr));
    std::string what(kinds[static_cast<int>(in.kind)]);
    if (in.op) {
      what += ' ';
      if (in.op->kind == OpKind::apply)
        what += name(in.op->prim);
      else
        what += name(in.op->kind);
    }
    out += fmt::format("{}  #{} = {} {}{} [{}]\n", indent, i, what,
                       in.value >= 0 ? fmt::format("%{} ", in.value) : "", fmt::join(refs, " "),
                       fmt::join(in.axes, ","));
  }
  (void)kernel;
  return out;
}

std::string text(const Kernel& kernel, const std::vector<Step>& steps, const std::string& indent) {
  std::string out;
  for (const Step& s : steps) {
    switch (s.kind) {
      case Step::Kind::scalar:
        out += fmt::format("{}scalar {}\n", indent, name(s.op->kind));
        break;
      case Step::Kind::elements:
        out += text(kernel, s.loop, indent);
        break;
      case Step::Kind::relayout:
      case Step::Kind::dot:
        out += fmt::format("{}{} %{}\n", indent, name(s.op->kind), s.op->results[0]);
        break;
      case Step::Kind::assign:
        for (auto [from, to] : s.moves) out += fmt::format("{}%{} <- %{}\n", indent, to, from);
        break;
      case Step::Kind::loop:
        out += fmt::format("{}loop\n{}", indent, text(kernel, s.body[0], indent + "  "));
        break;
      case Step::Kind::branch:
        out += fmt::format("{}then\n{}{}else\n{}", indent, text(kernel, s.body[0], indent + "  "), indent,
                           text(kernel, s.body[1], indent + "  "));
        break;
    }
  }
  return out;
}

}  // namespace

std::string to_string(const Kernel& kernel, const LoopPlan& plan) {
  return fmt::format("buffers [{}]\n{}", fmt::join(plan.buffers, ","), text(kernel, plan.steps, ""));
}

}  // namespace tilewright::printer
