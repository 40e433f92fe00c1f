// The loops of an element loop: along the vectors and across them; long sums go in blocks.
#include "backends/cpu/loops/loop_walk.h"

#include <algorithm>

namespace tilewright::cpu {

using printer::Instr;
using tile::OpKind;

// Opens the loop over blocks of `span` up to `end`; the texts of where a block begins and ends.
std::pair<std::string, std::string> LoopWalk::open_blocks(const Amount& begin, const Amount& end, Index span,
                                                          bool backwards) {
  const std::string block = k_.names.unique("block");
  if (backwards)
    k_.code.open("for (i64 {0} = {1}; {0} >= 0; {0} -= {2})", block, (*end.number() - 1) / span * span, span);
  else
    k_.code.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", block, begin.str(), end.str(), span);
  const std::string next = fmt::format("{} + {}", block, span);
  if (begin.number() && end.number() && (*end.number() - *begin.number()) % span == 0) return {block, next};
  const std::string variable = k_.names.unique("block_end");
  k_.code.line("const i64 {} = min<i64>({}, {});", variable, next, end.str());
  return {block, variable};
}

void LoopWalk::print_rows() {
  if (!reductions_.folds_rows()) return print_rows("0", other_count_.str());
  reductions_.declare_rows_of_lanes();
  const auto [first, end] = open_blocks({}, other_count_, k_.lanes, /*backwards=*/false);
  reductions_.begin_rows(first);
  print_rows(first, end);
  reductions_.fold_rows();
  k_.code.close();
}

void LoopWalk::print_rows(const std::string& first, const std::string& end) {
  if (shape_.other >= 0) k_.code.open("for (i64 {0} = {1}; {0} < {2}; ++{0})", row_, first, end);
  uniform_.print_uniform(/*along_other=*/true);
  pointers_.declare_rows(Which::all);
  if (has_vectors_) {
    Pass outline{.copies = shape_.copies};
    reductions_.declare_accumulators(outline);
    print_along_vec([&](Pass& pass) { body_.print_body(pass, Which::all); });
    reductions_.finish_reductions(outline);
  }
  uniform_.print_uniform_effects();
  if (shape_.other >= 0) k_.code.close();
}

void LoopWalk::print_columns_outside() {
  print_along_vec([&](Pass& pass) {
    pointers_.declare_rows(
        Which::not_along_other);  // what is read once for all rows may lie outside as a whole
    body_.print_body(pass, Which::not_along_other);
    reductions_.declare_accumulators(pass);
    const auto masks = pass.masks;
    const bool blocks = has_blocks();
    std::pair<std::string, std::string> part{"0", other_count_.str()};
    if (blocks) {
      part = open_blocks(0, other_count_, kChainOfBlock, /*backwards=*/false);
      reductions_.declare_block_sums(pass);
    }
    k_.code.open("for (i64 {0} = {1}; {0} < {2}; ++{0})", row_, part.first, part.second);
    uniform_.print_uniform(/*along_other=*/true);
    pointers_.declare_rows(Which::along_other);
    body_.print_body(pass, Which::along_other);
    k_.code.close();
    if (blocks) reductions_.close_blocks(pass);
    pass.masks = masks;
    reductions_.finish_reductions(pass);
  });
}

// The distance between the copies of a loop over memory: each has pages of its own, so that a core reads
// several streams. Prefetchers stop at the end of a page, where one stream waits (measured on Zen 4: 22 GB/s
// in one stream of reads a core, 58 in four; docs/notes/2026-11-21-cpu-memory-probe.md). 0: side by side.
Index LoopWalk::streams_apart(const Amount& whole) const {
  constexpr Index kPage = 4096;
  const bool from_memory = k_.kind.streaming_stores || k_.kind.fetch_ahead;
  if (!from_memory || shape_.vec_outside || shape_.copies < 2 || !whole.is(shape_.vec_count)) return 0;
  if (shape_.vec_count % (static_cast<Index>(shape_.copies) * k_.lanes) != 0) return 0;
  const Index apart = shape_.vec_count / shape_.copies;
  for (int i : part_.instrs) {
    const Instr& in = instr(i);
    if (in.kind == Instr::Kind::scan || (in.op && in.op->kind == OpKind::random)) return 0;
    if (is_access(in) && node(i).along_vec && apart * memory_bytes(node(i).access.dtype) < kPage) return 0;
  }
  return apart;
}

// Whether a loop that should go backwards can: the number of its steps is known, and their order is free.
bool LoopWalk::goes_backwards(const Amount& whole) const {
  if (!walk_.backwards || !whole.number()) return false;
  return std::none_of(part_.instrs.begin(), part_.instrs.end(), [&](int i) {
    const Instr& in = instr(i);
    const bool finds_first =
        in.kind == Instr::Kind::reduce && in.op->kind == OpKind::reduce && tile::finds_place(in.op->monoid);
    const bool in_order = in.kind == Instr::Kind::effect && in.op->kind != OpKind::store;
    return in.kind == Instr::Kind::scan || finds_first || in_order;
  });
}

void LoopWalk::print_along_vec(const std::function<void(Pass&)>& body) {
  const Index step = static_cast<Index>(shape_.copies) * k_.lanes;
  const Amount whole = whole_vectors();
  const bool blocks = !shape_.vec_outside && has_blocks();
  if (!whole.is(0)) {
    Pass pass{.copies = shape_.copies, .apart = streams_apart(whole), .index = vec_, .steps = vec_};
    const Index advance = pass.apart > 0 ? k_.lanes : step;
    const Amount end = pass.apart > 0 ? Amount(pass.apart) : whole;
    const bool backwards = goes_backwards(whole);
    std::pair<std::string, std::string> part{"0", end.str()};
    if (blocks) {
      part = open_blocks(0, end, kChainOfBlock * advance, backwards);
      reductions_.declare_block_sums(pass);
    }
    if (backwards) {
      const Index last = *end.number() - advance;
      pass.steps = fmt::format("({} - {})", last, vec_);
      const std::string from = blocks ? fmt::format("{} - {}", part.second, advance) : int_text(last);
      k_.code.open("for (i64 {0} = {1}; {0} >= {2}; {0} -= {3})", vec_, from, part.first, advance);
    } else {
      k_.code.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", vec_, part.first, part.second, advance);
    }
    pointers_.print_prefetches(pass);
    body(pass);
    k_.code.close();
    if (blocks) reductions_.close_blocks(pass);
  }
  if (whole == vec_count_) return;
  Pass pass{.copies = 1, .masked = true, .index = vec_};
  std::pair<std::string, std::string> part{whole.str(), vec_count_.str()};
  if (blocks) {
    part = open_blocks(whole, vec_count_, kChainOfBlock * k_.lanes, /*backwards=*/false);
    reductions_.declare_block_sums(pass);
  }
  k_.code.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", vec_, part.first, part.second, k_.lanes);
  body(pass);
  k_.code.close();
  if (blocks) reductions_.close_blocks(pass);
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
    return shape_.vec_count / step * step;
  if (ends.empty() || !vec_count_.is(shape_.vec_count)) add(ends, vec_count_.str());
  std::string least = ends[0];
  for (std::size_t i = 1; i < ends.size(); ++i) least = fmt::format("min({}, {})", least, ends[i]);
  std::string text = fmt::format("{} / {} * {}", least, step, step);
  if (!conditions.empty()) text = fmt::format("{} ? {} : 0", fmt::join(conditions, " && "), text);
  const std::string variable = k_.names.unique("whole");
  k_.code.line("const i64 {} = {};", variable, text);
  return Amount::named(variable);
}

}  // namespace tilewright::cpu
