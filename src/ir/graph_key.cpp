// Names, inputs, nodes and outputs as bytes, each with its length: every eager operation looks one up, and
// text would take half of its time.
#include "ir/graph_key.h"

#include "ir/op.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::ir {

namespace {

class Bytes {
 public:
  void add(std::int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void add(double value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    bytes_.append(text);
  }
  void add(const std::vector<Index>& list) {
    add(static_cast<std::int64_t>(list.size()));
    for (Index i : list) add(i);
  }
  void add(const Type& type) {
    add(static_cast<std::int64_t>(type.dtype));
    add(type.shape.extents());
  }
  Hash128 digest() const { return hash_bytes(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace

Hash128 key_of(const Graph& graph) {
  Bytes key;
  key.add(std::string_view(graph.name()));
  key.add(std::int64_t{graph.size()});
  for (const Node& node : graph.nodes()) {
    key.add(std::string_view(node.op->name));
    key.add(std::string_view(node.name));
    key.add(node.type);
    key.add(static_cast<std::int64_t>(node.operands.size()));
    for (NodeId o : node.operands) key.add(std::int64_t{o});
    key.add(static_cast<std::int64_t>(node.attrs.items().size()));
    for (const auto& [name, attr] : node.attrs.items()) {
      key.add(std::string_view(name));
      key.add(static_cast<std::int64_t>(attr.index()));
      std::visit([&](const auto& value) { key.add(value); }, attr);
    }
  }
  key.add(static_cast<std::int64_t>(graph.outputs().size()));
  for (NodeId o : graph.outputs()) key.add(std::int64_t{o});
  return key.digest();
}

}  // namespace tilewright::ir
