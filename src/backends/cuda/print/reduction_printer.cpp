// Reductions and scans: each thread's own, and what crosses threads at their ends.
#include "backends/cuda/layout/spread.h"
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

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

// Reductions run in 32 or 64 bits: shuffles move words.
DType value_type(DType dtype) {
  const bool small = size_bytes(dtype) < 4 && !is_float(dtype);
  return small ? DType::i32 : compute_dtype(dtype);
}

}  // namespace

ReductionPrinter::Reduction ReductionPrinter::reduction(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  const DType dtype = kernel_.type(in.op->operands[0]).dtype;
  return {i, monoid_name(in.op->monoid), loop.states[i], value_type(dtype), tile::finds_place(in.op->monoid)};
}

// Along rows, columns or nothing (an axis of one element).
static int reduced_side(int role) { return role; }

// Declares the accumulators; those over rows begin here, those along a row where the row begins.
void ReductionPrinter::print_reduction_starts(PrintedLoop& loop) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (in.kind == Instr::Kind::scan && loop.frame.rows * loop.frame.cols > 1 &&
        loop.layout.part != Part::one) {
      const bool ragged = loop.frame.ragged_cols() || loop.frame.ragged_rows();
      if (!ragged) continue;
      const Registers r = registers_.buffer(in.value);  // elements beyond the tile add nothing
      const bool vectors = r.layout.part != Part::rows && loop.frame.vector > 1;
      registers_.for_registers(r, [&] {
        if (vectors) out_.unrolled("v", loop.frame.vector);
        out_.line("{} = {}::identity<{}>();", registers_.element(r), monoid_name(in.op->monoid), r.type);
        if (vectors) out_.close();
      });
    }
    if (in.kind != Instr::Kind::reduce) continue;
    need("exchange");
    const int side = reduced_side(role(loop, in.op->axis));
    const bool scalar_result = kernel_.type(in.value).rank() == 0;
    const DType final_type =
        scalar_result ? expressions_.type_of(in.value) : registers_.buffer(in.value).type;
    const Reduction red = reduction(loop, i);
    const std::string type = red.type();
    const bool own = red.indexed || red.value_type != final_type;
    loop.states[i] = own ? out_.local(names_.hint(in.value) + "_part") : names_.value(in.value);
    if (side < 0) {
      if (scalar_result)
        out_.line("{} {};", final_type, names_.value(in.value));
      else if (declared_.insert(loops_.storage(in.value)).second)
        out_.write(registers_.declaration(registers_.buffer(in.value)));
      continue;
    }
    if (!scalar_result) {
      const Registers r = registers_.buffer(in.value);
      if (declared_.insert(loops_.storage(in.value)).second) out_.write(registers_.declaration(r));
      Registers state = r;
      state.name = loop.states[i];
      state.type = red.value_type;
      state.indexed = red.indexed;
      if (own) out_.write(registers_.declaration(state));
      if (loop.layout.part == Part::all && side == 0) {
        const bool vectors = loop.frame.vector > 1;
        registers_.for_registers(state, [&] {
          if (vectors) out_.unrolled("v", loop.frame.vector);
          out_.line("{} = {}::identity<{}>();", registers_.element(state), monoid_name(in.op->monoid), type);
          if (vectors) out_.close();
        });
      }
      if (loop.layout.part != Part::all)
        out_.line("{} = {}::identity<{}>();", loop.states[i], monoid_name(in.op->monoid), type);
    } else {
      out_.line("{} {} = {}::identity<{}>();", type, loop.states[i], monoid_name(in.op->monoid), type);
    }
  }
}

void ReductionPrinter::print_reduction_starts_of_row(PrintedLoop& loop) {
  if (loop.layout.part != Part::all) return;
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (in.kind != Instr::Kind::reduce || role(loop, in.op->axis) != 1 || is_inner_sum(loop, i)) continue;
    const std::string row = loop.frame.row_steps() > 1 ? "[r]" : "";
    const Reduction red = reduction(loop, i);
    out_.line("{}{} = {}::identity<{}>();", red.state, row, red.monoid, red.type());
  }
}

