// What crosses threads: ends of reductions, scans, layout changes, dots.
#include "backends/cuda/kernel_printer.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::Monoid;
using tile::Op;
using tile::OpKind;

namespace {

std::string monoid_name(Monoid m) {
  constexpr std::string_view names[] = {"Sum", "Product", "Max", "Min", "And", "Or", "ArgMax", "ArgMin"};
  return std::string(names[static_cast<std::size_t>(m)]);
}

bool finds_index(Monoid m) { return m == Monoid::argmax || m == Monoid::argmin; }

// Reductions run in 32 or 64 bits: shuffles move words.
std::string state_type(DType dtype, Monoid m) {
  const bool small = size_bytes(dtype) < 4 && !is_float(dtype);
  const std::string value = small ? "i32" : compute_type(dtype);
  return finds_index(m) ? fmt::format("Indexed<{}>", value) : value;
}

Index state_bytes(const std::string& type) {
  const Index value = type.find("64") != std::string::npos ? 8 : 4;
  return type[0] == 'I' ? 2 * value : value;
}

}  // namespace

void KernelPrinter::use_stage(Index bytes) { stage_bytes_ = std::max(stage_bytes_, round_up(bytes, 16)); }

KernelPrinter::Reduction KernelPrinter::reduction(const Loop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  return {i, monoid_name(in.op->monoid), loop.states[i],
          state_type(kernel_.type(in.op->operands[0]).dtype, in.op->monoid)};
}

// Along rows, columns or nothing (an axis of one element).
static int reduced_side(int role) { return role; }

// Declares the accumulators; those over rows begin here, those along a row where the row begins.
void KernelPrinter::print_reduction_starts(Loop& loop) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (in.kind == Instr::Kind::scan && loop.frame.rows * loop.frame.cols > 1 &&
        loop.place.part != Part::one) {
      const bool ragged = loop.frame.ragged_cols() || loop.frame.ragged_rows();
      if (!ragged) continue;
      const Registers r = buffer(in.value);  // elements beyond the tile add nothing
      const bool vectors = r.place.part != Part::rows && loop.frame.vector > 1;
      for_registers(r, [&] {
        if (vectors) out_.unrolled("v", loop.frame.vector);
        out_.line("{} = {}::identity<{}>();", element(r), monoid_name(in.op->monoid), r.type);
        if (vectors) out_.close();
      });
    }
    if (in.kind != Instr::Kind::reduce) continue;
    need("exchange");
    const int side = reduced_side(role(loop, in.op->axis));
    const bool scalar_result = kernel_.type(in.value).rank() == 0;
    const std::string type = state_type(kernel_.type(in.op->operands[0]).dtype, in.op->monoid);
    const std::string final_type = scalar_result ? type_of(in.value) : buffer(in.value).type;
    const bool own = type != final_type;
    loop.states[i] = own ? unique(value_name(in.value) + "_part") : value_name(in.value);
    if (side < 0) {
      if (scalar_result)
        out_.line("{} {};", final_type, value_name(in.value));
      else if (declared_.insert(plan_.storage(in.value)).second)
        out_.write(declaration(buffer(in.value)));
      continue;
    }
    if (!scalar_result) {
      const Registers r = buffer(in.value);
      const Place place{loop.place.frame, loop.place.part != Part::all ? Part::one
                                          : side == 1                  ? Part::rows
                                                                       : Part::cols};
      if (place.part != Part::one && !same_spread(layouts_, r.place, place))
        refuse("a reduction's result changes its layout");
      if (declared_.insert(plan_.storage(in.value)).second && (own || true)) out_.write(declaration(r));
      Registers state = r;
      state.name = loop.states[i];
      state.type = type;
      if (own) out_.write(declaration(state));
      if (loop.place.part == Part::all && side == 0) {
        const bool vectors = loop.frame.vector > 1;
        for_registers(state, [&] {
          if (vectors) out_.unrolled("v", loop.frame.vector);
          out_.line("{} = {}::identity<{}>();", element(state), monoid_name(in.op->monoid), type);
          if (vectors) out_.close();
        });
      }
      if (loop.place.part != Part::all)
        out_.line("{} = {}::identity<{}>();", loop.states[i], monoid_name(in.op->monoid), type);
    } else {
      out_.line("{} {} = {}::identity<{}>();", type, loop.states[i], monoid_name(in.op->monoid), type);
    }
  }
}

