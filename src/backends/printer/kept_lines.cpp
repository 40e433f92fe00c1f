#include "backends/printer/kept_lines.h"

#include <functional>
#include <numeric>
#include <utility>

namespace tilewright::printer {

using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

// A loop by its level and shape; what comes later is one, too.
using Reader = std::pair<int, std::vector<Index>>;

class LineKeeper {
 public:
  LineKeeper(const LoopFacts& facts, const LinePolicy& policy, const StraightLine& line)
      : facts_(facts), policy_(policy), line_(line) {}

  std::vector<Root> run() {
    for (const Op* op : line_.ops)
      if (op->kind == OpKind::broadcast && is_dear_line(op->operands[0], op->results[0]))
        keep(op->operands[0]);
    if (policy_.several_readers) keep_what_several_read();
    return std::move(kept_);
  }

 private:
  // From the last op to the first: who reads a value is known when its turn comes.
  void keep_what_several_read() {
    const Reader later{-1, {}};
    for (const Root& r : line_.roots)
      for (ValueId v : operands_of(r)) read(v, reader(r));
    for (ValueId v : line_.used_later) read(v, later);
    for (auto op = line_.ops.rbegin(); op != line_.ops.rend(); ++op)
      for (ValueId v : (*op)->results) visit(**op, v);
  }

  Reader reader(const Root& r) const { return {r.level, shape(r.source)}; }
  const std::vector<Index>& shape(ValueId v) const { return facts_.kernel().type(v).shape; }
  Index elements(ValueId v) const {
    return std::accumulate(shape(v).begin(), shape(v).end(), Index{1}, std::multiplies<>());
  }

  void read(ValueId v, const Reader& by) {
    if (facts_.rank(v) > 0 && !facts_.buffered(v)) readers_[v].insert(by);
  }

  void visit(const Op& op, ValueId v) {
    const auto found = readers_.find(v);
    if (found == readers_.end()) return;
    std::set<Reader> by = found->second;
    const Root* root = root_of(v);
    if (root && root->kind != Instr::Kind::keep) return;  // its operands are the root's own
    if (!root && by.size() > 1 && is_computed_row(op, v)) root = &keep(v);
    if (root) by = {reader(*root)};
    for (ValueId o : op.operands)
      for (const Reader& each : by) read(o, each);
  }

  // A line of an earlier straight line is there before every loop of this one.
  const Root& keep(ValueId v) {
    const auto level = line_.levels.find(v);
    return kept_.emplace_back(
        Root{Instr::Kind::keep, nullptr, v, v, level == line_.levels.end() ? 0 : level->second});
  }

  const Root* root_of(ValueId v) const {
    for (const std::vector<Root>* roots : {&line_.roots, &kept_})
      for (const Root& r : *roots)
        if (r.target == v) return &r;
    return nullptr;
  }

  bool is_dear_line(ValueId line, ValueId tile) const {
    return elements(line) > 1 && elements(line) < elements(tile) && !facts_.buffered(line) &&
           !root_of(line) && facts_.redo_flops(line) > policy_.above_flops;
  }

  bool is_computed_row(const Op& op, ValueId v) const {
    return (op.kind == OpKind::apply || op.kind == OpKind::cast) && shape(v).size() == 2 && shape(v)[0] > 1 &&
           shape(v)[1] == 1;
  }

  const LoopFacts& facts_;
  const LinePolicy& policy_;
  const StraightLine& line_;
  std::map<ValueId, std::set<Reader>> readers_;
  std::vector<Root> kept_;
};

}  // namespace

std::vector<Root> kept_lines(const LoopFacts& facts, const LinePolicy& policy, const StraightLine& line) {
  return LineKeeper(facts, policy, line).run();
}

}  // namespace tilewright::printer
