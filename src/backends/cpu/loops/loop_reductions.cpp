// Reductions and scans inside an element loop.
#include "backends/cpu/loops/loop_reductions.h"
#include "backends/cpu/text/scalar_text.h"

#include <tilewright/base/error.h>

namespace tilewright::cpu {

using printer::Instr;
using tile::Monoid;

namespace {

// Running sums of f32 are carried in f64, so that the error of long ones does not grow with their length.
DType carried_type(const Instr& instr, DType dtype) {
  const bool adds = instr.kind == Instr::Kind::scan && instr.op->monoid == Monoid::sum;
  return adds && compute_dtype(dtype) == DType::f32 ? DType::f64 : dtype;
}

std::string side(Monoid m) { return m == Monoid::argmax ? "Side::greatest" : "Side::least"; }

// A balanced combination of all copies: "(m0 + m1) + (m2 + m3)".
std::string combine_all(Monoid monoid, const std::vector<std::string>& terms) {
  if (terms.size() == 1) return terms[0];
  const auto middle = static_cast<std::ptrdiff_t>(terms.size() / 2);
  std::string left = combine_all(monoid, {terms.begin(), terms.begin() + middle});
  std::string right = combine_all(monoid, {terms.begin() + middle, terms.end()});
  if (tile::finds_place(monoid)) return fmt::format("earliest<{}>({}, {})", side(monoid), left, right);
  const bool infix = monoid != Monoid::max && monoid != Monoid::min;
  if (infix && middle > 1) left = "(" + left + ")";
  if (infix && terms.size() - static_cast<std::size_t>(middle) > 1) right = "(" + right + ")";
  return combine_text(monoid, left, right);
}

// What folds the lanes of as many rows as there are lanes; empty: masks, whose lanes one instruction folds.
std::string fold_of_rows(Monoid monoid) {
  switch (monoid) {
    case Monoid::sum:
      return "fold_rows<Add>";
    case Monoid::prod:
      return "fold_rows<Multiply>";
    case Monoid::min:
      return "fold_rows<Minimum>";
    case Monoid::max:
      return "fold_rows<Maximum>";
    case Monoid::argmin:
    case Monoid::argmax:
      return fmt::format("fold_places<{}>", side(monoid));
    default:
      return "";
  }
}

std::string accumulator_type(Monoid monoid, DType dtype) {
  const std::string vector(vector_type(dtype));
  return tile::finds_place(monoid) ? fmt::format("Extreme<{}>", vector) : vector;
}

}  // namespace

// Reductions keep one accumulator for each vector in flight; a scan along the vectors carries one value.
void LoopReductions::declare_accumulators(const Pass& pass) {
  for (int i : part_.instrs) {
    const Instr& instr = this->instr(i);
    if (!is_accumulating(instr)) continue;
    Node& n = node(i);
    if (n.text.empty()) n.text = k_.names.unique(k_.hints[instr.value] + "_acc");
    if (is_in_blocks(i)) {
      declare_totals(i, pass);
      continue;
    }
    const DType dtype = carried_type(instr, dtype_of(instr.operands[0]));
    const Monoid monoid = instr.op->monoid;
    const Term identity{.text = tile::finds_place(monoid) ? "" : identity_text(monoid, dtype),
                        .dtype = dtype};
    if (instr.kind == Instr::Kind::scan && !shape_.vec_outside) {
      k_.code.line("{} {} = {};", scalar_type(dtype), n.text, identity.text);
      continue;
    }
    std::vector<std::string> declarators;
    declarators.reserve(pass.copies);
    for (int copy = 0; copy < pass.copies; ++copy)
      declarators.push_back(fmt::format("{}{} = {}", n.text, copy,
                                        tile::finds_place(monoid)
                                            ? fmt::format("no_extreme<{}>()", vector_type(dtype))
                                            : as_vector(k_, identity)));
    if (tile::finds_place(monoid)) k_.include("tw_cpu/extreme.h");
    k_.code.declare(accumulator_type(monoid, dtype), declarators);
  }
}

// Along the vectors one total for all copies, which a block adds up first; of sums across them one each.
void LoopReductions::declare_totals(int i, const Pass& pass) {
  Node& n = node(i);
  if (n.total.empty()) n.total = k_.names.unique(k_.hints[instr(i).value] + "_total");
  for (int copy = 0; copy < (shape_.vec_outside ? pass.copies : 1); ++copy)
    k_.code.line("vf64 {}{} = vf64(0.0);", n.total, shape_.vec_outside ? int_text(copy) : "");
}

void LoopReductions::declare_block_sums(const Pass& pass) {
  for (int i : part_.instrs) {
    if (!is_in_blocks(i)) continue;
    const DType dtype = dtype_of(instr(i).operands[0]);
    const Term zero{.text = identity_text(Monoid::sum, dtype), .dtype = dtype};
    std::vector<std::string> declarators;
    declarators.reserve(static_cast<std::size_t>(pass.copies));
    for (int copy = 0; copy < pass.copies; ++copy)
      declarators.push_back(fmt::format("{}{} = {}", node(i).text, copy, as_vector(k_, zero)));
    k_.code.declare(std::string(vector_type(dtype)), declarators);
  }
}

void LoopReductions::close_blocks(const Pass& pass) {
  for (int i : part_.instrs) {
    if (!is_in_blocks(i)) continue;
    const Node& n = node(i);
    const bool wide = dtype_of(instr(i).operands[0]) == DType::f64;
    const auto add = [&](const std::string& total, const std::string& sum) {
      k_.code.line("{} += {};", total, wide ? sum : fmt::format("convert<vf64>({})", sum));
    };
    std::vector<std::string> sums;
    sums.reserve(static_cast<std::size_t>(pass.copies));
    for (int copy = 0; copy < pass.copies; ++copy) sums.push_back(fmt::format("{}{}", n.text, copy));
    if (shape_.vec_outside)
      for (int copy = 0; copy < pass.copies; ++copy)
        add(fmt::format("{}{}", n.total, copy), sums[static_cast<std::size_t>(copy)]);
    else
      add(n.total, combine_all(Monoid::sum, sums));
  }
  k_.code.close();
}

void LoopReductions::accumulate(int i, Pass& pass) {
  const Instr& instr = this->instr(i);
  if (instr.kind == Instr::Kind::scan) return print_scan(i, pass);
  const Node& n = node(i);
  const Monoid monoid = instr.op->monoid;
  // Along the rows a lane that does not exist spoils only itself.
  const std::string lanes = pass.masked && is_ragged() && !shape_.vec_outside ? count_mask(pass) : "";
  for (int copy = 0; copy < pass.copies; ++copy) {
    const std::string acc = fmt::format("{}{}", n.text, copy);
    const std::string value = as_vector(k_, expressions_.term(instr.operands[0], copy, pass));
    if (tile::finds_place(monoid)) {
      const std::string index = shape_.vec_outside ? fmt::format("vi32((i32){})", row_)
                                                   : fmt::format("iota() + (i32)({})", at(pass, copy));
      k_.code.line("{} = extreme<{}>({}, {}, {}{});", acc, side(monoid), acc, value, index,
                   lanes.empty() ? "" : ", " + lanes);
      continue;
    }
    const std::string combined = combine_text(monoid, acc, value);
    k_.code.line("{} = {};", acc,
                 lanes.empty() ? combined : fmt::format("select({}, {}, {})", lanes, combined, acc));
  }
}

void LoopReductions::finish_reductions(Pass& pass) {
  for (int i : part_.instrs) {
    const Instr& instr = this->instr(i);
    if (!is_accumulating(instr) || instr.kind == Instr::Kind::scan) continue;
    if (!shape_.vec_outside) {
      finish_along_vec(i, pass.copies);
      continue;
    }
    // The result's elements lie along the vectors.
    const Buffer& buffer = k_.buffer(instr.value);
    for (int copy = 0; copy < pass.copies; ++copy) {
      std::string value = fmt::format("{}{}", node(i).text, copy);
      if (is_in_blocks(i)) {
        value = fmt::format("{}{}", node(i).total, copy);
        if (buffer.dtype != DType::f64) value = fmt::format("convert<vf32>({})", value);
      }
      if (tile::finds_place(instr.op->monoid)) value = fmt::format("places({})", value);
      const bool boolean = is_bool(buffer.dtype);
      if (boolean) k_.include("tw_cpu/masked.h");
      k_.code.line("store{}({} + {}, {});", boolean ? "_bool" : "", buffer.name, at(pass, copy), value);
    }
  }
}

void LoopReductions::finish_along_vec(int i, int copies) {
  const Instr& instr = this->instr(i);
  std::vector<std::string> terms;
  terms.reserve(copies);
  for (int copy = 0; copy < copies; ++copy) terms.push_back(fmt::format("{}{}", node(i).text, copy));
  const Monoid monoid = instr.op->monoid;
  if (const auto rows = rows_of_lanes_.find(i); rows != rows_of_lanes_.end())
    return k_.code.line("{}[{} - {}] = {};", rows->second, row_, first_row_, combine_all(monoid, terms));
  if (!is_in_blocks(i))
    return print_kept_scalar(i, across_lanes_text(k_, monoid, combine_all(monoid, terms)));
  const std::string total = across_lanes_text(k_, monoid, node(i).total);
  print_kept_scalar(i, dtype_of(instr.operands[0]) == DType::f64 ? total : fmt::format("(f32){}", total));
}

// Folding one row's lanes takes a dozen instructions that wait for each other, of sixteen rows two or three a
// row.
bool LoopReductions::folds_rows(int i) const {
  const Instr& instr = this->instr(i);
  if (instr.kind != Instr::Kind::reduce || !is_accumulating(instr) || is_in_blocks(i)) return false;
  if (!node(i).along_vec || is_bool(dtype_of(instr.operands[0])) || fold_of_rows(instr.op->monoid).empty())
    return false;
  return k_.kernel.type(instr.value).rank() > 0;
}

bool LoopReductions::folds_rows() const {
  if (shape_.other < 0 || shape_.vec_outside || shape_.other_count < k_.lanes / 2) return false;
  return std::any_of(part_.instrs.begin(), part_.instrs.end(), [&](int i) { return folds_rows(i); });
}

// Rows that the last ones lack are zeros, or what was there before.
void LoopReductions::declare_rows_of_lanes() {
  for (int i : part_.instrs) {
    if (!folds_rows(i)) continue;
    const std::string& name = rows_of_lanes_[i] = k_.names.unique(k_.hints[instr(i).value] + "_rows");
    k_.code.line("{} {}[{}] = {{}};", accumulator_type(instr(i).op->monoid, dtype_of(instr(i).operands[0])),
                 name, k_.lanes);
  }
}

void LoopReductions::fold_rows() {
  k_.include("tw_cpu/reduce.h");
  for (const auto& [i, rows] : rows_of_lanes_)
    k_.code.line("store({} + {}, {}({}));", k_.buffer(instr(i).value).name, first_row_,
                 fold_of_rows(instr(i).op->monoid), rows);
}

// A value that is one element per row: into its variable or its buffer.
void LoopReductions::print_kept_scalar(int i, const std::string& value) {
  const Instr& instr = this->instr(i);
  const tile::TileType& type = k_.kernel.type(instr.value);
  const bool only_one = instr.kind == Instr::Kind::reduce && reduced_axis(instr) < 0 &&
                        tile::finds_place(instr.op->monoid) && instr.op->kind == tile::OpKind::reduce;
  const std::string text = only_one ? "0" : value;
  if (type.rank() == 0) {
    const std::string variable = k_.name_scalar(instr.value);
    k_.code.line("const {} {} = {};", scalar_type(type.dtype), variable, text);
    return;
  }
  std::vector<int> axes = instr.axes;
  if (instr.kind == Instr::Kind::reduce) axes.erase(axes.begin() + instr.op->axis);
  const Access to = buffer_access(k_, instr.value, axes);
  Sum offset;
  if (shape_.other >= 0) offset.add(Amount::named(row_), to.stride[shape_.other]);
  k_.code.add(write_element(type.dtype, to.base, offset.total(), text));
}

void LoopReductions::print_scan(int i, Pass& pass) {
  const Instr& instr = this->instr(i);
  Node& n = node(i);
  const Monoid monoid = instr.op->monoid;
  // A buffer has room for the rest of a vector beyond its last element.
  Pass unmasked{.copies = pass.copies, .index = pass.index};
  Pass& into = n.access.stride[shape_.vec].is(1) ? unmasked : pass;
  if (shape_.vec_outside) {
    for (int copy = 0; copy < pass.copies; ++copy) {
      const std::string acc = fmt::format("{}{}", n.text, copy);
      const DType dtype = dtype_of(instr.operands[0]), carried = carried_type(instr, dtype);
      const std::string value = as_vector(k_, expressions_.term(instr.operands[0], copy, pass));
      const bool wider = carried != dtype;
      k_.code.line("{} = {};", acc,
                   combine_text(monoid, acc, wider ? fmt::format("convert<vf64>({})", value) : value));
      k_.code.add(
          expressions_.store_text(n, wider ? fmt::format("convert<vf32>({})", acc) : acc, copy, into));
    }
    return;
  }
  k_.include("tw_cpu/scan.h");
  for (int copy = 0; copy < pass.copies; ++copy) {
    const std::string name = copy_name(n.text + "_at", copy, pass);
    k_.code.line("const {} {} = scan_{}({}, {});", vector_type(n.access.dtype), name, tile::name(monoid),
                 as_vector(k_, expressions_.term(instr.operands[0], copy, pass)), n.text);
    k_.code.add(expressions_.store_text(n, name, copy, into));
  }
}

}  // namespace tilewright::cpu
