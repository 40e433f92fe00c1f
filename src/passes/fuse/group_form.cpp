// Numbers a group's nodes and hashes what they are.
#include "passes/fuse/group_form.h"

#include "ops/checkpoint.h"
#include "ops/stored_rows.h"

#include <cmath>
#include <limits>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;

namespace {

// What begins a part of a group's code.
enum Mark : std::uint64_t { kMember = 1, kView, kBuffer, kOutputs };

void add_attr(Hasher& hasher, const ir::Attr& attr) {
  hasher.add(attr.index());
  if (const auto* i = std::get_if<Index>(&attr)) hasher.add(*i);
  if (const auto* d = std::get_if<double>(&attr))
    hasher.add(std::isnan(*d) ? std::numeric_limits<double>::quiet_NaN() : *d);
  if (const auto* v = std::get_if<std::vector<Index>>(&attr)) hasher.add(*v);
  if (const auto* s = std::get_if<std::string>(&attr)) hasher.add(*s);
}

void add_type(Hasher& hasher, const ir::Type& type) { hasher.add(type.dtype).add(type.shape.extents()); }

// What a buffer is to its readers.
std::uint64_t hash_of_buffer(const ir::Node& node) {
  Hasher hasher;
  add_type(hasher, node.type);
  if (ops::has_pitch(node)) hasher.add(node.attrs.integer(ops::kPitch));
  return hasher.digest().low;
}

enum class Attributes : bool { none, all };

std::uint64_t hash_of(const ir::Node& node, Attributes attributes) {
  Hasher hasher;
  hasher.add(std::string_view(node.op->name)).add(node.operands.size());
  for (const auto& [key, attr] : node.attrs.items()) {
    if (attributes == Attributes::none || (node.op == &ops::kCheckpoint && key == ops::kCall)) continue;
    hasher.add(key);
    add_attr(hasher, attr);
  }
  add_type(hasher, node.type);
  return hasher.digest().low;
}

// Whether all that reads a node are random numbers, as their key, or integers that are such keys.
std::vector<bool> made_into_keys(const Graph& graph) {
  std::vector<bool> out(static_cast<std::size_t>(graph.size()), true);
  for (NodeId o : graph.outputs()) out[static_cast<std::size_t>(o)] = false;
  for (NodeId id = graph.size(); id-- > 0;) {
    const ir::Node& n = graph.node(id);
    const bool integer = n.type.dtype == DType::i64 && n.type.shape.rank() == 0 &&
                         (n.op->kind == ir::OpClass::pointwise || is_inlined(n));
    const bool passes_on = integer && out[static_cast<std::size_t>(id)];
    for (NodeId o : n.operands)
      if (!passes_on && n.op->kind != ir::OpClass::random) out[static_cast<std::size_t>(o)] = false;
  }
  return out;
}

}  // namespace

GroupForms::GroupForms(const Graph& graph)
    : graph_(graph),
      numbers_(static_cast<std::size_t>(graph.size()), -1),
      is_key_number_(made_into_keys(graph)) {
  nodes_.reserve(numbers_.size());
  buffers_.reserve(numbers_.size());
  for (const ir::Node& node : graph.nodes()) {
    const std::size_t at = nodes_.size();
    is_key_number_[at] = is_key_number_[at] && node.op->kind == ir::OpClass::constant;
    nodes_.push_back(hash_of(node, is_key_number_[at] ? Attributes::none : Attributes::all));
    buffers_.push_back(hash_of_buffer(node));
  }
}

void GroupForms::number(NodeId id) {
  numbers_[static_cast<std::size_t>(id)] = static_cast<int>(numbered_.size());
  numbered_.push_back(id);
}

// What an operand is made of stands in the code before it, each part once.
void GroupForms::add_operands(NodeId id) {
  for (NodeId o : graph_.node(id).operands) {
    const auto at = static_cast<std::size_t>(o);
    if (numbers_[at] >= 0) continue;
    number(o);
    if (is_inlined(graph_.node(o)))
      add_node(o, kView);
    else
      code_.insert(code_.end(), {kBuffer, static_cast<std::uint64_t>(numbers_[at]), buffers_[at]});
  }
}

void GroupForms::add_node(NodeId id, std::uint64_t mark) {
  add_operands(id);
  const auto at = static_cast<std::size_t>(id);
  code_.insert(code_.end(), {mark, static_cast<std::uint64_t>(numbers_[at]), nodes_[at]});
  if (is_key_number_[at]) keys_numbers_.push_back(hash_of(graph_.node(id), Attributes::all));
  for (NodeId o : graph_.node(id).operands)
    code_.push_back(static_cast<std::uint64_t>(numbers_[static_cast<std::size_t>(o)]));
}

Hash128 GroupForms::price_key_of(const Group& group) {
  for (NodeId id : numbered_) numbers_[static_cast<std::size_t>(id)] = -1;
  numbered_.clear();
  code_.clear();
  keys_numbers_.clear();
  for (NodeId id : group.nodes) number(id);
  for (NodeId id : group.nodes) add_node(id, kMember);
  code_.insert(code_.end(), {kOutputs, group.epilogue_reductions ? std::uint64_t{1} : 0});
  for (NodeId id : group.outputs)
    code_.push_back(static_cast<std::uint64_t>(numbers_[static_cast<std::size_t>(id)]));
  return hash_bytes(code_.data(), code_.size() * sizeof code_[0]);
}

GroupForm GroupForms::of(const Group& group) {
  const Hash128 price_key = price_key_of(group);
  code_.insert(code_.end(), keys_numbers_.begin(), keys_numbers_.end());
  return {hash_bytes(code_.data(), code_.size() * sizeof code_[0]), price_key, numbered_};
}

}  // namespace tilewright::passes
