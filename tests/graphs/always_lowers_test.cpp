// A legal program is never refused: each row of the op table, its operands and its result seen through views,
// and the gradient of that, is lowered for a CPU and for a GPU; what moves or reduces data is also run.
#include "support/draws.h"
#include "support/h200_target.h"
#include "support/op_samples.h"
#include "support/random_graph.h"
#include "support/run_graph.h"

#include "ops/functions.h"
#include "ops/ops.h"
#include "passes/graph/differentiate.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tilewright::test {
namespace {

using ir::Graph;
using ir::OpClass;
using ir::Value;

enum class Through : std::uint8_t {
  nothing,
  reshape,
  transpose,
  slice,
  flip,
  broadcast,
  concat,
  pad,
  take,
  product
};
constexpr int kThroughs = 10;
constexpr std::string_view kNames[] = {"nothing",   "reshape", "transpose", "slice", "flip",
                                       "broadcast", "concat",  "pad",       "take",  "product"};

std::vector<Index> reversed(std::vector<Index> extents) {
  std::reverse(extents.begin(), extents.end());
  return extents;
}

std::vector<Index> with_axis(std::vector<Index> extents, std::size_t axis, Index extent) {
  extents[axis] = extent;
  return extents;
}

// Inputs of one graph, with what stands between them and an op.
class Operands {
 public:
  explicit Operands(Graph& graph) : graph_(graph) {}

  // A value of `type`, as a view of new inputs; as it stands where no such view is.
  Value through(Through view, const ir::Type& type) {
    const std::vector<Index> e = type.shape.extents();
    const std::size_t last = e.empty() ? 0 : e.size() - 1;
    if (e.empty() || type.shape.size() == 0) return input(type.dtype, e);
    switch (view) {
      case Through::reshape:  // axes that do not divide those of the result
        return ops::reshape(input(type.dtype, reversed(e)), type.shape);
      case Through::transpose:
        return turned(input(type.dtype, reversed(e)));
      case Through::slice:
        return ops::slice_axis(input(type.dtype, with_axis(e, last, 2 * e[last] + 1)),
                               static_cast<Index>(last), {.start = 1, .step = 2});
      case Through::flip:
        return ops::flip(input(type.dtype, e), {static_cast<Index>(last)});
      case Through::broadcast:
        return ops::broadcast_to(input(type.dtype, with_axis(e, 0, 1)), type.shape);
      case Through::concat:
        if (e[0] < 2) break;
        return ops::concat(
            {input(type.dtype, with_axis(e, 0, 1)), input(type.dtype, with_axis(e, 0, e[0] - 1))}, 0);
      case Through::pad:
        if (e[last] < 2) break;
        return ops::pad_axis(input(type.dtype, with_axis(e, last, e[last] - 1)), static_cast<Index>(last), 1,
                             0);
      case Through::take:
        return ops::take(input(type.dtype, with_axis(e, 0, e[0] + 2)), input(DType::i64, {e[0]}), 0);
      case Through::product:
        if (!is_float(type.dtype) || is_f8(type.dtype) || e.size() < 2) break;
        return ops::matmul(input(type.dtype, with_axis(e, last, 3)), input(type.dtype, {3, e[last]}));
      case Through::nothing:
        break;
    }
    return input(type.dtype, e);
  }

 private:
  Value turned(Value v) {
    std::vector<Index> perm;
    for (Index axis = v.shape().rank(); axis-- > 0;) perm.push_back(axis);
    return ops::transpose(v, perm);
  }
  Value input(DType dtype, const std::vector<Index>& extents) {
    const ir::NodeId id =
        graph_.add_input(fmt::format("x{}", graph_.inputs().size()), {dtype, Shape(extents)});
    return {&graph_, id};
  }
  Graph& graph_;
};

// What follows a result.
Value seen_through(Through view, Value v, Graph& graph) {
  const Shape shape = v.shape();
  if (shape.rank() == 0 || shape.size() == 0) return v;
  const Index last = shape.rank() - 1;
  switch (view) {
    case Through::reshape:
      return ops::reshape(v, Shape(reversed(shape.extents())));
    case Through::transpose:
      return ops::swap_axes(v, 0, last);
    case Through::slice:
      return ops::slice_axis(v, last, {.step = 2});
    case Through::flip:
      return ops::flip(v, {0});
    case Through::broadcast:
      return ops::broadcast_to(ops::unsqueeze(v, 0), Shape([&] {
                                 std::vector<Index> extents = shape.extents();
                                 extents.insert(extents.begin(), 2);
                                 return extents;
                               }()));
    case Through::concat:
      return ops::concat({v, v}, last);
    case Through::pad:
      return ops::pad_axis(v, 0, 1, 1);
    case Through::take:
      return ops::take(v, {&graph, graph.add_input("picked", {DType::i64, {3}})}, last);
    case Through::product: {
      if (!is_float(v.dtype()) || is_f8(v.dtype()) || shape.rank() < 2) return v;
      const Value w{&graph, graph.add_input("w", {v.dtype(), {shape[static_cast<int>(last)], 3}})};
      return ops::matmul(v, w);
    }
    case Through::nothing:
      break;
  }
  return v;
}

Graph graph_through(const ir::Op& op, const OpSample& sample, Through before, Through after) {
  Graph graph("row");
  Operands inputs(graph);
  std::vector<ir::NodeId> operands;
  operands.reserve(sample.operands.size());
  for (const ir::Type& type : sample.operands) operands.push_back(inputs.through(before, type).id);
  const Value result{&graph, graph.add(op, operands, sample.attrs)};
  graph.set_outputs({seen_through(after, result, graph).id});
  return graph;
}

// Gradient of the output's sum of squares; nothing where the row has none.
std::optional<Graph> gradient_of(Graph graph) {
  const Value result{&graph, graph.outputs()[0]};
  std::vector<int> wrt;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    if (is_float(graph.type(graph.inputs()[i]).dtype)) wrt.push_back(static_cast<int>(i));
  if (!is_float(result.dtype()) || is_f8(result.dtype()) || wrt.empty()) return std::nullopt;
  graph.set_outputs({ops::sum(result * result).id});
  try {
    return passes::differentiate(graph, wrt);
  } catch (const Error&) {
    return std::nullopt;
  }
}

class AlwaysLowers : public testing::Test {
 protected:
  // Checks that a graph lowers for both targets, and the reference's results of it against the oracle.
  void check(const Graph& graph, const std::string& what, bool runs) {
    for (const tile::Target& target : {tile::Target{}, h200_target()}) {
      try {
        const passes::Compiled compiled = passes::run_pipeline(graph, target);
        ++lowered_;
        EXPECT_TRUE(compiled.taken_apart.empty()) << what << ": " << compiled.taken_apart.front();
        if (!runs) continue;
        const auto inputs = random_inputs(graph, 1);
        EXPECT_EQ(difference(runner_.run(compiled, inputs), reference_with_spread(graph, inputs, {})), "")
            << what;
      } catch (const std::exception& e) {
        ADD_FAILURE() << what << " is refused: " << e.what();
      }
    }
  }

