// Pointers to the first elements of accesses and of their rows, and what is fetched ahead.
#include "backends/cpu/loops/loop_pointers.h"

#include "backends/cpu/loops/row_walks.h"
#include "backends/cpu/text/scalar_text.h"

#include <tilewright/base/error.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace tilewright::cpu {

using printer::Instr;
using tile::OpKind;

// Pointers to where each access begins: the same expression once.
void LoopPointers::declare_pointers() {
  for (int i : part_.instrs) {
    has_vectors_ = has_vectors_ || node(i).along_vec;
    if (!is_access(instr(i))) continue;
    Node& n = node(i);
    n.base = n.pointer = n.access.pointer();
    if (is_repeated(n)) {
      declare_repeated(n);
      continue;
    }
    if (n.access.offset.is(0)) continue;
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

// A table of what is repeated for rows that are walked as one: a row and as much of it again as a vector may
// reach, or each row's element as often as there are columns.
void LoopPointers::declare_repeated(Node& n) {
  k_.include("tw_cpu/relayout.h");
  const bool again = n.lies == BesideRows::again;
  const Index rows = part_.loop->shape[0];
  std::string& variable = pointers_[fmt::format("{} by {}", n.base, again ? "0" : n.row_step.str())];
  if (variable.empty()) {
    variable = k_.names.unique(n.access.name + (again ? "_again" : "_by_row"));
    k_.code.line("alignas(64) {} {}[{}];", memory_type(n.access.dtype), variable,
                 (again ? shape_.columns : rows * shape_.columns) + k_.lanes);
    if (again)
      k_.code.line("repeat_row<{}>({}, {});", shape_.columns, n.base, variable);
    else
      k_.code.line("repeat_elements<{}>({}, {}, {}, {});", shape_.columns, n.base, n.row_step.str(),
                   vec_count_.is(shape_.vec_count) ? int_text(rows)
                                                   : fmt::format("{} / {}", vec_count_.str(), shape_.columns),
                   variable);
  }
  n.base = n.pointer = variable;
}

// Declares pointers to the next program's blocks. They may lie beyond the view: fetching ahead never faults.
void LoopPointers::declare_prefetches() {
  for (const FetchedAhead& each : walk_.ahead) {
    const Access access = instr_access(k_, *each.load, part_.loop->shape);
    std::string& variable = ahead_pointers_.emplace_back();
    if (!access.stride[0].is(1)) continue;
    variable = k_.names.unique(access.name + "_next");
    k_.code.line("const {}* {} = {} + {};", memory_type(access.dtype), variable, access.pointer(),
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
    const std::string row = Sum()
                                .add(Amount::named(n.base))
                                .add(Amount::named(row_), n.access.stride[shape_.other])
                                .total()
                                .str();
    std::string& variable = pointers_[row];
    if (variable.empty()) variable = k_.names.unique(n.access.name + "_row");
    if (declared.insert(row).second) k_.code.line("auto* {} = {};", variable, row);
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

}  // namespace tilewright::cpu
