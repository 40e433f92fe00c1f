#include "tensor/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

namespace {

Index bytes_of(const ir::Type& type) {
  return type.shape.size() * static_cast<Index>(size_bytes(type.dtype));
}

// What a call holds beside its temporaries.
struct Held {
  Index arguments = 0;
  Index results = 0;  // apart from those that lie in arguments
  Index bytes() const { return arguments + results; }
};

Held held_by(const ir::Graph& graph, const std::vector<passes::Overwriting>& overwriting) {
  Held held;
  for (const ir::NodeId id : graph.inputs()) held.arguments += bytes_of(graph.type(id));
  for (const ir::NodeId id : graph.outputs()) held.results += bytes_of(graph.type(id));
  for (const passes::Overwriting& o : overwriting)
    if (o.why_not.empty())
      held.results -= bytes_of(graph.type(graph.inputs()[static_cast<std::size_t>(o.what.inputs.front())]));
  held.results = std::max<Index>(held.results, 0);
  return held;
}

std::string amount(Index bytes) {
  return bytes < 1'000'000 ? fmt::format("{} bytes", bytes)
                           : fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

}  // namespace

passes::Compiled lowered_within(const ir::Graph& graph, const GraphOptions& options,
                                const std::function<passes::Compiled(std::optional<Index>)>& lower) {
  const Index budget = options.memory_budget;
  if (budget == 0) {
    passes::Compiled compiled = lower(std::nullopt);
    overwrite_inputs(compiled, options.over);
    return compiled;
  }
  // All that is asked for is granted, as a first guess.
  std::vector<passes::Overwriting> granted;
  granted.reserve(options.over.size());
  for (const passes::Overwrite& o : options.over) granted.push_back({o, ""});
  Held held = held_by(graph, granted);
  Index arena = std::max<Index>(budget - held.bytes(), 0);
  constexpr int kMostTries = 4;
  for (int left = kMostTries;; --left) {
    passes::Compiled compiled = lower(arena);
    overwrite_inputs(compiled, options.over);
    held = held_by(graph, compiled.overwriting);
    const Index needed = held.bytes() + compiled.plan.arena_bytes;
    if (needed <= budget) return compiled;
    // Launches that change places, so that an argument may be overwritten, keep temporaries longer; and what
    // is not granted takes memory of its own.
    if (compiled.memory->fits && left > 1) {
      arena = std::max<Index>(arena - (needed - budget), 0);
      continue;
    }
    const std::string why = fmt::format(
        "compile: memory_budget is {} bytes, and the least that was found for this call is {} bytes: {} of "
        "arguments, {} of results and {} of temporaries, with {} launches repeated. Give it as much, or call "
        "it with less at once",
        budget, needed, amount(held.arguments), amount(held.results), amount(compiled.plan.arena_bytes),
        compiled.memory->repeated);
    throw OverBudget(why, needed);
  }
}

}  // namespace tilewright::detail
