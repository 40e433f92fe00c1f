// Choosing the walk by what the accesses cost along each axis.
#include "backends/cpu/loops/loop_shape.h"

#include "backends/cpu/loops/joined_rows.h"
#include "backends/cpu/machine/fitted.h"

#include <tilewright/base/error.h>

#include <algorithm>

namespace tilewright::cpu {

using printer::ElementLoop;
using printer::Instr;
using tile::OpKind;

namespace {

bool is_reduction(const Instr& i) { return i.kind == Instr::Kind::reduce || i.kind == Instr::Kind::scan; }

// `roots` and what they need, in the body's order.
LoopPart part_of(const ElementLoop& loop, const std::vector<int>& roots) {
  std::vector<bool> needed(loop.body.size());
  for (int r : roots) needed[static_cast<std::size_t>(r)] = true;
  for (std::size_t i = loop.body.size(); i-- > 0;)
    if (needed[i])
      for (const printer::Ref& r : loop.body[i].operands)
        if (!r.is_scalar()) needed[static_cast<std::size_t>(r.instr)] = true;
  LoopPart part{&loop, {}};
  for (std::size_t i = 0; i < loop.body.size(); ++i)
    if (needed[i]) part.instrs.push_back(static_cast<int>(i));
  return part;
}

}  // namespace

int reduced_axis(const Instr& instr) {
  if (!is_reduction(instr) || !instr.op || instr.op->axis < 0) return -1;
  return instr.axes[static_cast<std::size_t>(instr.op->axis)];
}

std::vector<LoopPart> split_by_reduced_axis(const ElementLoop& loop) {
  std::vector<int> along_first, rest;
  bool along_last = false;
  for (std::size_t i = 0; i < loop.body.size(); ++i) {
    const Instr& instr = loop.body[i];
    if (instr.kind == Instr::Kind::compute || instr.kind == Instr::Kind::reload) continue;
    const int axis = reduced_axis(instr);
    along_last = along_last || axis == 1;
    (axis == 0 && is_reduction(instr) ? along_first : rest).push_back(static_cast<int>(i));
  }
  if (along_first.empty() || !along_last) {
    rest.insert(rest.end(), along_first.begin(), along_first.end());
    std::sort(rest.begin(), rest.end());
    return {part_of(loop, rest)};
  }
  return {part_of(loop, along_first), part_of(loop, rest)};
}

bool is_access(const Instr& instr) {
  if (instr.kind == Instr::Kind::compute) return instr.op->kind == OpKind::load;
  if (instr.kind == Instr::Kind::effect) return instr.op->kind == OpKind::store;
  // A reduction over one element only moves it into its buffer; a reshape to a scalar has none.
  return instr.kind != Instr::Kind::reduce ||
         (instr.op->kind == OpKind::reduce && reduced_axis(instr) < 0 && instr.axes.size() == 2);
}

Access instr_access(const KernelText& k, const Instr& instr, const std::vector<Index>& loop_shape) {
  const bool loads = instr.kind == Instr::Kind::compute;
  if (instr.kind == Instr::Kind::reduce) {
    std::vector<int> axes = instr.axes;
    axes.erase(axes.begin() + instr.op->axis);
    return buffer_access(k, instr.value, axes);
  }
  if (!loads && instr.kind != Instr::Kind::effect) return buffer_access(k, instr.value, instr.axes);
  const tile::ValueId tile = loads ? instr.value : instr.op->operands[0];
  return view_access(k, *instr.op, instr.axes, k.kernel.type(tile).shape, loop_shape);
}

namespace {

// What a vector of elements costs along an axis, in units of one plain access.
double access_cost(const Amount& stride, int lanes) {
  if (stride.is(0) || stride.is(1)) return 1;
  return stride.is(-1) ? 2 : lanes;
}

double cost_along(const KernelText& k, const LoopPart& part, int vec) {
  const Index n = part.loop->shape[static_cast<std::size_t>(vec)];
  double cost = 0;
  for (int i : part.instrs) {
    const Instr& instr = part.at(i);
    if (is_access(instr))
      cost += access_cost(instr_access(k, instr, part.loop->shape).stride[vec], k.lanes);
    else
      cost += 0.5;
    if (reduced_axis(instr) == vec) cost += instr.kind == Instr::Kind::scan ? 8 : 0.5;
  }
  return cost * static_cast<double>(round_up(n, k.lanes)) / static_cast<double>(n);
}

bool is_wide(DType d) { return size_bytes(d) == 8; }

// The most copies of a loop's body whose values, as many as live at the same time, fit the registers.
int copies_that_fit(const KernelText& k, const LoopPart& part, int wanted) {
  const int registers = k.lanes == 16 ? 32 : 16;
  std::vector<int> last_use(part.loop->body.size(), -1);
  for (int i : part.instrs)
    for (const printer::Ref& r : part.at(i).operands)
      if (!r.is_scalar()) last_use[static_cast<std::size_t>(r.instr)] = i;
  int live = 0, most = 1;
  std::vector<int> weight(part.loop->body.size());
  for (int i : part.instrs) {
    const Instr& instr = part.at(i);
    const bool is_value = instr.kind == Instr::Kind::compute || instr.kind == Instr::Kind::reload;
    const bool accumulates = instr.kind == Instr::Kind::reduce;
    if ((is_value && instr.op && instr.op->kind == OpKind::constant)) continue;
    if (is_value || accumulates) {
      const DType dtype = k.kernel.type(instr.value).dtype;
      weight[static_cast<std::size_t>(i)] = is_wide(dtype) ? 2 : 1;
      live += weight[static_cast<std::size_t>(i)];
    }
    most = std::max(most, live);
    for (int each : part.instrs)
      if (last_use[static_cast<std::size_t>(each)] == i) live -= weight[static_cast<std::size_t>(each)];
  }
  // The functions' own temporaries and constants take a quarter.
  return std::clamp(registers * 3 / 4 / most, 1, std::max(wanted, 1));
}

}  // namespace

double vector_operations(const LoopPart& part) {
  double operations = 0;
  for (int i : part.instrs) {
    const Instr& instr = part.at(i);
    if (instr.kind != Instr::Kind::compute) continue;
    operations += instr.op->kind == OpKind::apply    ? info(instr.op->prim).flops
                  : instr.op->kind == OpKind::random ? 40
                                                     : 1;
  }
  return operations;
}

namespace {

int wanted_copies(const KernelText& k, const LoopPart& part) {
  const bool accumulates =
      std::any_of(part.instrs.begin(), part.instrs.end(), [&](int i) { return is_reduction(part.at(i)); });
  const int most = std::max(k.kind.unroll, 1);
  // A block of random words is four vectors.
  for (int i : part.instrs)
    if (part.at(i).kind == Instr::Kind::compute && part.at(i).op->kind == OpKind::random) return 4;
  const bool from_memory = k.kind.streaming_stores || k.kind.fetch_ahead;
  return accumulates || from_memory || vector_operations(part) > kShortOperations ? most : (most + 1) / 2;
}

// Operations that are the same for all rows, masks of a concat's parts for instance, in a loop of nothing but
// what is computed lane by lane and stored.
double operations_of_all_rows(const LoopPart& part, int other) {
  std::vector<bool> along(part.loop->body.size());
  double operations = 0;
  for (const int i : part.instrs) {
    const Instr& instr = part.at(i);
    const bool stores = instr.kind == Instr::Kind::effect && instr.op->kind == OpKind::store;
    if (is_reduction(instr) || (instr.kind == Instr::Kind::effect && !stores)) return 0;
    if (instr.kind == Instr::Kind::compute && instr.op->kind == OpKind::random) return 0;
    bool changes = false;
    for (const printer::Ref& r : instr.operands)
      changes = changes || (!r.is_scalar() && along[static_cast<std::size_t>(r.instr)]);
    if (instr.kind == Instr::Kind::reload || is_access(instr) ||
        (instr.op && instr.op->kind == OpKind::arange))
      changes = changes || std::find(instr.axes.begin(), instr.axes.end(), other) != instr.axes.end();
    along[static_cast<std::size_t>(i)] = changes;
    if (!changes && instr.kind == Instr::Kind::compute && instr.op->kind == OpKind::apply)
      operations += info(instr.op->prim).flops;
  }
  return operations;
}

}  // namespace

LoopShape choose_shape(const KernelText& k, const LoopPart& part) {
  const std::vector<Index>& shape = part.loop->shape;
  const int last = static_cast<int>(shape.size()) - 1;
  LoopShape s{.vec = last, .columns = joined_columns(k, part)};
  if (s.columns == 0 && last == 1) {
    if (shape[1] == 1 || (shape[0] > 1 && cost_along(k, part, 0) < cost_along(k, part, 1))) s.vec = 0;
    const int other = 1 - s.vec;
    if (shape[static_cast<std::size_t>(other)] > 1) s.other = other;
  }
  s.vec_count = s.columns > 0 ? shape[0] * shape[1] : shape[static_cast<std::size_t>(s.vec)];
  if (s.other >= 0) {
    s.other_count = shape[static_cast<std::size_t>(s.other)];
    for (int i : part.instrs) s.vec_outside = s.vec_outside || reduced_axis(part.at(i)) == s.other;
    s.vec_outside = s.vec_outside ||
                    (s.vec == last && s.vec_count <= kNarrowVectors * k.lanes && s.other_count >= kManyRows &&
                     operations_of_all_rows(part, s.other) >= kSameForAllRows);
  }
  const Index vectors = ceil_div(s.vec_count, k.lanes);
  s.copies = static_cast<int>(std::min<Index>(copies_that_fit(k, part, wanted_copies(k, part)), vectors));
  // A number of copies that divides the vectors leaves no remainder to be done one by one.
  for (int c = s.copies; 2 * c > s.copies; --c)
    if (s.vec_count % (static_cast<Index>(c) * k.lanes) == 0) {
      s.copies = c;
      return s;
    }
  // A short row that ends within a vector takes a number that divides those before it: the rest are done one
  // by one.
  const Index whole = s.vec_count / k.lanes;
  for (int c = s.copies; 2 * c >= s.copies && c > 0 && whole > 0 && vectors <= 2 * s.copies; --c)
    if (whole % c == 0) {
      s.copies = c;
      return s;
    }
  return s;
}

}  // namespace tilewright::cpu
