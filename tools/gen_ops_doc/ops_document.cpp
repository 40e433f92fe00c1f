// One table per family of rows, then promotion and the rewrites.
#include "gen_ops_doc/ops_document.h"

#include "ops/ops.h"
#include "ops/promote.h"
#include "ops/rows.h"
#include "passes/graph/simplify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace tilewright::tools {

namespace {

using ir::Op;
using ir::OpClass;

bool accepts(const Op& op, DType dtype) {
  std::vector<ir::Type> operands(static_cast<std::size_t>(op.arity), ir::Type{dtype, {2}});
  if (&op == &ops::kWhere) operands[0].dtype = DType::boolean;
  try {
    op.infer(operands, {});
    return true;
  } catch (const Error&) {
    return false;
  }
}

// What a pointwise row takes, found by asking it.
std::string element_types(const Op& op) {
  const bool floats = accepts(op, DType::f32);
  const bool integers = accepts(op, DType::i32);
  const bool bools = accepts(op, DType::boolean);
  if (floats && integers && bools) return "any";
  std::vector<std::string> parts;
  if (floats) parts.push_back("floats");
  if (integers) parts.push_back("integers");
  if (bools) parts.push_back("bool");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string gradient(const Op& op) {
  if (op.vjp == ir::no_gradient) return "none";
  return op.vjp == ops::zero_gradient ? "zero" : "yes";
}

std::string operand_count(const Op& op) { return op.arity < 0 ? "any" : fmt::format("{}", op.arity); }

struct Section {
  const char* title;
  const char* text;
  std::vector<OpClass> classes;
};

const Section kSections[] = {
    {"Sources", "No tensor operands.", {OpClass::input, OpClass::constant, OpClass::iota, OpClass::random}},
    {"Pointwise",
     "Operands and result have one shape, and one element type where nothing else is said. Narrow floats are "
     "computed in f32.",
     {OpClass::pointwise}},
    {"Casts", "", {OpClass::cast}},
    {"Views",
     "Elements move, none is computed; in a fused kernel they are index arithmetic.",
     {OpClass::reshape, OpClass::transpose, OpClass::expand, OpClass::slice, OpClass::pad, OpClass::concat}},
    {"Reductions, scans and sorting", "", {OpClass::reduce, OpClass::scan, OpClass::argsort}},
    {"Indexing",
     "",
     {OpClass::take, OpClass::take_along, OpClass::scatter_add, OpClass::scatter_add_along,
      OpClass::update_slice, OpClass::dynamic_slice}},
    {"Matrix product", "", {OpClass::matmul}},
};

std::string section_text(const Section& section) {
  const bool pointwise = section.classes[0] == OpClass::pointwise;
  std::string text = fmt::format("\n## {}\n\n", section.title);
  if (*section.text != 0) text += fmt::format("{}\n\n", section.text);
  text += pointwise ? "| op | operands | of | gradient | FLOPs | meaning |\n|---|---|---|---|---|---|\n"
                    : "| op | operands | gradient | meaning |\n|---|---|---|---|\n";
  for (const Op* op : ops::all_ops()) {
    bool listed = false;
    for (OpClass c : section.classes) listed = listed || op->kind == c;
    if (!listed) continue;
    if (pointwise)
      text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", op->name, operand_count(*op),
                          element_types(*op), gradient(*op), op->flops, op->doc);
    else
      text += fmt::format("| `{}` | {} | {} | {} |\n", op->name, operand_count(*op), gradient(*op), op->doc);
  }
  return text;
}

std::string promotion_text() {
  std::string text =
      "\n## Promotion\n\nThe type at which two operands of a building function meet. Beyond the table: true "
      "division and transcendental functions of integers give f32; +, -, * of bools happen in i32; a literal "
      "takes the tensor's type (an integer that an integer type does not hold is an Error; beside bools 0 "
      "and 1 are bools, other integers i32), except that a "
      "real literal beside integers gives f32; two literals, between which `where` chooses, give f32 when "
      "one "
      "is real (f64 beyond f32's range), else i32 (i64 beyond its range); sums of integers and bools are "
      "counted in i64.\n\n|  |";
  for (DType b : kAllDTypes) text += fmt::format(" {} |", name(b));
  text += "\n|---|";
  for (std::size_t i = 0; i < std::size(kAllDTypes); ++i) text += "---|";
  for (DType a : kAllDTypes) {
    text += fmt::format("\n| **{}** |", name(a));
    for (DType b : kAllDTypes) text += fmt::format(" {} |", name(ops::promote(a, b)));
  }
  return text + "\n";
}

std::string rewrites_text() {
  std::string text =
      "\n## Rewrites of `simplify`\n\nIn the order they are tried, until nothing changes. They may change "
      "how a result is rounded and, as in every reduction, the order of a sum; never what is NaN or infinite "
      "in "
      "exact arithmetic, nor the sign of a zero. Near the largest number of a type one order of a sum "
      "overflows "
      "where another does not: partial sums of what the rewrites of products choose are at most the reduced "
      "extent times as large as those written.\n\n| name | rewrite |\n|---|---|\n";
  for (std::span<const passes::Rewrite> table : passes::rewrite_tables())
    for (const passes::Rewrite& rule : table) text += fmt::format("| `{}` | {} |\n", rule.name, rule.doc);
  return text;
}

}  // namespace

std::string ops_document() {
  std::string text = fmt::format(
      "# Graph ops\n\nGenerated by `build/gen_ops_doc > docs/ops.md` from the op table (`src/ops/`): {} "
      "rows. A "
      "row is the whole op: type rule, float64 reference, gradient, lowering, cost. Softmax, layer_norm, "
      "gelu, "
      "cross_entropy and their like are compositions: plain functions in "
      "`src/ops/composites.h`.\n\nGradient: "
      "*yes* has a rule; *zero* is constant almost everywhere; *none* has no floats for "
      "operands, "
      "or is an error on the way from an input to the loss.\n\nIndices that are data lie in [0, extent); -1 "
      "does not count from the end. Outside compile() "
      "on the "
      "CPU, and everywhere with `ContextOptions::check`, one that is out of range, or a label outside the "
      "classes of a "
      "loss, is an Error with its place; elsewhere it reads zero and adds nothing.\n",
      ops::all_ops().size());
  for (const Section& section : kSections) text += section_text(section);
  return text + promotion_text() + rewrites_text();
}

}  // namespace tilewright::tools
