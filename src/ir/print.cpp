// The text form of a graph: one op a line, sorted attributes, the type after a colon.
//
//   graph @mlp(%x: bf16[32,768], %w: bf16[768,3072]) -> bf16[32,3072] {
//     %2 = matmul %x, %w : bf16[32,3072]
//     %3 = tanh %2 : bf16[32,3072]
//     return %3
//   }
//
// Nodes are named by their number, inputs by their name where that is a word of its own; otherwise an input
// is written `%0 "its name": f32[4]`. An input that was added after other nodes keeps its place as node 7
// with
// `%x: f32[4] at 7`.
#include "ir/lexis.h"
#include "ir/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

namespace tilewright::ir {

namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string word_or_quoted(const std::string& text) { return is_word(text) ? text : in_quotes(text); }

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);  // the shortest that reads back
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string attr_text(const Attr& attr) {
  if (const auto* i = std::get_if<Index>(&attr)) return fmt::format("{}", *i);
  if (const auto* d = std::get_if<double>(&attr)) return real_text(*d);
  if (const auto* v = std::get_if<std::vector<Index>>(&attr)) return fmt::format("[{}]", fmt::join(*v, ","));
  const std::string& text = std::get<std::string>(attr);
  return is_number_word(text) ? in_quotes(text) : word_or_quoted(text);
}

std::string attrs_text(const Attrs& attrs) {
  if (attrs.items().empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [key, value] : attrs.items())
    parts.push_back(fmt::format("{}={}", word_or_quoted(key), attr_text(value)));
  return fmt::format(" {{{}}}", fmt::join(parts, ", "));
}

// "%x" for inputs whose name can stand alone, "%7" for all else.
std::vector<std::string> ssa_names(const Graph& graph) {
  std::map<std::string, int> uses;
  for (NodeId id : graph.inputs()) ++uses[graph.node(id).name];
  std::vector<std::string> names;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const bool named = node.op == &input_op && is_word(node.name) && uses[node.name] == 1;
    names.push_back(named ? fmt::format("%{}", node.name) : fmt::format("%{}", id));
  }
  return names;
}

}  // namespace

std::string print(const Graph& graph) {
  const std::vector<std::string> names = ssa_names(graph);
  auto name_of = [&](NodeId id) { return names[static_cast<std::size_t>(id)]; };
  std::vector<std::string> inputs, results, outputs;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const NodeId id = graph.inputs()[i];
    const std::string& own = graph.node(id).name;
    const std::string label =
        name_of(id) == fmt::format("%{}", own) ? "" : fmt::format(" {}", in_quotes(own));
    const std::string place = id == static_cast<NodeId>(i) ? "" : fmt::format(" at {}", id);
    inputs.push_back(fmt::format("{}{}: {}{}", name_of(id), label, to_string(graph.type(id)), place));
  }
  for (NodeId id : graph.outputs()) {
    results.push_back(to_string(graph.type(id)));
    outputs.push_back(name_of(id));
  }
  std::string text =
      fmt::format("graph @{}({}) -> {} {{\n", word_or_quoted(graph.name()), fmt::join(inputs, ", "),
                  results.size() == 1 ? results[0] : fmt::format("({})", fmt::join(results, ", ")));
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == &input_op) continue;
    std::vector<std::string> operands;
    operands.reserve(node.operands.size());
    for (NodeId operand : node.operands) operands.push_back(name_of(operand));
    text += fmt::format("  {} = {}{}{}{} : {}\n", name_of(id), node.op->name, operands.empty() ? "" : " ",
                        fmt::join(operands, ", "), attrs_text(node.attrs), to_string(node.type));
  }
  return text + fmt::format("  return{}{}\n}}\n", outputs.empty() ? "" : " ", fmt::join(outputs, ", "));
}

}  // namespace tilewright::ir
