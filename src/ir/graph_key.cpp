// Names, inputs, nodes and outputs as bytes, each with its length: every eager operation looks one up, and
// text would take half of its time.
#include "ir/graph_key.h"

#include "ir/op.h"

#include <algorithm>
#include <array>
#include <bit>
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
  void add(DType dtype, int rank) {
    add(static_cast<std::int64_t>(dtype));
    add(std::int64_t{rank});
  }
  void add(const Type& type) {
    add(static_cast<std::int64_t>(type.dtype));
    add(type.shape.extents());
  }
  Hash128 digest() const { return hash_bytes(bytes_); }

 private:
  std::string bytes_;
};

// Attributes that hold sizes and numbers; the others say what an op does.
bool is_measure(std::string_view name) {
  constexpr std::array<std::string_view, 7> kMeasures = {"shape", "start",  "step", "low",
                                                         "high",  "offset", "value"};
  return std::find(kMeasures.begin(), kMeasures.end(), name) != kMeasures.end();
}

enum class Measures : std::uint8_t { kept, left_out };

Hash128 digest_of(const Graph& graph, Measures measures) {
  const bool all = measures == Measures::kept;
  Bytes key;
  key.add(std::string_view(graph.name()));
  key.add(std::int64_t{graph.size()});
  for (const Node& node : graph.nodes()) {
    key.add(std::string_view(node.op->name));
    key.add(std::string_view(node.name));
    if (all)
      key.add(node.type);
    else
      key.add(node.type.dtype, node.type.shape.rank());
    key.add(static_cast<std::int64_t>(node.operands.size()));
    for (NodeId o : node.operands) key.add(std::int64_t{o});
    key.add(static_cast<std::int64_t>(node.attrs.items().size()));
    for (const auto& [name, attr] : node.attrs.items()) {
      key.add(std::string_view(name));
      key.add(static_cast<std::int64_t>(attr.index()));
      if (all || !is_measure(name)) std::visit([&](const auto& value) { key.add(value); }, attr);
    }
  }
  key.add(static_cast<std::int64_t>(graph.outputs().size()));
  for (NodeId o : graph.outputs()) key.add(std::int64_t{o});
  return key.digest();
}

}  // namespace

Hash128 key_of(const Graph& graph) { return digest_of(graph, Measures::kept); }
Hash128 form_of(const Graph& graph) { return digest_of(graph, Measures::left_out); }

std::vector<Measure> measures_of(const Graph& graph) {
  std::vector<Measure> out;
  const auto add = [&](Index i) { out.push_back({DType::i64, i}); };
  for (const Node& node : graph.nodes()) {
    for (Index extent : node.type.shape) add(extent);
    for (const auto& [name, attr] : node.attrs.items()) {
      if (!is_measure(name)) continue;
      if (const auto* integer = std::get_if<Index>(&attr)) add(*integer);
      if (const auto* real = std::get_if<double>(&attr))
        out.push_back({DType::f64, std::bit_cast<Index>(*real)});
      if (const auto* list = std::get_if<std::vector<Index>>(&attr)) {
        add(static_cast<Index>(list->size()));
        for (Index i : *list) add(i);
      }
      if (const auto* text = std::get_if<std::string>(&attr))
        for (char c : *text) add(c);
    }
  }
  return out;
}

}  // namespace tilewright::ir
