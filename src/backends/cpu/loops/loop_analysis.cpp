// What depends on what, and how far the loops of a part go.
#include "backends/cpu/loops/loop_analysis.h"

#include "backends/cpu/loops/rows_apart.h"
#include "backends/cpu/machine/fitted.h"
#include "backends/cpu/text/scalar_text.h"
#include "backends/printer/expressions.h"

#include <tilewright/base/error.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tilewright::cpu {

using printer::Instr;
using tile::Monoid;
using tile::OpKind;
using tile::Prim;

namespace {

bool is_operation(const Instr& i) {
  return i.kind == Instr::Kind::compute && (i.op->kind == OpKind::apply || i.op->kind == OpKind::cast);
}
bool is_heavy(const Instr& i) {
  return is_operation(i) && i.op->kind == OpKind::apply && info(i.op->prim).flops >= kHeavyFlops;
}

}  // namespace

void LoopAnalysis::choose_in_place() {
  for (std::size_t at = part_.instrs.size(); at-- > 0;) {
    const int i = part_.instrs[at];
    if (is_unused(i)) continue;
    for (std::size_t o = 0; o < instr(i).operands.size(); ++o) {
      const printer::Ref& r = instr(i).operands[o];
      if (r.is_scalar() || (is_known_choice(i) && o != 1)) continue;
      ++node(r.instr).uses;
      node(r.instr).consumer = i;
    }
  }
  for (int i : part_.instrs) {
    Node& n = node(i);
    if (!is_operation(instr(i)) || !n.along_vec) continue;
    for (const printer::Ref& r : instr(i).operands)
      if (!r.is_scalar() && node(r.instr).in_place) n.operations += node(r.instr).operations;
    n.in_mad = is_product_of_mad(i);
    n.in_place = n.in_mad || fits_in_place(i);
  }
}

bool LoopAnalysis::fits_in_place(int i) const {
  const Node& n = node(i);
  if (n.uses != 1 || n.operations > printer::kExpressionOperations) return false;
  const Instr& user = instr(n.consumer);
  if (!is_operation(user) || applies(user, Prim::isnan)) return false;
  if (shape_.vec_outside && is_inner(i) != is_inner(n.consumer)) return false;
  if (!is_heavy(user)) return true;
  const auto has_heavy = [&](const auto& self, int at) -> bool {
    if (is_heavy(instr(at))) return true;
    return std::any_of(instr(at).operands.begin(), instr(at).operands.end(), [&](const printer::Ref& r) {
      return !r.is_scalar() && node(r.instr).in_place && self(self, r.instr);
    });
  };
  return !has_heavy(has_heavy, i);
}

// A product is contracted only with a term that is no such product itself: x*x - y*y stays 0 for x = y.
bool LoopAnalysis::is_product_of_mad(int i) const {
  const Node& n = node(i);
  if (!applies(instr(i), Prim::mul) || n.uses != 1 || instr(i).op->rounded) return false;
  const DType dtype = k_.kernel.type(instr(i).value).dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return false;
  const Instr& user = instr(n.consumer);
  if (!applies(user, Prim::add) && !applies(user, Prim::sub)) return false;
  if (shape_.vec_outside && is_inner(i) != is_inner(n.consumer)) return false;
  return std::all_of(user.operands.begin(), user.operands.end(), [&](const printer::Ref& r) {
    return r.is_scalar() || r.instr == i || !applies(instr(r.instr), Prim::mul);
  });
}

void LoopAnalysis::analyse() {
  for (int i : part_.instrs) {
    const Instr& instr = this->instr(i);
    Node& n = node(i);
    const auto walks = [&](int axis) {
      return std::find(instr.axes.begin(), instr.axes.end(), axis) != instr.axes.end();
    };
    if (is_access(instr)) n.access = instr_access(k_, instr, part_.loop->shape);
    const bool by_axes = is_writing(i) || instr.kind == Instr::Kind::reload ||
                         instr.op->kind == OpKind::arange || instr.op->kind == OpKind::load;
    if (by_axes) {
      n.along_vec = walks(shape_.vec);
      n.along_other = shape_.other >= 0 && walks(shape_.other);
    } else {
      for (const printer::Ref& r : instr.operands) {
        n.along_vec = n.along_vec || (!r.is_scalar() && node(r.instr).along_vec);
        n.along_other = n.along_other || (!r.is_scalar() && node(r.instr).along_other);
      }
    }
  }
  if (shape_.columns > 0)
    join_rows();
  else
    trim_axis(shape_.vec, &vec_count_);
  if (shape_.other >= 0) trim_axis(shape_.other, &other_count_);
  is_ragged_ = !vec_count_.is(shape_.vec_count) || shape_.vec_count % k_.lanes != 0;
  for (int i : part_.instrs)
    if (is_access(instr(i))) analyse_access(i);
  lanes_.find_needed_lanes();
  choose_in_place();
}

