// One element loop: its loads, then the loops over the rows, vectors and elements that a thread holds.
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/layout/folded_rows.h"
#include "backends/cuda/layout/spread.h"
#include "backends/cuda/print/pipeline.h"
#include "backends/printer/expressions.h"

#include <algorithm>
#include <numeric>

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;

namespace {

// Whether a reader of instruction i assigns it to something with a name: a name of its own would say no more.
bool is_assigned(const PrintedLoop& loop, std::size_t i) {
  return std::any_of(loop.plan->body.begin(), loop.plan->body.end(), [&](const printer::Instr& user) {
    const bool assigns = user.kind == printer::Instr::Kind::keep ||
                         (user.kind == printer::Instr::Kind::effect && user.op->kind == OpKind::store);
    return assigns && static_cast<std::size_t>(user.operands[0].instr) == i;
  });
}

// The same columns seen as vectors of eight elements: what a store writes after the quad's exchange.
PrintedLoop widened(const PrintedLoop& loop) {
  PrintedLoop out = loop;
  out.frame.vector *= kQuad;
  return out;
}

}  // namespace

std::string ElementPrinter::effect_guard(const PrintedLoop& loop) const {
  const bool packed = layouts_.programs_per_block > 1;
  const std::string rank = row_cluster(schedule_) > 1 ? "cluster_rank() == 0 && " : "";
  switch (loop.layout.part) {
    case Part::all:
      return "";
    case Part::cols:
      if (loop.frame.row_groups() > 1) return fmt::format("{} == 0", loop.thread.g);
      return shares_rows(schedule_) ? "cluster_rank() == 0" : "";
    case Part::rows:
      return loop.frame.row_threads() > 1 ? fmt::format("{} == 0", loop.thread.t) : "";
    case Part::one:
      break;
  }
  if (packed) return fmt::format("threadIdx.x % {} == 0", schedule_.threads / layouts_.programs_per_block);
  if (is_pingpong(schedule_)) return fmt::format("threadIdx.x % {} == 0", kWarpgroup);
  return rank + "threadIdx.x == 0";
}

PrintedLoop ElementPrinter::begin_elements(const ElementLoop& plan) {
  PrintedLoop loop;
  loop.plan = &plan;
  loop.layout = layouts_.loops.at(&plan);
  loop.pieces = plan_.elements.pieces_of(plan);
  if (loop.layout.part != Part::one) {
    loop.frame = layouts_.frame(loop.layout);
    loop.thread = k_.programs().thread(loop.frame);
    loop.shift = row_shift_;
  }
  const std::size_t n = plan.body.size();
  loop.values.resize(n);
  loop.arrays.resize(n);
  loop.states.resize(n);
  loop.bounds.resize(n);
  loop.addresses.resize(n);
  loop.outputs.resize(n);
  loop.kept.resize(n);
  loop.wide.resize(n);
  return loop;
}

std::vector<ElementPrinter::LoadAhead> ElementPrinter::loads_ahead(const ElementLoop& plan,
                                                                   const std::function<bool(const Op&)>& may,
                                                                   Index& registers) {
  std::vector<LoadAhead> found;
  const PrintedLoop loop = begin_elements(plan);
  for (std::size_t i = 0; i < plan.body.size(); ++i) {
    const Instr& in = plan.body[i];
    if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::load) continue;
    const Part part = spread_of(loop, in.axes);
    if (part == Part::all || analysis_.keeps_load(loop, i) || facts_.is_written(in.op->param) || !may(*in.op))
      continue;
    Index elements = 1;
    if (part == Part::cols) elements = loop.frame.col_steps() * loop.frame.vector;
    if (part == Part::rows) elements = loop.frame.row_steps();
    const DType dtype = kernel_.views[static_cast<std::size_t>(in.op->param)].dtype;
    const Index needed = ceil_div(elements * static_cast<Index>(size_bytes(dtype)), Index{4});
    if (needed > registers) continue;
    registers -= needed;
    found.push_back({loop, i});
  }
  return found;
}

