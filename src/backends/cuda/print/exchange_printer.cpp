// Values in other registers than their own, through shared memory; and dots, whose operands come that way.
#include "backends/cuda/layout/spread.h"
#include "backends/cuda/print/kernel_printer.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;

// A value in other registers than its own: through shared memory, as a row-major tile.
Registers ExchangePrinter::converted(ValueId v, ThreadLayout layout) {
  Registers from = registers_.buffer(v);
  if (layout.part == Part::one || same_spread(layouts_, from.layout, layout)) return from;
  Registers to = from;
  to.layout = layout;
  to.name = out_.local(from.name + "_moved");
  const bool to_vectors = layout.part == Part::all || layout.part == Part::cols;
  to.type = to_vectors && is_narrow_float(from.dtype) ? from.dtype : expressions_.type_of(loops_.storage(v));
  const std::vector<Index>& shape = kernel_.type(v).shape;
  const StageLayout stage{
      .type = expressions_.stage_type(v), .shape = shape, .pitch = shape.empty() ? 1 : shape.back()};
  need("exchange");
  print_barrier();
  move_through_stage(from, StageSide::put, stage);
  print_barrier();
  out_.write(registers_.declaration(to));
  move_through_stage(to, StageSide::take, stage);
  return to;
}

// Elements of an array to the stage or from it, as `at` says they lie there.
void ExchangePrinter::move_through_stage(const Registers& r, StageSide side, const StageLayout& stage) {
  const std::string base = exchange_place(fmt::to_string(stage.type));
  const auto place_at = [&](const std::string& index) {
    return fmt::format("{}[{}]", base,
                       stage.offset > 0 ? fmt::format("{} + {}", stage.offset, index) : index);
  };
  if (r.layout.part == Part::one) {
    if (side == StageSide::put)
      out_.line("if ({} == 0) {} = {};", thread_of_program(), place_at("0"),
                expressions_.convert_text(r.type, stage.type, r.name));
    else
      out_.line("{} = {};", r.name, expressions_.convert_text(stage.type, r.type, place_at("0")));
    return;
  }
  PrintedLoop loop;
  loop.layout = r.layout;
  loop.frame = layouts_.frame(r.layout);
  loop.thread = k_.programs().thread(loop.frame);
  const TileFrame& f = loop.frame;
  const bool vectors = r.layout.part != Part::rows && f.vector > 1;
  const Axes axes = long_axes(stage.shape);
  registers_.for_registers(r, [&] {
    if (vectors) out_.unrolled("v", f.vector);
    const std::string row = row_text(loop), col = col_text(loop) + (f.vector > 1 ? " + v" : "");
    std::string guard;
    const auto add = [&](bool needed, const std::string& condition) {
      if (needed) guard += (guard.empty() ? "" : " && ") + condition;
    };
    std::string i = row, j = col;  // along the tile's long axes
    if (r.layout.part == Part::all) {
      add(f.ragged_rows(), fmt::format("{} < {}", row, f.rows));
      add(f.ragged_cols(), fmt::format("{} < {}", col, f.cols));
    } else if (r.layout.part == Part::rows) {
      add(f.ragged_rows(), fmt::format("{} < {}", row, f.rows));
      add(side == StageSide::put && f.row_threads() > 1, fmt::format("{} == 0", loop.thread.t));
    } else {
      i = col;
      add(f.ragged_cols(), fmt::format("{} < {}", col, f.cols));
      add(side == StageSide::put && f.groups > 1, fmt::format("{} == 0", loop.thread.g));
    }
    std::string index = i;
    // Elements of a row or a column are one or a row of the stage apart.
    const bool down = stage.shape.size() == 2 && axes.size() == 1 && (axes[0] == 0) != stage.transposed;
    if (axes.size() == 2)
      index = stage.transposed ? fmt::format("({}) * {} + {}", j, stage.pitch, i)
                               : fmt::format("({}) * {} + {}", i, stage.pitch, j);
    else if (down && stage.pitch != 1)
      index = fmt::format("({}) * {}", i, stage.pitch);
    const std::string layout = place_at(index);
    const std::string text =
        side == StageSide::put
            ? fmt::format("{} = {};", layout,
                          expressions_.convert_text(r.type, stage.type, registers_.element(r)))
            : fmt::format("{} = {};", registers_.element(r),
                          expressions_.convert_text(stage.type, r.type, layout));
    out_.write(guard.empty() ? text : fmt::format("if ({}) {}", guard, text));
    if (vectors) out_.close();
  });
}

// Transpose and reshape: the tile is laid out in shared memory and read in the other order.
void ExchangePrinter::print_relayout(const Step& step) {
  const Op& op = *step.op;
  need("exchange");
  const ValueId source = op.operands[0], result = op.results[0];
  const Registers from = registers_.buffer(source), to = registers_.buffer(result);
  if (declared_.insert(loops_.storage(result)).second) out_.write(registers_.declaration(to));
  const std::vector<Index>& shape = kernel_.type(source).shape;
  const std::vector<Index>& result_shape = kernel_.type(result).shape;
  const bool transposes = op.kind == OpKind::transpose;
  const Index pitch = relayout_stage(kernel_, op).pitch;
  const DType type = expressions_.stage_type(source);
  out_.write("__syncthreads();");
  move_through_stage(from, StageSide::put, {.type = type, .shape = shape, .pitch = pitch});
  out_.write("__syncthreads();");
  move_through_stage(to, StageSide::take,
                     {.type = type,
                      .shape = result_shape,
                      .pitch = transposes ? pitch : result_shape.back(),
                      .transposed = transposes});
}