// Rows that are walked as one: what is not the same for all elements changes along them, and all ends with
// the last row.
void LoopAnalysis::join_rows() {
  for (const int i : part_.instrs) {
    Node& n = node(i);
    n.along_other = false;
    if (is_access(instr(i))) {
      n.lies = beside_rows(n.access, shape_.columns);
      n.along_vec = n.lies != BesideRows::one;
      n.row_step = n.access.stride[0];
      n.access.stride[0] = 0;
      n.access.stride[1] = n.along_vec ? 1 : 0;
    } else {
      n.along_vec =
          std::any_of(instr(i).operands.begin(), instr(i).operands.end(),
                      [&](const printer::Ref& r) { return !r.is_scalar() && node(r.instr).along_vec; });
    }
  }
  const std::optional<AccessBound> end = end_of_joined_rows(k_, part_);
  if (!end) return;
  for (const int i : part_.instrs) node(i).access.bounds.clear();
  const std::string rows = limit_variable(end->start, end->extent, part_.loop->shape[0]);
  const std::string elements = k_.names.unique("elements");
  k_.code.line("const i64 {} = {} * {};", elements, rows, shape_.columns);
  vec_count_ = Amount::named(elements);
}

void LoopAnalysis::analyse_access(int i) {
  Node& n = node(i);
  n.window = window_of(n.access);
  // A load whose elements are all the same one: a broadcast view.
  if (instr(i).kind == Instr::Kind::compute && n.access.stride[shape_.vec].is(0) && n.window.begin.empty() &&
      n.window.end.empty())
    n.along_vec = false;
  if (instr(i).kind == Instr::Kind::compute && shape_.other >= 0 && n.access.stride[shape_.other].is(0) &&
      n.window.row_conditions.empty())
    n.along_other = false;
  if (instr(i).kind == Instr::Kind::effect && k_.kind.streaming_stores && n.along_vec)
    n.streams = n.access.stride[shape_.vec].is(1);
}

// Where a store's elements end along an axis, if it drops those behind.
std::optional<AccessBound> LoopAnalysis::end_of_store(int i, int axis) const {
  for (const AccessBound& b : node(i).access.bounds)
    if (b.loop_axis == axis && !b.may_be_negative) return b;
  return std::nullopt;
}

// The end of the elements for which a comparison start + number < extent along an axis holds.
std::optional<AccessBound> LoopAnalysis::end_where_true(int i, int axis) const {
  const Instr& below = instr(i);
  if (!applies(below, Prim::lt) || below.operands[0].is_scalar()) return std::nullopt;
  const Instr& position = instr(below.operands[0].instr);
  if (dtype_of(below.operands[0]) != DType::i64 || position.kind != Instr::Kind::compute) return std::nullopt;
  const auto counts = [&](const printer::Ref& r) {
    return !r.is_scalar() && instr(r.instr).kind == Instr::Kind::compute &&
           instr(r.instr).op->kind == OpKind::arange && instr(r.instr).axes == std::vector<int>{axis};
  };
  AccessBound end{.loop_axis = axis, .start = 0, .may_end_early = true};
  if (applies(position, Prim::add)) {
    if (!k_.ranges[static_cast<std::size_t>(position.value)].bounded()) return std::nullopt;
    const std::size_t side = counts(position.operands[0]) ? 0 : 1;
    const printer::Ref& start = position.operands[1 - side];
    if (!counts(position.operands[side]) || !start.is_scalar()) return std::nullopt;
    end.start = k_.amount(start.scalar);
  } else if (!counts(below.operands[0])) {
    return std::nullopt;
  }
  const printer::Ref& extent = below.operands[1];
  if (extent.is_scalar()) {
    end.extent = k_.amount(extent.scalar);
  } else {
    const Instr& number = instr(extent.instr);
    if (number.kind != Instr::Kind::compute || number.op->kind != OpKind::constant) return std::nullopt;
    end.extent = Amount(number.op->number.i);
  }
  return end;
}