void ElementPrinter::print_elements(const ElementLoop& plan) {
  PrintedLoop loop = begin_elements(plan);
  print_shift(loop);
  print_wait_for_readers(loop);
  accuracy_ = printer::accuracy_in_loop(kernel_, plan, facts_.accuracy);
  const std::size_t n = plan.body.size();
  analysis_.count_uses(loop);
  k_.pipeline().bring_tiles(loop);
  loads_.print_loads(loop);
  for (const Instr& in : plan.body)
    if (analysis_.packed_extreme(loop, in)) --loop.uses[static_cast<std::size_t>(in.operands[0].instr)];
  analysis_.choose_inner_products(loop);
  for (std::size_t i = 0; i < n; ++i)
    if (analysis_.is_vector_store(loop, i) ||
        (plan.body[i].kind == Instr::Kind::effect && plan.body[i].op->kind == OpKind::store)) {
      const Access access(kernel_, ranges_, *plan.body[i].op);
      need("memory");
      loop.wide[i] = loop.pieces.store_stage_of(i) >= 0 || analysis_.is_wide_store(loop, i);
      if (loop.pieces.store_stage_of(i) >= 0) {
        if (!plan_.dots.results[0].by_engine) print_tile_of_rows(loop, i, access);
        continue;
      }
      const PrintedLoop as_stored = loop.wide[i] ? widened(loop) : loop;
      loop.bounds[i] = loads_.print_bounds(as_stored, plan.body[i], access);
      loop.addresses[i] = loads_.print_address(as_stored, plan.body[i], access);
    }
  for (std::size_t i = 0; i < n; ++i)
    if (plan.body[i].kind == Instr::Kind::keep || plan.body[i].kind == Instr::Kind::scan) {
      const Registers r = registers_.buffer(plan.body[i].value);
      if (declared_.insert(loops_.storage(plan.body[i].value)).second) out_.write(registers_.declaration(r));
    }
  reductions_.print_reduction_starts(loop);
  print_at(loop, Level::once);
  if (loop.pieces.vectors > 0) {
    print_pieces(loop);
    accuracy_ = facts_.accuracy;
    return;
  }
  const bool rows = loop.layout.part == Part::all || loop.layout.part == Part::rows;
  const bool folded = walks_folded_row(loops_, plan, layouts_.folded);
  const auto [first, end] =
      row_window_.value_or(std::pair{Index{0}, folded ? Index{1} : loop.frame.row_steps()});
  if (rows && loop.frame.row_steps() > 1) out_.unrolled("r", first, end);
  print_row_body(loop);
  if (rows && loop.frame.row_steps() > 1) out_.close();
  reductions_.print_scans(loop);
  reductions_.print_exchange(loop);
  k_.pipeline().send_tiles(loop);
  accuracy_ = facts_.accuracy;
}

// Prints, in front of the first loop over a row that begins anywhere, where that is.
void ElementPrinter::print_shift(PrintedLoop& loop) {
  if (!loop.frame.shifted || !row_shift_.empty()) return;
  loop.shift = row_shift_ = out_.local("shift");
  loads_.print_shift(Access(kernel_, ranges_, *layouts_.shifted->first), row_shift_);
}

void LoopAnalysis::count_uses(PrintedLoop& loop) const {
  loop.uses.assign(loop.plan->body.size(), 0);
  for (const Instr& in : loop.plan->body)
    for (const printer::Ref& ref : in.operands)
      if (!ref.is_scalar()) ++loop.uses[static_cast<std::size_t>(ref.instr)];
  for (const Instr& in : loop.plan->body) {
    if (const auto tanh = tanh_beside_one(loop, in)) --loop.uses[*tanh];
    if (const auto below = exp_below(loop, in))
      for (int part : {below->sub, below->mul})
        if (part >= 0) --loop.uses[static_cast<std::size_t>(part)];
    if (const auto product = scaled_extreme(loop, in)) --loop.uses[static_cast<std::size_t>(product->instr)];
    // The shifts of a widened value read one another: those that nobody else reads are not computed.
    if (const auto bytes = widened_bytes(loop, in))
      for (int part : bytes->parts)
        if (--loop.uses[static_cast<std::size_t>(part)] > 0) break;
  }
}

