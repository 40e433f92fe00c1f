// Finds what is made of a product row by row, and writes the graph with it in pieces.
#include "passes/fuse/chunked_rows.h"

#include "ops/functions.h"
#include "passes/fuse/chunked_matmul.h"
#include "passes/fuse/graph_copy.h"
#include "passes/fuse/recompute.h"
#include "passes/tiling/group_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;
using ir::OpClass;
using ir::Value;

namespace {

// A product that reads rows as operand `side`. Where they are its depth it is summed over the pieces,
// otherwise put together from them along `axis` of the result.
struct RowReader {
  NodeId id = -1;
  std::size_t side = 0;
  bool sums = false;
  int axis = 0;
};

struct RowCut {
  NodeId product = -1;
  std::map<NodeId, int> rows;  // the product and what is made of it row by row, with the axis of the rows
  std::set<NodeId> whole;      // of these what others need as a whole: statistics
  std::vector<RowReader> readers;
  Index unit = 0;  // the number of pieces divides this
};

bool is_large(const Graph& graph, const RowCut& cut, NodeId id) {
  return graph.type(id).shape.size() > graph.type(cut.product).shape.size() / kSmallerThanProduct;
}

class RowFinder {
 public:
  explicit RowFinder(const Graph& graph)
      : graph_(graph), live_(graph.live()), kept_(graph.outputs().begin(), graph.outputs().end()) {}

  std::optional<RowCut> run(double least_bytes) const {
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (live_[static_cast<std::size_t>(id)] && graph_.node(id).op->kind == OpClass::matmul &&
          bytes_of(graph_.type(id)) >= least_bytes)
        if (auto cut = of(id)) return cut;
    return std::nullopt;
  }

 private:
  std::optional<RowCut> of(NodeId product) const {
    RowCut cut{.product = product, .rows = {{product, 0}}, .unit = graph_.type(product).shape[0]};
    if (kept_.count(product)) return std::nullopt;
    for (NodeId id = product + 1; id < graph_.size(); ++id) {
      const ir::Node& n = graph_.node(id);
      const auto is_row = [&](NodeId o) { return cut.rows.count(o) != 0; };
      if (!live_[static_cast<std::size_t>(id)] || std::none_of(n.operands.begin(), n.operands.end(), is_row))
        continue;
      if (const int axis = axis_of_rows(n, cut); axis >= 0) {
        cut.rows[id] = axis;
        cut.unit = std::gcd(cut.unit, n.type.shape[axis]);
        if (kept_.count(id) && !take_whole(id, cut)) return std::nullopt;
      } else if (const auto reader = reader_of(id, cut)) {
        cut.readers.push_back(*reader);
      } else {
        for (NodeId o : n.operands)
          if (is_row(o) && !take_whole(o, cut)) return std::nullopt;
      }
    }
    if (cut.readers.empty()) return std::nullopt;
    return cut;
  }

  bool take_whole(NodeId id, RowCut& cut) const {
    if (is_large(graph_, cut, id)) return false;
    cut.whole.insert(id);
    return true;
  }

  // The axis of the rows in a result whose every row, or group of rows, is made of one row, or group of rows,
  // of what it reads; otherwise -1.
  int axis_of_rows(const ir::Node& n, const RowCut& cut) const {
    int axis = -1;
    for (NodeId o : n.operands) {
      const auto row = cut.rows.find(o);
      if (row == cut.rows.end()) continue;
      if (axis >= 0 && row->second != axis) return -1;
      axis = row->second;
    }
    if (is_plain(n)) return axis;
    if (n.operands.size() != 1) return -1;
    const Shape& before = graph_.type(n.operands[0]).shape;
    const Shape& after = n.type.shape;
    switch (n.op->kind) {
      case OpClass::reduce: {
        const std::vector<Index>& axes = n.attrs.integers("axes");
        if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return -1;
        return axis -
               static_cast<int>(std::count_if(axes.begin(), axes.end(), [&](Index a) { return a < axis; }));
      }
      case OpClass::expand:
        return after[axis] == before[axis] ? axis : -1;
      case OpClass::reshape: {
        const bool splits_or_joins = axis == 0 && after.rank() > 0 && after[0] > 1 &&
                                     (after[0] % before[0] == 0 || before[0] % after[0] == 0);
        return splits_or_joins ? 0 : -1;
      }
      case OpClass::transpose: {
        const std::vector<Index>& perm = n.attrs.integers("perm");
        return static_cast<int>(std::find(perm.begin(), perm.end(), axis) - perm.begin());
      }
      default:
        return -1;
    }
  }