// The comparison without which a reduction along an axis adds what changes nothing; -1: none.
int LoopAnalysis::condition_of_reduction(int i, int axis) const {
  const Instr& in = instr(i);
  if (in.kind != Instr::Kind::reduce || in.op->kind != OpKind::reduce || reduced_axis(in) != axis) return -1;
  if (in.operands[0].is_scalar()) return -1;
  const Instr& choice = instr(in.operands[0].instr);
  if (!applies(choice, Prim::select)) return -1;
  if (choice.operands[0].is_scalar() || choice.operands[2].is_scalar()) return -1;
  const Instr& otherwise = instr(choice.operands[2].instr);
  if (otherwise.kind != Instr::Kind::compute || otherwise.op->kind != OpKind::constant) return -1;
  const DType dtype = dtype_of(in.operands[0]);
  // What is behind an extreme and no more extreme than any other is not the first.
  const Monoid monoid = in.op->monoid == Monoid::argmax   ? Monoid::max
                        : in.op->monoid == Monoid::argmin ? Monoid::min
                                                          : in.op->monoid;
  const tile::Number nothing = identity_of(monoid, dtype);
  const tile::Number& other = otherwise.op->number;
  const bool is_nothing = is_float(dtype)
                              ? other.f == nothing.f && std::signbit(other.f) == std::signbit(nothing.f)
                              : other.i == nothing.i;
  if (!is_nothing) return -1;
  return choice.operands[0].instr;
}

std::optional<AccessBound> LoopAnalysis::end_of_reduction(int i, int axis) const {
  const int condition = condition_of_reduction(i, axis);
  if (condition < 0) return std::nullopt;
  return end_where_true(condition, axis);
}

// Where rows end of which nobody stores more.
std::optional<AccessBound> LoopAnalysis::end_of_rows(int axis) const {
  if (axis != 0 || shape_.other != axis) return std::nullopt;
  const std::optional<RowsApart> apart = rows_apart(k_);
  if (!apart || apart->rows != shape_.other_count) return std::nullopt;
  return apart->end;
}

// Where all that a loop writes are stores that end at the same place, and reductions of what changes nothing
// behind it.
std::optional<AccessBound> LoopAnalysis::end_of_all(int axis) const {
  std::optional<AccessBound> common;
  for (int i : part_.instrs) {
    if (!is_writing(i)) continue;
    const bool stores = instr(i).kind == Instr::Kind::effect && instr(i).op->kind == OpKind::store;
    const std::optional<AccessBound> end = stores ? end_of_store(i, axis) : end_of_reduction(i, axis);
    if (!end) return std::nullopt;
    if (common && (common->start != end->start || common->extent != end->extent)) return std::nullopt;
    common = end;
  }
  return common;
}

// Cuts a loop's axis short: it ends where nothing that is behind matters.
void LoopAnalysis::trim_axis(int axis, Amount* count) {
  std::optional<AccessBound> common = end_of_rows(axis);
  if (!common) common = end_of_all(axis);
  if (!common) return;
  const Amount start = common->start, extent = common->extent;
  *count = Amount::named(limit_variable(start, extent, part_.loop->shape[static_cast<std::size_t>(axis)]));
  for (int i : part_.instrs) {
    if (const int condition = condition_of_reduction(i, axis); condition >= 0) node(condition).always = true;
    std::erase_if(node(i).access.bounds, [&](const AccessBound& b) {
      return b.loop_axis == axis && b.start == start && b.extent == extent;
    });
  }
}

// The name of a printed variable: the number of elements from `from` to `to`, at most `most`.
std::string LoopAnalysis::limit_variable(const Amount& from, const Amount& to, Index most) {
  k_.include("tw_cpu/masked.h");
  const std::string distance = from.is(0) ? to.str()
                               : to.is(0) ? "-" + from.str()
                                          : fmt::format("{} - {}", to.str(), from.str());
  std::string& variable = limits_[fmt::format("limit({}, {})", distance, most)];
  if (variable.empty()) {
    variable = k_.names.unique("inside");
    k_.code.line("const i64 {} = limit({}, {});", variable, distance, most);
  }
  return variable;
}

LoopWindow LoopAnalysis::window_of(const Access& access) {
  Window w;
  for (const AccessBound& b : access.bounds) {
    if (b.loop_axis == shape_.vec) {
      if (b.may_end_early) w.end = limit_variable(b.start, b.extent, shape_.vec_count);
      if (b.may_be_negative) w.begin = limit_variable(b.start, 0, shape_.vec_count);
      continue;
    }
    const bool walks = b.loop_axis >= 0;
    const auto behind_start = [&](const Amount& rows) { return Sum().add(b.start).add(rows).total().str(); };
    w.row_conditions.push_back(inside_text(walks ? behind_start(Amount::named(row_)) : b.start.str(),
                                           b.extent.str(), b.may_be_negative, b.may_end_early));
    if (b.may_be_negative) w.all_rows.push_back(fmt::format("{} >= 0", b.start.str()));
    if (b.may_end_early)
      w.all_rows.push_back(
          fmt::format("{} <= {}", behind_start(walks ? other_count_ : Amount(1)), b.extent.str()));
  }
  return w;
}

}  // namespace tilewright::cpu