void ReductionPrinter::print_reduce(PrintedLoop& loop, std::size_t i, const TypedText& value) {
  const Instr& in = loop.plan->body[i];
  const Reduction red = reduction(loop, i);
  const int side = role(loop, in.op->axis);
  const bool scalar_result = kernel_.type(in.value).rank() == 0;
  if (side < 0) {  // an axis of one element: the element itself
    const std::string target =
        scalar_result ? names_.value(in.value) : registers_.element(registers_.buffer(in.value));
    out_.line("{} = {};", target, tile::finds_place(in.op->monoid) ? "0" : value.text);
    return;
  }
  std::string state = red.state;
  if (loop.layout.part == Part::all) {
    Registers r = registers_.buffer(in.value);
    r.name = red.state;
    state = registers_.element(r);
  }
  const Monoid m = in.op->monoid;
  if (tile::finds_place(m)) {
    std::string index = side == 0 ? row_text(loop) : col_text(loop);
    if (side == 1 && loop.frame.vector > 1) index += " + v";
    // A thread's elements come in the order of their indices.
    out_.line("{0} = {1}::take_in({0}, {2}{{{3}, {4}}});", state, red.monoid, red.type(),
              expressions_.as_type(value, red.value_type), index);
    return;
  }
  const std::string text = expressions_.as_type(value, red.value_type);
  const bool real = is_float(red.value_type);
  if (m == Monoid::sum && real)
    out_.line("{} += {};", state, text);
  else if (m == Monoid::prod && real)
    out_.line("{} *= {};", state, wrapped(expressions_.converted(value, red.value_type)));
  else if (m == Monoid::max || m == Monoid::min)
    out_.line("{0} = {1}({0}, {2});", state, m == Monoid::max ? "max" : "min", text);
  else
    out_.line("{0} = {1}::combine({0}, {2});", state, red.monoid, text);
}

void ReductionPrinter::print_exchange(PrintedLoop& loop) {
  std::vector<Reduction> along_row, along_columns;
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (in.kind != Instr::Kind::reduce || role(loop, in.op->axis) < 0) continue;
    const Reduction red = reduction(loop, i);
    const TileFrame& f = loop.frame;
    if (role(loop, in.op->axis) == 1) {
      along_row.push_back(red);
      continue;
    }
    if (f.groups > 1) print_column_exchange(loop, red);
    if (f.row_blocks > 1) along_columns.push_back(red);
  }
  if (!along_columns.empty()) print_cluster_columns(loop, along_columns);
  if (!along_row.empty()) print_row_exchange(loop, along_row);
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i)
    if (loop.plan->body[i].kind == Instr::Kind::reduce && role(loop, loop.plan->body[i].op->axis) >= 0)
      print_reduction_end(loop, reduction(loop, i));
}

void ReductionPrinter::print_column_exchange(const PrintedLoop& loop, const Reduction& red) {
  const TileFrame& f = loop.frame;
  const std::string stage = k_.exchanges().exchange_place(red.type()),
                    who = k_.exchanges().exchanging_threads().empty()
                              ? ""
                              : ", " + k_.exchanges().exchanging_threads();
  if (reduces_in_quads(f, loop.layout.part)) {
    need("columns");
    const Index warps = program_threads(schedule_) / 32;
    out_.line("reduce_columns<{}, {}, {}{}>({}, {});", red.monoid, warps, f.col_steps(), who, red.state,
              stage);
    return;
  }
  if (loop.layout.part == Part::rows)
    out_.line("reduce_groups_one<{}, {}, {}{}>({}, {});", red.monoid, f.threads_per_row, f.groups, who,
              red.state, stage);
  else
    out_.line("reduce_groups<{}, {}, {}, {}{}>({}, {});", red.monoid, f.threads_per_row, f.groups,
              f.col_steps(), who, f.col_steps() > 1 ? red.state : "&" + red.state, stage);
}

// What the blocks of a cluster have of the columns is added up in the order of their ranks. All reductions of
// the loop share one barrier.
void ReductionPrinter::print_cluster_columns(const PrintedLoop& loop,
                                             const std::vector<Reduction>& reductions) {
  const TileFrame& f = loop.frame;
  k_.programs().wait_for_cluster();
  const bool one = loop.layout.part == Part::rows, repeated = loop_depth_ > 0;
  const Index steps = one ? 1 : f.col_steps(), columns = f.threads_per_row * steps * (one ? 1 : f.vector);
  std::vector<std::string> places, vectors;
  for (const Reduction& r : reductions) {
    const std::string name = names_.unique(r.state + "_parts");
    shared_.push_back(fmt::format("__shared__ {} {}{}[{}][{}];", r.type(), name, repeated ? "[2]" : "",
                                  f.row_blocks, columns));
    places.push_back(name + (repeated ? "[step & 1]" : ""));
    vectors.push_back(one ? fmt::format("as_vectors(&{})", r.state) : steps > 1 ? r.state : "&" + r.state);
    out_.line("put_columns_cluster<{}, {}, {}>({}, {});", f.threads_per_row, f.groups, steps, places.back(),
              vectors.back());
  }
  out_.write("cluster_sync();");
  for (std::size_t i = 0; i < reductions.size(); ++i)
    out_.line("take_columns_cluster<{}, {}, {}, {}>({}, {});", reductions[i].monoid, f.threads_per_row,
              f.groups, steps, vectors[i], places[i]);
  if (repeated) {
    out_.write("++step;");
    stepped_ = true;
  }
}

