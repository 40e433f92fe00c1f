// Names, stages and zeros of blocks, as text.
#include "backends/cuda/print/pipelines/b2b_blocks.h"

#include "backends/cuda/print/scalar_printer.h"

namespace tilewright::cuda {

using tile::OpKind;

void B2bBlocks::choose_names() {
  for (const B2bBlock& b : b2b_->blocks) {
    const std::string& view = names_.stem(b.operand.load->param);
    text_.push_back(
        {.type = names_.unique(view + "_block"), .transposed = "", .stage = names_.unique(view + "_blocks")});
  }
  for (const B2bDot& d : b2b_->dots)
    for (const auto& [block, k_major] : {std::pair{d.a, d.a_k_major}, std::pair{d.b, d.b_k_major}}) {
      if (block < 0) continue;
      Names& text = text_[static_cast<std::size_t>(block)];
      const bool transposed = b2b_->blocks[static_cast<std::size_t>(block)].operand.k_major != k_major;
      if (transposed && text.transposed.empty()) text.transposed = names_.unique(text.type + "_transposed");
    }
}

// Prints the types of the blocks and the places of their stages in shared memory.
void B2bBlocks::print_stages(const std::string& first) {
  for (std::size_t i = 0; i < b2b_->blocks.size(); ++i) {
    const TensorOperand& o = b2b_->blocks[i].operand;
    const Names& text = text_[i];
    const DType element = o.dtype;
    const auto define = [&](const std::string& name, Index rows, Index depth, bool k_major) {
      out_.line("using {} = Block<{}, {}, {}, Major::{}>;", name, element, rows, depth, k_major ? "k" : "mn");
    };
    define(text.type, o.rows, o.depth, o.k_major);
    if (!text.transposed.empty()) define(text.transposed, o.depth, o.rows, !o.k_major);
    out_.line("const u32 {} = {};", text.stage, i == 0 ? first : behind(i - 1));
  }
}

std::string B2bBlocks::behind(std::size_t block) const {
  const Names& text = text_[block];
  return fmt::format("{} + {} * {}::bytes", text.stage, plan_.block_stages[block], text.type);
}

std::string B2bBlocks::type(int block, bool k_major) const {
  const bool as_first = b2b_->blocks[static_cast<std::size_t>(block)].operand.k_major == k_major;
  return as_first ? names(block).type : names(block).transposed;
}

std::string B2bBlocks::layout(int block, const std::string& number) const {
  const Names& text = names(block);
  if (plan_.block_stages[static_cast<std::size_t>(block)] == 1) return text.stage;
  return fmt::format("{} + {} * {}::bytes", text.stage, number, text.type);
}

bool B2bBlocks::reads_first(const B2bDot& dot, int block) const {
  for (const B2bDot& d : b2b_->dots)
    if (d.loop == dot.loop && (d.a == block || d.b == block)) return &d == &dot;
  return false;
}

bool B2bBlocks::reads_last(const B2bDot& dot, int block) const {
  const B2bDot* last = nullptr;
  for (const B2bDot& d : b2b_->dots)
    if (d.loop == dot.loop && (d.a == block || d.b == block)) last = &d;
  return last == &dot;
}

// The scalars that say where a loop's blocks begin, and those of loops inside it; and what these are made of.
std::set<tile::ValueId> B2bBlocks::starts(const Step& loop) const {
  std::set<tile::ValueId> needed;
  for (tile::ValueId v : loop.op->operands)
    if (kernel_.type(v).rank() == 0) needed.insert(v);
  for (const B2bBlock& b : b2b_->blocks)
    for (const B2bBlock::Fetch& f : b.fetches)
      if (f.loop == loop.op) needed.insert(f.load->operands.begin(), f.load->operands.end());
  for (auto s = loop.body[0].rbegin(); s != loop.body[0].rend(); ++s) {
    if (s->kind == Step::Kind::loop && b2b_->has_dots(*s->op)) needed.merge(starts(*s));
    if (s->kind == Step::Kind::scalar && !s->op->results.empty() && needed.count(s->op->results[0]) > 0)
      needed.insert(s->op->operands.begin(), s->op->operands.end());
  }
  return needed;
}

void B2bBlocks::print_starts(const Step& loop, const std::set<ValueId>& starts) {
  for (const Step& s : loop.body[0])
    if (s.kind == Step::Kind::scalar && !s.op->results.empty() && starts.count(s.op->results[0]) > 0)
      k_.scalars().print_scalar(*s.op);
}

// One element of a bool tile, or of what it is computed of, at place `line`.
TypedText B2bBlocks::used_part(ValueId v, const TypedText& line) {
  if (kernel_.type(v).rank() == 0) return expressions_.scalar(v);
  const Op& op = k_.definition(v);
  if (op.kind == OpKind::arange) return line;
  if (op.kind == OpKind::constant)
    return literal_text(kernel_.type(v).dtype, op.number, expressions_.type_of(v));
  if (op.kind == OpKind::broadcast || op.kind == OpKind::reshape) return used_part(op.operands[0], line);
  if (op.kind == OpKind::load) return used_part_load(op, line);
  std::vector<TypedText> operands;
  operands.reserve(op.operands.size());
  for (ValueId o : op.operands) {
    TypedText e = used_part(o, line);
    if (!scalars_.contains(o)) e = {wrapped(e), e.type, e.operations, Binding::call};
    operands.push_back(std::move(e));
  }
  return expressions_.compute(op, operands);
}

// The element of a vector in memory; its fill outside of the view.
TypedText B2bBlocks::used_part_load(const Op& op, const TypedText& line) {
  const tile::ViewParam& view = kernel_.views[static_cast<std::size_t>(op.param)];
  const std::vector<Index>& shape = kernel_.type(op.results[0]).shape;
  std::vector<TypedText> indices;
  std::string inside;
  for (int dim = 0; dim < view.rank(); ++dim) {
    TypedText at = expressions_.scalar(op.operands[static_cast<std::size_t>(dim)]);
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (op.tile_dims[axis] == dim && shape[axis] > 1)
        at = {fmt::format("({} + {})", expressions_.as_type(at, DType::i64), line.text), DType::i64, 1,
              Binding::call};
    if (op.bounded)
      inside += fmt::format("{}u64({}) < u64({})", inside.empty() ? "" : " && ",
                            expressions_.as_type(at, DType::i64),
                            expressions_.dim_text(view.extents[static_cast<std::size_t>(dim)]).str());
    indices.push_back(at);
  }
  need("memory");
  const DType type = expressions_.type_of(op.results[0]);
  TypedText e{fmt::format("load<1, Cache::constant>({} + {}).v[0]", names_.view(op.param),
                          expressions_.view_offset(op.param, indices).str()),
              compute_dtype(view.dtype), 0, Binding::prefix};
  if (!inside.empty())
    e = {fmt::format("({} ? {} : {})", inside, e.text, literal(view.dtype, op.number)), e.type, 0,
         Binding::call};
  return view.dtype == DType::i64 ? expressions_.converted(e, type) : TypedText{e.text, type, 0, e.binds};
}

// Zeros are written into blocks before the first dot that reads them.
bool B2bBlocks::zero_unused(const B2bDot& d, int threads,
                            const std::function<std::string(int block)>& layout) {
  bool any = false;
  for (int block : {d.a, d.b}) {
    if (block < 0 || is_resident(block) || !reads_first(d, block)) continue;
    const UsedPart part = b2b_->used_part(d, block);
    if (part.where < 0) continue;
    need("used_part");
    any = true;
    out_.line("zero_unused<{}, {}, {}>({}, [&](i32 i) {{ return {}; }});", names(block).type, part.k_major,
              threads, layout(block), used_part(part.where, {"i", DType::i32}).text);
  }
  return any;
}

}  // namespace tilewright::cuda