  // None where what it reads of the rows is small, or both operands are rows.
  std::optional<RowReader> reader_of(NodeId id, const RowCut& cut) const {
    const ir::Node& n = graph_.node(id);
    if (n.op->kind != OpClass::matmul) return std::nullopt;
    const auto a = cut.rows.find(n.operands[0]), b = cut.rows.find(n.operands[1]);
    if ((a == cut.rows.end()) == (b == cut.rows.end())) return std::nullopt;
    const std::size_t side = a == cut.rows.end() ? 1 : 0;
    if (!is_large(graph_, cut, n.operands[side])) return std::nullopt;
    const int axis = side == 0 ? a->second : b->second, rank = n.type.shape.rank();
    const int depth = side == 0 ? rank - 1 : rank - 2;
    return RowReader{.id = id, .side = side, .sums = axis == depth, .axis = axis};
  }

  const Graph& graph_;
  std::vector<bool> live_;
  std::set<NodeId> kept_;  // outputs of the graph
};

// A piece is 1 / pieces of the rows of every value.
class RowWriter final : public GraphCopy {
 public:
  RowWriter(const Graph& graph, const RowCut& cut, Index pieces)
      : GraphCopy(graph), cut_(cut), pieces_(pieces) {
    for (const RowReader& r : cut.readers) readers_.insert(r.id);
  }

 private:
  bool is_left_out(NodeId id) const override { return cut_.rows.count(id) != 0 && cut_.whole.count(id) == 0; }
  bool is_written_together(NodeId id) const override {
    return cut_.rows.count(id) != 0 || readers_.count(id) != 0;
  }

  // All products read a piece before the next one is computed.
  bool write_together() override {
    std::map<NodeId, std::vector<Value>> parts;
    for (const auto& [id, axis] : cut_.rows)
      if (!add_others(id)) return false;
    for (const RowReader& r : cut_.readers)
      if (!add_others(r.id)) return false;
    for (piece_ = 0; piece_ < pieces_; ++piece_) {
      known_.clear();
      for (NodeId id : cut_.whole) parts[id].push_back(part(id, cut_.rows.at(id)));
      for (const RowReader& r : cut_.readers) add_part(r, parts[r.id]);
    }
    for (NodeId id : cut_.whole) renamed(id) = ops::concat(parts[id], cut_.rows.at(id)).id;
    for (const RowReader& r : cut_.readers) {
      const Value all = r.sums ? parts[r.id][0] : ops::concat(parts[r.id], r.axis);
      renamed(r.id) = ops::cast(all, graph_.type(r.id).dtype).id;
    }
    return true;
  }

  // The operands that are no rows.
  bool add_others(NodeId id) {
    const std::vector<NodeId>& operands = graph_.node(id).operands;
    return std::all_of(operands.begin(), operands.end(),
                       [&](NodeId o) { return cut_.rows.count(o) != 0 || add(o); });
  }

  void add_part(const RowReader& r, std::vector<Value>& parts) {
    const ir::Node& n = graph_.node(r.id);
    const ir::LocationScope scope(out_, n.location);
    const NodeId other_id = n.operands[1 - r.side];
    const int rank = n.type.shape.rank();
    const Value mine = part(n.operands[r.side], r.axis);
    Value other = value(other_id);
    if (r.sums) other = part(other_id, r.side == 0 ? rank - 2 : rank - 1);
    if (r.axis < rank - 2) other = part(other_id, r.axis);
    const DType dtype = n.type.dtype;
    const DType wide = r.sums && is_float(dtype) && dtype != DType::f64 ? DType::f32 : dtype;
    const Value product = r.side == 0 ? ops::matmul(mine, other, wide) : ops::matmul(other, mine, wide);
    if (r.sums && !parts.empty())
      parts[0] = parts[0] + product;
    else
      parts.push_back(product);
  }

