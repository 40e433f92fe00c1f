// The body of kernels without dots on tensor cores.
#include "backends/cuda/print/pipelines/elements.h"
#include "backends/cuda/print/element_printer.h"

namespace tilewright::cuda {

using tile::OpKind;

void Elements::print_body() { k_.print_steps(loops_.steps); }

void RunsOfRows::print_body() {
  for (const RowRun& run : plan_.runs.all) {
    const std::string name = places_[run.op] = names_.unique(names_.stem(run.op->param) + "_tile");
    const DType dtype = kernel_.views[static_cast<std::size_t>(run.op->param)].dtype;
    out_.line("{}* const {} = shared_memory<{}>({});", dtype, name, dtype, plan_.shared.staged_at + run.at);
  }
  Elements::print_body();
}

// What both ways of a run are called with: where it lies in memory, and how many elements of it there are.
std::string RunsOfRows::call(const RowRun& run) {
  const Access access(kernel_, plan_.ranges, *run.op);
  std::string count = integer(run.rows * run.row);
  if (access.checked_above(run.rows_dim)) {
    need("edge");
    count = fmt::format("end_inside({}, {}, {}) * {}",
                        expressions_.as_type(expressions_.scalar(access.start(run.rows_dim)), DType::i64),
                        expressions_.dim_text(access.extent(run.rows_dim)).str(), run.rows, run.row);
  }
  return fmt::format("<{}, {}>({}, {} + {}, {});", schedule_.threads, run.rows * run.row, places_.at(run.op),
                     names_.view(run.op->param), expressions_.base_offset(access).added(), count);
}

void RunsOfRows::bring_tiles(const PrintedLoop& loop) {
  bool any = false;
  for (const RowRun& run : plan_.runs.all) {
    if (run.loop != loop.plan || run.op->kind != OpKind::load) continue;
    need("runs");
    out_.write("fetch_run" + call(run));
    any = true;
  }
  if (any) out_.write("wait_for_runs();");
}

void RunsOfRows::send_tiles(const PrintedLoop& loop) {
  bool any = false;
  for (const RowRun& run : plan_.runs.all) {
    if (run.loop != loop.plan || run.op->kind != OpKind::store) continue;
    need("runs");
    if (!any) out_.write("__syncthreads();");
    out_.write("send_run" + call(run));
    any = true;
  }
}

std::string RunsOfRows::tile_in_shared(const Op& op) const {
  const auto found = places_.find(&op);
  return found == places_.end() ? std::string() : found->second;
}

// One block walks over every gridDim.x-th program.
void PersistentRows::print_body() {
  const std::string programs = k_.programs().programs_text();
  name_staged();
  k_.declare_buffers(loops_.steps);
  k_.programs().wait_for_cluster();
  k_.wait_for_previous();
  Text before = out_.another(1);
  std::swap(before, out_);
  out_ = out_.another(2);
  ++loop_depth_;
  k_.print_steps(loops_.steps);
  --loop_depth_;
  Text body = out_.another(2);
  std::swap(body, out_);
  std::swap(before, out_);
  print_staging(programs);
  out_.open("for (i32 program = first; program < {}; program += hop)", programs);
  print_turn(programs);
  k_.programs().print_program_ids();
  out_.append(body);
  out_.close();
}

// Names for what is copied ahead, and their places in shared memory.
void PersistentRows::name_staged() {
  k_.scalars().index_scalars();
  Index slots = 0;
  for (const StagedLoad& load : plan_.staged) {
    const Staged s{names_.unique(names_.stem(load.op->param) + "_ahead"), load.slots, slots};
    slots += s.slots;
    staged_[load.op] = s;
    const ValueId storage = loops_.storage(load.op->results[0]);
    const auto buffer = layouts_.buffers.find(storage);
    if (buffer == layouts_.buffers.end()) continue;
    const DType dtype = kernel_.type(storage).dtype;
    buffers_[storage] = {s.name + "_now", buffer->second, dtype, dtype, /*staged=*/true};
    declared_.insert(storage);
  }
}

bool PersistentRows::bring_load(PrintedLoop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  const auto staged = staged_.find(in.op);
  if (staged == staged_.end()) return false;
  const DType dtype = kernel_.views[static_cast<std::size_t>(in.op->param)].dtype;
  loop.arrays[i] = {staged->second.name + "_now", loop.layout, dtype, dtype, true};
  print_fetch(loop, in);
  return true;
}

// The copies of one program's rows into turn `turn`, as part of the function that fetches a program.
void PersistentRows::print_fetch(PrintedLoop& loop, const Instr& in) {
  need("fetch");
  const Staged& s = staged_.at(in.op);
  const Access access(kernel_, plan_.ranges, *in.op);
  Text here = out_.another(2);
  std::swap(out_, here);
  for (int d = 0; d < access.rank(); ++d) foresight_.print(access.start(d));
  if (loop.frame.shifted && !fetches_shift_) k_.elements().loads().print_shift(access, loop.shift);
  fetches_shift_ = fetches_shift_ || loop.frame.shifted;
  const Bounds b = k_.elements().loads().print_bounds(loop, in, access);
  const Address a = k_.elements().loads().print_address(loop, in, access);
  const Registers r{s.name, loop.layout, access.view().dtype, access.view().dtype, true};
  registers_.for_registers(r, [&] {
    std::string p = a.base, guard = b.uniform;
    const bool rows = loop.layout.part == Part::all && loop.frame.row_steps() > 1;
    if (rows) p += " + " + a.row_term;
    if (loop.frame.col_steps() > 1) p += fmt::format(" + c * ({})", a.col_step.str());
    const auto add = [&](bool needed, const std::string& condition) {
      if (needed) guard += (guard.empty() ? "" : " && ") + condition;
    };
    add(b.rows && loop.layout.part == Part::all, fmt::format("{} < {}", row_text(loop), b.end_row));
    add(b.cols, loop.frame.shifted ? fmt::format("({})", holds_column(loop))
                                   : fmt::format("{} < {}", col_text(loop), b.end_col));
    const std::string slot =
        registers_.staged_slot(r, s.name + " + stage * " + integer(s.slots * schedule_.threads));
    if (guard.empty())
      out_.line("fetch<{}, {}>({}, {});", loop.frame.vector, schedule_.threads, slot, p);
    else
      out_.line("fetch_if<{}, {}>({}, {}, {});", loop.frame.vector, schedule_.threads, guard, slot, p);
  });
  std::swap(out_, here);
  fetch_.append(here);
}

// Before the loop over programs: where the rows lie, how a program is fetched, and the first of them under
// way.
void PersistentRows::print_staging(const std::string& programs) {
  const int ahead = stages(schedule_) - 1;
  for (const Staged& s : staged_in_order())
    out_.line("uint4* const {} = shared_memory<uint4>() + ({}) + threadIdx.x;", s.name,
              fmt::format("{} + {}", integer(plan_.shared.staged_at / kSlotBytes),
                          integer(s.first_slot * schedule_.threads * stages(schedule_))));
  out_.open("const auto fetch_program = [&](i32 program, int stage)");
  out_.append(fetch_);
  out_.close_with("};");
  out_.line("const i32 first = {}, hop = {};",
            row_cluster(schedule_) > 1 ? fmt::format("i32(blockIdx.x) / {}", row_cluster(schedule_))
                                       : "i32(blockIdx.x)",
            row_cluster(schedule_) > 1 ? fmt::format("i32(gridDim.x) / {}", row_cluster(schedule_))
                                       : "i32(gridDim.x)");
  out_.open_if_needed("for (int i = 0; i < {}; ++i)", ahead);
  out_.line("if (first + i * hop < {}) fetch_program(first + i * hop, i);", programs);
  out_.write("copy_async_commit();");
  out_.close();
  out_.write("int stage = 0;  // which of the rows under way the present program works on");
}

// At the head of the loop over programs: one more program is fetched, the present one's rows have arrived.
void PersistentRows::print_turn(const std::string& programs) {
  const int ahead = stages(schedule_) - 1;
  out_.line(
      "if (program + {0} * hop < {1}) fetch_program(program + {0} * hop, stage == 0 ? {0} : stage - 1);",
      ahead, programs);
  out_.write("copy_async_commit();");
  out_.line("copy_async_wait<{}>();", ahead);
  for (const Staged& s : staged_in_order())
    out_.line("const uint4* const {0}_now = {0} + stage * {1};", s.name, s.slots * schedule_.threads);
  out_.line("stage = stage == {} ? 0 : stage + 1;", ahead);
}

std::vector<PersistentRows::Staged> PersistentRows::staged_in_order() const {
  std::vector<Staged> all;
  all.reserve(plan_.staged.size());
  for (const StagedLoad& load : plan_.staged) all.push_back(staged_.at(load.op));
  return all;
}

}  // namespace tilewright::cuda
