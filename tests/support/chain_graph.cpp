// See chain_graph.h. Inputs reach from -3 to 3, so that leaves are scaled down before they are multiplied
// often.
#include "support/chain_graph.h"

#include "ops/composites.h"
#include "passes/graph/differentiate.h"
#include "support/tiny_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tilewright::test {

namespace {

using ir::Value;

constexpr Index kMostElements = 1500;  // of any value

class ChainGrower {
 public:
  explicit ChainGrower(Choices& random) : random_(random), graph_("chain") {}

  ir::Graph products() {
    static constexpr DType kTypes[] = {DType::f32, DType::f64};
    const DType dtype = kTypes[random_.below(std::size(kTypes))];
    const Index size = small_extent();
    const Index batch = std::min(small_extent(), kMostElements / (size * size));
    for (Index i = random_.between(1, 3); i > 0; --i) add_square(dtype, size, batch);
    for (Index i = 0; random_.another(i, 9); ++i) product_step(batch);
    return finished();
  }

  ir::Graph joins() {
    std::vector<Index> extents;
    for (Index rank = random_.between(1, 2); rank > 0; --rank) extents.push_back(small_extent());
    const DType dtype = random_.chance(0.7) ? DType::f32 : DType::f64;
    for (Index i = random_.between(1, 2); i > 0; --i) keep(input(dtype, Shape(extents)));
    for (Index i = 0; random_.another(i, 8); ++i) join_step();
    return finished();
  }

 private:
  Index small_extent() { return random_.chance(0.9) ? random_.between(1, 5) : tiny_extent(random_); }

  Value input(DType dtype, const Shape& shape) {
    return {&graph_, graph_.add_input(fmt::format("x{}", graph_.inputs().size()), {dtype, shape})};
  }
  void keep(Value v) {
    if (v.shape().size() <= kMostElements && v.shape().rank() <= 5) values_.push_back(v);
  }
  Value pick() {  // recent values more often, so that chains grow
    const auto n = static_cast<Index>(values_.size());
    const Index back = std::min(random_.below(n), random_.below(n));
    return values_[static_cast<std::size_t>(n - 1 - back)];
  }
  // Has the shape of `a`, or one that broadcasts with it.
  Value partner(Value a) {
    for (int i = 0; i < 4; ++i)
      if (const Value b = pick(); broadcast(a.shape(), b.shape())) return b;
    return a;
  }

  // --- products

  // Square matrices, a batch of them, one for all or one in a batch of one; in memory or computed.
  void add_square(DType dtype, Index size, Index batch) {
    std::vector<Index> extents = {size, size};
    const Index form = random_.below(3);
    if (form > 0) extents.insert(extents.begin(), form == 1 ? batch : 1);
    const Value x = input(dtype, Shape(extents));
    keep(random_.chance(0.5) ? x * (0.5 / static_cast<double>(size)) : x);
  }

  void product_step(Index batch) {
    const Value x = pick();
    const int rank = x.shape().rank();
    static constexpr double kShares[] = {0.35, 0.55, 0.67, 0.77, 0.87, 0.93};
    switch (random_.category(kShares)) {
      case 0:
        return multiply(x, pick());
      case 1: {
        const Value y = partner(x);
        return keep(random_.chance(0.6) ? x + y : x * y);
      }
      case 2:
        if (rank < 3) return;
        return keep(random_.chance(0.7) ? ops::sum(x, {0}, any_keep()) : ops::max(x, {0}, any_keep()));
      case 3:
        return stretch(x, batch);
      case 4:
        if (rank >= 2) keep(ops::swap_axes(x, -1, -2));
        return;
      case 5:
        return keep(regrouped(x));
      default:
        return keep(pointwise(x));
    }
  }
  void multiply(Value a, Value b) {
    if (a.shape().rank() < 1 || b.shape().rank() < 1) return;
    const Index depth = a.shape()[a.shape().rank() - 1], of_b = std::max(b.shape().rank() - 2, 0);
    if (b.shape()[static_cast<int>(of_b)] != depth) return;
    const auto batch_of = [](Value v) {
      const std::vector<Index>& all = v.shape().extents();
      return Shape(std::vector<Index>(all.begin(), all.end() - std::min<Index>(v.shape().rank(), 2)));
    };
    if (broadcast(batch_of(a), batch_of(b))) keep(ops::matmul(a, b));
  }
  void stretch(Value x, Index batch) {
    if (x.shape().rank() < 2) return;
    const std::vector<Index>& all = x.shape().extents();
    std::vector<Index> extents(all.end() - 2, all.end());
    extents.insert(extents.begin(), batch);
    if (broadcast(x.shape(), Shape(extents)) == Shape(extents)) keep(ops::broadcast_to(x, Shape(extents)));
  }
  // The same elements in other groups: two axes become one, or are cut elsewhere.
  Value regrouped(Value x) {
    std::vector<Index> extents = x.shape().extents();
    if (extents.size() < 2) return x;
    const auto at = static_cast<std::size_t>(random_.below(static_cast<Index>(extents.size()) - 1));
    const Index together = extents[at] * extents[at + 1];
    Index first = random_.between(1, together);
    first = std::gcd(first, together);
    extents[at] = first;
    extents[at + 1] = first == 0 ? 0 : together / first;
    return ops::reshape(x, Shape(extents));
  }
  Value pointwise(Value x) {
    switch (random_.below(4)) {
      case 0:
        return ops::sin(x);
      case 1:
        return x * 0.5;
      case 2:
        return ops::tanh(x);
      default:
        return x * x;
    }
  }
  ops::Keep any_keep() { return random_.chance(0.5) ? ops::Keep::yes : ops::Keep::no; }