// The level at which an instruction is computed: once a row if it is the same along a row, once if it changes
// along no axis.
LoopAnalysis::Level LoopAnalysis::level(const PrintedLoop& loop, const Instr& in) const {
  if (in.kind != Instr::Kind::compute && in.kind != Instr::Kind::reload) return Level::element;
  switch (spread_of(loop, in.axes)) {
    case Part::one:
      return loop.layout.part == Part::one ? Level::element : Level::once;
    case Part::rows:
      return loop.layout.part == Part::all ? Level::row : Level::element;
    default:
      return Level::element;
  }
}

void ElementPrinter::print_row_body(PrintedLoop& loop) {
  const bool rows = loop.layout.part == Part::all || loop.layout.part == Part::rows;
  if (rows) reductions_.print_reduction_starts_of_row(loop);
  const bool guard = rows && loop.frame.ragged_rows();
  if (guard) {
    const bool last_step_alone = loop.frame.row_steps() > 1 && loop.frame.map != RowMap::runs;
    const std::string steps = last_step_alone ? fmt::format("r < {} || ", loop.frame.row_steps() - 1) : "";
    out_.open_if_needed("if ({}{} < {})", steps, row_text(loop), loop.frame.rows);
  }
  print_at(loop, Level::row);
  print_words_of_row(loop);
  print_exp_offsets(loop);
  print_inner_starts(loop);
  if (loop.layout.part == Part::all || loop.layout.part == Part::cols)
    print_columns(loop);
  else
    print_at(loop, Level::element);
  print_inner_ends(loop);
  if (guard) out_.close();
}

void ElementPrinter::print_columns(PrintedLoop& loop) {
  const TileFrame& f = loop.frame;
  if (std::find(loop.wide.begin(), loop.wide.end(), true) != loop.wide.end()) return print_wide_columns(loop);
  if (f.col_steps() > 1) out_.unrolled("c", f.col_steps());
  const bool guard = f.ragged_cols() && f.whole_vectors();
  if (guard) {
    const std::string steps = f.col_steps() > 1 ? fmt::format("c < {} || ", f.col_steps() - 1) : "";
    out_.open_if_needed("if ({}{} < {})", steps, col_text(loop), f.cols);
  }
  print_column_body(loop);
  if (guard) out_.close();
  if (f.col_steps() > 1) out_.close();
}

// Four vectors at a time; then the four threads of a row exchange theirs, and each stores eight elements.
void ElementPrinter::print_wide_columns(PrintedLoop& loop) {
  const bool several = loop.frame.col_steps() > kQuad;
  if (several) out_.unrolled("wide", loop.frame.col_steps() / kQuad);
  print_quad(loop, several ? fmt::format("wide * {} + ", kQuad) : "", several ? "wide" : "");
  if (several) out_.close();
}

// Vectors c = first … first + 3, which together are vector `index` of the widened rows.
void ElementPrinter::print_quad(PrintedLoop& loop, const std::string& first, const std::string& index) {
  std::vector<std::string> parts(loop.plan->body.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!loop.wide[i]) continue;
    const Op& op = *loop.plan->body[i].op;
    parts[i] = out_.local(names_.stem(op.param) + "_parts");
    out_.line("Vec<{}, {}> {}[{}];", kernel_.type(op.operands[0]).dtype, loop.frame.vector, parts[i], kQuad);
  }
  wide_parts_ = parts;
  out_.unrolled("part", kQuad);
  out_.line("const int c = {}part;", first);
  print_column_body(loop);
  out_.close();
  PrintedLoop wide = widened(loop);
  bool named = index.empty();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!loop.wide[i]) continue;
    if (const int place = loop.pieces.store_stage_of(i); place >= 0) {
      out_.line("put(store_stages.piece({}), half, {}, {});", place,
                loop.pieces.vectors > kQuad ? "quad * 4" : "0", parts[i]);
      continue;
    }
    need("quad");
    if (!named) out_.line("const int c = {};", index);
    named = true;
    wide.outputs[i] = fmt::format("across_quad({})", parts[i]);
    print_store(wide, i);
  }
}

