// checkpoint(): marks around what a function computes, in the recording that is differentiated.
#include "ops/checkpoint.h"
#include "tensor/trace.h"

#include <tilewright/tensor/checkpoint.h>

#include <algorithm>

namespace tilewright::detail {

namespace {

bool is_differentiated(const Trace& trace) {
  for (const Trace* t = &trace; t != nullptr; t = t->enclosing.get())
    if (t->of == Trace::Of::value_and_grad) return true;
  return false;
}

// The recorded tensors, each behind a mark.
std::vector<Tensor> marked(const std::vector<Tensor>& tensors, ops::Edge edge, Index call,
                           const Location& where) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    const auto write = [&](ir::Graph&, const std::vector<ir::Value>& x) {
      return std::vector<ir::Value>{ops::checkpoint_edge(x[0], edge, call)};
    };
    out.push_back(t.defined() && is_recorded(t) ? apply("checkpoint", {t}, write, where)[0] : t);
  }
  return out;
}

}  // namespace

Leaves checkpointed(const Recomputable& function, const Leaves& arguments, const Location& where) {
  const LeavesFunction& f = function.f;
  if (!f) throw Error("checkpoint: this function was moved from", where);
  const auto recorded = std::find_if(arguments.tensors.begin(), arguments.tensors.end(),
                                     [](const Tensor& t) { return t.defined() && is_recorded(t); });
  const std::shared_ptr<Trace> trace = recorded == arguments.tensors.end() ? nullptr : trace_of({*recorded});
  if (!trace || trace->in_checkpoint || !is_differentiated(*trace)) return f(arguments);
  struct Inside {
    Trace& trace;
    explicit Inside(Trace& of) : trace(of) { trace.in_checkpoint = true; }
    ~Inside() { trace.in_checkpoint = false; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };
  // Marks of one value for two calls are two: each call has its own.
  const auto& nodes = trace->graph.nodes();
  const auto call = static_cast<Index>(
      std::count_if(nodes.begin(), nodes.end(), [](const ir::Node& n) { return n.op == &ops::kCheckpoint; }));
  Leaves results;
  {
    const Inside inside(*trace);
    results = f({marked(arguments.tensors, ops::Edge::in, call, where), arguments.structure});
  }
  results.tensors = marked(results.tensors, ops::Edge::out, call, where);
  return results;
}

}  // namespace tilewright::detail
