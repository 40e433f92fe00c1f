// Finds the product and its readers, and writes the graph with these in chunks.
#include "passes/fuse/chunked_matmul.h"

#include "ops/functions.h"
#include "passes/fuse/graph_copy.h"
#include "passes/fuse/recompute.h"
#include "passes/tiling/group_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;
using ir::OpClass;
using ir::Value;

namespace {

constexpr Index kColumnUnit = 256;  // of a piece: whole tiles

// A product that reads a descendant of the large one: as which operand, and turned or not.
struct ReadingProduct {
  NodeId id = -1;
  std::size_t side = 0;
  NodeId read = -1;  // the descendant
  bool transposed = false;
  // Whether the cut columns are this product's depth, so that it is summed over the chunks.
  bool sums() const { return transposed == (side == 1); }
};

struct Cut {
  NodeId product = -1;
  std::set<NodeId> made;  // the product and what is made of it, element by element
  std::vector<ReadingProduct> readers;
};

class CutFinder {
 public:
  explicit CutFinder(const Graph& graph) : graph_(graph), live_(graph.live()), users_(graph.users()) {
    for (NodeId o : graph.outputs()) kept_.insert(storage_node(graph, o));
  }

  std::optional<Cut> run(const ChunkOptions& options) const {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!live_[static_cast<std::size_t>(id)] || !is_large(id, options)) continue;
      if (auto cut = of(id)) return cut;
    }
    return std::nullopt;
  }

 private:
  bool is_large(NodeId id, const ChunkOptions& options) const {
    const ir::Node& n = graph_.node(id);
    if (n.op->kind != OpClass::matmul || n.type.shape.rank() != 2) return false;
    double sources = 0;
    for (NodeId o : n.operands) sources += bytes_of(graph_.type(o));
    const double bytes = bytes_of(n.type);
    return graph_.type(n.operands[0]).shape[1] > kMostInnerDepth && bytes >= options.times * sources &&
           bytes > options.least_bytes;
  }

  // The cut of a product. None if a reader of it is neither an epilogue reduction nor a product.
  std::optional<Cut> of(NodeId product) const {
    Cut cut{.product = product, .made = {product}};
    bool epilogue_reductions = false;
    std::vector<NodeId> todo = {product};
    while (!todo.empty()) {
      const NodeId id = todo.back();
      todo.pop_back();
      if (kept_.count(id)) return std::nullopt;
      for (NodeId user : users_[static_cast<std::size_t>(id)]) {
        const ir::Node& n = graph_.node(user);
        if (!live_[static_cast<std::size_t>(user)] || cut.made.count(user)) continue;
        if (n.op->kind == OpClass::reduce) {
          epilogue_reductions = true;
        } else if (is_plain(n)) {
          cut.made.insert(user);
          todo.push_back(user);
        } else if (!add_readers(id, user, cut)) {
          return std::nullopt;
        }
      }
    }
    std::sort(cut.readers.begin(), cut.readers.end(), [](const ReadingProduct& a, const ReadingProduct& b) {
      return std::pair(a.id, a.side) < std::pair(b.id, b.side);
    });
    if (!epilogue_reductions || cut.readers.empty()) return std::nullopt;
    for (std::size_t i = 1; i < cut.readers.size(); ++i)  // a product of two of its descendants
      if (cut.readers[i].id == cut.readers[i - 1].id) return std::nullopt;
    return cut;
  }

  bool add_readers(NodeId read, NodeId user, Cut& cut) const {
    const ir::Node& n = graph_.node(user);
    if (n.op->kind == OpClass::matmul) {
      for (std::size_t side : {0u, 1u})
        if (n.operands[side] == read) cut.readers.push_back({user, side, read, false});
      return true;
    }
    if (n.op->kind != OpClass::transpose || kept_.count(storage_node(graph_, user))) return false;
    for (NodeId product : users_[static_cast<std::size_t>(user)]) {
      const ir::Node& m = graph_.node(product);
      if (!live_[static_cast<std::size_t>(product)]) continue;
      if (m.op->kind != OpClass::matmul) return false;
      for (std::size_t side : {0u, 1u})
        if (m.operands[side] == user) cut.readers.push_back({product, side, read, true});
    }
    return true;
  }

  const Graph& graph_;
  std::vector<bool> live_;
  std::vector<std::vector<NodeId>> users_;
  std::set<NodeId> kept_;  // outputs of the graph
};

class Writer final : public GraphCopy {
 public:
  Writer(const Graph& graph, const Cut& cut, Index columns)
      : GraphCopy(graph), cut_(cut), columns_(columns) {}

 private:
  bool is_written_together(NodeId id) const override {
    return std::any_of(cut_.readers.begin(), cut_.readers.end(),
                       [&](const ReadingProduct& r) { return r.id == id; });
  }

