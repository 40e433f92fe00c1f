// The text of scaled accumulation by wgmma: rounds two by two, with names for what each round loads ahead.
#include "backends/cuda/print/pipelines/wgmma_scaled_accumulation.h"
#include "backends/cuda/print/element_printer.h"

#include "backends/cuda/analysis/b2b_plan.h"

namespace tilewright::cuda {

using tile::OpKind;

namespace {

// What prints a line of its own (print_scalar): others are texts of their operands.
bool is_variable(const tile::Op& op) {
  switch (op.kind) {
    case OpKind::constant:
    case OpKind::scalar_param:
    case OpKind::program_id:
    case OpKind::broadcast:
    case OpKind::reshape:
      return false;
    default:
      return !op.results.empty();
  }
}

}  // namespace

void WgmmaScaledAccumulation::choose_names() {
  WgmmaB2b::choose_names();
  share_product_registers();
}

// A product of several blocks of 64 rows has registers for one of them.
void WgmmaScaledAccumulation::share_product_registers() {
  const ValueId product = loops_.storage(b2b_->dots[0].op->results[0]);
  Registers r = registers_.buffer(product);
  if (layouts_.frame(r.layout).row_steps() <= kBlockRows) return;
  r.rows = kBlockRows;
  buffers_[product] = r;
}

// The product's loop as rounds of two kinds, one after the other: what one round leaves for its own later
// steps has a name for each kind.
WgmmaScaledAccumulation::Rounds WgmmaScaledAccumulation::rounds_of(const Step& loop) {
  Rounds a{.loop = &loop};
  bool passed = false;
  for (const Step& s : loop.body[0]) {
    if (s.kind == Step::Kind::dot)
      passed = true;
    else
      (passed ? a.after : a.before).push_back(&s);
  }
  std::set<ValueId> read;
  for (const Step* s : a.after) add_scalars_read(*s, read);
  for (const Step* s : a.before) {
    if (s->kind == Step::Kind::scalar && is_variable(*s->op) && read.count(s->op->results[0]) > 0)
      a.scalars.insert(s->op->results[0]);
    for (const printer::Instr& in : s->loop.body)
      if (in.kind != printer::Instr::Kind::compute && in.kind != printer::Instr::Kind::reload &&
          in.value >= 0)
        a.buffers.insert(loops_.storage(in.value));
  }
  const Registers product = registers_.buffer(dot().op->results[0]);
  a.row_blocks = layouts_.frame(product.layout).row_steps() / kBlockRows;
  for (ValueId v : a.scalars) a.names[0].scalars[v] = names_.value(v);
  for (ValueId v : a.scalars) a.names[1].scalars[v] = names_.unique(names_.value(v) + "_next");
  for (ValueId v : a.buffers) {
    a.names[0].buffers[v] = a.names[1].buffers[v] = registers_.buffer(v);
    a.names[1].buffers[v].name = names_.unique(registers_.buffer(v).name + "_next");
  }
  return a;
}

void WgmmaScaledAccumulation::declare(const Rounds& a) {
  for (const auto& [v, r] : a.names[1].buffers) out_.write(registers_.declaration(r));
  for (ValueId v : a.scalars) {
    out_.line("{} {}, {};", expressions_.type_of(v), a.names[0].scalars.at(v), a.names[1].scalars.at(v));
    declared_.insert(v);
  }
}

// From here on names are those of every other round.
void WgmmaScaledAccumulation::use_names(const Rounds& a, int kind) {
  const Rounds::Names& names = a.names[kind];
  for (const auto& [v, r] : names.buffers) buffers_[v] = r;
  for (const auto& [v, name] : names.scalars) {
    names_.set_value(v, name);
    scalars_[v] = {name, expressions_.type_of(v)};
  }
  for (const Step* s : a.before)
    if (s->kind == Step::Kind::scalar && !is_variable(*s->op)) k_.scalars().print_scalar(*s->op);
}

void WgmmaScaledAccumulation::print_steps(const Rounds& a, const Round& round,
                                          const std::vector<const Step*>& steps) {
  if (steps.empty()) return;
  const ValueId i = a.loop->op->blocks[0].args[0];
  use_names(a, round.kind);
  out_.open_block();
  out_.line("const {0} {1} = {0}({2});", expressions_.type_of(i), names_.value(i), round.index);
  scalars_[i] = {names_.value(i), expressions_.type_of(i)};
  for (const Step* s : steps) k_.print_step(*s);
  out_.close();
}

// The product of one block of 64 rows of each warpgroup.
void WgmmaScaledAccumulation::issue(const Rounds& a, int kind, Index row_block) {
  const B2bDot& d = dot();
  use_names(a, kind);
  const int groups = warpgroups();
  std::string from = layout(d, d.a);
  const std::string type = blocks_.type(d.a, d.a_k_major);
  if (row_block > 0) from += fmt::format(" + {}::offset({}, 0)", type, row_block * groups * 64);
  out_.line("wgmma_block<{}, {}, {}>({}, {}, {}, group, false);", type, blocks_.type(d.b, d.b_k_major),
            groups, registers_.buffer(d.op->results[0]).name, from, layout(d, d.b));
}

// What is computed of a product, for one block of 64 rows or all.
void WgmmaScaledAccumulation::print_product(const Rounds& a, const Round& round, Index row_block) {
  use_names(a, round.kind);
  const ValueId product = loops_.storage(dot().op->results[0]);
  out_.line("wgmma_pin({});", registers_.buffer(product).name);
  for (const auto& [v, r] : a.names[round.kind].buffers)
    if (v != product && r.type == DType::f32 && (r.layout.part == Part::rows || r.layout.part == Part::one))
      out_.line("wgmma_pin({});", r.name);
  for (const auto& [v, name] : a.names[round.kind].scalars)
    if (expressions_.type_of(v) == DType::f32) out_.line("wgmma_pin({});", name);
  if (a.row_blocks > 1) k_.elements().row_window() = {row_block * kBlockRows, (row_block + 1) * kBlockRows};
  print_steps(a, round, a.after);
  k_.elements().row_window().reset();
}

// One accumulator: the tensor cores have the other warpgroups' products meanwhile.
void WgmmaScaledAccumulation::print_round(const Rounds& a, const Round& round) {
  const B2bDot& d = dot();
  const Round next{fmt::format("{} + {}", round.index, a.by), 1 - round.kind};
  wait(d);
  for (Index block = 0; block < a.row_blocks; ++block) {
    issue(a, round.kind, block);
    if (block == 0 && !a.before.empty()) {
      out_.open_if_needed("if ({} < {})", next.index, a.end);
      print_steps(a, next, a.before);
      out_.close();
    }
    out_.write("wgmma_wait<0>();");
    if (block + 1 == a.row_blocks)
      for (int b : std::set{d.a, d.b})
        if (!blocks_.is_resident(b)) release(b, state(d, b));
    print_product(a, round, block);
  }
}

void WgmmaScaledAccumulation::print_dots(const Step& loop) {
  if (warpgroups() > 1) out_.line("keep_step<{}>();", schedule_.threads);
  Rounds a = rounds_of(loop);
  const Op& op = *loop.op;
  const std::string i = names_.value(op.blocks[0].args[0]);
  const TypedText lower = expressions_.scalar(op.operands[0]);
  declare(a);
  a.end = out_.local(i + "_end"), a.by = out_.local(i + "_step");
  out_.line("const i64 {} = {}, {} = {};", a.end, expressions_.scalar(op.operands[1]).text, a.by,
            expressions_.scalar(op.operands[2]).text);
  const bool runs = runs_always(op);
  if (!runs) out_.open_if_needed("if ({} < {})", lower.text, a.end);
  ++loop_depth_;
  const std::string at = out_.local(i + "_i");
  const Round first{wrapped(lower), 0}, even{at, 0}, odd{fmt::format("{} + {}", at, a.by), 1};
  print_steps(a, first, a.before);
  out_.open("for (i64 {0} = {1}; {0} < {2}; {0} += 2 * {3})", at, first.index, a.end, a.by);
  print_round(a, even);
  out_.open_if_needed("if ({} < {})", odd.index, a.end);
  print_round(a, odd);
  out_.close();
  out_.close();
  --loop_depth_;
  if (!runs) out_.close();
  use_names(a, 0);
}

}  // namespace tilewright::cuda
