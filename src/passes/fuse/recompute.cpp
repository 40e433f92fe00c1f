// What is worth computing again, by size and structure.
#include "passes/fuse/recompute.h"

#include "passes/fuse/group_maker.h"
#include "passes/tiling/group_cost.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;
using ir::OpClass;

bool is_copy(const Graph& graph, const ir::Node& n) {
  return n.op->kind == OpClass::cast && graph.type(n.operands[0]).dtype == n.type.dtype;
}

bool is_elementwise(const ir::Node& n) {
  return n.op->kind == OpClass::pointwise || n.op->kind == OpClass::cast || n.op->kind == OpClass::random;
}

namespace {

// Reads its operands as values, wherever they come from; a gather needs its source in memory, a scan its row.
bool takes_computed_values(const ir::Node& n) {
  return is_elementwise(n) || is_inlined(n) || n.op->kind == OpClass::reduce || n.op->kind == OpClass::matmul;
}

bool widens(const Graph& graph, const ir::Node& n) {
  if (n.op->kind != OpClass::cast) return false;
  const DType from = graph.type(n.operands[0]).dtype, to = n.type.dtype;
  return is_float(from) && is_float(to) && size_bytes(from) < size_bytes(to);
}

class Search {
 public:
  Search(const Graph& graph, double times)
      : graph_(graph), times_(times), live_(graph.live()), users_(graph.users()) {
    for (NodeId o : graph.outputs()) kept_.insert(storage_node(graph, o));
    find_read_as_values();
  }

  std::set<NodeId> run() {
    while (!collect()) {
    }
    if (products_.empty()) return {};
    std::set<NodeId> again = products_;
    // Masks and the like only as parts of such values: from users back to what they are made of.
    for (auto id = light_.rbegin(); id != light_.rend(); ++id) {
      std::set<NodeId> seen;
      if (is_read_by(*id, again, seen)) again.insert(*id);
    }
    while (drop_unreadable(again) == Dropped::some) {
    }
    return again;
  }

 private:
  // False: more is kept than before.
  bool collect() {
    products_.clear(), light_.clear(), beside_.clear();
    made_of_.assign(users_.size(), {});
    const std::size_t kept = kept_.size();
    for (NodeId id = 0; id < graph_.size() && kept_.size() == kept; ++id)
      if (live_[static_cast<std::size_t>(id)]) consider(id);
    return kept_.size() == kept;
  }

  // What a node reads from memory, through views and light values, each of which knows its own.
  std::vector<NodeId> read_by(const ir::Node& n) const {
    std::vector<NodeId> from;
    for (NodeId o : n.operands) {
      const bool passed = is_inlined(graph_.node(o)) || light_.count(o);
      from = joined(from, passed ? made_of_[static_cast<std::size_t>(o)] : std::vector<NodeId>{o});
    }
    return from;
  }

  void consider(NodeId id) {
    const ir::Node& n = graph_.node(id);
    std::vector<NodeId>& made_of = made_of_[static_cast<std::size_t>(id)];
    if (is_inlined(n)) made_of = read_by(n);
    if (kept_.count(id) || !is_read_as_value_[static_cast<std::size_t>(id)] || is_copy(graph_, n)) return;
    const std::vector<NodeId> from = read_by(n);
    const bool of_product =
        std::any_of(from.begin(), from.end(), [&](NodeId s) { return products_.count(s) != 0; });
    double source_bytes = 0;
    for (NodeId s : from) source_bytes += bytes_of(graph_.type(s));
    const bool much_larger = bytes_of(graph_.type(id)) >= times_ * source_bytes;
    if (n.op->kind == OpClass::matmul) {
      const Shape& a = graph_.type(n.operands[0]).shape;
      const Index depth = a[a.rank() - 1];
      const bool deep = depth > kMostInnerDepth;
      const bool larger = deep ? bytes_of(graph_.type(id)) > source_bytes : much_larger;
      std::set<NodeId> seen;
      if (!larger || depth == 0 || (deep && !gives_epilogue_reductions_alone(id, seen))) return;
      // The larger of nested products is computed again, from the smaller ones in memory.
      for (NodeId s : from)
        if (products_.count(s)) kept_.insert(s);
      if (!of_product) products_.insert(id);
    } else if (is_elementwise(n)) {
      if (of_product && !reads_as_much_beside(id, from))
        products_.insert(id);
      else if (much_larger)
        light_.insert(id), made_of = from;
    }
  }