void ElementPrinter::print_vector_elements(PrintedLoop& loop) {
  const TileFrame& f = loop.frame;
  if (f.vector > 1) out_.unrolled("v", f.vector);
  const bool guard = f.ragged_cols() && !f.whole_vectors();
  if (guard) out_.open_if_needed("if ({})", is_column(loop));
  print_at(loop, Level::element);
  if (guard) out_.close();
  if (f.vector > 1) out_.close();
}

void ElementPrinter::print_column_body(PrintedLoop& loop) {
  print_vector_heads(loop);
  reductions_.print_packed_extremes(loop);
  print_inner_products(loop);
  const bool elements = std::any_of(loop.plan->body.begin(), loop.plan->body.end(), [&](const Instr& in) {
    const auto i = static_cast<std::size_t>(&in - loop.plan->body.data());
    return in.kind != Instr::Kind::compute && in.kind != Instr::Kind::reload &&
           !analysis_.direct_copy(loop, i) && !analysis_.keeps_load(loop, i) &&
           !analysis_.keeps_widened(loop, i) && !analysis_.packed_extreme(loop, in) && !is_inner_sum(loop, i);
  });
  if (elements) {
    const auto inside = vector_test(loop);
    if (inside) {
      out_.open_if_needed("if ({})", *inside);
      print_vector_elements(loop);
      out_.close_else();
      outside_ = true;
    }
    print_vector_elements(loop);
    outside_ = false;
    if (inside) out_.close();
  }
  print_vector_tails(loop);
}

void ElementPrinter::print_at(PrintedLoop& loop, Level at_level) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (analysis_.level(loop, in) != at_level) continue;
    switch (in.kind) {
      case Instr::Kind::compute:
      case Instr::Kind::reload:
        print_compute(loop, i);
        break;
      case Instr::Kind::effect:
        if (in.op->kind != OpKind::store)
          print_scattered(loop, i);
        else if (!analysis_.is_vector_store(loop, i))
          print_store(loop, i);
        else if (!analysis_.direct_copy(loop, i))
          out_.line("{}{} = {};", loop.outputs[i], loop.frame.vector > 1 ? ".v[v]" : ".v[0]",
                    operand(loop, in.operands[0]).text);
        break;
      case Instr::Kind::keep:
      case Instr::Kind::scan:
        print_keep(loop, i);
        break;
      case Instr::Kind::reduce:
        print_reduce(loop, i);
        break;
    }
  }
}

void ElementPrinter::print_reduce(PrintedLoop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  if (analysis_.packed_extreme(loop, in) || is_inner_sum(loop, i)) return;
  const auto product = analysis_.scaled_extreme(loop, in);
  reductions_.print_reduce(loop, i, operand(loop, product ? product->x : in.operands[0]));
}

TypedText ElementPrinter::operand(PrintedLoop& loop, const printer::Ref& ref) {
  if (ref.is_scalar()) return expressions_.scalar(ref.scalar);
  return loop.values[static_cast<std::size_t>(ref.instr)];
}

// A mask that holds in some of the rounds that share the text.
void ElementPrinter::guard_known_mask(const Op& op, std::vector<TypedText>& operands) const {
  if (!known_masks_) return;
  const auto known = known_masks_->left.find(&op);
  if (known == known_masks_->left.end()) return;
  TypedText& test =
      operands[op.prim == tile::Prim::select ? 0U : static_cast<std::size_t>(1 - known->second)];
  test.text = fmt::format("!masked || {}", wrapped_below(test, Binding::equality));
  test.binds = Binding::either;
}