// All reductions of the loop along its rows share one barrier.
void ReductionPrinter::print_row_exchange(PrintedLoop& loop, const std::vector<Reduction>& own) {
  const TileFrame& f = loop.frame;
  const int lanes = std::min(f.threads_per_row, 32);
  for (const Reduction& r : own) {
    if (lanes > 1) out_.line("reduce_lanes<{}, {}>({});", r.monoid, lanes, r.state);
    print_scaled_extreme(loop, r);
  }
  const int parts = row_parts(f);
  if (parts == 1) return;
  if (own.size() == 1 && print_own_maximum(loop, own[0])) return;
  std::vector<Reduction> reductions = own;
  const auto max = own.size() == 1 ? take_deferred(loop, own[0]) : std::nullopt;
  if (max) reductions.insert(reductions.begin(), *max);
  const bool cluster = f.cluster > 1;
  k_.programs().wait_for_cluster();
  const Index rows = loop.layout.part == Part::all ? f.row_steps() : 1;
  const bool repeated = loop_depth_ > 0;
  std::vector<std::string> places;
  for (const Reduction& r : reductions) {
    const std::string name = names_.unique(r.state + "_parts");
    shared_.push_back(fmt::format("__shared__ {} {}{}{}[{}][{}];", r.type(), name, repeated ? "[2]" : "",
                                  f.groups > 1 ? fmt::format("[{}]", f.groups) : "", rows, parts));
    // A group's number counts those of all blocks that share the tile's rows; each block has its own places.
    const std::string group =
        f.row_blocks > 1 ? fmt::format("{} % {}", loop.thread.g, f.groups) : loop.thread.g;
    places.push_back(name + (repeated ? "[step & 1]" : "") +
                     (f.groups > 1 ? fmt::format("[{}]", group) : ""));
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
void ReductionPrinter::print_scaled_extreme(PrintedLoop& loop, const Reduction& red) {
  const Instr& in = loop.plan->body[red.instr];
  const auto product = analysis_.scaled_extreme(loop, in);
  if (!product) return;
  Registers state = registers_.buffer(in.value);
  state.name = red.state;
  registers_.for_registers(state, [&] {
    out_.line("{} *= {};", registers_.element(state), literal(DType::f32, {product->by, 0}));
  });
}

// Prints the value from its accumulator: narrow integers, bools and indices were kept in words.
void ReductionPrinter::print_reduction_end(PrintedLoop& loop, const Reduction& red) {
  const Instr& in = loop.plan->body[red.instr];
  const bool scalar_result = kernel_.type(in.value).rank() == 0;
  const DType type = scalar_result ? expressions_.type_of(in.value) : registers_.buffer(in.value).type;
  if (!red.indexed && type == red.value_type) return;
  const auto converted_text = [&](const std::string& state) {
    if (tile::finds_place(in.op->monoid)) return fmt::format("{}({}.index)", type, state);
    if (is_bool(type)) return fmt::format("{} != 0", state);
    return fmt::format("{}({})", type, state);
  };
  if (scalar_result) {
    out_.line("const {} {} = {};", type, names_.value(in.value), converted_text(red.state));
    return;
  }
  const Registers r = registers_.buffer(in.value);
  Registers state = r;
  state.name = red.state;
  const bool vectors = (r.layout.part == Part::cols || r.layout.part == Part::all) && loop.frame.vector > 1;
  registers_.for_registers(r, [&] {
    if (vectors) out_.unrolled("v", loop.frame.vector);
    out_.line("{} = {};", registers_.element(r), converted_text(registers_.element(state)));
    if (vectors) out_.close();
  });
}

void ReductionPrinter::print_scans(PrintedLoop& loop) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (in.kind != Instr::Kind::scan) continue;
    const int side = role(loop, in.op->axis);
    if (side < 0) continue;
    need("exchange");
    const Registers r = registers_.buffer(in.value);
    const TileFrame& f = loop.frame;
    const Index rows = loop.layout.part == Part::cols ? 1 : f.row_steps();
    const Index steps = loop.layout.part == Part::rows ? 1 : f.col_steps();
    const std::string first = loop.layout.part == Part::rows
                                  ? fmt::format("as_vectors({})", registers_.pointer_to(r))
                                  : registers_.pointer_to(r);
    if (side == 1) {
      out_.line("scan_columns<{}, {}, {}, {}>({}, shared_memory<{}>());", monoid_name(in.op->monoid),
                f.threads_per_row, rows, steps, first, r.type);
    } else {
      out_.line("{}<{}, {}, {}, {}, {}>({}, shared_memory<{}>());",
                f.map == RowMap::runs ? "scan_runs" : "scan_rows", monoid_name(in.op->monoid),
                f.threads_per_row, f.groups, rows, steps, first, r.type);
    }
  }
}

}  // namespace tilewright::cuda
