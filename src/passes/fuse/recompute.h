// Recomputation: which values every kernel that reads them computes again instead of loading them. The scores
// of attention, or the logits over a large vocabulary, are many times larger than the two operands whose
// product they are; a backward pass that kept them would take memory that grows with the square of the
// length.
#pragma once

#include <tilewright/tile/target.h>

#include "passes/nest/loop_nest.h"

#include <set>
#include <vector>

namespace tilewright::passes {

// A value at least this many times as large as what it is made of is computed again to save memory. The
// widened layer of a feed-forward block is 4 times its input and has the weights beside it. Smaller ones,
// down to the size of their operands, are where that is predicted to be faster: scores of 16 bits over 352
// keys of 64.
inline constexpr double kMuchLarger = 4;

// What counts as much memory where nothing is known of how much there is (chosen).
inline constexpr double kMany = 1 << 30;
// The factor by which the kernels concerned may be slower to save `stored_bytes` of memory (chosen). Those
// that compute attention's scores again do 11 products for 6. What takes less than a 32nd of the memory is
// stored where that is faster; from an eighth on the factor is twice as large: a model's other values need
// the room.
double slowest(double stored_bytes, const tile::Target& target);

// The nodes that may be computed again: products of small depth that are at least `times` as large as their
// operands, larger ones of any depth that only reductions read, and arithmetic on them. None is an output of
// the graph, and every kernel of one node that reads them can compute them (build_loop_nest() takes it
// together with them). `graph` is materialized.
std::set<ir::NodeId> recomputable(const ir::Graph& graph, double times);

// `again`, values to compute again, in parts that are not made of one another: what one part costs says
// nothing of another one. Equal parts, as those of a model's layers, are one. Masks and other light values
// belong to each part that reads them.
std::vector<std::set<ir::NodeId>> independent_parts(const ir::Graph& graph,
                                                    const std::set<ir::NodeId>& again);

// Casts to a wider float that arithmetic and reductions alone read: what they are made of has every digit and
// takes fewer bytes, so that nobody gains by storing them. None is an output of the graph.
std::set<ir::NodeId> widening_casts(const ir::Graph& graph);

// Arithmetic, casts and random numbers: an element of the result is made of one element of each operand.
bool is_elementwise(const ir::Node& node);
// A cast to the type that is there already stands for memory (materialize()).
bool is_copy(const ir::Graph& graph, const ir::Node& node);

// The computed or input nodes that `id` reads through views, and through `again`.
std::set<ir::NodeId> sources_of(const ir::Graph& graph, ir::NodeId id, const std::set<ir::NodeId>& again);

// Adds to `nodes` those of `again` that they are made of.
void add_recomputed(const ir::Graph& graph, const std::set<ir::NodeId>& again, std::set<ir::NodeId>& nodes);

}  // namespace tilewright::passes