void ElementPrinter::print_compute(PrintedLoop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  if (loop.uses[i] == 0) return;                  // part of another expression
  if (analysis_.widened_bytes(loop, in)) return;  // as a vector
  TypedText& value = loop.values[i];
  const DType type = expressions_.type_of(in.value);
  if (in.kind == Instr::Kind::reload || in.op->kind == OpKind::load) {
    const Registers& array = loop.arrays[i];
    const Binding binds = array.staged ? Binding::prefix : Binding::name;
    if (array.layout.part == Part::one || array.layout.part == Part::rows)
      value = {registers_.at(array), array.type, 0, binds};
    if (value.text.empty())  // narrow vectors: see print_vector_heads
      value = {registers_.element(array), array.type, 0, binds};
    return;
  }
  if (in.op->kind == OpKind::constant) {
    value = literal_text(kernel_.type(in.value).dtype, in.op->number, type);
    return;
  }
  if (in.op->kind == OpKind::arange) {
    const int side = in.axes.empty() || in.axes[0] < 0 ? -1 : role(loop, in.axes[0]);
    value = side < 0    ? TypedText{.text = "0", .type = DType::i32, .number = 0}
            : side == 0 ? row_of(loop)
                        : col_of(loop);
    if (side == 1 && loop.frame.vector > 1) value = {value.text + " + v", DType::i32, 1, Binding::sum};
    value.operations = side < 0 ? 0 : 1;
    return;
  }
  std::vector<TypedText> operands;
  operands.reserve(in.operands.size());
  for (const printer::Ref& ref : in.operands) operands.push_back(operand(loop, ref));
  if (analysis_.draws(loop, i) != LoopAnalysis::Draws::apart) {
    value = drawn_word(loop, i, operands);
    return;
  }
  if (analysis_.gathers_vector(loop, i)) {
    value = gathered_vector(loop, i, operands);
    return;
  }
  if (const auto tanh = analysis_.tanh_beside_one(loop, in)) {
    need("math_fast");
    const Instr& inner = loop.plan->body[*tanh];
    const TypedText x = operand(loop, inner.operands[0]);
    value = {fmt::format("fast::one_plus_tanh({})", x.text), DType::f32, x.operations + 1, Binding::call};
  } else if (const auto test = column_test(loop, in)) {
    value = column_test_text(loop, *test);
  } else if (const auto below = analysis_.exp_below(loop, in)) {
    value = exp_expr(loop, i, *below);
  } else {
    guard_known_mask(*in.op, operands);
    value = expressions_.compute(*in.op, operands);
  }
  if (analysis_.masks_vector(loop, i)) {
    out_.line("if (v == 0) {} = {};", loop.outputs[i], value.text);
    value = {loop.outputs[i], value.type};
    return;
  }
  const bool whole = in.op->kind == OpKind::gather || in.op->kind == OpKind::random;
  const bool one_use = loop.uses[i] <= 1 && analysis_.level(loop, in) == Level::element;
  const bool short_enough = value.operations <= printer::kExpressionOperations || is_assigned(loop, i);
  if (one_use && !whole && short_enough) return;
  if (value.is_short()) return;
  if (const auto keep = analysis_.keep_of_row(loop, i)) {
    const Registers r = registers_.buffer(in.value);
    out_.line("{} = {};", registers_.element(r), expressions_.as_type(value, r.type));
    value = {registers_.element(r), r.type};
    loop.kept[*keep] = true;
    return;
  }
  const std::string name = out_.local(names_.hint(in.value));
  out_.line("const {} {} = {};", value.type, name, value.text);
  value = {name, value.type};
}

}  // namespace tilewright::cuda
