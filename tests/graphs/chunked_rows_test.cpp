// Graphs whose product is cut into pieces of rows compute what they did: both are evaluated in float64.
#include "passes/fuse/chunked_rows.h"
#include "ops/functions.h"
#include "ops/ops.h"
#include "passes/store/materialize.h"
#include "support/h200_target.h"
#include "support/host_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tilewright::test {
namespace {

using ir::Value;
using passes::chunk_rows;

const passes::RowChunkOptions kAlways = {.least_bytes = 0,
                                         .most_for_sums = std::numeric_limits<double>::infinity()};

// A product of rows or of a batch, arithmetic and statistics of its rows, views, and products that read it.
class Drawn {
 public:
  explicit Drawn(std::uint64_t seed) : random_(seed), batched_(random_.below(2) == 0) {
    rows_ = Index{4} << random_.below(3);
    inner_ = 2 + random_.below(4);
    classes_ = 24 + random_.below(40);
    depth_ = 2 + random_.below(4);
    draw();
  }
  ir::Graph graph{"rows"};

 private:
  Value input(const char* name, const Shape& shape) {
    return {&graph, graph.add_input(name, {DType::f64, shape})};
  }

  void draw() {
    const Shape of_x = batched_ ? Shape{rows_, inner_, depth_} : Shape{rows_, depth_};
    const Value x = input("x", of_x), w = input("w", {depth_, classes_}), scale = input("scale", {rows_});
    std::vector<ir::NodeId> outputs;
    Value y = ops::matmul(x, w);
    const Index last = y.shape().rank() - 1;
    for (Index steps = 1 + random_.below(5); steps > 0; --steps) {
      switch (random_.below(6)) {
        case 0:
          y = ops::tanh(y);
          break;
        case 1: {
          const Value top = ops::max(y, {last}, ops::Keep::yes);
          if (random_.below(2)) outputs.push_back(ops::sum(top).id);
          y = ops::exp(y - top);
          break;
        }
        case 2: {
          const Value total = ops::sum(y * y, {last}, ops::Keep::yes);
          if (random_.below(2)) outputs.push_back(total.id);
          y = y / (total + 1.0);
          break;
        }
        case 3:
          y = y * ops::reshape(scale, batched_ ? Shape{rows_, 1, 1} : Shape{rows_, 1});
          break;
        case 4: {
          const Value column = ops::cast(ops::iota(graph, y.shape(), last), DType::f64);
          y = ops::where(ops::lt(column, 5.0), y, 0.5 * y);
          break;
        }
        default:
          y = ops::add(y, ops::reshape(ops::sum(scale), {}));
      }
    }
    Value flat = batched_ ? ops::reshape(y, {rows_ * inner_, classes_}) : y;
    const Value flat_x = batched_ ? ops::reshape(x, {rows_ * inner_, depth_}) : x;
    outputs.push_back(ops::matmul(ops::transpose(flat, {1, 0}), flat_x).id);
    if (random_.below(2)) outputs.push_back(ops::matmul(ops::transpose(flat_x, {1, 0}), flat).id);
    if (random_.below(2)) outputs.push_back(ops::matmul(y, ops::transpose(w, {1, 0})).id);
    if (random_.below(3) == 0) outputs.push_back(ops::matmul(w, ops::transpose(flat, {1, 0})).id);
    graph.set_outputs(outputs);
  }

  Random random_;
  bool batched_;
  Index rows_ = 0, inner_ = 0, classes_ = 0, depth_ = 0;
};

TEST(ChunkedRows, ComputeWhatTheWholeDoes) {
  const tile::Target target = h200_target();
  int cut = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Drawn drawn(seed);
    const ir::Graph whole = passes::materialize(drawn.graph, target);
    const auto pieces = chunk_rows(whole, target, kAlways);
    if (!pieces) continue;
    ++cut;
    EXPECT_GE(pieces->pieces, 2);
    Random random(seed);
    std::vector<ir::HostTensor> inputs;
    for (ir::NodeId id : whole.inputs())
      inputs.push_back(random_host(whole.type(id), {.low = -1, .high = 1}, random));
    const auto want = ops::evaluate(whole, inputs), got = ops::evaluate(pieces->graph, inputs);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t o = 0; o < want.size(); ++o) {
      ASSERT_EQ(got[o].type, want[o].type);
      for (std::size_t i = 0; i < want[o].f.size(); ++i)
        ASSERT_NEAR(got[o].f[i], want[o].f[i], 1e-12 * (1 + std::abs(want[o].f[i])))
            << "seed " << seed << ", output " << o << ", element " << i;
    }
    for (ir::NodeId id = 0; id < pieces->graph.size(); ++id)
      if (pieces->graph.live()[static_cast<std::size_t>(id)] &&
          pieces->graph.node(id).op->kind == ir::OpClass::matmul &&
          pieces->graph.type(id).shape.rank() == 3) {
        EXPECT_LT(pieces->graph.type(id).shape[0], whole.type(whole.inputs()[0]).shape[0]);
      }
  }
  EXPECT_GT(cut, 150);
}

// What needs all rows before a piece goes on, or is large and read by something else, is left as it is.
TEST(ChunkedRows, LeaveWhatPiecesCannotCompute) {
  const tile::Target target = h200_target();
  const auto cuts = [&](auto&& write) {
    ir::Graph g("rows");
    const Value x{&g, g.add_input("x", {DType::f64, {8, 3}})}, w{&g, g.add_input("w", {DType::f64, {3, 40}})};
    const Value y = ops::matmul(x, w);
    write(g, x, y);
    return chunk_rows(passes::materialize(g, target), target, kAlways).has_value();
  };
  EXPECT_TRUE(cuts(
      [](ir::Graph& g, Value x, Value y) { g.set_outputs({ops::matmul(ops::transpose(y, {1, 0}), x).id}); }));
  EXPECT_FALSE(cuts([](ir::Graph& g, Value x, Value y) {
    g.set_outputs({ops::matmul(ops::transpose(y, {1, 0}), x).id, y.id});
  })) << "the product is a result";
  EXPECT_FALSE(cuts([](ir::Graph& g, Value x, Value y) {
    g.set_outputs({ops::matmul(ops::transpose(y / ops::sum(y, {0}, ops::Keep::yes), {1, 0}), x).id});
  })) << "columns are added up before rows go on";
  EXPECT_FALSE(cuts([](ir::Graph& g, Value x, Value y) {
    const Value length = ops::sum(ops::sum(y * y, {1}));
    g.set_outputs({ops::matmul(ops::transpose(y / length, {1, 0}), x).id});
  })) << "what is put together is needed by the pieces";
  EXPECT_FALSE(cuts([](ir::Graph& g, Value, Value y) { g.set_outputs({ops::sum(y, {1}).id}); }))
      << "no product reads it";
}

}  // namespace
}  // namespace tilewright::test