  // What is read beside products, by the value and by those that it is made of, is as large as the value, or
  // twice as large where memory is to be saved: the value could be read instead. A residual stream's gradient
  // is such a sum, and each sum of a chain of them would read all those before it.
  bool reads_as_much_beside(NodeId id, const std::vector<NodeId>& from) {
    double beside = 0;
    for (NodeId s : from) beside += products_.count(s) != 0 ? beside_[s] : bytes_of(graph_.type(s));
    beside_[id] = beside;
    return beside >= (times_ > 1 ? 2 : 1) * bytes_of(graph_.type(id));
  }

  // Every user takes it as a value, through views or not. Users come after what they read.
  void find_read_as_values() {
    is_read_as_value_.assign(users_.size(), true);
    for (std::size_t id = users_.size(); id-- > 0;)
      for (NodeId user : users_[id]) {
        const auto at = static_cast<std::size_t>(user);
        const ir::Node& n = graph_.node(user);
        if (live_[at] && (!takes_computed_values(n) || (is_inlined(n) && !is_read_as_value_[at])))
          is_read_as_value_[id] = false;
      }
  }

  // Loops that reduce it are the only ones that may have a deep product inside; one of them does for all.
  bool gives_epilogue_reductions_alone(NodeId id, std::set<NodeId>& seen) const {
    const auto& users = users_[static_cast<std::size_t>(id)];
    return !kept_.count(id) && std::all_of(users.begin(), users.end(), [&](NodeId user) {
      const ir::Node& n = graph_.node(user);
      return !live_[static_cast<std::size_t>(user)] || n.op->kind == OpClass::reduce ||
             ((is_elementwise(n) || is_inlined(n)) &&
              (!seen.insert(user).second || gives_epilogue_reductions_alone(user, seen)));
    });
  }

  bool is_read_by(NodeId id, const std::set<NodeId>& readers, std::set<NodeId>& seen) const {
    const auto& users = users_[static_cast<std::size_t>(id)];
    return std::any_of(users.begin(), users.end(), [&](NodeId user) {
      return readers.count(user) != 0 ||
             (is_inlined(graph_.node(user)) && seen.insert(user).second && is_read_by(user, readers, seen));
    });
  }

  // A kernel that cannot compute what it reads has it stored: the nearest of it, and so on backwards.
  enum class Dropped : bool { none, some };
  Dropped drop_unreadable(std::set<NodeId>& again) const {
    Dropped dropped = Dropped::none;
    for (NodeId id = graph_.size(); id-- > 0;) {
      const ir::Node& n = graph_.node(id);
      if (!live_[static_cast<std::size_t>(id)] || again.count(id) || is_inlined(n)) continue;
      std::set<NodeId> nodes{id};
      add_recomputed(graph_, again, nodes);
      if (nodes.size() == 1) continue;
      if (std::holds_alternative<LoopNest>(build_loop_nest(graph_, {{nodes.begin(), nodes.end()}, {id}})))
        continue;
      for (NodeId s : sources_of(graph_, id, {})) again.erase(s);
      dropped = Dropped::some;
      ++id;  // once more, with less
    }
    return dropped;
  }

  const Graph& graph_;
  double times_;
  std::vector<bool> live_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<bool> is_read_as_value_;
  std::set<NodeId> kept_;  // outputs of the graph
  std::set<NodeId> products_, light_;
  std::map<NodeId, double> beside_;           // bytes that products read beside products
  std::vector<std::vector<NodeId>> made_of_;  // of views and light values: the memory behind them; sorted
};

// Every view and every value that is computed again is passed once, by however many ways it is reached.
void add_sources(const Graph& graph, NodeId id, const std::set<NodeId>& again, std::set<NodeId>& out,
                 std::set<NodeId>& through) {
  for (NodeId o : graph.node(id).operands) {
    if (again.count(o) == 0 && !is_inlined(graph.node(o)))
      out.insert(o);
    else if (through.insert(o).second)
      add_sources(graph, o, again, out, through);
  }
}

}  // namespace

