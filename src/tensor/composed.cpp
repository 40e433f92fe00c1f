// Functions written in others: the body is recorded in a trace of its own, whose graph becomes a part of what
// runs or is recorded.
#include "tensor/explain.h"
#include "tensor/index_check.h"
#include "tensor/trace.h"

#include <tilewright/tensor/composed.h>

namespace tilewright::detail {

Tensor composed(const char* name, const std::vector<Tensor>& operands, const Location& where,
                const Body& body) {
  std::vector<PendingCheck> checks;
  const auto write = [&](ir::Graph& into, const std::vector<ir::Value>& inputs) {
    const auto trace = std::make_shared<Trace>(Trace::Of::composite, name, where);
    trace->no_breaks = "that is written in others: its elements are known after the call";
    std::vector<ir::Type> types;
    types.reserve(inputs.size());
    for (const ir::Value& v : inputs) types.push_back(v.type());
    try {
      Recorded recorded = record_function([&](const auto& in) { return Leaves{{body(in)}, {}}; }, operands,
                                          types, trace, operands[0].impl()->context.lock());
      finish(recorded);
    } catch (const Error& e) {
      // Its place is a line of the body; the user's line is known to apply().
      const std::string text = e.what();
      throw Error(text.substr(0, text.rfind(" (at ")));
    }
    TW_CHECK(trace->inputs.size() == operands.size(), "the body of a composite uses what it is given");
    checks = trace->checks;
    return inline_graph(into, trace->graph, inputs);
  };
  std::vector<Tensor> results = apply(name, operands, write, where);
  for (PendingCheck& check : checks) {
    check.op = name;
    check.location = location_text(where);
  }
  settle(checks, results);
  return results.at(0);
}

}  // namespace tilewright::detail
