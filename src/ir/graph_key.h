// The key of a graph in caches: equal exactly for graphs that print alike.
#pragma once

#include "ir/graph.h"

#include <tilewright/base/dtype.h>
#include <tilewright/base/hash.h>

#include <cstdint>
#include <vector>

namespace tilewright::ir {

Hash128 key_of(const Graph& graph);

// The same for graphs that differ in sizes and numbers alone: in extents, in what views cut and fill, and in
// constants. What they compute need not differ in these alone: a rewrite may know a number.
Hash128 form_of(const Graph& graph);

// What form_of() leaves out, in one order for all graphs of a form: integers, and the bits of numbers.
struct Measure {
  DType dtype = DType::i64;  // or f64
  std::int64_t bits = 0;
  friend bool operator==(const Measure&, const Measure&) = default;
};
std::vector<Measure> measures_of(const Graph& graph);

}  // namespace tilewright::ir
