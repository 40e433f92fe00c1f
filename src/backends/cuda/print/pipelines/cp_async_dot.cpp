// The text of loops whose blocks all threads copy: copies, waits and products.
#include "backends/cuda/print/pipelines/cp_async_dot.h"

#include <algorithm>

namespace tilewright::cuda {

namespace {

bool by_fma(const KernelPrinter& k) { return dot_unit(k.plan().schedule) == tile::DotUnit::fma_blocks; }

// Bytes that are copied at once beside the threads: what cp.async takes, if it is aligned; 0: nothing is.
// Blocks for vector units lie in other orders, which only whole chunks keep.
int piece_bytes(const Access& access, int inner_axis, bool only_chunks) {
  for (const int bytes : {16, 8, 4}) {
    const Index elements = bytes / static_cast<Index>(size_bytes(access.view().dtype));
    if (elements > 0 && access.contiguous(inner_axis) && access.aligned(inner_axis, elements)) return bytes;
    if (only_chunks) break;
  }
  return 0;
}

}  // namespace

void print_copy(KernelPrinter& k, const std::string& block, const std::string& to, const TensorOperand& o) {
  ExpressionPrinter& text = k.expressions();
  const Access access(k.kernel(), k.plan().ranges, *o.load);
  const int inner_axis = access.axis_of(o.inner_dim());
  std::string ends[2];
  for (int side : {0, 1}) {
    const int dim = side == 0 ? o.inner_dim() : o.outer_dim();
    const Index size = side == 0 ? o.inner() : o.outer();
    ends[side] =
        access.checked_above(dim)
            ? fmt::format("end_inside({}, {}, {})", text.as_type(text.scalar(access.start(dim)), DType::i64),
                          text.dim_text(access.extent(dim)).str(), size)
            : integer(size);
  }
  // Starts along the other dimensions may come from a table: a block that starts outside the view is zeros.
  for (int dim = 0; dim < access.rank(); ++dim)
    if (access.axis_of(dim) < 0 && (access.checked_below(dim) || access.checked_above(dim)))
      ends[0] =
          fmt::format("u64({}) < u64({}) ? {} : 0", text.as_type(text.scalar(access.start(dim)), DType::i64),
                      text.dim_text(access.extent(dim)).str(), ends[0]);
  const int piece = piece_bytes(access, inner_axis, by_fma(k));
  const Index elements = std::max<Index>(1, piece / static_cast<Index>(size_bytes(access.view().dtype)));
  const bool cut =
      piece > 0 && access.checked_above(o.inner_dim()) && !access.whole_vectors(inner_axis, elements);
  const printer::IndexText offset = text.base_offset(access);
  const std::string view = k.names().view(access.op().param);
  k.out().line("{}<{}, {}, {}{}>({}, {}{}, {}, {}, {}, {});", by_fma(k) ? "copy_fma_block" : "copy_block",
               block, k.plan().schedule.threads, by_fma(k) ? fmt::format("{}", piece > 0) : integer(piece),
               cut ? ", true" : "", to, view, offset.is(0) ? "" : " + " + offset.str(),
               text.stride_text(access, o.inner_dim()).str(), text.stride_text(access, o.outer_dim()).str(),
               ends[0], ends[1]);
}

// Prints the types of the operands' blocks and their places in shared memory.
void print_dot_blocks(KernelPrinter& k) {
  const TensorDot& dot = *k.plan().dots.dot;
  const TileFrame& f = result_frame(k.plan(), *dot.dot);
  for (const auto& [name, o] : {std::pair{"A", &dot.a}, std::pair{"B", &dot.b}}) {
    const char* major = o->k_major ? "k" : "mn";
    if (by_fma(k)) {
      const bool rows = o == &dot.a;
      k.out().line("using {} = FmaBlock<{}, {}, {}, {}, Major::{}>;", name, o->rows, o->depth,
                   rows ? f.groups : f.threads_per_row, rows ? 1 : f.vector, major);
    } else {
      k.out().line("using {} = Block<{}, {}, {}, Major::{}>;", name, o->dtype, o->rows, o->depth, major);
    }
  }
  k.out().line("const u32 a_blocks = block_stage(), b_blocks = a_blocks + {} * A::bytes;",
               stages(k.plan().schedule));
}

// Waits until the block that is multiplied next is there, and all threads are done with the one before.
void CpAsyncDot::print_wait(int ahead) {
  out_.line("copy_async_wait<{}>();", ahead - 1);
  out_.write("__syncthreads();");
}

// Loads what the threads multiply with first; each block's product loads the first parts of the next block.
void CpAsyncDot::print_first_parts(const TileFrame& f, int ahead) {
  need("fma_dot");
  const ThreadNames thread = k_.programs().thread(f);
  out_.line("FmaParts<A, B> parts({}, {});", thread.g, thread.t);
  print_wait(ahead);
  out_.write("parts.load(0, a_blocks, b_blocks, 0);");
}

// acc += a · b for the block at `stage`.
void CpAsyncDot::print_multiply(const Registers& acc, const TileFrame& f, int ahead) {
  constexpr const char* kBlocks = "a_blocks + stage * A::bytes, b_blocks + stage * B::bytes";
  if (by_fma(k_)) {
    out_.line("const int next = stage == {} ? 0 : stage + 1;", ahead);
    out_.line("fma_block<{}>(parts, {}, {}, a_blocks + next * A::bytes, b_blocks + next * B::bytes);",
              ahead - 1, registers_.pointer_to(acc), kBlocks);
    out_.write("stage = next;");
    return;
  }
  need("mma_dot");
  out_.line("mma_block<A, B, {}, {}>({}, {});", schedule_.threads, f.threads_per_row / 4, acc.name, kBlocks);
  out_.line("stage = stage == {} ? 0 : stage + 1;", ahead);
}

bool CpAsyncDot::print_loop(const Step& step) {
  if (step.op != dot_->loop) return false;
  k_.declare_buffers(step.body[0]);
  need("edge");
  const Op& op = *step.op;
  const Registers acc = registers_.buffer(dot_->dot->results[0]);
  const TileFrame& f = layouts_.frame(acc.layout);
  const ValueId i = op.blocks[0].args[0];
  const std::string name = names_.value(i), lower = expressions_.scalar(op.operands[0]).text,
                    upper = expressions_.scalar(op.operands[1]).text;
  const TypedText by = expressions_.scalar(op.operands[2]);
  const int ahead = stages(schedule_) - 1;
  print_dot_blocks(k_);
  out_.open("const auto fetch = [&](i64 {}, int stage)", name);
  out_.open_if_needed("if ({} < {})", name, upper);
  scalars_[i] = {name, DType::i64};
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
  const bool fma = by_fma(k_);
  if (fma) print_first_parts(f, ahead);
  out_.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", name, lower, upper, by.text);
  if (!fma) print_wait(ahead);
  out_.line("fetch({} + {} * {}, stage == 0 ? {} : stage - 1);", name, ahead, wrapped(by), ahead);
  print_multiply(acc, f, ahead);
  out_.close();
  out_.write("copy_async_wait<0>();");
  out_.write("__syncthreads();");
  return true;
}

}  // namespace tilewright::cuda