  // All of them read a piece before the next one is computed.
  bool write_together() override {
    for (const ReadingProduct& r : cut_.readers)
      if (!add(graph_.node(r.id).operands[1 - r.side]) || !add_sources(r.read)) return false;
    const Index all = graph_.type(cut_.product).shape[1];
    std::vector<std::vector<Value>> parts(cut_.readers.size());
    for (Index from = 0; from < all; from += columns_) {
      from_ = from, to_ = std::min(from + columns_, all);
      pieces_.clear();
      for (std::size_t i = 0; i < parts.size(); ++i) add_part(cut_.readers[i], parts[i]);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const ReadingProduct& r = cut_.readers[i];
      const Value whole = r.sums() ? parts[i][0] : ops::concat(parts[i], r.side == 0 ? 0 : 1);
      renamed(r.id) = ops::cast(whole, graph_.type(r.id).dtype).id;
    }
    return true;
  }

  // What the chunks of `id` are made of.
  bool add_sources(NodeId id) {
    for (NodeId o : graph_.node(id).operands)
      if (cut_.made.count(o) ? !add_sources(o) : !add(o)) return false;
    return true;
  }

  void add_part(const ReadingProduct& r, std::vector<Value>& parts) {
    const ir::LocationScope scope(out_, graph_.node(r.id).location);
    const DType dtype = graph_.type(r.id).dtype;
    Value mine = chunk(r.read), other = value(graph_.node(r.id).operands[1 - r.side]);
    if (r.transposed) mine = ops::transpose(mine, {1, 0});
    if (r.sums()) other = ops::slice_axis(other, r.side == 0 ? 0 : 1, {.start = from_, .stop = to_});
    const DType wide = r.sums() && is_float(dtype) && dtype != DType::f64 ? DType::f32 : dtype;
    const Value part = r.side == 0 ? ops::matmul(mine, other, wide) : ops::matmul(other, mine, wide);
    if (r.sums() && !parts.empty())
      parts[0] = parts[0] + part;
    else
      parts.push_back(part);
  }

  // Whether a value is made of small ones only: as a whole it would be in memory for its chunks to be read.
  bool is_light(NodeId id) const {
    const ir::Node& n = graph_.node(id);
    if (!is_plain(n) && !is_inlined(n))
      return n.type.shape.size() * kSmallerThanProduct <= graph_.type(cut_.product).shape.size();
    return std::all_of(n.operands.begin(), n.operands.end(), [&](NodeId o) { return is_light(o); });
  }

  // Columns [from_, to_) of a value as large as the product.
  Value chunk(NodeId id) {
    if (const auto known = pieces_.find(id); known != pieces_.end()) return known->second;
    const ir::Node& n = graph_.node(id);
    const ir::LocationScope scope(out_, n.location);
    Value result;
    if (id == cut_.product) {
      const Value b = ops::slice_axis(value(n.operands[1]), 1, {.start = from_, .stop = to_});
      result = {&out_, out_.add(*n.op, {renamed(n.operands[0]), b.id}, n.attrs, n.location)};
    } else if (cut_.made.count(id) || (is_plain(n) && is_light(id))) {
      std::vector<NodeId> operands;
      operands.reserve(n.operands.size());
      for (NodeId o : n.operands) operands.push_back(chunk(o).id);
      result = {&out_, out_.add(*n.op, operands, n.attrs, n.location)};
    } else {
      result = ops::slice_axis(value(id), 1, {.start = from_, .stop = to_});
    }
    return pieces_[id] = result;
  }

  const Cut& cut_;
  const Index columns_;
  Index from_ = 0, to_ = 0;
  std::map<NodeId, Value> pieces_;
};

}  // namespace

bool is_plain(const ir::Node& node) {
  return node.op->kind == OpClass::pointwise || node.op->kind == OpClass::cast;
}

std::optional<ChunkedMatmul> chunk_matmul(const Graph& graph, const ChunkOptions& options) {
  const auto cut = CutFinder(graph).run(options);
  if (!cut) return std::nullopt;
  ChunkedMatmul out;
  double sources = 0;
  for (NodeId o : graph.node(cut->product).operands) sources += bytes_of(graph.type(o));
  for (const ReadingProduct& r : cut->readers)
    out.whole_bytes = std::max(out.whole_bytes, bytes_of(graph.type(r.read)));
  const Index columns = graph.type(cut->product).shape[1];
  const auto wanted = static_cast<Index>(std::ceil(out.whole_bytes / std::max(sources, options.least_bytes)));
  const Index each = round_up(ceil_div(columns, std::clamp<Index>(wanted, 2, kMostPieces)), kColumnUnit);
  out.chunks = ceil_div(columns, each);
  if (out.chunks < 2) return std::nullopt;
  out.chunk_bytes = out.whole_bytes * static_cast<double>(each) / static_cast<double>(columns);
  auto written = Writer(graph, *cut, each).run();
  if (!written) return std::nullopt;
  out.graph = std::move(*written);
  out.made.assign(cut->made.begin(), cut->made.end());
  for (const ReadingProduct& r : cut->readers) out.readers.push_back(r.id);
  return out;
}

}  // namespace tilewright::passes
