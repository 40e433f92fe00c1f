// Staged loads: a persistent kernel copies the rows of the next programs into shared memory while it computes
// on the present one's. Memory is busy all the time, and the rows take no registers.
#include "backends/cuda/layout/staging.h"
#include "backends/cuda/print/kernel_printer.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;

void KernelPrinter::index_scalars() {
  for (const Step& step : loops_.steps)
    if (step.kind == Step::Kind::scalar && !step.op->results.empty())
      scalar_definitions_[step.op->results[0]] = step.op;
}

// Names for what is copied ahead, and their places in shared memory.
void KernelPrinter::choose_staged() {
  if (plan_.staged.empty()) return;
  index_scalars();
  Index slots = 0;
  for (const StagedLoad& load : plan_.staged) {
    const Staged s{
        unique(identifier(kernel_.views[static_cast<std::size_t>(load.op->param)].name) + "_ahead"),
        load.slots, slots};
    slots += s.slots;
    staged_[load.op] = s;
    const ValueId storage = loops_.storage(load.op->results[0]);
    const auto buffer = layouts_.buffers.find(storage);
    if (buffer == layouts_.buffers.end()) continue;
    const DType dtype = kernel_.type(storage).dtype;
    buffers_[storage] = {s.name + "_now", buffer->second, dtype, element_type(dtype), /*staged=*/true};
    declared_.insert(storage);
  }
}

// The copies of one program's rows into turn `turn`, as part of the function that fetches a program.
void KernelPrinter::print_fetch(Loop& loop, const Instr& in) {
  need("fetch");
  const Staged& s = staged_.at(in.op);
  const Access access(kernel_, ranges_, *in.op);
  Text here(2);
  std::swap(out_, here);
  for (int d = 0; d < access.rank(); ++d) print_foreseen(access.start(d));
  const Bounds b = print_bounds(loop, in, access);
  const Address a = print_address(loop, in, access);
  const Registers r{s.name, loop.place, access.view().dtype, element_type(access.view().dtype), true};
  for_registers(r, [&] {
    std::string p = a.base, guard = b.uniform;
    const bool rows = loop.place.part == Part::all && loop.frame.row_steps() > 1;
    if (rows) p += " + " + a.row_term;
    if (loop.frame.col_steps() > 1) p += fmt::format(" + c * ({})", a.col_step);
    const auto add = [&](bool needed, const std::string& condition) {
      if (needed) guard += (guard.empty() ? "" : " && ") + condition;
    };
    add(b.rows && loop.place.part == Part::all, fmt::format("{} < {}", row_text(loop), b.end_row));
    add(b.cols, fmt::format("{} < {}", col_text(loop), b.end_col));
    const std::string slot = staged_slot(r, s.name + " + turn * " + integer(s.slots * schedule_.threads));
    if (guard.empty())
      out_.line("fetch<{}, {}>({}, {});", loop.frame.vector, schedule_.threads, slot, p);
    else
      out_.line("fetch_if<{}, {}>({}, {}, {});", loop.frame.vector, schedule_.threads, guard, slot, p);
  });
  std::swap(out_, here);
  fetch_.append(here);
}

// Once more what the body computes from the program id, for another program: the same names, in the fetching
// function.
void KernelPrinter::print_foreseen(ValueId v) {
  if (!foreseen_.insert(v).second) return;
  const Op& op = *scalar_definitions_.at(v);
  for (ValueId o : op.operands) print_foreseen(o);
  if (op.kind == OpKind::program_id) {
    if (foreseen_axes_.insert(op.param).second)
      out_.line("const i32 program_{} = {};", op.param, program_id(op.param).text);
  } else if (const auto line = scalar_lines_.find(v); line != scalar_lines_.end()) {
    out_.write(line->second);
  }
}

// This thread's first slot of the vector that r and c name.
std::string KernelPrinter::staged_slot(const Registers& r, const std::string& base) const {
  const Frame& f = layouts_.frame(r.place);
  const Index each = f.vector * static_cast<Index>(size_bytes(r.dtype)) / kSlotBytes * schedule_.threads;
  std::string index;
  const bool rows = r.place.part == Part::all && f.row_steps() > 1;
  if (rows && f.col_steps() > 1)
    index = fmt::format("(r * {} + c) * {}", f.col_steps(), each);
  else if (rows || f.col_steps() > 1)
    index = fmt::format("{} * {}", rows ? "r" : "c", each);
  return index.empty() ? base : base + " + " + index;
}

std::string KernelPrinter::staged_vector(const Registers& r) const {
  return fmt::format("fetched<{}, {}, {}>({})", r.type, layouts_.frame(r.place).vector, schedule_.threads,
                     staged_slot(r, r.name));
}

// Before the loop over programs: where the rows lie, how a program is fetched, and the first of them under
// way.
void KernelPrinter::print_staging(const std::string& programs) {
  const int ahead = schedule_.stages - 1;
  for (const auto& [op, s] : staged_in_order())
    out_.line("uint4* const {} = stage<uint4>() + ({}) + threadIdx.x;", s.name,
              fmt::format("{} + {}", integer(plan_.shared.staged_at / kSlotBytes),
                          integer(s.first_slot * schedule_.threads * schedule_.stages)));
  out_.open("const auto fetch_program = [&](i32 program, int turn)");
  out_.append(fetch_);
  out_.close_with("};");
  out_.line("const i32 first = {}, hop = {};",
            row_cluster(schedule_) > 1 ? fmt::format("i32(blockIdx.x) / {}", row_cluster(schedule_))
                                       : "i32(blockIdx.x)",
            row_cluster(schedule_) > 1 ? fmt::format("i32(gridDim.x) / {}", row_cluster(schedule_))
                                       : "i32(gridDim.x)");
  out_.open("for (int i = 0; i < {}; ++i)", ahead);
  out_.line("if (first + i * hop < {}) fetch_program(first + i * hop, i);", programs);
  out_.write("copy_async_commit();");
  out_.close();
  out_.write("int turn = 0;  // which of the rows under way the present program works on");
}

// At the head of the loop over programs: one more program is fetched, the present one's rows have arrived.
void KernelPrinter::print_turn(const std::string& programs) {
  const int ahead = schedule_.stages - 1;
  out_.line("if (program + {0} * hop < {1}) fetch_program(program + {0} * hop, turn == 0 ? {0} : turn - 1);",
            ahead, programs);
  out_.write("copy_async_commit();");
  out_.line("copy_async_wait<{}>();", ahead);
  for (const auto& [op, s] : staged_in_order())
    out_.line("const uint4* const {0}_now = {0} + turn * {1};", s.name, s.slots * schedule_.threads);
  out_.line("turn = turn == {} ? 0 : turn + 1;", ahead);
}

// By place in memory, not by address of the op.
std::vector<std::pair<const tile::Op*, KernelPrinter::Staged>> KernelPrinter::staged_in_order() const {
  std::vector<std::pair<const Op*, Staged>> all(staged_.begin(), staged_.end());
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.second.first_slot < b.second.first_slot; });
  return all;
}

}  // namespace tilewright::cuda