  void check(const ir::Op& op, const OpSample& sample, Through before, Through after) {
    const Graph graph = graph_through(op, sample, before, after);
    const std::string what =
        fmt::format("{} {} through {}, then {}", op.name,
                    to_string(sample.operands.empty() ? ir::Type{} : sample.operands[0]),
                    kNames[static_cast<std::size_t>(before)], kNames[static_cast<std::size_t>(after)]);
    const bool moves =
        op.kind == OpClass::matmul || op.kind == OpClass::reduce || op.kind == OpClass::reshape;
    check(graph, what, moves);
    if (const std::optional<Graph> gradient = gradient_of(graph))
      check(*gradient, "the gradient of " + what, false);
  }

  GraphRunner runner_{"reference"};
  int lowered_ = 0;
};

// A few calls of each row, of several axes where it has such.
std::vector<OpSample> few_samples(const ir::Op& op) {
  constexpr Index kMostElements = 2000;
  std::vector<OpSample> out;
  for (DType dtype : {DType::f32, DType::i64, DType::boolean}) {
    for (const OpSample& s : op_samples(op, dtype)) {
      Index most = 0;
      int rank = s.operands.empty() ? 2 : 0;
      for (const ir::Type& t : s.operands)
        most = std::max(most, t.shape.size()), rank = std::max(rank, t.shape.rank());
      if (rank >= 2 && most <= kMostElements && out.size() < 4) out.push_back(s);
    }
    if (!out.empty()) break;
  }
  return out;
}

TEST_F(AlwaysLowers, EveryRowBehindAndBeforeEveryView) {
  for (const ir::Op* op : ops::all_ops()) {
    constexpr auto kViews = static_cast<std::uint64_t>(kThroughs);
    std::uint64_t number = 0;
    for (const OpSample& sample : few_samples(*op)) {
      for (std::uint64_t before = 0; before < kViews; ++before)
        for (std::uint64_t after = 0; after < kViews; ++after)
          // All pairs, or as many as have each view in both places.
          if (one_of_draws() == 1 || after == (3 * before + number) % kViews)
            check(*op, sample, static_cast<Through>(before), static_cast<Through>(after));
      ++number;
    }
  }
  EXPECT_GT(lowered_, static_cast<int>(draws(10000)));
}

// Reshaped memory counts its elements in other axes: a product walks it as it lies, whether the axes divide
// one another or not.
TEST_F(AlwaysLowers, ProductsOfReshapedMemory) {
  struct Case {
    Shape x, as;
    Index columns;
  };
  for (const Case& c : {Case{{2, 4, 32}, {32, 8}, 5}, Case{{3, 2, 4}, {8, 3}, 5},
                        Case{{10, 7, 7}, {49, 10}, 6}, Case{{5, 6}, {2, 15}, 3}, Case{{4, 9}, {3, 12}, 1}}) {
    Graph graph("product");
    const Value x{&graph, graph.add_input("x", {DType::f32, c.x})};
    const Value w{&graph, graph.add_input("w", {DType::f32, {c.as[1], c.columns}})};
    const Value m = ops::matmul(ops::reshape(x, c.as), w);
    graph.set_outputs({m.id});
    check(graph, to_string(c.x), true);
    graph.set_outputs({ops::sum(ops::sin(ops::reshape(m, {-1, m.shape()[0]})) * 0.5).id});
    check(passes::differentiate(graph, {0, 1}), "the gradient of " + to_string(c.x), true);
  }
}

}  // namespace
}  // namespace tilewright::test