void KernelPrinter::print_reduction_starts_of_row(Loop& loop) {
  if (loop.place.part != Part::all) return;
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (in.kind != Instr::Kind::reduce || role(loop, in.op->axis) != 1) continue;
    const std::string row = loop.frame.row_steps() > 1 ? "[r]" : "";
    const Reduction red = reduction(loop, i);
    out_.line("{}{} = {}::identity<{}>();", red.state, row, red.monoid, red.type);
  }
}

void KernelPrinter::print_reduce(Loop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  if (packed_extreme(loop, in)) return;
  const Reduction red = reduction(loop, i);
  const int side = role(loop, in.op->axis);
  const bool scalar_result = kernel_.type(in.value).rank() == 0;
  const auto product = scaled_extreme(loop, in);
  Expr value = operand(loop, product ? product->x : in.operands[0]);
  if (side < 0) {  // an axis of one element: the element itself
    const std::string target = scalar_result ? value_name(in.value) : element(buffer(in.value));
    out_.line("{} = {};", target, finds_index(in.op->monoid) ? "0" : value.text);
    return;
  }
  std::string state = red.state;
  if (loop.place.part == Part::all) {
    Registers r = buffer(in.value);
    r.name = red.state;
    state = element(r);
  }
  const Monoid m = in.op->monoid;
  if (finds_index(m)) {
    std::string index = side == 0 ? row_text(loop) : col_text(loop);
    if (side == 1 && loop.frame.vector > 1) index += " + v";
    const std::string inner = red.type.substr(8, red.type.size() - 9);
    out_.line("{0} = {1}::combine({0}, {2}{{{3}, {4}}});", state, red.monoid, red.type, as_type(value, inner),
              index);
    return;
  }
  const std::string text = as_type(value, red.type);
  const bool real = red.type == "f32" || red.type == "f64";
  if (m == Monoid::sum && real)
    out_.line("{} += {};", state, text);
  else if (m == Monoid::prod && real)
    out_.line("{} *= {};", state, wrapped(text));
  else if (m == Monoid::max || m == Monoid::min)
    out_.line("{0} = {1}({0}, {2});", state, m == Monoid::max ? "max" : "min", text);
  else
    out_.line("{0} = {1}::combine({0}, {2});", state, red.monoid, text);
}

void KernelPrinter::print_barrier() {
  if (row_cluster(schedule_) > 1)
    out_.write("cluster_sync();");
  else
    out_.write("__syncthreads();");
}

void KernelPrinter::print_exchange(Loop& loop) {
  std::vector<Reduction> along_row;
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (in.kind != Instr::Kind::reduce || role(loop, in.op->axis) < 0) continue;
    const Reduction red = reduction(loop, i);
    const Frame& f = loop.frame;
    if (role(loop, in.op->axis) == 1) {
      along_row.push_back(red);
      continue;
    }
    if (f.groups == 1) continue;
    const Index in_warp = f.threads_per_row < 32 ? std::min<Index>(32 / f.threads_per_row, f.groups) : 1;
    const Index parts = f.groups / in_warp;
    if (loop.place.part == Part::rows) {
      if (parts > 1) use_stage(parts * f.threads_per_row * state_bytes(red.type));
      out_.line("reduce_groups_one<{}, {}, {}>({}, stage<{}>());", red.monoid, f.threads_per_row, f.groups,
                red.state, red.type);
    } else {
      if (parts > 1) use_stage(parts * f.threads_per_row * f.col_steps() * f.vector * state_bytes(red.type));
      out_.line("reduce_groups<{}, {}, {}, {}>({}, stage<{}>());", red.monoid, f.threads_per_row, f.groups,
                f.col_steps(), f.col_steps() > 1 ? red.state : "&" + red.state, red.type);
    }
  }
  if (!along_row.empty()) print_row_exchange(loop, along_row);
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i)
    if (loop.plan->body[i].kind == Instr::Kind::reduce && role(loop, loop.plan->body[i].op->axis) >= 0)
      print_reduction_end(loop, reduction(loop, i));
}