  // The piece of any value, along an axis that the pieces divide. What is large and computed element by
  // element is computed for the piece alone: as a whole it would be in memory to be read.
  Value part(NodeId id, int axis) {
    if (const auto known = known_.find({id, axis}); known != known_.end()) return known->second;
    const ir::Node& n = graph_.node(id);
    const ir::LocationScope scope(out_, n.location);
    const bool is_row = cut_.rows.count(id) != 0;
    const Index extent = n.type.shape[axis] / pieces_;
    ir::Attrs attrs = n.attrs;
    if (attrs.has("shape")) {
      std::vector<Index> shape = attrs.integers("shape");
      shape[static_cast<std::size_t>(axis)] = extent;
      attrs.set("shape", shape);
    }
    Value result;
    if (id == cut_.product) {
      const bool is_batch = n.type.shape.rank() > 2;
      result = ops::matmul(part(n.operands[0], 0), is_batch ? part(n.operands[1], 0) : value(n.operands[1]),
                           n.type.dtype);
    } else if (is_row || (is_large(graph_, cut_, id) && (is_plain(n) || is_stretched(n, axis)))) {
      std::vector<NodeId> operands;
      operands.reserve(n.operands.size());
      for (NodeId o : n.operands) operands.push_back(part(o, axis_of(o, axis)).id);
      result = {&out_, out_.add(*n.op, operands, attrs, n.location)};
    } else if (n.op->kind == OpClass::constant) {
      result = {&out_, out_.add(*n.op, {}, attrs, n.location)};
    } else {
      result = ops::slice_axis(value(id), axis, {.start = piece_ * extent, .stop = (piece_ + 1) * extent});
    }
    return known_[{id, axis}] = result;
  }

  // A view along other axes.
  bool is_stretched(const ir::Node& n, int axis) const {
    return n.op->kind == OpClass::expand && graph_.type(n.operands[0]).shape[axis] == n.type.shape[axis];
  }

  // The axis of rows of an operand, which for one that is no rows is that of the result.
  int axis_of(NodeId operand, int axis_of_result) const {
    const auto row = cut_.rows.find(operand);
    return row == cut_.rows.end() ? axis_of_result : row->second;
  }

  const RowCut& cut_;
  const Index pieces_;
  std::set<NodeId> readers_;
  Index piece_ = 0;
  std::map<std::pair<NodeId, int>, Value> known_;
};

Index count_pieces(const Graph& graph, const RowCut& cut, const tile::Target& target,
                   const RowChunkOptions& options) {
  const ir::Node& n = graph.node(cut.product);
  double sources = options.piece_bytes, sums = 0;
  for (NodeId o : n.operands)
    for (NodeId s : sources_of(graph, o, {})) sources = std::max(sources, bytes_of(graph.type(s)));
  for (const RowReader& r : cut.readers)
    if (r.sums) sums += 2 * 4 * static_cast<double>(graph.type(r.id).shape.size());
  const double wanted = std::ceil(bytes_of(n.type) / sources);
  const int rank = n.type.shape.rank();
  const double flops = 2 * static_cast<double>(n.type.shape.size()) *
                       static_cast<double>(graph.type(n.operands[0]).shape[rank - 1]) *
                       (1 + static_cast<double>(cut.readers.size()));
  const double seconds = flops / std::max(target.matrix_flops_per_s, target.flops_per_s);
  const double allowed =
      sums > 0 ? options.most_for_sums * seconds * target.memory_bytes_per_s / sums : wanted;
  const auto pieces = static_cast<Index>(std::min({wanted, 1 + allowed, static_cast<double>(kMostPieces)}));
  const auto divides = [&](Index count) { return cut.unit % count == 0; };
  // No piece is larger than the most, whatever the sums take: the next number that divides the rows.
  for (Index count =
           std::max<Index>(pieces, static_cast<Index>(std::ceil(bytes_of(n.type) / options.most_bytes)));
       count > pieces && count <= kMostPieces; ++count)
    if (divides(count)) return count;
  Index count = pieces;
  while (count > 1 && !divides(count)) --count;
  return count;
}

}  // namespace

std::optional<RowChunks> chunk_rows(const Graph& graph, const tile::Target& target,
                                    const RowChunkOptions& options) {
  const auto cut = RowFinder(graph).run(options.least_bytes);
  if (!cut) return std::nullopt;
  const Index pieces = count_pieces(graph, *cut, target, options);
  if (pieces < 2) return std::nullopt;
  auto written = RowWriter(graph, *cut, pieces).run();
  if (!written) return std::nullopt;
  RowChunks out{std::move(*written), pieces, bytes_of(graph.type(cut->product))};
  double read = 0;
  for (const RowReader& r : cut->readers) {
    read = std::max(read, bytes_of(graph.type(graph.node(r.id).operands[r.side])));
    if (r.sums) out.held_bytes += bytes_of({DType::f32, graph.type(r.id).shape});
  }
  out.held_bytes += (out.whole_bytes + read) / static_cast<double>(pieces);
  return out;
}

}  // namespace tilewright::passes
