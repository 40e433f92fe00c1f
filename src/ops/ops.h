// The op table and the functions that build graphs from it.
#pragma once

#include "ir/op.h"

#include <functional>
#include <span>

namespace tilewright::ops {

// Every op row, in the order of the families; docs, parser and tests walk it.
std::span<const ir::Op* const> all_ops();

// Runs a graph on float64 values with each row's `eval`: the oracle for whole programs. Inputs in graph
// order. Values of narrow float types are not rounded between ops, only by an explicit cast.
std::vector<ir::HostTensor> evaluate(const ir::Graph& graph, std::span<const ir::HostTensor> inputs);
// The same; `after` may change each value, those of inputs included, before others read it: rounding, noise.
using Observer = std::function<void(const ir::Node& node, ir::HostTensor& value)>;
std::vector<ir::HostTensor> evaluate(const ir::Graph& graph, std::span<const ir::HostTensor> inputs,
                                     const Observer& after);

}  // namespace tilewright::ops