// All reductions of the loop along its rows share one barrier.
void KernelPrinter::print_row_exchange(Loop& loop, const std::vector<Reduction>& own) {
  const Frame& f = loop.frame;
  const int lanes = std::min(f.threads_per_row, 32);
  for (const Reduction& r : own) {
    if (lanes > 1) out_.line("reduce_lanes<{}, {}>({});", r.monoid, lanes, r.state);
    print_scaled_extreme(loop, r);
  }
  const int warps = f.threads_per_row > 32 ? f.threads_per_row / 32 : 1;
  const int parts = warps * f.cluster;
  if (parts == 1) return;
  if (own.size() == 1 && print_own_maximum(loop, own[0])) return;
  std::vector<Reduction> reductions = own;
  const auto max = own.size() == 1 ? take_deferred(loop, own[0]) : std::nullopt;
  if (max) reductions.insert(reductions.begin(), *max);
  const bool cluster = f.cluster > 1;
  wait_for_cluster();
  const Index rows = loop.place.part == Part::all ? f.row_steps() : 1;
  const bool repeated = loop_depth_ > 0;
  std::vector<std::string> places;
  for (const Reduction& r : reductions) {
    const std::string name = unique(r.state + "_parts");
    shared_.push_back(fmt::format("__shared__ {} {}{}{}[{}][{}];", r.type, name, repeated ? "[2]" : "",
                                  f.groups > 1 ? fmt::format("[{}]", f.groups) : "", rows, parts));
    places.push_back(name + (repeated ? "[step & 1]" : "") +
                     (f.groups > 1 ? fmt::format("[{}]", loop.thread.g) : ""));
  }
  for (std::size_t i = 0; i < reductions.size(); ++i)
    out_.line("put_parts{}({}, {});", cluster ? fmt::format("_cluster<{}>", f.cluster) : "", places[i],
              reductions[i].state);
  out_.write(cluster ? "cluster_sync();" : "__syncthreads();");
  if (max)
    out_.line("take_powers({}, {}, {}, {});", reductions[0].state, reductions[1].state, places[0], places[1]);
  else
    for (std::size_t i = 0; i < reductions.size(); ++i)
      out_.line("take_parts<{}>({}, {});", reductions[i].monoid, reductions[i].state, places[i]);
  if (repeated) {
    out_.write("++step;");
    stepped_ = true;
  }
}

// The factor that all elements of the row had.
void KernelPrinter::print_scaled_extreme(Loop& loop, const Reduction& red) {
  const Instr& in = loop.plan->body[red.instr];
  const auto product = scaled_extreme(loop, in);
  if (!product) return;
  Registers state = buffer(in.value);
  state.name = red.state;
  for_registers(state,
                [&] { out_.line("{} *= {};", element(state), literal(DType::f32, {product->by, 0})); });
}

