// Sums along a row of products of two narrow floats, or of what bytes become: on tensor cores (inner.cuh), so
// that neither is widened to f32 and four products take one instruction.
#include "backends/cuda/machine/fitted.h"
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::Monoid;
using tile::OpKind;
using tile::Prim;

namespace {

constexpr int kLaneElements = 4;  // of an instruction's k

}  // namespace

// Whether the lanes of a warp stand in quads that share rows, all of them with whole vectors.
bool LoopAnalysis::has_inner_products(const PrintedLoop& loop) const {
  const TileFrame& f = loop.frame;
  if (loop.layout.part != Part::all && loop.layout.part != Part::cols) return false;
  if (f.map != RowMap::strided || f.cols < kShortestInnerRow || f.ragged_cols() || f.ragged_rows())
    return false;
  if (layouts_.is_packed() && f.threads_per_row % 32 != 0) return false;
  return f.vector % kLaneElements == 0 && f.threads_per_row % kQuad == 0;
}

// What a factor is made of: loaded floats of 16 bits as f32, or bytes that become f32 and would be bf16 as
// exactly.
std::optional<InnerFactor> LoopAnalysis::inner_factor(const PrintedLoop& loop,
                                                      const printer::Ref& ref) const {
  if (ref.is_scalar()) return std::nullopt;
  const Instr& in = loop.plan->body[static_cast<std::size_t>(ref.instr)];
  if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::cast || in.operands[0].is_scalar() ||
      kernel_.type(in.value).dtype != DType::f32)
    return std::nullopt;
  if (widened_bytes(loop, in)) return InnerFactor{ref.instr, ref.instr, DType::bf16};
  const int source = in.operands[0].instr;
  const Instr& from = loop.plan->body[static_cast<std::size_t>(source)];
  if (!is_array(from)) return std::nullopt;
  const Registers& r = loop.arrays[static_cast<std::size_t>(source)];
  const bool along = r.layout.part == Part::all || r.layout.part == Part::cols;
  if (!along || r.staged || (r.dtype != DType::bf16 && r.dtype != DType::f16)) return std::nullopt;
  return r.type == r.dtype ? std::optional(InnerFactor{ref.instr, source, r.dtype}) : std::nullopt;
}

// The product's factors, of a sum that nothing else reads.
std::optional<std::pair<InnerFactor, InnerFactor>> LoopAnalysis::inner_factors(const PrintedLoop& loop,
                                                                               const Instr& in) const {
  if (in.kind != Instr::Kind::reduce || in.op->kind != OpKind::reduce || in.op->monoid != Monoid::sum ||
      role(loop, in.op->axis) != 1 || in.operands[0].is_scalar() ||
      kernel_.type(in.op->operands[0]).dtype != DType::f32)
    return std::nullopt;
  const auto product = static_cast<std::size_t>(in.operands[0].instr);
  const Instr& mul = loop.plan->body[product];
  if (mul.kind != Instr::Kind::compute || mul.op->kind != OpKind::apply || mul.op->prim != Prim::mul ||
      loop.uses[product] != 1 || spread_of(loop, mul.axes) != loop.layout.part)
    return std::nullopt;
  const auto a = inner_factor(loop, mul.operands[0]), b = inner_factor(loop, mul.operands[1]);
  if (!a || !b || a->type != b->type) return std::nullopt;
  return std::pair(*a, *b);
}

// Two sums that share a factor share the instructions.
void LoopAnalysis::choose_inner_products(PrintedLoop& loop) const {
  if (!has_inner_products(loop)) return;
  const auto drop = [&](int i) { return --loop.uses[static_cast<std::size_t>(i)] == 0; };
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    const auto factors = inner_factors(loop, in);
    if (!factors) continue;
    const auto& [a, b] = *factors;
    const auto shares = [&](const InnerProduct& p) {
      return p.second_sum < 0 && (p.by.source == a.source || p.by.source == b.source);
    };
    const auto other = std::find_if(loop.inner.begin(), loop.inner.end(), shares);
    if (other != loop.inner.end()) {
      other->second_sum = static_cast<int>(i);
      other->second = other->by.source == a.source ? b : a;
    } else {
      const bool by_first = a.instr != a.source;  // loaded as it is: what others may share
      loop.inner.push_back(
          {.first_sum = static_cast<int>(i), .first = by_first ? b : a, .by = by_first ? a : b});
    }
    drop(in.operands[0].instr);
    for (const InnerFactor& f : {a, b})
      if (drop(f.instr) && f.instr != f.source) drop(f.source);
  }
}

void ElementPrinter::print_inner_starts(PrintedLoop& loop) {
  for (InnerProduct& p : loop.inner) {
    need("inner");
    p.sums = out_.local(loop.states[static_cast<std::size_t>(p.first_sum)] + "_sums");
    out_.line("InnerSums {};", p.sums);
  }
}

// A vector's products.
void ElementPrinter::print_inner_products(PrintedLoop& loop) {
  std::map<int, std::string> widened;
  const auto text = [&](const InnerFactor& f) {
    if (f.instr != f.source) return registers_.at(loop.arrays[static_cast<std::size_t>(f.source)]);
    auto& name = widened[f.instr];
    if (!name.empty()) return name;
    const Instr& in = loop.plan->body[static_cast<std::size_t>(f.instr)];
    name = out_.local(names_.hint(in.value));
    const std::string vector = widened_text(loop, *analysis_.widened_bytes(loop, in), DType::bf16);
    out_.line("const Vec<bf16, {}> {} = {};", loop.frame.vector, name, vector);
    return name;
  };
  for (const InnerProduct& p : loop.inner) {
    const std::string first = text(p.first), second = p.second_sum < 0 ? "" : text(p.second) + ", ";
    out_.line("add_products({}, {}, {}{});", p.sums, first, second, text(p.by));
  }
}

void ElementPrinter::print_inner_ends(PrintedLoop& loop) {
  const auto end = [&](int sum, const std::string& value) {
    if (sum < 0) return;
    std::string state = loop.states[static_cast<std::size_t>(sum)];
    if (loop.layout.part == Part::all && loop.frame.row_steps() > 1) state += "[r]";
    out_.line("{} = {};", state, value);
  };
  for (const InnerProduct& p : loop.inner) {
    end(p.first_sum, fmt::format("first_sum({})", p.sums));
    end(p.second_sum, fmt::format("second_sum({})", p.sums));
  }
}

}  // namespace tilewright::cuda
