// A function recorded, evaluated op by op on the host, and its bad values followed back to where they began.
#include "ops/ops.h"
#include "passes/graph/narrow_products.h"
#include "tensor/trace.h"

#include <tilewright/tensor/non_finite.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace tilewright {

namespace detail {

namespace {

using ir::NodeId;

std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

ir::HostTensor host_tensor(const Tensor& tensor) {
  ir::HostTensor out{.type = tensor.impl()->type, .f = {}, .i = {}};
  if (is_float(out.type.dtype))
    out.f = tensor.to_vector<double>();
  else
    out.i = tensor.to_vector<std::int64_t>();
  return out;
}

ValueRange range_of(const ir::HostTensor& value) {
  ValueRange range{.elements = value.type.shape.size()};
  bool any = false;
  for (const double v : value.f) {
    if (std::isnan(v)) {
      ++range.nans;
    } else if (std::isinf(v)) {
      ++range.infinities;
    } else {
      range.least = any ? std::min(range.least, v) : v;
      range.most = any ? std::max(range.most, v) : v;
      any = true;
    }
  }
  for (const std::int64_t v : value.i) {
    range.least = any ? std::min(range.least, static_cast<double>(v)) : static_cast<double>(v);
    range.most = any ? std::max(range.most, static_cast<double>(v)) : static_cast<double>(v);
    any = true;
  }
  return range;
}

bool is_bad(const ValueRange& r) { return r.nans > 0 || r.infinities > 0; }

// What a function's graph computed.
class Computed {
 public:
  Computed(const ir::Graph& graph, const GivenNames& names, std::size_t arguments)
      : graph_(graph), names_(names), arguments_(arguments), ranges_(at(graph.size())) {}

  void run(const std::vector<ir::HostTensor>& inputs) {
    std::unordered_map<const ir::Node*, NodeId> ids;
    for (NodeId id = 0; id < graph_.size(); ++id) ids.emplace(&graph_.node(id), id);
    (void)ops::evaluate(graph_, inputs, [&](const ir::Node& node, ir::HostTensor& value) {
      for (double& v : value.f) v = round_to(node.type.dtype, v);
      ranges_[at(ids.at(&node))] = range_of(value);
    });
  }

  // The first value that made what is bad in the outputs.
  std::optional<NodeId> first() const {
    std::vector<bool> reaches(at(graph_.size()), false);  // an output, through bad values alone
    for (const NodeId id : graph_.outputs()) reaches[at(id)] = is_bad(ranges_[at(id)]);
    for (NodeId id = graph_.size() - 1; id >= 0; --id)
      if (reaches[at(id)])
        for (const NodeId operand : graph_.node(id).operands)
          if (is_bad(ranges_[at(operand)])) reaches[at(operand)] = true;
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (reaches[at(id)] && made(id)) return id;
    return std::nullopt;
  }

  NonFinite describe(NodeId id) const {
    const ir::Node& node = graph_.node(id);
    NonFinite out{.operation = name_of(id), .location = node.location, .value = range(id)};
    for (const NodeId operand : node.operands) out.operands.push_back(range(operand));
    return out;
  }

 private:
  // Its bad values came from no operand; an infinity that was written down as one is meant.
  bool made(NodeId id) const {
    const ir::Node& node = graph_.node(id);
    const bool is_number = node.op->kind == ir::OpClass::constant || place(id) >= arguments_;
    if (node.operands.empty() && is_number) return ranges_[at(id)].nans > 0;
    bool had_nan = false, had_any = false;
    for (const NodeId operand : node.operands) {
      had_nan = had_nan || ranges_[at(operand)].nans > 0;
      had_any = had_any || is_bad(ranges_[at(operand)]);
    }
    return ranges_[at(id)].nans > 0 ? !had_nan : !had_any;
  }
  // Among the inputs; of what is none, behind them.
  std::size_t place(NodeId id) const {
    const auto& inputs = graph_.inputs();
    return static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), id) - inputs.begin());
  }
  std::string name_of(NodeId id) const {
    if (place(id) == graph_.inputs().size()) return std::string(graph_.node(id).op->name);
    return place(id) < arguments_ ? names_.of(place(id)) : "a captured tensor";
  }
  ValueRange range(NodeId id) const {
    ValueRange r = ranges_[at(id)];
    r.what = fmt::format("{} of {}", to_string(graph_.type(id)), name_of(id));
    return r;
  }

  const ir::Graph& graph_;
  const GivenNames& names_;
  std::size_t arguments_;  // so many inputs are the function's own; others are captured, or numbers
  std::vector<ValueRange> ranges_;
};

}  // namespace

std::optional<NonFinite> find_non_finite(const CheckedFunction& function, const Leaves& arguments,
                                         const ArgumentNames& names, const Location& where) {
  const std::vector<Tensor>& args = arguments.tensors;
  GivenNames given{"argument"};
  if (names) given.name = [all = names(arguments)](std::size_t i) { return all.at(i); };
  check_arguments("find_non_finite", args, given, where);
  const std::shared_ptr<ContextState> context = context_of(args[0], "find_non_finite", where);
  const std::lock_guard lock(context->mutex);
  check_kept("find_non_finite", given, args, where);
  auto trace = std::make_shared<Trace>(Trace::Of::compile, "checked", where);
  trace->no_breaks = "that is looked into for NaN, which is recorded as a whole: return the tensor instead";
  const std::uint64_t drawn = context->random_calls;
  const auto users = [&](const std::vector<Tensor>& in) {
    const Opened open(context->mutex);
    return function.f({in, arguments.structure});
  };
  Recorded recorded = record_function(users, args, types_of(args), trace, context);
  finish(recorded);
  end(*trace);
  std::vector<ir::HostTensor> inputs;
  inputs.reserve(trace->inputs.size());
  for (const Tensor& t : trace->inputs) inputs.push_back(host_tensor(t));
  context->undraw(drawn, trace->draws.size());  // the function's next call has the same random numbers
  const ir::Graph graph = passes::with_narrow_products(trace->graph, function.precision);
  Computed computed(graph, given, args.size());
  computed.run(inputs);
  const std::optional<NodeId> first = computed.first();
  return first ? std::optional(computed.describe(*first)) : std::nullopt;
}

}  // namespace detail

std::string to_string(const NonFinite& found) {
  const auto bad = [](const ValueRange& r) {
    std::string text;
    if (r.nans > 0) text = fmt::format("{} NaN", r.nans);
    if (r.infinities > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : " and ", r.infinities,
                          r.infinities == 1 ? "infinity" : "infinities");
    return text;
  };
  const bool came_in = found.location.empty() && found.operands.empty();
  std::string text = came_in
                         ? fmt::format("{} had", found.operation)
                         : fmt::format("{}{} made", found.operation,
                                       found.location.empty() ? "" : fmt::format(" (at {})", found.location));
  text += fmt::format(" {} among {} elements, {}", bad(found.value), found.value.elements, found.value.what);
  for (const ValueRange& r : found.operands)
    text += fmt::format("; its operand {} {}{}", r.what,
                        r.nans + r.infinities > 0 ? fmt::format("has {}, and else ", bad(r)) : "",
                        fmt::format("lies between {:.4g} and {:.4g}", r.least, r.most));
  return text;
}

}  // namespace tilewright