// From the accumulator to the value: narrow integers, bools and indices were kept in words.
void KernelPrinter::print_reduction_end(Loop& loop, const Reduction& red) {
  const Instr& in = loop.plan->body[red.instr];
  const bool scalar_result = kernel_.type(in.value).rank() == 0;
  const std::string type = scalar_result ? type_of(in.value) : buffer(in.value).type;
  if (type == red.type) return;
  const auto converted_text = [&](const std::string& state) {
    if (finds_index(in.op->monoid)) return fmt::format("{}({}.index)", type, state);
    if (type == "bool") return fmt::format("{} != 0", state);
    return fmt::format("{}({})", type, state);
  };
  if (scalar_result) {
    out_.line("const {} {} = {};", type, value_name(in.value), converted_text(red.state));
    return;
  }
  const Registers r = buffer(in.value);
  Registers state = r;
  state.name = red.state;
  const bool vectors = (r.place.part == Part::cols || r.place.part == Part::all) && loop.frame.vector > 1;
  for_registers(r, [&] {
    if (vectors) out_.unrolled("v", loop.frame.vector);
    out_.line("{} = {};", element(r), converted_text(element(state)));
    if (vectors) out_.close();
  });
}

void KernelPrinter::print_scans(Loop& loop) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (in.kind != Instr::Kind::scan) continue;
    const int side = role(loop, in.op->axis);
    if (side < 0) continue;
    need("exchange");
    const Registers r = buffer(in.value);
    const Frame& f = loop.frame;
    const Index bytes = static_cast<Index>(size_bytes(r.dtype));
    const Index warps = f.threads_per_row > 32 ? f.threads_per_row / 32 : 1;
    const Index rows = loop.place.part == Part::cols ? 1 : f.row_steps();
    const Index steps = loop.place.part == Part::rows ? 1 : f.col_steps();
    const std::string first =
        loop.place.part == Part::rows ? fmt::format("as_vectors({})", pointer_to(r)) : pointer_to(r);
    if (side == 1) {
      if (warps > 1) use_stage(f.groups * rows * steps * warps * bytes);
      out_.line("scan_columns<{}, {}, {}, {}>({}, stage<{}>());", monoid_name(in.op->monoid),
                f.threads_per_row, rows, steps, first, r.type);
    } else {
      const Index vector = loop.place.part == Part::rows ? 1 : f.vector;
      if (f.groups > 1) use_stage(Index{f.groups} * f.threads_per_row * vector * bytes);
      out_.line("scan_rows<{}, {}, {}, {}, {}>({}, stage<{}>());", monoid_name(in.op->monoid),
                f.threads_per_row, f.groups, rows, steps, first, r.type);
    }
  }
}

// A value in other registers than its own: through shared memory, as a row-major tile.
KernelPrinter::Registers KernelPrinter::converted(ValueId v, Place place) {
  Registers from = buffer(v);
  if (place.part == Part::one || same_spread(layouts_, from.place, place)) return from;
  Registers to = from;
  to.place = place;
  to.name = unique(from.name + "_moved");
  const bool to_vectors = place.part == Part::all || place.part == Part::cols;
  to.type = to_vectors && is_narrow_float(from.dtype) ? element_type(from.dtype) : type_of(plan_.storage(v));
  if (layouts_.programs_per_block > 1) refuse("programs side by side: values stay in their threads");
  const std::vector<Index>& shape = kernel_.type(v).shape;
  const StageLayout stage{.type = stage_type(v), .shape = shape, .pitch = shape.empty() ? 1 : shape.back()};
  need("exchange");
  use_stage(kernel_.type(v).size() * static_cast<Index>(size_bytes(from.dtype)));
  out_.write("__syncthreads();");
  move_through_stage(from, StageSide::put, stage);
  out_.write("__syncthreads();");
  out_.write(declaration(to));
  move_through_stage(to, StageSide::take, stage);
  return to;
}

