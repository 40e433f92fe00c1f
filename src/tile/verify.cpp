// The verifier: first names and parameters, then op by op scope and types, then what can be proved of memory.
#include <tilewright/tile/verify.h>

#include <fmt/format.h>

#include <utility>

#include "tile/print.h"
#include "tile/rules.h"
#include "tile/verify_parts.h"

namespace tilewright::tile {

namespace {

// Which values may be used at the point the walk has reached.
class Scopes {
 public:
  explicit Scopes(const Kernel& kernel) : kernel_(kernel), states_(kernel.values.size(), State::undefined) {}

  std::string define(ValueId id) {
    if (id < 0 || id >= static_cast<ValueId>(states_.size()))
      return fmt::format("value {} does not exist", id);
    if (state(id) != State::undefined) return fmt::format("value {} is defined twice", ref(id));
    state(id) = State::visible;
    defined_.push_back(id);
    return "";
  }
  std::string use(ValueId id) {
    if (id < 0 || id >= static_cast<ValueId>(states_.size()))
      return fmt::format("value {} does not exist", id);
    if (state(id) == State::undefined) return fmt::format("{} is used before it is defined", ref(id));
    if (state(id) == State::left) return fmt::format("{} is used outside the block that defines it", ref(id));
    return "";
  }
  std::size_t enter() const { return defined_.size(); }
  void leave(std::size_t mark) {
    for (; defined_.size() > mark; defined_.pop_back()) state(defined_.back()) = State::left;
  }
  // Every value has a definition: backends size their tables by it.
  std::string all_defined() const {
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (states_[i] == State::undefined)
        return fmt::format("value {} has no definition", ref(static_cast<ValueId>(i)));
    return "";
  }

 private:
  enum class State : char { undefined, visible, left };
  State& state(ValueId id) { return states_[static_cast<std::size_t>(id)]; }
  std::string ref(ValueId id) const {
    const std::string& name = kernel_.values[static_cast<std::size_t>(id)].name;
    return name.empty() ? fmt::format("%{}", id) : "%" + name;
  }
  const Kernel& kernel_;
  std::vector<State> states_;
  std::vector<ValueId> defined_;  // visible ones, oldest first
};

std::string check_type(const TileType& type) {
  if (type.rank() > kMaxTileRank) return fmt::format("{} has a rank above {}", to_string(type), kMaxTileRank);
  Index size = 1;
  for (Index extent : type.shape) {
    if (extent < 1) return fmt::format("{} has an extent below 1", to_string(type));
    size *= std::min(extent, kMaxTileElements + 1);  // both within 2^31: no overflow
    if (size > kMaxTileElements)
      return fmt::format("{} has more than {} elements; walk over it in a loop", to_string(type),
                         kMaxTileElements);
  }
  return "";
}

class Walk {
 public:
  explicit Walk(const Kernel& kernel) : kernel_(kernel), scopes_(kernel) {}

  OpProblem run() {
    if (!kernel_.body.args.empty()) return {nullptr, "the body of a kernel has no arguments"};
    if (OpProblem p = block(kernel_.body, nullptr, 0); !p.message.empty()) return p;
    return {nullptr, scopes_.all_defined()};
  }

 private:
  // `owner`: the loop or branch the block belongs to, null for the body.
  OpProblem block(const Block& block, const Op* owner, int depth) {
    if (depth > kMaxNesting) return {owner, fmt::format("nested deeper than {}", kMaxNesting)};
    for (std::size_t i = 0; i < block.ops.size(); ++i) {
      const Op& op = block.ops[i];
      if (op.kind == OpKind::yield && (!owner || i + 1 != block.ops.size()))
        return {&op, "yield ends the block of a loop or branch, nothing else"};
      if (OpProblem p = visit(op, depth); !p.message.empty()) return p;
    }
    if (owner && (block.ops.empty() || block.ops.back().kind != OpKind::yield))
      return {owner, "a block ends with yield"};
    return {};
  }

  OpProblem visit(const Op& op, int depth) {
    for (ValueId id : op.operands)
      if (std::string problem = scopes_.use(id); !problem.empty()) return {&op, problem};
    if (std::string problem = check_new(op.results); !problem.empty()) return {&op, problem};
    for (const Block& inner : op.blocks)
      if (std::string problem = check_new(inner.args); !problem.empty()) return {&op, problem};
    if (std::string problem = check_op(kernel_, op); !problem.empty()) return {&op, problem};
    for (const Block& inner : op.blocks) {
      const std::size_t mark = scopes_.enter();
      for (ValueId id : inner.args)
        if (std::string problem = scopes_.define(id); !problem.empty()) return {&op, problem};
      if (OpProblem p = block(inner, &op, depth + 1); !p.message.empty()) return p;
      if (std::string problem = yielded(op, inner); !problem.empty()) return {&inner.ops.back(), problem};
      scopes_.leave(mark);
    }
    for (ValueId id : op.results)
      if (std::string problem = scopes_.define(id); !problem.empty()) return {&op, problem};
    return {};
  }

  // Values that an op brings exist and have possible types.
  std::string check_new(const std::vector<ValueId>& ids) const {
    for (ValueId id : ids) {
      if (id < 0 || id >= static_cast<ValueId>(kernel_.values.size()))
        return fmt::format("value {} does not exist", id);
      if (std::string problem = check_type(kernel_.type(id)); !problem.empty()) return problem;
    }
    return "";
  }

  // What a block yields has the types of the op's results.
  std::string yielded(const Op& op, const Block& inner) const {
    const std::vector<ValueId>& values = inner.ops.back().operands;
    if (values.size() != op.results.size())
      return fmt::format("{} values for {} results of the {}", values.size(), op.results.size(),
                         name(op.kind));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (kernel_.type(values[i]) != kernel_.type(op.results[i]))
        return fmt::format("carried value {} changes from {} to {}", i,
                           to_string(kernel_.type(op.results[i])), to_string(kernel_.type(values[i])));
    return "";
  }

  const Kernel& kernel_;
  Scopes scopes_;
};

}  // namespace

std::string to_string(const Kernel& kernel, const OpProblem& problem) {
  if (!problem.op) return problem.message;
  std::string text = fmt::format("{}: {}", to_string(kernel, *problem.op), problem.message);
  if (!problem.op->location.empty()) text += fmt::format(" (at {})", problem.op->location);
  return text;
}

OpProblem first_problem(const Kernel& kernel) {
  if (std::string problem = check_params(kernel); !problem.empty()) return {nullptr, std::move(problem)};
  if (OpProblem p = Walk(kernel).run(); p.is_there()) return p;
  return check_access(kernel);
}

std::optional<std::string> verify(const Kernel& kernel) {
  const OpProblem problem = first_problem(kernel);
  return problem.is_there() ? std::optional(to_string(kernel, problem)) : std::nullopt;
}

}  // namespace tilewright::tile
