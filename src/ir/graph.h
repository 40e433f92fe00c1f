// Graph IR: tensor programs as an immutable list of nodes in topological order, one op each; equal nodes are
// shared.
#pragma once

#include <tilewright/base/dtype.h>
#include <tilewright/base/error.h>
#include <tilewright/base/shape.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tilewright::ir {

struct Op;  // ir/op.h: the row that says everything about an operation

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  friend bool operator==(const Type&, const Type&) = default;
};
std::string to_string(const Type& type);  // "bf16[32,768]", "f32[]"
// Throws Error when an extent is negative or the element count leaves no room for byte offsets in an Index.
void check_shape(const Shape& shape);

using Attr = std::variant<Index, double, std::vector<Index>, std::string>;  // a dtype is its name

// Named attributes, sorted by name.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const std::string, Attr>> items) : items_(items) {}
  bool has(const std::string& key) const { return items_.count(key) != 0; }
  // Each throws Error when the attribute is missing or holds another kind of value.
  Index integer(const std::string& key) const { return get<Index>(key, "an integer"); }
  double real(const std::string& key) const { return get<double>(key, "a real number"); }
  const std::vector<Index>& integers(const std::string& key) const {
    return get<std::vector<Index>>(key, "a list of integers");
  }
  const std::string& text(const std::string& key) const { return get<std::string>(key, "a text"); }
  DType dtype(const std::string& key) const;
  void set(const std::string& key, Attr value) { items_[key] = std::move(value); }
  const std::map<std::string, Attr>& items() const { return items_; }
  friend bool operator==(const Attrs& a, const Attrs& b);  // NaN equals NaN

 private:
  const Attr& at(const std::string& key) const;
  [[noreturn]] static void wrong_kind(const std::string& key, const char* wanted);
  template <class T>
  const T& get(const std::string& key, const char* wanted) const {
    if (const T* value = std::get_if<T>(&at(key))) return *value;
    wrong_kind(key, wanted);
  }
  std::map<std::string, Attr> items_;
};

using NodeId = int;

struct Node {
  const Op* op = nullptr;
  std::vector<NodeId> operands;
  Attrs attrs;
  Type type;
  std::string location;  // "model.cpp:41" of the user's call; not compared
  std::string name;      // of an input; otherwise empty
};

// The inputs of a graph are nodes of op `input` in the order they were added; outputs are any nodes, repeats
// allowed.
class Graph {
 public:
  explicit Graph(std::string name = "main") : name_(std::move(name)) {}

  NodeId add_input(const std::string& name, const Type& type);
  // Gives an input another name.
  void rename_input(NodeId input, std::string name) {
    nodes_[static_cast<std::size_t>(input)].name = std::move(name);
  }
  // Infers the type (throws Error at `location` on a user's mistake) and returns the existing node when an
  // equal one is already there.
  NodeId add(const Op& op, const std::vector<NodeId>& operands, const Attrs& attrs = {},
             const std::string& location = "");
  // The node that add() would return without adding one.
  std::optional<NodeId> find(const Op& op, const std::vector<NodeId>& operands,
                             const Attrs& attrs = {}) const;
  void set_outputs(std::vector<NodeId> outputs);
  // The location of nodes that are added without one of their own; see LocationScope.
  const std::string& location() const { return location_; }
  void set_location(std::string location) { location_ = std::move(location); }

  const std::string& name() const { return name_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  const Type& type(NodeId id) const { return node(id).type; }
  const std::deque<Node>& nodes() const { return nodes_; }
  const std::vector<NodeId>& inputs() const { return inputs_; }
  const std::vector<NodeId>& outputs() const { return outputs_; }
  // users()[n]: the nodes that take n as an operand, in order, repeats removed.
  std::vector<std::vector<NodeId>> users() const;
  // live()[n]: an output depends on n.
  std::vector<bool> live() const;
  friend bool operator==(const Graph& a, const Graph& b);

 private:
  std::string name_;
  std::deque<Node> nodes_;  // references to nodes, types and shapes stay valid while the graph grows
  std::vector<NodeId> inputs_;
  std::vector<NodeId> outputs_;
  std::multimap<std::uint64_t, NodeId> interned_;  // by structural hash
  std::string location_;
};

// While it lives, nodes added to `graph` without a location come from `location`: composites and gradient
// rules need not hand it through.
class LocationScope {
 public:
  LocationScope(Graph& graph, std::string location) : graph_(graph), before_(graph.location()) {
    graph_.set_location(std::move(location));
  }
  ~LocationScope() { graph_.set_location(std::move(before_)); }
  LocationScope(const LocationScope&) = delete;
  LocationScope& operator=(const LocationScope&) = delete;

 private:
  Graph& graph_;
  std::string before_;
};

// A handle for code that writes graphs with operators (ops/, gradients, composites).
struct Value {
  Graph* graph = nullptr;
  NodeId id = -1;
  const Type& type() const { return graph->type(id); }
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
};

}  // namespace tilewright::ir