// Elements of an array to the stage or from it, as `at` says they lie there.
void KernelPrinter::move_through_stage(const Registers& r, StageSide side, const StageLayout& stage) {
  const std::string base = fmt::format("stage<{}>()", stage.type);
  const auto place_at = [&](const std::string& index) {
    return fmt::format("{}[{}]", base,
                       stage.offset > 0 ? fmt::format("{} + {}", stage.offset, index) : index);
  };
  const bool narrow_word = is_narrow_float(r.dtype) && stage.type != r.type;
  if (r.place.part == Part::one) {
    if (side == StageSide::put)
      out_.line("if (threadIdx.x == 0) {} = {};", place_at("0"), convert_text(r.type, stage.type, r.name));
    else
      out_.line("{} = {};", r.name, convert_text(stage.type, r.type, place_at("0")));
    return;
  }
  (void)narrow_word;
  Loop loop;
  loop.place = r.place;
  loop.frame = layouts_.frame(r.place);
  loop.thread = thread(loop.frame);
  const Frame& f = loop.frame;
  const bool vectors = r.place.part != Part::rows && f.vector > 1;
  const std::vector<int> axes = long_axes(stage.shape);
  for_registers(r, [&] {
    if (vectors) out_.unrolled("v", f.vector);
    const std::string row = row_text(loop), col = col_text(loop) + (f.vector > 1 ? " + v" : "");
    std::string guard;
    const auto add = [&](bool needed, const std::string& condition) {
      if (needed) guard += (guard.empty() ? "" : " && ") + condition;
    };
    std::string i = row, j = col;  // along the tile's long axes
    if (r.place.part == Part::all) {
      add(f.ragged_rows(), fmt::format("{} < {}", row, f.rows));
      add(f.ragged_cols(), fmt::format("{} < {}", col, f.cols));
    } else if (r.place.part == Part::rows) {
      add(f.ragged_rows(), fmt::format("{} < {}", row, f.rows));
      add(side == StageSide::put && f.row_threads() > 1, fmt::format("{} == 0", loop.thread.t));
    } else {
      i = col;
      add(f.ragged_cols(), fmt::format("{} < {}", col, f.cols));
      add(side == StageSide::put && f.groups > 1, fmt::format("{} == 0", loop.thread.g));
    }
    std::string index = i;
    if (axes.size() == 2)
      index = stage.transposed ? fmt::format("({}) * {} + {}", j, stage.pitch, i)
                               : fmt::format("({}) * {} + {}", i, stage.pitch, j);
    else if (axes.size() == 1 && axes[0] == 0 && stage.shape.size() == 2 && stage.pitch != 1)
      index = fmt::format("({}) * {}", i, stage.pitch);
    const std::string place = place_at(index);
    const std::string text =
        side == StageSide::put ? fmt::format("{} = {};", place, convert_text(r.type, stage.type, element(r)))
                               : fmt::format("{} = {};", element(r), convert_text(stage.type, r.type, place));
    out_.write(guard.empty() ? text : fmt::format("if ({}) {}", guard, text));
    if (vectors) out_.close();
  });
}

// Between the type of a register array and that of the stage: the same, or a narrow float and f32.
std::string KernelPrinter::convert_text(const std::string& from, const std::string& to,
                                        const std::string& text) {
  if (from == to) return text;
  need("convert");
  return fmt::format("cast<{}>({})", to, text);
}

// The type a value has on the stage: as it is stored, so that it takes no more room than it must.
std::string KernelPrinter::stage_type(ValueId v) const {
  const DType dtype = kernel_.type(v).dtype;
  return is_narrow_float(dtype) ? element_type(dtype) : type_of(plan_.storage(v));
}

// Transpose and reshape: the tile is laid out in shared memory and read in the other order.
void KernelPrinter::print_relayout(const Step& step) {
  const Op& op = *step.op;
  need("exchange");
  const ValueId source = op.operands[0], result = op.results[0];
  const Registers from = buffer(source), to = buffer(result);
  if (layouts_.programs_per_block > 1) refuse("programs side by side: tiles stay in their threads");
  if (declared_.insert(plan_.storage(result)).second) out_.write(declaration(to));
  const std::vector<Index>& shape = kernel_.type(source).shape;
  const std::vector<Index>& result_shape = kernel_.type(result).shape;
  const Index bytes = static_cast<Index>(size_bytes(from.dtype));
  const bool transposes = op.kind == OpKind::transpose;
  // An odd number of words a row keeps the elements of a column in different banks.
  const Index pitch = shape.back() + (transposes ? std::max<Index>(1, 4 / bytes) : 0);
  const std::string type = stage_type(source);
  use_stage((transposes ? shape[0] * pitch : kernel_.type(source).size()) * bytes);
  out_.write("__syncthreads();");
  move_through_stage(from, StageSide::put, {.type = type, .shape = shape, .pitch = pitch});
  out_.write("__syncthreads();");
  move_through_stage(to, StageSide::take,
                     {.type = type,
                      .shape = result_shape,
                      .pitch = transposes ? pitch : result_shape.back(),
                      .transposed = transposes});
}