// The elements are sorted in shared memory, and their positions read from there.
void ExchangePrinter::print_argsort(const Step& step) {
  const Op& op = *step.op;
  need("exchange");
  need("sort");
  const ValueId source = op.operands[0], result = op.results[0];
  const Registers from = registers_.buffer(source), to = registers_.buffer(result);
  if (declared_.insert(loops_.storage(result)).second) out_.write(registers_.declaration(to));
  const std::vector<Index>& shape = kernel_.type(source).shape;
  const RelayoutStage stage = relayout_stage(kernel_, op);
  const DType type = expressions_.stage_type(source);
  out_.write("__syncthreads();");
  move_through_stage(from, StageSide::put, {.type = type, .shape = shape, .pitch = stage.pitch});
  const auto axis = static_cast<std::size_t>(op.axis);
  const bool along_row = axis + 1 == shape.size();
  const Index length = shape[axis], lines = kernel_.type(source).size() / length;
  out_.line("block_argsort<{}, {}, {}, {}, {}, {}>(shared_memory<{}>(), shared_memory<i32>({}));",
            op.order == Order::descending, lines, length, along_row ? 1 : stage.pitch,
            along_row ? stage.pitch : 1, schedule_.threads, type, stage.positions);
  move_through_stage(to, StageSide::take,
                     {.type = DType::i32,
                      .shape = shape,
                      .pitch = stage.pitch,
                      .offset = stage.positions / static_cast<Index>(sizeof(std::int32_t))});
}

// Both operands in shared memory; each thread keeps its block of the result in registers.
void ExchangePrinter::print_dot(const Step& step) {
  const Op& op = *step.op;
  need("dot");
  need("exchange");
  const Registers acc = registers_.buffer(op.results[0]);
  if (declared_.insert(loops_.storage(op.results[0])).second) out_.write(registers_.declaration(acc));
  const Part part = acc.layout.part;
  const DotStage stage = dot_stage(kernel_, layouts_, acc.layout, op);
  PrintedLoop loop;
  loop.layout = acc.layout;
  if (part != Part::one) {
    loop.frame = layouts_.frame(acc.layout);
    loop.thread = k_.programs().thread(loop.frame);
  }
  const TileFrame& f = loop.frame;
  const bool rows = part == Part::all || part == Part::rows, cols = part == Part::all || part == Part::cols;
  const Index vector = cols ? f.vector : 1, col_step = cols ? f.row_threads() * f.vector : 1;
  const Index col_steps = cols ? f.col_steps() : 1, row_steps = rows ? f.row_steps() : 1;
  // 8-bit floats may be of two types.
  const DType type = expressions_.stage_type(stage.a), type_b = expressions_.stage_type(stage.b);
  out_.write("__syncthreads();");
  move_through_stage(registers_.buffer(stage.a), StageSide::put,
                     {.type = type,
                      .shape = kernel_.type(stage.a).shape,
                      .pitch = stage.pitch_a,
                      .transposed = stage.transposed});
  move_through_stage(registers_.buffer(stage.b), StageSide::put,
                     {.type = type_b,
                      .shape = kernel_.type(stage.b).shape,
                      .pitch = stage.pitch_b,
                      .offset = stage.offset_b,
                      .transposed = stage.transposed});
  out_.write("__syncthreads();");
  const bool scalars = part == Part::rows || part == Part::one;
  out_.line(
      "dot_accumulate<{}, {}, {}, {}, {}, {}, {}, {}>({}, shared_memory<{}>(), shared_memory<{}>() + {}, {}, "
      "{});",
      row_steps, col_steps, rows ? f.groups : 1, col_step, stage.m, stage.k, stage.pitch_a, stage.pitch_b,
      scalars ? fmt::format("as_vectors({})", registers_.pointer_to(acc)) : registers_.pointer_to(acc), type,
      type_b, stage.offset_b, rows ? loop.thread.g : "0",
      cols ? fmt::format("{} * {}", loop.thread.t, vector) : "0");
}

// Waits for the threads that share a tile.
void ExchangePrinter::print_barrier() {
  if (is_wgmma(schedule_))
    out_.line("{}::wait();", exchanging_threads());
  else
    out_.write("__syncthreads();");
}

// Waits for all threads of a program: those of a cluster, or those of a warp that has several programs.
void ExchangePrinter::print_wait_for_program() {
  if (layouts_.is_packed()) {
    const Index own = schedule_.threads / layouts_.programs_per_block;
    if (own > 1)
      out_.line("__syncwarp(0xffffffffu >> {} << (threadIdx.x % 32 / {} * {}));", 32 - own, own, own);
  } else if (row_cluster(schedule_) > 1) {
    need("cluster");
    out_.write("cluster_sync();");
  } else {
    print_barrier();
  }
}

std::string ExchangePrinter::thread_of_program() const {
  return is_pingpong(schedule_) ? fmt::format("threadIdx.x % {}", kWarpgroup) : "threadIdx.x";
}

// The threads that exchange where a warpgroup fetches: those that multiply, among themselves.
std::string ExchangePrinter::exchanging_threads() const {
  if (!is_wgmma(schedule_)) return "";
  return is_pingpong(schedule_) ? "OwnGroup" : fmt::format("Sharing<{}>", schedule_.threads);
}

std::string ExchangePrinter::exchange_place(const std::string& type) const {
  if (!is_wgmma(schedule_)) return fmt::format("shared_memory<{}>()", type);
  return fmt::format("shared_memory<{}>(kExchange{})", type,
                     is_pingpong(schedule_) ? " + group * kExchanged" : "");
}

}  // namespace tilewright::cuda
