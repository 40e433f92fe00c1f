// The schedules dot=mma and dot=fma_blocks: all threads copy the blocks of later steps into shared memory
// (cp.async) while they multiply the present ones, by mma.sync or, in f32, on the ordinary units. They take
// what the copy engine cannot: odd strides, unaligned views, and devices before sm_90.
#include "backends/cuda/print/kernel_printer.h"

namespace tilewright::cuda {

using printer::Step;
using tile::Op;

// One operand's block, of type `block`, of the step whose loads' starts stand in scalars_ now.
void KernelPrinter::print_copy(const std::string& block, const std::string& to, const TensorOperand& o) {
  const Access access(kernel_, ranges_, *o.load);
  const int inner_axis = access.axis_of(o.inner_dim());
  std::string ends[2];
  for (int side : {0, 1}) {
    const int dim = side == 0 ? o.inner_dim() : o.outer_dim();
    const Index size = side == 0 ? o.inner() : o.outer();
    ends[side] = access.checked_above(dim)
                     ? fmt::format("end_inside({}, {}, {})", as_type(scalar(access.start(dim)), "i64"),
                                   dim_text(access.extent(dim)), size)
                     : integer(size);
  }
  // Where it begins along the other dimensions may be what a table says: outside the view it is zeros.
  for (int dim = 0; dim < access.rank(); ++dim)
    if (access.axis_of(dim) < 0 && (access.checked_below(dim) || access.checked_above(dim)))
      ends[0] = fmt::format("u64({}) < u64({}) ? {} : 0", as_type(scalar(access.start(dim)), "i64"),
                            dim_text(access.extent(dim)), ends[0]);
  constexpr Index kBytes = 16;
  const Index chunk = kBytes / static_cast<Index>(size_bytes(access.view().dtype));
  const bool inside = !access.checked_above(o.inner_dim()) || access.whole_vectors(inner_axis, chunk);
  const bool whole = access.contiguous(inner_axis) && access.aligned(inner_axis, chunk) && inside;
  std::string offset = base_offset(access);
  const std::string view = identifier(access.view().name);
  out_.line("copy_block<{}, {}, {}>({}, {}{}, {}, {}, {}, {});", block, schedule_.threads, whole, to, view,
            offset == "0" ? "" : " + " + offset, stride_text(access, o.inner_dim()),
            stride_text(access, o.outer_dim()), ends[0], ends[1]);
}

// acc += a · b for the block at `turn`.
std::string KernelPrinter::multiply_text(const Registers& acc) {
  const Frame& f = layouts_.frame(acc.place);
  constexpr const char* kBlocks = "a_blocks + turn * A::bytes, b_blocks + turn * B::bytes";
  if (schedule_.dot == tile::DotUnit::fma_blocks) {
    need("fma_dot");
    const Thread thread_names = thread(f);
    return fmt::format("fma_block<A, B, {}, {}, {}, {}>({}, {}, {}, {} * {});", f.row_steps(), f.groups,
                       f.col_steps(), f.threads_per_row * f.vector, pointer_to(acc), kBlocks, thread_names.g,
                       thread_names.t, f.vector);
  }
  need("mma_dot");
  return fmt::format("mma_block<A, B, {}, {}>({}, {});", schedule_.threads, f.threads_per_row / 4, acc.name,
                     kBlocks);
}

void KernelPrinter::print_copied_loop(const Step& step) {
  need("edge");
  const Op& op = *step.op;
  const Registers acc = buffer(dot_->dot->results[0]);
  const Frame& f = layouts_.frame(acc.place);
  const std::string multiply = multiply_text(acc);
  const ValueId i = op.blocks[0].args[0];
  const std::string name = value_name(i), lower = scalar(op.operands[0]).text,
                    upper = scalar(op.operands[1]).text, by = scalar(op.operands[2]).text;
  const int ahead = schedule_.stages - 1;
  print_dot_blocks();
  out_.open("const auto fetch = [&](i64 {}, int place)", name);
  out_.open("if ({} < {})", name, upper);
  scalars_[i] = {name, "i64"};
  for (const Step& s : step.body[0])
    if (s.kind == Step::Kind::scalar) print_scalar(*s.op);
  print_copy("A", "a_blocks + place * A::bytes", dot_->a);
  print_copy("B", "b_blocks + place * B::bytes", dot_->b);
  out_.close();
  out_.write("copy_async_commit();");
  out_.close_with("};");
  if (dot_->from_zero) {
    const std::string element_text = element(acc);
    for_registers(acc, [&] {
      if (f.vector > 1) out_.unrolled("v", f.vector);
      out_.line("{} = 0.f;", element_text);
      if (f.vector > 1) out_.close();
    });
  }
  out_.line("for (int i = 0; i < {0}; ++i) fetch({1} + i * {2}, i);", ahead, lower, wrapped(by));
  out_.write("int turn = 0;  // which of the blocks under way is multiplied");
  out_.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", name, lower, upper, by);
  out_.line("copy_async_wait<{}>();", ahead - 1);
  out_.write("__syncthreads();");
  out_.line("fetch({} + {} * {}, turn == 0 ? {} : turn - 1);", name, ahead, wrapped(by), ahead);
  out_.write(multiply);
  out_.line("turn = turn == {} ? 0 : turn + 1;", ahead);
  out_.close();
  out_.write("copy_async_wait<0>();");
  out_.write("__syncthreads();");
}

}  // namespace tilewright::cuda