// Both operands in shared memory; each thread keeps its block of the result in registers.
void KernelPrinter::print_dot(const Step& step) {
  const Op& op = *step.op;
  need("dot");
  need("exchange");
  const ValueId a = op.operands[0], b = op.operands[1];
  const Registers acc = buffer(op.results[0]);
  if (declared_.insert(plan_.storage(op.results[0])).second) out_.write(declaration(acc));
  const std::vector<Index>& shape_a = kernel_.type(a).shape;
  const std::vector<Index>& shape_b = kernel_.type(b).shape;
  Loop loop;
  loop.place = acc.place;
  if (acc.place.part != Part::one) {
    loop.frame = layouts_.frame(acc.place);
    loop.thread = thread(loop.frame);
  }
  const Frame& f = loop.frame;
  const bool rows =
      acc.place.part == Part::all || (acc.place.part != Part::one && shape_a[0] > 1 && shape_b[1] == 1);
  const bool cols = acc.place.part == Part::all || (acc.place.part != Part::one && shape_b[1] > 1);
  // A column of results that is spread like a tile's columns, or a row like its rows, is no block of rows and
  // columns.
  const bool as_rows = acc.place.part == Part::rows, as_cols = acc.place.part == Part::cols;
  if ((as_rows && cols) || (as_cols && rows))
    refuse("dot: a single row or column in the layout of the other");
  const Index vector = cols ? f.vector : 1, col_step = cols ? f.row_threads() * f.vector : 1;
  const Index col_steps = cols ? f.col_steps() : 1, row_steps = rows ? f.row_steps() : 1;
  const Index pitch_a = round_up(shape_a[1], 4) + (shape_a[1] % 4 == 0 ? 4 : 0);
  const Index pitch_b = round_up(std::max(shape_b[1], col_steps * col_step), 4);
  // 8-bit floats may be of two types.
  const std::string type = stage_type(a), type_b = stage_type(b);
  const Index bytes = static_cast<Index>(size_bytes(kernel_.type(a).dtype));
  const Index offset_b = round_up(shape_a[0] * pitch_a, 16);
  use_stage((offset_b + shape_b[0] * pitch_b) * bytes);
  out_.write("__syncthreads();");
  move_through_stage(buffer(a), StageSide::put, {.type = type, .shape = shape_a, .pitch = pitch_a});
  move_through_stage(buffer(b), StageSide::put,
                     {.type = type_b, .shape = shape_b, .pitch = pitch_b, .offset = offset_b});
  out_.write("__syncthreads();");
  const bool scalars = acc.place.part == Part::rows || acc.place.part == Part::one;
  out_.line("dot_accumulate<{}, {}, {}, {}, {}, {}, {}, {}>({}, stage<{}>(), stage<{}>() + {}, {}, {});",
            row_steps, col_steps, rows ? f.groups : 1, col_step, shape_a[0], shape_a[1], pitch_a, pitch_b,
            scalars ? fmt::format("as_vectors({})", pointer_to(acc)) : pointer_to(acc), type, type_b,
            offset_b, rows ? loop.thread.g : "0", cols ? fmt::format("{} * {}", loop.thread.t, vector) : "0");
}

}  // namespace tilewright::cuda
