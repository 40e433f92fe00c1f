// Names, buffers' layouts and ranges of scalars.
#include "backends/cpu/text/kernel_text.h"

#include "backends/cpu/machine/fitted.h"
#include "backends/cpu/text/dot_operands.h"
#include "backends/cpu/text/dot_results.h"
#include "backends/cpu/text/row_weights.h"

#include <tilewright/base/error.h>

#include <algorithm>

namespace tilewright::cpu {

using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

Index saturate(Index v) { return std::clamp(v, -kUnbounded, kUnbounded); }
bool is_bounded(const Range& r) { return r.low > -kUnbounded && r.high < kUnbounded; }

Range add(const Range& a, const Range& b) {
  const auto end = [](Index x, Index y) {
    if (x <= -kUnbounded || y <= -kUnbounded) return -kUnbounded;
    return x >= kUnbounded || y >= kUnbounded ? kUnbounded : saturate(x + y);
  };
  return {end(a.low, b.low), end(a.high, b.high)};
}

Index times(Index a, Index b) {
  if (a == 0 || b == 0) return 0;
  Index product = 0;
  if (std::abs(a) >= kUnbounded || std::abs(b) >= kUnbounded || __builtin_mul_overflow(a, b, &product))
    return (a < 0) == (b < 0) ? kUnbounded : -kUnbounded;
  return saturate(product);
}

Range multiply(const Range& a, const Range& b) {
  const Index ends[] = {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low),
                        times(a.high, b.high)};
  return {*std::min_element(std::begin(ends), std::end(ends)),
          *std::max_element(std::begin(ends), std::end(ends))};
}

}  // namespace

KernelText::KernelText(const tile::Kernel& k, const tile::Schedule& s, int vector_lanes)
    : kernel(k),
      schedule(s),
      kind(std::get<tile::CpuLoops>(s.kind)),
      lanes(vector_lanes),
      in_place(dot_operands_in_place(k)),
      weights(row_weights(k)),
      plan(printer::plan_loops(k, {.keep_above_flops = kKeepAboveFlops,
                                   .lines = {.above_flops = kKeepAboveFlops},
                                   .dots_start_from_zeros = true,
                                   .read_in_place = in_place})),
      affine(k, tile::known_statically(k)),
      ranges(printer::value_ranges(k)),
      hints(k, plan),
      definitions_(k.values.size()) {
  tile::for_each_op(kernel.body, [&](const Op& op) {
    for (ValueId v : op.results) definitions_[static_cast<std::size_t>(v)] = &op;
    if (op.kind == OpKind::loop) inductions_[op.blocks[0].args[0]] = &op;
  });
  stored_by_dots = dot_results_in_place(*this, plan);
}

const ScalarText& KernelText::read(ValueId v) const {
  const auto found = scalars_.find(plan.storage(v));
  TW_CHECK(found != scalars_.end(), fmt::format("scalar %{} has no variable yet", v));
  return found->second;
}

Amount KernelText::amount(ValueId v) const {
  const ScalarText& s = read(v);
  return s.number ? Amount::literal(s.number->i, s.text) : Amount::named(s.text);
}

std::string KernelText::name_scalar(ValueId v) {
  set_variable(v, names.unique(hints.of_storage(v)));
  return scalar(v);
}

// The literal of a negative number in brackets: it stands in sums and products as a name does.
void KernelText::set_number(ValueId v, const tile::Number& number) {
  const DType dtype = kernel.type(v).dtype;
  const std::string text = literal(dtype, number);
  scalars_[plan.storage(v)] = {has_sign(dtype, number) ? "(" + text + ")" : text, number};
}

Amount KernelText::dim(const tile::Dim& d) const {
  return d.is_constant() ? Amount(d.value)
                         : Amount::named(parameters_.at(static_cast<std::size_t>(d.scalar)));
}

void KernelText::set_parameters(std::vector<std::string> variables) {
  parameters_ = std::move(variables);
  tile::for_each_op(kernel.body, [&](const Op& op) {
    if (op.kind == OpKind::scalar_param)
      set_variable(op.results[0], parameters_.at(static_cast<std::size_t>(op.param)));
  });
}

std::optional<Index> KernelText::constant(ValueId v) const {
  const Op* op = definitions_[static_cast<std::size_t>(v)];
  if (op && op->kind == OpKind::constant) return op->number.i;
  return std::nullopt;
}

