// What depends on what in an element loop, and the loops around its instructions.
#include "backends/cpu/loops/loop_text.h"

#include "backends/cpu/loops/row_walks.h"
#include "backends/cpu/text/scalar_text.h"

#include <tilewright/base/error.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace tilewright::cpu {

using printer::Instr;
using tile::OpKind;

LoopText::LoopText(KernelText& k, LoopPart part, RowWalk walk)
    : state_(k, std::move(part), std::move(walk)),
      lanes_(state_),
      analysis_(state_, lanes_),
      expressions_(state_, lanes_),
      reductions_(state_, expressions_),
      uniform_(state_, expressions_, reductions_),
      pointers_(state_),
      body_(state_, lanes_, expressions_, reductions_),
      order_(state_, body_, reductions_, uniform_, pointers_) {}

void LoopText::print() {
  analysis_.analyse();
  state_.k.include("tw_cpu/memory.h");
  pointers_.declare_pointers();
  pointers_.declare_prefetches();
  uniform_.print_uniform(/*along_other=*/false);
  if (state_.shape.vec_outside)
    order_.print_columns_outside();
  else
    order_.print_rows();
}

bool LoopParts::is_accumulating(const Instr& i) {
  return (i.kind == Instr::Kind::reduce || i.kind == Instr::Kind::scan) && reduced_axis(i) >= 0;
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
  trim_axis(shape_.vec, &vec_count_);
  if (shape_.other >= 0) trim_axis(shape_.other, &other_count_);
  is_ragged_ = !vec_count_.is(shape_.vec_count) || shape_.vec_count % k_.lanes != 0;
  for (int i : part_.instrs)
    if (is_access(instr(i))) analyse_access(i);
  lanes_.find_needed_lanes();
  choose_in_place();
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
  if (instr(i).kind == Instr::Kind::effect && k_.schedule.streaming_stores && n.along_vec)
    n.streams = n.access.stride[shape_.vec].is(1);
}

// Where all that is written are stores that end at the same place, nothing beyond it needs to be computed.
void LoopAnalysis::trim_axis(int axis, Amount* count) {
  const AccessBound* common = nullptr;
  for (int i : part_.instrs) {
    if (!is_writing(i)) continue;
    if (instr(i).kind != Instr::Kind::effect || instr(i).op->kind != OpKind::store) return;
    const std::vector<AccessBound>& bounds = node(i).access.bounds;
    const auto b =
        std::find_if(bounds.begin(), bounds.end(), [&](const AccessBound& x) { return x.loop_axis == axis; });
    if (b == bounds.end() || b->may_be_negative) return;
    if (common && (common->start != b->start || common->extent != b->extent)) return;
    common = &*b;
  }
  if (!common) return;
  const std::string start = common->start, extent = common->extent;
  *count = {0, limit_variable(start, extent, part_.loop->shape[static_cast<std::size_t>(axis)])};
  for (int i : part_.instrs)
    std::erase_if(node(i).access.bounds, [&](const AccessBound& b) {
      return b.loop_axis == axis && b.start == start && b.extent == extent;
    });
}

// How many elements there are from `from` to `to`, at most `most`.
std::string LoopAnalysis::limit_variable(const std::string& from, const std::string& to, Index most) {
  k_.include("tw_cpu/masked.h");
  const std::string distance = from == "0" ? to : to == "0" ? "-" + from : fmt::format("{} - {}", to, from);
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
      if (b.may_be_negative) w.begin = limit_variable(b.start, "0", shape_.vec_count);
      continue;
    }
    const bool walks = b.loop_axis >= 0;
    const std::string from_start = b.start == "0" ? "" : b.start + " + ";
    w.row_conditions.push_back(
        inside_text(walks ? from_start + row_ : b.start, b.extent, b.may_be_negative, b.may_end_early));
    if (b.may_be_negative) w.all_rows.push_back(fmt::format("{} >= 0", b.start));
    if (b.may_end_early)
      w.all_rows.push_back(fmt::format("{}{} <= {}", from_start, walks ? other_count_.str() : "1", b.extent));
  }
  return w;
}

// Pointers to where each access begins: the same expression once.
void LoopPointers::declare_pointers() {
  for (int i : part_.instrs) {
    has_vectors_ = has_vectors_ || node(i).along_vec;
    if (!is_access(instr(i))) continue;
    Node& n = node(i);
    n.base = n.pointer = n.access.pointer;
    if (n.base.find(' ') == std::string::npos) continue;
    std::string& variable = pointers_[n.base];
    if (variable.empty()) {
      variable = k_.names.unique(n.access.name + "_at");
      // The pointer may serve a store to the same place too.
      const bool reads = instr(i).kind == Instr::Kind::compute &&
                         !view_uses(k_.kernel)[static_cast<std::size_t>(instr(i).op->param)].written;
      k_.code.line("{}{}* {} = {};", reads ? "const " : "", memory_type(n.access.dtype), variable, n.base);
    }
    n.base = n.pointer = variable;
  }
}

