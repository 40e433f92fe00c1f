// Types of operations in words.
#include "tensor/precision_text.h"

#include "ir/op.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

namespace {

using ir::OpClass;

bool computes(const ir::Graph& graph, const ir::Node& n) {
  switch (n.op->kind) {
    case OpClass::pointwise:
    case OpClass::reduce:
    case OpClass::scan:
    case OpClass::scatter_add:
    case OpClass::scatter_add_along:
      return is_float(n.type.dtype) || std::any_of(n.operands.begin(), n.operands.end(), [&](ir::NodeId o) {
               return is_float(graph.type(o).dtype);
             });
    default:
      return false;
  }
}

bool is_float_product(const ir::Graph& graph, const ir::Node& n) {
  return n.op->kind == OpClass::matmul && is_float(graph.type(n.operands[0]).dtype);
}

// The type in which it is computed; of a comparison that of what is compared.
DType computed_in(const ir::Graph& graph, const ir::Node& n) {
  DType widest = is_float(n.type.dtype) ? compute_dtype(n.type.dtype) : DType::f32;
  for (const ir::NodeId o : n.operands)
    if (graph.type(o).dtype == DType::f64) widest = DType::f64;
  return widest;
}

// The type of a factor's values, which are 8-bit floats where the factor is such in a wider type
// (passes/graph/converted_factors.h).
DType values_of(const ir::Graph& graph, ir::NodeId factor) {
  ir::NodeId id = factor;
  for (const ir::Node* n = &graph.node(id);; n = &graph.node(id)) {
    const OpClass kind = n->op->kind;
    const bool is_view = kind == OpClass::reshape || kind == OpClass::transpose || kind == OpClass::expand ||
                         kind == OpClass::slice || kind == OpClass::pad;
    if (kind != OpClass::cast && !is_view) return graph.type(factor).dtype;
    id = n->operands[0];
    if (is_f8(graph.type(id).dtype)) return graph.type(id).dtype;
  }
}

std::string product_text(const ir::Graph& graph, const ir::Node& n) {
  const DType operands = graph.type(n.operands[0]).dtype;
  const DType left = values_of(graph, n.operands[0]), right = values_of(graph, n.operands[1]);
  std::string text = fmt::format("{} {}", n.op->name, name(left));
  if (right != left) text += fmt::format(" x {}", name(right));  // 8-bit floats of two types
  if (left != operands) text += fmt::format(" as {}", name(operands));
  if (compute_dtype(operands) == operands) return text;
  text += fmt::format(", sums {}", name(compute_dtype(operands)));
  if (is_narrow_float(n.type.dtype)) text += fmt::format(", result {}", name(n.type.dtype));
  return text;
}

void add_once(std::vector<std::string>& all, std::string text) {
  if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
}

}  // namespace

void check_precision(Precision precision, const Location& where) {
  if (name(precision) != "?") return;
  throw Error(
      fmt::format("compile: CompileOptions::precision is {}, which is none: take f32, tf32, bf16, f16, "
                  "fp8 or fp8_block",
                  static_cast<int>(precision)),
      where);
}

bool has_f32_product(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [&](ir::NodeId id) {
    const ir::Node& n = graph.node(id);
    return n.op->kind == OpClass::matmul && graph.type(n.operands[0]).dtype == DType::f32;
  });
}

std::string types_text(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes) {
  std::vector<std::string> products;
  std::vector<std::string> in_f32, in_f64;
  for (const ir::NodeId id : nodes) {
    const ir::Node& n = graph.node(id);
    if (is_float_product(graph, n))
      add_once(products, product_text(graph, n));
    else if (computes(graph, n))
      add_once(computed_in(graph, n) == DType::f64 ? in_f64 : in_f32, std::string(n.op->name));
  }
  std::string text = fmt::format("{}", fmt::join(products, "; "));
  for (const auto& [ops, dtype] : {std::pair(&in_f32, DType::f32), std::pair(&in_f64, DType::f64)})
    if (!ops->empty())
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", fmt::join(*ops, " "), name(dtype));
  return text;
}

std::string precision_text(const ir::Graph& graph, Precision precision) {
  const std::vector<bool> live = graph.live();
  const bool is_tf32 = precision == Precision::tf32;
  const DType type = is_fp8(precision) ? DType::bf16 : parse_dtype(name(precision)).value_or(DType::f32);
  int meant = 0, eight = 0, other = 0;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    const ir::Node& n = graph.node(id);
    if (!live[static_cast<std::size_t>(id)] || !is_float_product(graph, n)) continue;
    const DType own = is_fp8(precision) ? values_of(graph, n.operands[0]) : graph.type(n.operands[0]).dtype;
    (is_fp8(precision) && is_f8(own) ? eight : own == type ? meant : other) += 1;
  }
  const auto products = [](int n) { return fmt::format("{} product{}", n, n == 1 ? "" : "s"); };
  std::string text = fmt::format("{}: ", name(precision));
  if (is_fp8(precision))
    text += fmt::format("{} of 8-bit floats with {}, ", products(eight),
                        precision == Precision::fp8 ? "a scale for each operand" : "scales of blocks");
  text += fmt::format("{} of {} ", products(meant), name(type));
  text += is_tf32 ? "that may be rounded to tf32: what kernels do, they say" : "with sums of f32";
  if (other > 0) text += fmt::format("; {} of other types", products(other));
  return text;
}

}  // namespace tilewright::detail
