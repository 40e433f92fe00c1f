// Random graphs for fuzzing: text round trips, simplify, compiled results against the reference.
#pragma once

#include "support/host_values.h"

#include <cstdint>
#include <vector>

namespace tilewright::test {

enum class GraphFamily : unsigned char {
  any,       // one of those below, by the seed
  mixed,     // shapes of 1 to 31, now and then 0
  products,  // of products, with their gradients and second derivatives: chain_graph.h
  joined,    // concats and stacks of one another, in the same way
  tiny,  // single rows and columns, and sizes beside powers of two: as mixed ones are grown, or tiny_graph.h
};

struct RandomGraphOptions {
  std::uint64_t seed = 1;
  int ops = 12;               // building steps; each adds one op, and what broadcasting and promotion need
  Index max_elements = 2000;  // of any value
  int max_rank = 4;
  GraphFamily family = GraphFamily::mixed;
  bool narrow_floats = true;  // f16, bf16 and 8-bit floats among the types
  bool views = true;
  bool reductions = true;
  bool gathers = true;
  bool matmuls = false;
  bool placed = false;  // blocks at starts that are data
  // Every op is well conditioned, at least where values are moderate, and values stay moderate: for comparing
  // results of f32 with float64. Otherwise any row may appear and values may overflow.
  bool tame = true;
};

// 1 to 3 outputs.
ir::Graph random_graph(const RandomGraphOptions& options);
// The same of any answers; the seed is not looked at.
ir::Graph random_graph(const RandomGraphOptions& options, Choices& choices);
// Ordinary values for each input; integers are small, as they serve as indices.
std::vector<ir::HostTensor> random_inputs(const ir::Graph& graph, std::uint64_t seed);

// A tame graph may still compare numbers that are nearly equal, or cancel. `spread` is how far each output
// moves when every float in the graph is rounded at random by up to 2^-22: 0 where that changes nothing.
struct Reference {
  std::vector<ir::HostTensor> values;
  std::vector<ir::HostTensor> spread;
};
struct SpreadOptions {
  std::uint64_t seed = 1;
  int runs = 5;  // that round at random
};
Reference reference_with_spread(const ir::Graph& graph, std::span<const ir::HostTensor> inputs,
                                SpreadOptions options);
// Compares results of a backend: each element within `factor` spreads plus the rounding of its stored type.
// Integers and bools may differ where the spread is not 0.
std::string difference(std::span<const ir::HostTensor> got, const Reference& reference, double factor = 8);

}  // namespace tilewright::test
