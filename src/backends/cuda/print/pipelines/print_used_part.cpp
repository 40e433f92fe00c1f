// Zeros in shared memory in place of what a chain's dots do not use of a block: the rounds whose masks leave
// whole blocks (passes/split_loops.h) have none of it.
#include "backends/cuda/print/kernel_printer.h"

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;

// One element of a bool tile, or of what it is computed of, at place `line`.
Expr KernelPrinter::used_part(ValueId v, const Expr& line) {
  if (kernel_.type(v).rank() == 0) return scalar(v);
  const Op& op = *definitions_[static_cast<std::size_t>(v)];
  if (op.kind == OpKind::arange) return line;
  if (op.kind == OpKind::constant) return {literal(kernel_.type(v).dtype, op.number), type_of(v)};
  if (op.kind == OpKind::broadcast || op.kind == OpKind::reshape) return used_part(op.operands[0], line);
  if (op.kind == OpKind::load) return used_part_load(op, line);
  std::vector<Expr> operands;
  operands.reserve(op.operands.size());
  for (ValueId o : op.operands) {
    Expr e = used_part(o, line);
    if (!scalars_.contains(o) && e.text.find(' ') != std::string::npos) e.text = "(" + e.text + ")";
    operands.push_back(std::move(e));
  }
  return compute(op, operands);
}

// The element of a vector in memory; its fill outside of the view.
Expr KernelPrinter::used_part_load(const Op& op, const Expr& line) {
  const tile::ViewParam& view = kernel_.views[static_cast<std::size_t>(op.param)];
  const std::vector<Index>& shape = kernel_.type(op.results[0]).shape;
  std::vector<Expr> indices;
  std::string inside;
  for (int dim = 0; dim < view.rank(); ++dim) {
    Expr at = scalar(op.operands[static_cast<std::size_t>(dim)]);
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (op.tile_dims[axis] == dim && shape[axis] > 1)
        at = {fmt::format("({} + {})", as_type(at, "i64"), line.text), "i64"};
    if (op.bounded)
      inside += fmt::format("{}u64({}) < u64({})", inside.empty() ? "" : " && ", as_type(at, "i64"),
                            dim_text(view.extents[static_cast<std::size_t>(dim)]));
    indices.push_back(at);
  }
  need("memory");
  const std::string type = type_of(op.results[0]);
  std::string text = fmt::format("load<1, Cache::constant>({} + {}).v[0]", identifier(view.name),
                                 view_offset(op.param, indices));
  if (!inside.empty()) text = fmt::format("({} ? {} : {})", inside, text, literal(view.dtype, op.number));
  return {view.dtype == DType::i64 && type == "i32" ? fmt::format("i32({})", text) : text, type};
}

// Zeros are written into blocks before the first dot that reads them. Under dot=wgmma each warpgroup writes
// the same zeros for itself, so that the dot it issues next reads them.
void KernelPrinter::print_used_parts(const ChainDot& d) {
  bool any = false;
  for (int block : {d.a, d.b}) {
    if (block < 0 || chain_->blocks[static_cast<std::size_t>(block)].resident() || !reads_first(d, block))
      continue;
    const UsedPart part = chain_->used_part(d, block);
    if (part.where < 0) continue;
    need("used_part");
    any = true;
    const bool wgmma = schedule_.dot == tile::DotUnit::wgmma;
    out_.line("zero_unused<{}, {}, {}>({}, [&](i32 i) {{ return {}; }});",
              chain_text_[static_cast<std::size_t>(block)].type, part.by_depth,
              wgmma ? kWarpgroup : schedule_.threads, chain_place(d, block),
              used_part(part.where, {"i", "i32"}).text);
  }
  if (!any) return;
  if (schedule_.dot == tile::DotUnit::wgmma) {
    out_.write("bulk_store_fence();");
    out_.write("warpgroup_sync(group);");
  } else {
    out_.write("__syncthreads();");
  }
}

}  // namespace tilewright::cuda
