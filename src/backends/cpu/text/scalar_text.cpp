// Scalar statements.
#include "backends/cpu/text/scalar_text.h"

#include "backends/cpu/text/access.h"

#include <tilewright/base/error.h>

#include <fmt/ranges.h>

namespace tilewright::cpu {

using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

std::string element_at(const std::string& pointer, const Amount& offset) {
  return offset.is(0) ? "*" + pointer : fmt::format("{}[{}]", pointer, offset.str());
}

}  // namespace

std::string read_element(DType dtype, const std::string& pointer, const Amount& offset) {
  const std::string element = element_at(pointer, offset);
  return is_bool(dtype) ? fmt::format("({} != 0)", element) : element;
}

std::string write_element(DType dtype, const std::string& pointer, const Amount& offset,
                          const std::string& value) {
  return fmt::format("{} = {}{};", element_at(pointer, offset), is_bool(dtype) ? "(u8)" : "", value);
}

std::string inside_text(const std::string& coordinate, const std::string& extent, bool may_be_negative,
                        bool may_end_early) {
  if (may_be_negative && may_end_early)
    return fmt::format("{} >= 0 && {} < {}", coordinate, coordinate, extent);
  if (may_be_negative) return fmt::format("{} >= 0", coordinate);
  return may_end_early ? fmt::format("{} < {}", coordinate, extent) : "";
}

namespace {

Term scalar_term(const KernelText& k, ValueId v) {
  const ScalarText& scalar = k.read(v);
  return {.text = scalar.text, .dtype = k.kernel.type(v).dtype, .number = scalar.number};
}

// Offset of an access at `count` coordinates that start at operand `first`, and the condition under which it
// exists.
struct ScalarAddress {
  std::string pointer;
  Amount offset;
  std::string condition;
};
ScalarAddress address(const KernelText& k, const Op& op, std::size_t first) {
  const tile::ViewParam& view = k.kernel.views[static_cast<std::size_t>(op.param)];
  std::vector<Amount> indices;
  std::vector<std::string> conditions;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const ValueId index = op.operands[first + d];
    indices.push_back(k.amount(index));
    if (!op.bounded) continue;
    const Range range = k.range(index);
    const bool ends = !view.extents[d].is_constant() || range.high >= view.extents[d].value;
    const std::string inside =
        inside_text(indices[d].str(), k.dim(view.extents[d]).str(), range.low < 0, ends);
    if (!inside.empty()) conditions.push_back(inside);
  }
  if (op.masked) conditions.push_back(k.scalar(op.operands.back()));
  return {k.views[static_cast<std::size_t>(op.param)], element_offset(k, view, indices),
          fmt::format("{}", fmt::join(conditions, " && "))};
}

void print_effect(KernelText& k, const Op& op) {
  const ScalarAddress a = address(k, op, 1);
  const DType dtype = k.kernel.type(op.operands[0]).dtype;
  std::string statement = write_element(dtype, a.pointer, a.offset, k.scalar(op.operands[0]));
  if (op.kind == OpKind::atomic_add) {
    k.include("tw_cpu/strided.h");
    statement = fmt::format("atomic_add({} + {}, {}({}));", a.pointer, a.offset.str(), scalar_type(dtype),
                            k.scalar(op.operands[0]));
  }
  if (a.condition.empty())
    k.code.add(statement);
  else
    k.code.line("if ({}) {}", a.condition, statement);
}

}  // namespace

void print_scalar(KernelText& k, const Op& op) {
  if (op.kind == OpKind::store || op.kind == OpKind::scatter || op.kind == OpKind::atomic_add)
    return print_effect(k, op);
  const ValueId result = op.results[0];
  const DType dtype = k.kernel.type(result).dtype;
  std::string text;
  switch (op.kind) {
    case OpKind::constant:
      return k.set_number(result, op.number);
    case OpKind::scalar_param:
    case OpKind::program_id:
      return;  // declared where the function begins
    case OpKind::cast:
      text = cast_text(k, dtype, scalar_term(k, op.operands[0])).text;
      break;
    case OpKind::apply: {
      std::vector<Term> operands;
      operands.reserve(op.operands.size());
      for (ValueId v : op.operands) operands.push_back(scalar_term(k, v));
      text = apply_text(k, op, operands).text;
      break;
    }
    case OpKind::load:
    case OpKind::gather: {
      const ScalarAddress a = address(k, op, 0);
      text = read_element(dtype, a.pointer, a.offset);
      if (!a.condition.empty())
        text = fmt::format("{} ? {} : {}", a.condition, text, literal(dtype, op.number));
      break;
    }
    case OpKind::random:
      k.include("tw_cpu/philox.h");
      text = fmt::format("i64(philox_word({}, vu64({}))[0])", k.scalar(op.operands[0]),
                         k.scalar(op.operands[1]));
      break;
    default:
      // broadcast and reshape of a scalar to a scalar
      return k.set_same(result, op.operands[0]);
  }
  const std::string variable = k.name_scalar(result);
  k.code.line("const {} {} = {};", scalar_type(dtype), variable, text);
}

}  // namespace tilewright::cpu