bool KernelText::is_program_of(ValueId v, const tile::Dim& extent) const {
  const Op* op = definitions_[static_cast<std::size_t>(v)];
  if (!op || op->kind != OpKind::program_id) return false;
  const tile::GridAxis& axis = kernel.grid[static_cast<std::size_t>(op->param)];
  return axis.size() == 1 && axis[0].block == 1 && axis[0].extent == extent;
}

Range KernelText::range(ValueId v) const {
  if (const Op* op = definitions_[static_cast<std::size_t>(v)]; op && op->results.size() == 1)
    return range_of(*op);
  if (const auto loop = inductions_.find(v); loop != inductions_.end()) {
    const std::vector<ValueId>& bounds = loop->second->operands;
    const Range from = range(bounds[0]), to = range(bounds[1]), step = range(bounds[2]);
    if (step.low > 0) {
      Index last = saturate(to.high - 1);
      if (from.low == from.high && step.low == step.high && is_bounded(to) && last >= from.low)
        last = from.low + (last - from.low) / step.low * step.low;
      return {from.low, last};
    }
  }
  return {-kUnbounded, kUnbounded};
}

Range KernelText::range_of(const Op& op) const {
  const auto operand = [&](int i) { return range(op.operands[static_cast<std::size_t>(i)]); };
  switch (op.kind) {
    case OpKind::constant:
      return {op.number.i, op.number.i};
    case OpKind::program_id: {
      Index count = 1;
      for (const tile::GridFactor& f : kernel.grid[static_cast<std::size_t>(op.param)]) {
        if (!f.extent.is_constant()) return {0, kUnbounded};
        count *= ceil_div(f.extent.value, f.block);
      }
      return {0, std::max<Index>(count - 1, 0)};
    }
    case OpKind::scalar_param:
      // What is used as an extent is not negative.
      for (const tile::ViewParam& view : kernel.views)
        for (const tile::Dim& d : view.extents)
          if (d.scalar == op.param) return {0, kUnbounded};
      break;
    case OpKind::apply:
      if (kernel.type(op.results[0]).dtype != DType::i64) break;
      if (op.prim == tile::Prim::add) return add(operand(0), operand(1));
      if (op.prim == tile::Prim::sub) return add(operand(0), multiply(operand(1), {-1, -1}));
      if (op.prim == tile::Prim::mul) return multiply(operand(0), operand(1));
      if (op.prim == tile::Prim::div && operand(1).low > 0) {
        const Range a = operand(0);
        const Index divisor = operand(1).low;
        if (is_bounded(a) && a.low >= 0) return {0, a.high / divisor};
        if (a.low >= 0) return {0, kUnbounded};
      }
      if (op.prim == tile::Prim::rem && operand(0).low >= 0 && operand(1).low > 0)
        return {0, saturate(operand(1).high - 1)};
      break;
    default:
      break;
  }
  return {-kUnbounded, kUnbounded};
}

// Whether a tile is a transpose's and has fewer columns than a vector, and nobody but element loops reads it.
bool KernelText::has_joined_rows(ValueId v) const {
  const Op* made = definition(v);
  if (made == nullptr || made->kind != OpKind::transpose || plan.storage(v) != v) return false;
  const std::vector<Index>& shape = kernel.type(v).shape;
  if (shape[0] < lanes || shape[1] < 2 || shape[1] >= lanes) return false;
  bool others = false;
  tile::for_each_op(kernel.body, [&](const Op& op) {
    const bool reads = std::find(op.operands.begin(), op.operands.end(), v) != op.operands.end();
    others =
        others || (reads && op.kind != OpKind::apply && op.kind != OpKind::cast && op.kind != OpKind::store);
  });
  return !others;
}

Buffer KernelText::make_buffer(const std::string& buffer_name, ValueId v) const {
  const tile::TileType& type = kernel.type(v);
  Buffer b{.name = buffer_name, .dtype = type.dtype};
  b.strides.resize(type.shape.size());
  Index step = 1;
  for (std::size_t i = type.shape.size(); i-- > 0;) {
    if (type.shape[i] == 1) continue;
    b.strides[i] = step;
    step *= type.shape[i];
    if (b.strides[i] == 1 && !has_joined_rows(v)) step = round_up(step, lanes);
  }
  b.elements = round_up(step, lanes) + (has_joined_rows(v) ? lanes : 0);
  return b;
}

}  // namespace tilewright::cpu
