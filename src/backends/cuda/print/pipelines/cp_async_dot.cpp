#include "backends/cuda/print/pipelines/cp_async_dot.h"

namespace tilewright::cuda {

void print_copy(KernelPrinter& k, const std::string& block, const std::string& to, const TensorOperand& o) {
  ExpressionPrinter& text = k.expressions();
  const Access access(k.kernel(), k.plan().ranges, *o.load);
  const int inner_axis = access.axis_of(o.inner_dim());
  std::string ends[2];
  for (int side : {0, 1}) {
    const int dim = side == 0 ? o.inner_dim() : o.outer_dim();
    const Index size = side == 0 ? o.inner() : o.outer();
    ends[side] = access.checked_above(dim) ? fmt::format("end_inside({}, {}, {})",
                                                         text.as_type(text.scalar(access.start(dim)), "i64"),
                                                         text.dim_text(access.extent(dim)), size)
                                           : integer(size);
  }
  // Where it begins along the other dimensions may be what a table says: outside the view it is zeros.
  for (int dim = 0; dim < access.rank(); ++dim)
    if (access.axis_of(dim) < 0 && (access.checked_below(dim) || access.checked_above(dim)))
      ends[0] = fmt::format("u64({}) < u64({}) ? {} : 0", text.as_type(text.scalar(access.start(dim)), "i64"),
                            text.dim_text(access.extent(dim)), ends[0]);
  constexpr Index kBytes = 16;
  const Index chunk = kBytes / static_cast<Index>(size_bytes(access.view().dtype));
  const bool inside = !access.checked_above(o.inner_dim()) || access.whole_vectors(inner_axis, chunk);
  const bool whole = access.contiguous(inner_axis) && access.aligned(inner_axis, chunk);
  std::string offset = text.base_offset(access);
  const std::string view = k.names().view(access.op().param);
  k.out().line("copy_block<{}, {}, {}{}>({}, {}{}, {}, {}, {}, {});", block, k.plan().schedule.threads, whole,
               whole && !inside ? ", true" : "", to, view, offset == "0" ? "" : " + " + offset,
               text.stride_text(access, o.inner_dim()), text.stride_text(access, o.outer_dim()), ends[0],
               ends[1]);
}

// How the operands' blocks lie, and where.
void print_dot_blocks(KernelPrinter& k) {
  const TensorDot& dot = *k.plan().dots.dot;
  const tile::Schedule& schedule = k.plan().schedule;
  for (const auto& [name, o] : {std::pair{"A", &dot.a}, std::pair{"B", &dot.b}})
    k.out().line("using {} = {}<{}, {}, {}, Major::{}>;", name,
                 dot_unit(schedule) == tile::DotUnit::fma_blocks ? "FmaBlock" : "Block",
                 element_type(o->dtype), o->rows, o->depth, o->k_major ? "k" : "mn");
  k.out().line("const u32 a_blocks = block_stage(), b_blocks = a_blocks + {} * A::bytes;", stages(schedule));
}

// acc += a · b for the block at `turn`.
std::string CpAsyncDot::multiply_text(const Registers& acc) {
  const TileFrame& f = layouts_.frame(acc.layout);
  constexpr const char* kBlocks = "a_blocks + stage * A::bytes, b_blocks + stage * B::bytes";
  if (dot_unit(schedule_) == tile::DotUnit::fma_blocks) {
    need("fma_dot");
    const ThreadNames thread_names = k_.programs().thread(f);
    return fmt::format("fma_block<A, B, {}, {}, {}, {}>({}, {}, {}, {} * {});", f.row_steps(), f.groups,
                       f.col_steps(), f.threads_per_row * f.vector, registers_.pointer_to(acc), kBlocks,
                       thread_names.g, thread_names.t, f.vector);
  }
  need("mma_dot");
  return fmt::format("mma_block<A, B, {}, {}>({}, {});", schedule_.threads, f.threads_per_row / 4, acc.name,
                     kBlocks);
}

bool CpAsyncDot::print_loop(const Step& step) {
  if (step.op != dot_->loop) return false;
  k_.declare_buffers(step.body[0]);
  need("edge");
  const Op& op = *step.op;
  const Registers acc = registers_.buffer(dot_->dot->results[0]);
  const TileFrame& f = layouts_.frame(acc.layout);
  const std::string multiply = multiply_text(acc);
  const ValueId i = op.blocks[0].args[0];
  const std::string name = names_.value(i), lower = expressions_.scalar(op.operands[0]).text,
                    upper = expressions_.scalar(op.operands[1]).text,
                    by = expressions_.scalar(op.operands[2]).text;
  const int ahead = stages(schedule_) - 1;
  print_dot_blocks(k_);
  out_.open("const auto fetch = [&](i64 {}, int stage)", name);
  out_.open("if ({} < {})", name, upper);
  scalars_[i] = {name, "i64"};
  for (const Step& s : step.body[0])
    if (s.kind == Step::Kind::scalar) k_.scalars().print_scalar(*s.op);
  print_copy(k_, "A", "a_blocks + stage * A::bytes", dot_->a);
  print_copy(k_, "B", "b_blocks + stage * B::bytes", dot_->b);
  out_.close();
  out_.write("copy_async_commit();");
  out_.close_with("};");
  if (dot_->from_zero) {
    const std::string element_text = registers_.element(acc);
    registers_.for_registers(acc, [&] {
      if (f.vector > 1) out_.unrolled("v", f.vector);
      out_.line("{} = 0.f;", element_text);
      if (f.vector > 1) out_.close();
    });
  }
  out_.line("for (int i = 0; i < {0}; ++i) fetch({1} + i * {2}, i);", ahead, lower, wrapped(by));
  out_.write("int stage = 0;  // which of the blocks under way is multiplied");
  out_.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", name, lower, upper, by);
  out_.line("copy_async_wait<{}>();", ahead - 1);
  out_.write("__syncthreads();");
  out_.line("fetch({} + {} * {}, stage == 0 ? {} : stage - 1);", name, ahead, wrapped(by), ahead);
  out_.write(multiply);
  out_.line("stage = stage == {} ? 0 : stage + 1;", ahead);
  out_.close();
  out_.write("copy_async_wait<0>();");
  out_.write("__syncthreads();");
  return true;
}

}  // namespace tilewright::cuda
