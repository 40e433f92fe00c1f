// The key of a graph in caches: equal exactly for graphs that print alike.
#pragma once

#include "ir/graph.h"

#include <tilewright/base/hash.h>

namespace tilewright::ir {

Hash128 key_of(const Graph& graph);

}  // namespace tilewright::ir
