// Integers that count along the vectors' axis: element e of a row is `first` + e. Their lanes need not be
// computed: compared with what is the same for a whole row they are a mask of leading lanes, and as counters
// of random words they name whole blocks of Philox.
#include "backends/cpu/loops/loop_lanes.h"

namespace tilewright::cpu {

using printer::Instr;
using tile::OpKind;
using tile::Prim;

namespace {

bool is_order(Prim p) { return p == Prim::lt || p == Prim::le || p == Prim::gt || p == Prim::ge; }

}  // namespace

bool LoopLanes::is_uniform(const printer::Ref& ref) const {
  return ref.is_scalar() || !node(ref.instr).along_vec;
}

bool LoopLanes::counts_lanes(const printer::Ref& ref) const {
  if (is_uniform(ref) || dtype_of(ref) != DType::i64 || instr(ref.instr).kind != Instr::Kind::compute)
    return false;
  const Instr& i = instr(ref.instr);
  if (i.op->kind == OpKind::arange) return true;
  if (applies(i, Prim::add) && is_uniform(i.operands[0])) return counts_lanes(i.operands[1]);
  return (applies(i, Prim::add) || applies(i, Prim::sub)) && is_uniform(i.operands[1]) &&
         counts_lanes(i.operands[0]);
}

// Whether a value is a multiple of `factor` in the first lane of every vector.
bool LoopLanes::first_is_multiple(const printer::Ref& ref, Index factor) const {
  if (is_uniform(ref))
    return k_.ranges[static_cast<std::size_t>(ref.is_scalar() ? ref.scalar : instr(ref.instr).value)]
                   .divisor %
               factor ==
           0;
  const Instr& i = instr(ref.instr);
  if (i.op->kind == OpKind::arange) return k_.lanes % factor == 0;
  return first_is_multiple(i.operands[0], factor) && first_is_multiple(i.operands[1], factor);
}

// The operand of a comparison that counts lanes while the other is uniform; -1: none. Where the order matters
// the counting must not wrap around.
int LoopLanes::counting_side(int i) const {
  const Instr& in = instr(i);
  if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::apply || !node(i).along_vec) return -1;
  const bool equality = in.op->prim == Prim::eq || in.op->prim == Prim::ne;
  if (!equality && !is_order(in.op->prim)) return -1;
  for (const int side : {0, 1}) {
    const printer::Ref& ref = in.operands[static_cast<std::size_t>(side)];
    if (!counts_lanes(ref) || !is_uniform(in.operands[static_cast<std::size_t>(1 - side)])) continue;
    if (equality || k_.ranges[static_cast<std::size_t>(instr(ref.instr).value)].bounded()) return side;
  }
  return -1;
}

bool LoopLanes::is_block_of_words(int i) const {
  const Instr& in = instr(i);
  return in.kind == Instr::Kind::compute && in.op->kind == OpKind::random && is_uniform(in.operands[0]) &&
         counts_lanes(in.operands[1]) && first_is_multiple(in.operands[1], /*words of a block*/ 4);
}

// Vectors are added under locks (add_side_by_side() in tw_cpu), single elements without: elements of one view
// are added one way alone.
bool LoopLanes::adds_alone(const tile::Op& op) const {
  if (op.kind != OpKind::atomic_add) return false;
  int additions = 0;
  tile::for_each_op(k_.kernel.body,
                    [&](const tile::Op& other) { additions += other.kind == OpKind::atomic_add ? 1 : 0; });
  return additions == 1;
}

// The operand of a gather, scatter or addition that is the only index to differ between lanes and counts
// them, along a dim of stride 1: the lanes lie side by side. -1: none.
int LoopLanes::walked_index(int i) const {
  const Instr& in = instr(i);
  const bool is_gather = in.kind == Instr::Kind::compute && in.op->kind == OpKind::gather;
  const bool is_scatter =
      in.kind == Instr::Kind::effect && (in.op->kind == OpKind::scatter || adds_alone(*in.op));
  if (!is_gather && !is_scatter) return -1;
  const tile::ViewParam& view = k_.kernel.views[static_cast<std::size_t>(in.op->param)];
  const std::size_t first = is_gather ? 0 : 1;
  int walked = -1;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const printer::Ref& index = in.operands[first + d];
    if (is_uniform(index)) continue;
    const tile::Dim& stride = view.strides[d];
    if (walked >= 0 || !stride.is_constant() || stride.value != 1 || !counts_lanes(index)) return -1;
    walked = static_cast<int>(first + d);
  }
  return walked;
}

// Which instructions' lanes somebody reads.
void LoopLanes::find_needed_lanes() {
  const auto need = [&](const printer::Ref& r) {
    if (!r.is_scalar()) node(r.instr).needed = true;
  };
  for (std::size_t at = part_.instrs.size(); at-- > 0;) {
    const int i = part_.instrs[at];
    if (!is_writing(i) && !node(i).needed) continue;
    const int side = counting_side(i), walked = walked_index(i);
    for (std::size_t o = 0; o < instr(i).operands.size(); ++o) {
      const int operand = static_cast<int>(o);
      if (is_known_choice(i) && operand != 1) continue;
      const bool only_first = operand == side || operand == walked || (o == 1 && is_block_of_words(i));
      if (!only_first) need(instr(i).operands[o]);
    }
  }
}

}  // namespace tilewright::cpu
