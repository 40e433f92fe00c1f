// Graph building: type inference at the door, equal nodes shared.
#include "ir/graph.h"

#include "ir/op.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace tilewright::ir {

namespace {

// NaN equals NaN whatever its payload; -0 differs from +0, they are different constants.
bool same_number(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool same_attr(const Attr& a, const Attr& b) {
  const double* x = std::get_if<double>(&a);
  const double* y = std::get_if<double>(&b);
  return x != nullptr && y != nullptr ? same_number(*x, *y) : a == b;
}

// Mixes 64 bits into a running hash (the finalizer of SplitMix64).
void mix(std::uint64_t& hash, std::uint64_t bits) {
  hash += 0x9E3779B97F4A7C15 + bits;
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EB;
  hash ^= hash >> 31;
}

void mix(std::uint64_t& hash, std::string_view text) {
  mix(hash, text.size());
  for (char c : text) mix(hash, static_cast<std::uint64_t>(c));
}

void mix(std::uint64_t& hash, const Attr& attr) {
  mix(hash, attr.index());
  if (const auto* i = std::get_if<Index>(&attr)) mix(hash, static_cast<std::uint64_t>(*i));
  if (const auto* d = std::get_if<double>(&attr))
    mix(hash, std::isnan(*d) ? std::uint64_t{1} : std::bit_cast<std::uint64_t>(*d));
  if (const auto* v = std::get_if<std::vector<Index>>(&attr))
    for (Index i : *v) mix(hash, static_cast<std::uint64_t>(i));
  if (const auto* s = std::get_if<std::string>(&attr)) mix(hash, std::string_view(*s));
}

std::uint64_t structural_hash(const Op& op, const std::vector<NodeId>& operands, const Attrs& attrs) {
  std::uint64_t hash = 0;
  mix(hash, op.name);
  for (NodeId id : operands) mix(hash, static_cast<std::uint64_t>(id));
  for (const auto& [key, value] : attrs.items()) {
    mix(hash, std::string_view(key));
    mix(hash, value);
  }
  return hash;
}

Type infer_at(const Op& op, const std::vector<Type>& types, const Attrs& attrs, const std::string& location) {
  try {
    if (op.arity >= 0 && op.arity != static_cast<int>(types.size()))
      throw Error(fmt::format("{}: wants {} operands, got {}", op.name, op.arity, types.size()));
    Type type = op.infer(types, attrs);
    check_shape(type.shape);
    return type;
  } catch (const Error& error) {
    std::string message = error.what();
    if (!message.starts_with(op.name)) message = fmt::format("{}: {}", op.name, message);
    throw Error(location.empty() ? message : fmt::format("{} (at {})", message, location));
  }
}

}  // namespace

std::string to_string(const Type& type) {
  return fmt::format("{}{}", name(type.dtype), to_string(type.shape));
}

void check_shape(const Shape& shape) {
  Index room = Index{1} << 56;  // 8-byte elements and sums of two offsets still fit
  for (Index extent : shape) {
    if (extent < 0) throw Error(fmt::format("shape {} has a negative extent", to_string(shape)));
    if (extent > 1) room /= extent;
    if (room == 0)
      throw Error(fmt::format("shape {} has too many elements for any memory", to_string(shape)));
  }
}

const Attr& Attrs::at(const std::string& key) const {
  const auto found = items_.find(key);
  if (found == items_.end()) throw Error(fmt::format("attribute {} is missing", key));
  return found->second;
}

void Attrs::wrong_kind(const std::string& key, const char* wanted) {
  throw Error(fmt::format("attribute {} must be {}", key, wanted));
}

DType Attrs::dtype(const std::string& key) const {
  const std::string& written = text(key);
  const auto dtype = parse_dtype(written);
  if (!dtype) throw Error(fmt::format("attribute {}: {} is not an element type", key, written));
  return *dtype;
}

bool operator==(const Attrs& a, const Attrs& b) {
  if (a.items_.size() != b.items_.size()) return false;
  auto at = b.items_.begin();
  for (const auto& [key, value] : a.items_) {
    if (key != at->first || !same_attr(value, at->second)) return false;
    ++at;
  }
  return true;
}

NodeId Graph::add_input(const std::string& name, const Type& type) {
  check_shape(type.shape);
  const NodeId id = size();
  nodes_.push_back({.op = &input_op, .type = type, .location = location_, .name = name});
  inputs_.push_back(id);
  return id;
}

std::optional<NodeId> Graph::find(const Op& op, const std::vector<NodeId>& operands,
                                  const Attrs& attrs) const {
  const std::uint64_t hash = structural_hash(op, operands, attrs);
  for (auto [at, end] = interned_.equal_range(hash); at != end; ++at) {
    const Node& node = this->node(at->second);
    if (node.op == &op && node.operands == operands && node.attrs == attrs) return at->second;
  }
  return std::nullopt;
}

NodeId Graph::add(const Op& op, const std::vector<NodeId>& operands, const Attrs& attrs,
                  const std::string& location) {
  const std::string& where = location.empty() ? location_ : location;
  std::vector<Type> types;
  types.reserve(operands.size());
  for (NodeId id : operands) {
    TW_CHECK(id >= 0 && id < size(), "an operand is a node of the same graph");
    types.push_back(type(id));
  }
  if (const std::optional<NodeId> known = find(op, operands, attrs)) return *known;
  const NodeId id = size();
  nodes_.push_back({&op, operands, attrs, infer_at(op, types, attrs, where), where, ""});
  interned_.emplace(structural_hash(op, operands, attrs), id);
  return id;
}

void Graph::set_outputs(std::vector<NodeId> outputs) {
  for (NodeId id : outputs) TW_CHECK(id >= 0 && id < size(), "an output is a node of the graph");
  outputs_ = std::move(outputs);
}

std::vector<std::vector<NodeId>> Graph::users() const {
  std::vector<std::vector<NodeId>> users(nodes_.size());
  for (NodeId id = 0; id < size(); ++id)
    for (NodeId operand : node(id).operands) {
      auto& list = users[static_cast<std::size_t>(operand)];
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  return users;
}

std::vector<bool> Graph::live() const {
  std::vector<bool> live(nodes_.size(), false);
  for (NodeId id : outputs_) live[static_cast<std::size_t>(id)] = true;
  for (NodeId id = size() - 1; id >= 0; --id)
    if (live[static_cast<std::size_t>(id)])
      for (NodeId operand : node(id).operands) live[static_cast<std::size_t>(operand)] = true;
  return live;
}

bool operator==(const Graph& a, const Graph& b) {
  if (a.name_ != b.name_ || a.inputs_ != b.inputs_ || a.outputs_ != b.outputs_ || a.size() != b.size())
    return false;
  for (NodeId id = 0; id < a.size(); ++id) {
    const Node& x = a.node(id);
    const Node& y = b.node(id);
    if (x.op != y.op || x.operands != y.operands || !(x.attrs == y.attrs) || x.type != y.type ||
        x.name != y.name)
      return false;
  }
  return true;
}

}  // namespace tilewright::ir