  // --- concats

  void join_step() {
    const Value x = pick();
    const int rank = x.shape().rank();
    static constexpr double kShares[] = {0.45, 0.6, 0.75, 0.9};
    switch (random_.category(kShares)) {
      case 0: {
        std::vector<Value> parts = {x};
        for (Index i = random_.between(1, 2); i > 0; --i)
          if (const Value y = pick(); y.shape() == x.shape()) parts.push_back(y);
        if (rank == 0 || random_.chance(0.4)) return keep(ops::stack(parts, random_.below(rank + 1)));
        return keep(ops::concat(parts, random_.below(rank)));
      }
      case 1:
        if (rank > 0) {
          const Index axis = random_.below(rank), extent = x.shape()[static_cast<int>(axis)];
          keep(ops::slice_axis(x, axis,
                               {.start = random_.below(extent + 1), .step = random_.chance(0.3) ? -1 : 1}));
        }
        return;
      case 2:
        return keep(pointwise(x));
      case 3: {
        const Value y = partner(x);
        return keep(random_.chance(0.5) ? x + y : x * y);
      }
      default:
        if (rank > 0) keep(ops::sum(x, {random_.below(rank)}, any_keep()));
    }
  }

  // --- the end

  // A sum of squares of the last values, and its gradients: the right ones have no large cancellation.
  ir::Graph finished() {
    static constexpr double kShares[] = {0.35, 0.7};
    const std::size_t wanted = random_.category(kShares);
    const auto results = static_cast<std::size_t>(random_.between(1, 3));
    const std::vector<Value> last(
        values_.end() - static_cast<std::ptrdiff_t>(std::min(values_.size(), results)), values_.end());
    if (wanted == 0) {
      std::vector<ir::NodeId> ids;
      ids.reserve(last.size());
      for (const Value v : last) ids.push_back(v.id);
      graph_.set_outputs(ids);
      return std::move(graph_);
    }
    Value loss = ops::sum(ops::square(last[0]));
    for (std::size_t i = 1; i < last.size(); ++i) loss = loss + ops::sum(ops::sin(last[i]));
    graph_.set_outputs({loss.id});
    std::vector<int> all(graph_.inputs().size());
    std::iota(all.begin(), all.end(), 0);
    ir::Graph first = passes::differentiate(graph_, all);
    if (wanted == 1) return first;
    Value squares;
    for (std::size_t i = 1; i < first.outputs().size(); ++i) {
      const Value each = ops::sum(ops::square(Value{&first, first.outputs()[i]}));
      squares = squares.graph == nullptr ? each : squares + each;
    }
    first.set_outputs({squares.id});
    return passes::differentiate(first, all);
  }

  Choices& random_;
  ir::Graph graph_;
  std::vector<Value> values_;
};

}  // namespace

ir::Graph product_chain_graph(Choices& choices) { return ChainGrower(choices).products(); }
ir::Graph joined_graph(Choices& choices) { return ChainGrower(choices).joins(); }

}  // namespace tilewright::test
