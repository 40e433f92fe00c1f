// The scalars of a kernel, one by one.
#include "backends/cuda/analysis/overlap.h"
#include "backends/cuda/print/pipeline.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::IndexText;
using printer::range_of;
using printer::Step;
using tile::Op;
using tile::OpKind;

// Stores of single scalars: one thread of the program does them.
void ScalarPrinter::print_scalar_effect(const Op& op) {
  const DType dtype = kernel_.views[static_cast<std::size_t>(op.param)].dtype;
  const std::string view = names_.view(op.param);
  const TypedText value = expressions_.scalar(op.operands[0]);
  PrintedLoop whole{};
  whole.layout = ThreadLayout{};
  std::string guard = k_.elements().effect_guard(whole), offset;
  if (op.kind == OpKind::store) {
    const Access access(kernel_, ranges_, op);
    offset = expressions_.base_offset(access).str();
    guard = join_conditions({guard, expressions_.inside(access)});
  } else {
    std::vector<TypedText> indices;
    const int rank = kernel_.views[static_cast<std::size_t>(op.param)].rank();
    indices.reserve(static_cast<std::size_t>(rank));
    for (int d = 0; d < rank; ++d)
      indices.push_back(expressions_.scalar(op.operands[static_cast<std::size_t>(d) + 1]));
    offset = expressions_.view_offset(op.param, indices).str();
    if (op.masked) guard = join_conditions({guard, wrapped(expressions_.scalar(op.operands.back()))});
  }
  k_.elements().print_wait_for_readers({&op}, whole.layout, false);
  need("convert");
  const std::string stored =
      fmt::format("cast<{}>({})", dtype, expressions_.as_type(value, compute_dtype(dtype)));
  if (op.kind == OpKind::atomic_add) {
    need("atomic");
    out_.line("if ({}) atomic_add({} + {}, {});", guard, view, offset, stored);
  } else {
    out_.line("if ({}) {}[{}] = {};", guard, view, offset, stored);
  }
}

void ScalarPrinter::index_scalars() {
  for (const Step& step : loops_.steps)
    if (step.kind == Step::Kind::scalar && !step.op->results.empty())
      definitions_[step.op->results[0]] = step.op;
}

const Op* ScalarPrinter::scalar_definition(ValueId v) const {
  const auto found = definitions_.find(v);
  return found == definitions_.end() ? nullptr : found->second;
}

std::string ScalarPrinter::scalar_line(ValueId v) const {
  const auto found = lines_.find(v);
  return found == lines_.end() ? "" : found->second;
}

tile::ValueId ScalarPrinter::same_scalar(ValueId v) const {
  const auto same = same_.find(v);
  return same == same_.end() ? v : same->second;
}

// A number that rounds without masks, which share the text, take from one of its operands.
TypedText ScalarPrinter::without_mask(const Op& op, const std::vector<TypedText>& operands,
                                      const TypedText& e) const {
  const KnownMasks* masks = k_.elements().known_masks();
  if (!masks) return e;
  const auto known = masks->left.find(&op);
  if (known == masks->left.end()) return e;
  const TypedText& left = operands[static_cast<std::size_t>(known->second)];
  return {fmt::format("masked ? {} : {}", e.text, expressions_.as_type(left, e.type)), e.type,
          e.operations + 1, Binding::choice};
}

void ScalarPrinter::print_scalar(const Op& op) {
  if (op.results.empty()) return print_scalar_effect(op);
  const ValueId v = op.results[0];
  switch (op.kind) {
    case OpKind::constant:
      scalars_[v] = literal_text(kernel_.type(v).dtype, op.number, expressions_.type_of(v));
      return;
    case OpKind::scalar_param:
      scalars_[v] = {names_.scalar(op.param), compute_dtype(kernel_.type(v).dtype)};
      return;
    case OpKind::program_id:
      scalars_[v] = {k_.programs().axis_name(op.param), DType::i32};
      return;
    case OpKind::broadcast:
    case OpKind::reshape:
      scalars_[v] = expressions_.scalar(op.operands[0]);
      return;
    default:
      break;
  }
  const bool needs_variable = declared_.count(v) > 0;
  if (!needs_variable && uses_.is_unused(v)) return;
  TypedText e;
  if (op.kind == OpKind::load) {
    e = expressions_.scalar_load(op);
  } else {
    std::vector<TypedText> operands;
    operands.reserve(op.operands.size());
    for (ValueId o : op.operands) operands.push_back(expressions_.scalar(o));
    e = without_mask(op, operands, expressions_.compute(op, operands));
  }
  const DType type = expressions_.type_of(v);
  if (!needs_variable && uses_.is_part_of_another(v)) {
    scalars_[v] = expressions_.converted(e, type);
    return;
  }
  if (!needs_variable && loop_depth_ == 0 && uses_.is_of_program(v)) {
    const auto [same, is_new] = equal_.insert({{type, expressions_.as_type(e, type)}, v});
    if (!is_new) {
      same_[v] = same->second;
      scalars_[v] = expressions_.scalar(same->second);
      return;
    }
  }
  const std::string declares = needs_variable ? "" : fmt::format("const {} ", type);
  const std::string line =
      fmt::format("{}{} = {};", declares, names_.value(v), expressions_.as_type(e, type));
  lines_[v] = line;
  out_.write(line);
  scalars_[v] = {names_.value(v), type};
}

}  // namespace tilewright::cuda