std::set<NodeId> sources_of(const Graph& graph, NodeId id, const std::set<NodeId>& again) {
  std::set<NodeId> out, through;
  add_sources(graph, id, again, out, through);
  return out;
}

void add_recomputed(const Graph& graph, const std::set<NodeId>& again, std::set<NodeId>& nodes) {
  if (again.empty()) return;
  std::set<NodeId> out, through;
  for (NodeId id : nodes) add_sources(graph, id, again, out, through);
  for (NodeId id : through)
    if (again.count(id)) nodes.insert(id);
}

double slowest(double stored_bytes, const tile::Target& target) {
  constexpr double kLittle = 1.0 / 32, kMuch = 1.0 / 8;
  if (target.memory_bytes == 0) return stored_bytes < kMany ? 2 : 4;
  const double share = stored_bytes / static_cast<double>(target.memory_bytes);
  return share < kLittle ? 1 : share < kMuch ? 2 : 4;
}

std::set<NodeId> recomputable(const Graph& graph, double times) { return Search(graph, times).run(); }

namespace {

// Values that are made of products, joined with the ones that they are made of.
class Parts {
 public:
  Parts(const Graph& graph, const std::set<NodeId>& again) : graph_(graph), again_(again) {
    for (NodeId id : again) {
      std::vector<NodeId> of;
      for (NodeId s : sources_of(graph, id, {}))
        if (part_.count(s)) of.push_back(s);
      if (of.empty() && graph.node(id).op->kind != OpClass::matmul) continue;
      part_[id] = id;
      for (NodeId s : of) part_[first_of(s)] = first_of(id);
    }
  }

  std::vector<std::set<NodeId>> run() {
    std::map<NodeId, std::set<NodeId>> parts;
    for (const auto& [id, next] : part_) parts[first_of(id)].insert(id);
    std::map<std::string, std::set<NodeId>> kinds;
    for (const auto& [first, part] : parts) kinds[kind_of(part)].insert(part.begin(), part.end());
    std::vector<std::set<NodeId>> out;
    for (const auto& [kind, part] : kinds) {
      out.push_back(part);
      add_recomputed(graph_, again_, out.back());
    }
    return out;
  }

 private:
  NodeId first_of(NodeId id) const {
    while (part_.at(id) != id) id = part_.at(id);
    return id;
  }

  // Its operations and their types, in order.
  std::string kind_of(const std::set<NodeId>& part) const {
    std::string out;
    for (NodeId id : part)
      out += fmt::format("{} {} {};", graph_.node(id).op->name, name(graph_.type(id).dtype),
                         fmt::join(graph_.type(id).shape.extents(), "x"));
    return out;
  }

  const Graph& graph_;
  const std::set<NodeId>& again_;
  std::map<NodeId, NodeId> part_;  // of a value: another one of its part, or itself
};

}  // namespace

std::vector<std::set<NodeId>> independent_parts(const Graph& graph, const std::set<NodeId>& again) {
  return Parts(graph, again).run();
}

std::set<NodeId> widening_casts(const Graph& graph) {
  const std::vector<std::vector<NodeId>> users = graph.users();
  const std::vector<bool> live = graph.live();
  std::vector<bool> is_output(users.size());
  for (NodeId o : graph.outputs()) is_output[static_cast<std::size_t>(storage_node(graph, o))] = true;
  // Whether arithmetic and reductions alone read it, through views or not. Users come after what they read.
  std::vector<bool> by_arithmetic(users.size(), true);
  std::set<NodeId> out;
  for (std::size_t id = users.size(); id-- > 0;) {
    for (NodeId user : users[id]) {
      const ir::Node& n = graph.node(user);
      const bool reads = is_inlined(n) ? by_arithmetic[static_cast<std::size_t>(user)]
                                       : is_elementwise(n) || n.op->kind == OpClass::reduce;
      if (live[static_cast<std::size_t>(user)] && !reads) by_arithmetic[id] = false;
    }
    const auto node = static_cast<NodeId>(id);
    if (live[id] && !is_output[id] && by_arithmetic[id] && widens(graph, graph.node(node))) out.insert(node);
  }
  return out;
}

}  // namespace tilewright::passes
