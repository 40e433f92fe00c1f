// Groups that no kernel computes: fusion never makes one, so here they are made by merging what it refused to
// merge. Each is taken apart into kernels of its nodes, says so, and the result is the oracle's.
#include "ir/text.h"
#include "ops/ops.h"
#include "support/draws.h"
#include "support/graph_check.h"
#include "support/random_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tilewright::test {
namespace {

using ir::NodeId;
using passes::Fusion;
using passes::Group;

bool holds(const std::vector<NodeId>& nodes, NodeId id) {
  return std::find(nodes.begin(), nodes.end(), id) != nodes.end();
}

// The values that a node reads: views and constants are part of whoever reads them.
void add_read(const ir::Graph& graph, NodeId id, std::set<NodeId>& read) {
  for (NodeId o : graph.node(id).operands)
    if (passes::is_inlined(graph.node(o)))
      add_read(graph, o, read);
    else
      read.insert(o);
}

bool reads(const ir::Graph& graph, const Group& reader, const Group& writer) {
  std::set<NodeId> read;
  for (NodeId id : reader.nodes) add_read(graph, id, read);
  return std::any_of(writer.outputs.begin(), writer.outputs.end(),
                     [&](NodeId o) { return read.count(o) != 0; });
}

// The groups with those at `first` < `second` merged, if what lies between does not need the one for the
// other.
std::optional<Fusion> merged(const ir::Graph& graph, const Fusion& fusion, std::size_t first,
                             std::size_t second) {
  Group both = fusion.groups[first];
  const Group& other = fusion.groups[second];
  for (const auto& [from, to] :
       {std::pair(&other.nodes, &both.nodes), std::pair(&other.outputs, &both.outputs)})
    for (NodeId id : *from)
      if (!holds(*to, id)) to->push_back(id);
  std::sort(both.nodes.begin(), both.nodes.end());
  Fusion out;
  std::vector<Group> before, after;  // of what lies between: what `first` needs not, and what needs it
  for (std::size_t i = first + 1; i < second; ++i) {
    const Group& g = fusion.groups[i];
    bool late = reads(graph, g, fusion.groups[first]);
    for (const Group& a : after) late = late || reads(graph, g, a);
    if (late && reads(graph, other, g)) return std::nullopt;
    (late ? after : before).push_back(g);
  }
  for (const Group& a : after)
    if (reads(graph, other, a)) return std::nullopt;
  const auto begin = fusion.groups.begin();
  out.groups.assign(begin, begin + static_cast<std::ptrdiff_t>(first));
  out.groups.insert(out.groups.end(), before.begin(), before.end());
  out.groups.push_back(both);
  out.groups.insert(out.groups.end(), after.begin(), after.end());
  out.groups.insert(out.groups.end(), begin + static_cast<std::ptrdiff_t>(second) + 1, fusion.groups.end());
  return out;
}

std::size_t group_of(const Fusion& fusion, NodeId id) {
  for (std::size_t i = 0; i < fusion.groups.size(); ++i)
    if (holds(fusion.groups[i].nodes, id)) return i;
  return fusion.groups.size();
}

// Whether the fusion was taken apart, the plan says so, and its results are right.
bool is_taken_apart(GraphRunner& runner, const ir::Graph& graph, Fusion fusion, std::uint64_t seed) {
  const passes::Compiled compiled = passes::plan_groups(graph, std::move(fusion), runner.device->target());
  if (compiled.taken_apart.empty()) return false;
  const bool noted = std::any_of(compiled.kernels.begin(), compiled.kernels.end(), [&](const auto& k) {
    return k.note.find("by itself, as its group has no kernel: " + compiled.taken_apart.front()) !=
           std::string::npos;
  });
  EXPECT_TRUE(noted) << compiled.taken_apart.front();
  const std::vector<ir::HostTensor> inputs = random_inputs(graph, seed), got = runner.run(compiled, inputs);
  EXPECT_EQ(difference_from(graph, inputs, got, {.seed = seed, .runs = 500}), "")
      << compiled.taken_apart.front() << "\n"
      << ir::print(graph);
  return true;
}

// %3's maxima stand along the product's columns, which a loop over its rows does not hold (fuse_test.cpp).
TEST(TakenApart, GroupsAreRightAndReported) {
  const ir::Graph graph = ir::parse(R"(graph @g(%a: f32[26,31], %b: f32[31,26]) -> (f32[26,26], f32[31]) {
  %2 = exp %a : f32[26,31]
  %3 = matmul %2, %b : f32[26,26]
  %4 = max %2 {axes=[1]} : f32[26]
  %5 = reshape %4 {shape=[1,26]} : f32[1,26]
  %6 = expand %5 {shape=[26,26]} : f32[26,26]
  %7 = add %3, %6 : f32[26,26]
  %8 = sum %2 {axes=[0]} : f32[31]
  %9 = tanh %7 : f32[26,26]
  return %9, %8
}
)",
                                    ops::all_ops())
                              .value();
  for (const char* device : {"reference", "cpu"}) {
    GraphRunner runner(device);
    EXPECT_TRUE(
        is_taken_apart(runner, graph, {.groups = {{.nodes = {2, 3, 4, 7, 8, 9}, .outputs = {9, 8}}}}, 1));
    EXPECT_TRUE(is_taken_apart(runner, graph,
                               {.groups = {{.nodes = {2}, .outputs = {2}},
                                           {.nodes = {3, 4, 7}, .outputs = {7}},
                                           {.nodes = {8}, .outputs = {8}},
                                           {.nodes = {9}, .outputs = {9}}}},
                               2));
  }
}

TEST(TakenApart, WhatFusionRefusesIsRightAllTheSame) {
  GraphRunner runner("reference");
  int taken = 0;
  for (std::uint64_t seed = 1; seed <= draws(400); ++seed) {
    RandomGraphOptions options = graph_of_seed(seed, GraphFamily::any);
    options.narrow_floats = false;  // these are rounded where they are stored, which is elsewhere now
    const passes::Compiled whole = passes::run_pipeline(random_graph(options), runner.device->target());
    for (const passes::NotFused& n : whole.fusion.not_fused) {
      const std::size_t a = group_of(whole.fusion, n.producer), b = group_of(whole.fusion, n.consumer);
      if (a == b || std::max(a, b) >= whole.fusion.groups.size()) continue;
      const std::optional<Fusion> forced = merged(whole.graph, whole.fusion, std::min(a, b), std::max(a, b));
      try {
        taken += forced && is_taken_apart(runner, whole.graph, *forced, seed);
      } catch (const std::exception& e) {
        ADD_FAILURE() << "seed " << seed << ": " << e.what() << "\n" << ir::print(whole.graph);
      }
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
    }
  }
  EXPECT_GT(taken, static_cast<int>(draws(50)));
}

}  // namespace
}  // namespace tilewright::test