// Where the next program's blocks begin. It may be beyond the view: fetching ahead never faults.
void LoopPointers::declare_prefetches() {
  for (const FetchedAhead& each : walk_.ahead) {
    const Access access = instr_access(k_, *each.load, part_.loop->shape);
    std::string& variable = ahead_pointers_.emplace_back();
    if (!access.stride[0].is(1)) continue;
    variable = k_.names.unique(access.name + "_next");
    k_.code.line("const {}* {} = {} + {};", memory_type(access.dtype), variable, access.pointer,
                 distance_ahead(k_, *each.load->op) + each.first * shape_.vec_count / 4);
  }
}

// Fetches as many quarters of each step's elements as are fetched at all; forwards, whichever way the loop
// goes: that is how the next row will be read.
void LoopPointers::print_prefetches(const Pass& pass) {
  for (std::size_t i = 0; i < walk_.ahead.size(); ++i) {
    if (ahead_pointers_[i].empty()) continue;
    const Index quarters = walk_.ahead[i].quarters * (pass.apart > 0 ? pass.copies : 1);
    const Index common = std::gcd(quarters, Index{4}), times = quarters / common, parts = 4 / common;
    const Index bytes = static_cast<Index>(pass.copies) * k_.lanes *
                        memory_bytes(k_.kernel.type(walk_.ahead[i].load->value).dtype) *
                        walk_.ahead[i].quarters / 4;
    k_.code.line("fetch_ahead<{}>({} + {}{}{});", bytes, ahead_pointers_[i], pass.steps,
                 times > 1 ? fmt::format(" * {}", times) : "", parts > 1 ? fmt::format(" / {}", parts) : "");
  }
}

void LoopPointers::declare_rows(Which which) {
  std::set<std::string> declared;
  for (int i : part_.instrs)
    if (is_access(instr(i)) && node(i).along_vec && is_of(i, which)) declare_row(i, declared);
}

// The row's own pointer, its end inside the view, its alignment.
void LoopPointers::declare_row(int i, std::set<std::string>& declared) {
  Node& n = node(i);
  if (shape_.other >= 0 && !n.access.stride[shape_.other].is(0)) {
    Sum sum;
    sum.add(n.base).add(row_, n.access.stride[shape_.other]);
    std::string& variable = pointers_[sum.text()];
    if (variable.empty()) variable = k_.names.unique(n.access.name + "_row");
    if (declared.insert(sum.text()).second) k_.code.line("auto* {} = {};", variable, sum.text());
    n.pointer = variable;
  }
  if (!n.window.row_conditions.empty()) {
    if (n.row_end.empty()) n.row_end = k_.names.unique("inside");
    k_.code.line("const i64 {} = {} ? {} : 0;", n.row_end, fmt::join(n.window.row_conditions, " && "),
                 n.window.end.empty() ? vec_count_.str() : n.window.end);
  }
  if (n.streams) {
    k_.streams = true;
    const auto alignment = static_cast<Index>(std::min(64, k_.lanes * memory_bytes(n.access.dtype)));
    if (n.stream_test.empty()) n.stream_test = k_.names.unique(n.access.name + "_aligned");
    k_.code.line("const bool {} = ((u64){} & {}) == 0;", n.stream_test, n.pointer, alignment - 1);
  }
}

// The end of the part that needs no masks.
Amount LoopWalk::whole_vectors() {
  const Index step = static_cast<Index>(shape_.copies) * k_.lanes;
  std::vector<std::string> ends, conditions;
  const auto add = [](std::vector<std::string>& to, const std::string& text) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
  };
  for (int i : part_.instrs) {
    const Node& n = node(i);
    if (!is_access(instr(i)) || !n.along_vec) continue;
    if (!n.window.begin.empty()) add(conditions, n.window.begin + " == 0");
    const std::string& end = n.row_end.empty() || shape_.vec_outside ? n.window.end : n.row_end;
    if (!end.empty()) add(ends, end);
    if (shape_.vec_outside)
      for (const std::string& c : n.window.all_rows) add(conditions, c);
  }
  if (ends.empty() && conditions.empty() && vec_count_.is(shape_.vec_count))
    return {shape_.vec_count / step * step, ""};
  if (ends.empty() || !vec_count_.is(shape_.vec_count)) add(ends, vec_count_.str());
  std::string least = ends[0];
  for (std::size_t i = 1; i < ends.size(); ++i) least = fmt::format("min({}, {})", least, ends[i]);
  std::string text = fmt::format("{} / {} * {}", least, step, step);
  if (!conditions.empty()) text = fmt::format("{} ? {} : 0", fmt::join(conditions, " && "), text);
  const std::string variable = k_.names.unique("whole");
  k_.code.line("const i64 {} = {};", variable, text);
  return {0, variable};
}

}  // namespace tilewright::cpu
