#include "backends/printer/row_values.h"

#include <utility>

namespace tilewright::printer {

using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

// A loop by its level and shape; what comes later is one, too.
using Reader = std::pair<int, std::vector<Index>>;

class RowKeeper {
 public:
  RowKeeper(const LoopFacts& facts, const StraightLine& line) : facts_(facts), line_(line) {}

  // From the last op to the first: who reads a value is known when its turn comes.
  std::vector<Root> run() {
    const Reader later{-1, {}};
    for (const Root& r : line_.roots)
      for (ValueId v : operands_of(r)) read(v, reader(r));
    for (ValueId v : line_.used_later) read(v, later);
    for (auto op = line_.ops.rbegin(); op != line_.ops.rend(); ++op)
      for (ValueId v : (*op)->results) visit(**op, v);
    return std::move(kept_);
  }

 private:
  Reader reader(const Root& r) const { return {r.level, facts_.kernel().type(r.source).shape}; }

  void read(ValueId v, const Reader& by) {
    if (facts_.rank(v) > 0 && !facts_.buffered(v)) readers_[v].insert(by);
  }

  void visit(const Op& op, ValueId v) {
    const auto found = readers_.find(v);
    if (found == readers_.end()) return;
    std::set<Reader> by = found->second;
    if (const Root* root = root_of(v)) {
      if (root->kind != Instr::Kind::keep) return;  // its operands are the root's own
      by = {reader(*root)};
    } else if (by.size() > 1 && is_computed_row(op, v)) {
      kept_.push_back({Instr::Kind::keep, nullptr, v, v, line_.levels.at(v)});
      by = {reader(kept_.back())};
    }
    for (ValueId o : op.operands)
      for (const Reader& each : by) read(o, each);
  }

  const Root* root_of(ValueId v) const {
    for (const Root& r : line_.roots)
      if (r.target == v) return &r;
    return nullptr;
  }

  bool is_computed_row(const Op& op, ValueId v) const {
    const std::vector<Index>& shape = facts_.kernel().type(v).shape;
    return (op.kind == OpKind::apply || op.kind == OpKind::cast) && shape.size() == 2 && shape[0] > 1 &&
           shape[1] == 1;
  }

  const LoopFacts& facts_;
  const StraightLine& line_;
  std::map<ValueId, std::set<Reader>> readers_;
  std::vector<Root> kept_;
};

}  // namespace

std::vector<Root> kept_rows(const LoopFacts& facts, const StraightLine& line) {
  return RowKeeper(facts, line).run();
}

}  // namespace tilewright::printer
