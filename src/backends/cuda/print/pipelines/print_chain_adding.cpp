// Loops that add up what is computed of products, one a round: DotChain::adds_up(). What a round loads beside
// its blocks is loaded a round before, so that it is there when the product is. While a warpgroup adds, the
// tensor cores have the other's product. Rows beyond 64 of a warpgroup are multiplied and added one block of
// 64 after another, through the same registers.
#include "backends/cuda/analysis/chain_plan.h"
#include "backends/cuda/print/kernel_printer.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::Step;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

// What prints a line of its own (print_scalar): others are texts of their operands.
bool is_variable(const Op& op) {
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

// A product of several blocks of 64 rows has registers for one of them.
void KernelPrinter::share_product_registers() {
  const ValueId product = loops_.storage(chain_->dots[0].op->results[0]);
  Registers r = buffer(product);
  if (layouts_.frame(r.place).row_steps() <= kBlockRows) return;
  r.rows = kBlockRows;
  buffers_[product] = r;
}

// The product's loop as rounds of two kinds, one after the other: what one round leaves for its own later
// steps has a name for each kind.
KernelPrinter::AddingRounds KernelPrinter::adding_rounds(const Step& loop, const ChainDot& dot) {
  AddingRounds a{.loop = &loop, .dot = &dot};
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
  const Registers product = buffer(dot.op->results[0]);
  a.row_blocks = layouts_.frame(product.place).row_steps() / kBlockRows;
  for (ValueId v : a.scalars) a.names[0].scalars[v] = value_name(v);
  for (ValueId v : a.scalars) a.names[1].scalars[v] = unique(value_name(v) + "_next");
  for (ValueId v : a.buffers) {
    a.names[0].buffers[v] = a.names[1].buffers[v] = buffer(v);
    a.names[1].buffers[v].name = unique(buffer(v).name + "_next");
  }
  return a;
}

void KernelPrinter::declare_adding_rounds(const AddingRounds& a) {
  for (const auto& [v, r] : a.names[1].buffers) out_.write(declaration(r));
  for (ValueId v : a.scalars) {
    out_.line("{} {}, {};", type_of(v), a.names[0].scalars.at(v), a.names[1].scalars.at(v));
    declared_.insert(v);
  }
}

// From here on names are those of every other round.
void KernelPrinter::use_adding_names(const AddingRounds& a, int kind) {
  const AddingRounds::Names& names = a.names[kind];
  for (const auto& [v, r] : names.buffers) buffers_[v] = r;
  for (const auto& [v, name] : names.scalars) {
    names_[v] = name;
    scalars_[v] = {name, type_of(v)};
  }
  for (const Step* s : a.before)
    if (s->kind == Step::Kind::scalar && !is_variable(*s->op)) print_scalar(*s->op);
}

void KernelPrinter::print_adding_steps(const AddingRounds& a, const AddingRound& round,
                                       const std::vector<const Step*>& steps) {
  if (steps.empty()) return;
  const ValueId i = a.loop->op->blocks[0].args[0];
  use_adding_names(a, round.kind);
  out_.write("{");
  out_.indent_by(1);
  out_.line("const {0} {1} = {0}({2});", type_of(i), value_name(i), round.index);
  scalars_[i] = {value_name(i), type_of(i)};
  for (const Step* s : steps) print_step(*s);
  out_.close();
}

// The product of one block of 64 rows of each warpgroup.
void KernelPrinter::print_adding_issue(const AddingRounds& a, int kind, Index row_block) {
  const ChainDot& d = *a.dot;
  use_adding_names(a, kind);
  const int groups = schedule_.threads / kWarpgroup;
  std::string place = chain_place(d, d.a);
  const std::string type = chain_type(d.a, d.a_k_major);
  if (row_block > 0) place += fmt::format(" + {}::offset({}, 0)", type, row_block * groups * 64);
  out_.line("wgmma_block<{}, {}, {}>({}, {}, {}, group, false);", type, chain_type(d.b, d.b_k_major), groups,
            buffer(d.op->results[0]).name, place, chain_place(d, d.b));
}

// What is computed of a product, for one block of 64 rows or all.
void KernelPrinter::print_adding_product(const AddingRounds& a, const AddingRound& round, Index row_block) {
  use_adding_names(a, round.kind);
  const ValueId product = loops_.storage(a.dot->op->results[0]);
  out_.line("wgmma_pin({});", buffer(product).name);
  for (const auto& [v, r] : a.names[round.kind].buffers)
    if (v != product && r.type == "f32" && (r.place.part == Part::rows || r.place.part == Part::one))
      out_.line("wgmma_pin({});", r.name);
  for (const auto& [v, name] : a.names[round.kind].scalars)
    if (type_of(v) == "f32") out_.line("wgmma_pin({});", name);
  if (a.row_blocks > 1) row_window_ = {row_block * kBlockRows, (row_block + 1) * kBlockRows};
  print_adding_steps(a, round, a.after);
  row_window_.reset();
}

// One accumulator: the tensor cores have the other warpgroups' products meanwhile.
void KernelPrinter::print_adding_round(const AddingRounds& a, const AddingRound& round) {
  const ChainDot& d = *a.dot;
  const AddingRound next{fmt::format("{} + {}", round.index, a.by), 1 - round.kind};
  print_chain_wait(d);
  for (Index block = 0; block < a.row_blocks; ++block) {
    print_adding_issue(a, round.kind, block);
    if (block == 0 && !a.before.empty()) {
      out_.open("if ({} < {})", next.index, a.end);
      print_adding_steps(a, next, a.before);
      out_.close();
    }
    out_.write("wgmma_wait<0>();");
    if (block + 1 == a.row_blocks)
      for (int b : std::set{d.a, d.b})
        if (!chain_->blocks[static_cast<std::size_t>(b)].resident()) print_chain_release(b, chain_turn(d, b));
    print_adding_product(a, round, block);
  }
}

void KernelPrinter::print_adding_rounds(const Step& loop, const ChainDot& dot) {
  AddingRounds a = adding_rounds(loop, dot);
  const Op& op = *loop.op;
  const std::string i = value_name(op.blocks[0].args[0]), lower = scalar(op.operands[0]).text;
  declare_adding_rounds(a);
  a.end = unique(i + "_end"), a.by = unique(i + "_step");
  out_.line("const i64 {} = {}, {} = {};", a.end, scalar(op.operands[1]).text, a.by,
            scalar(op.operands[2]).text);
  const bool runs = OperandReader(kernel_, schedule_.dot).trips(op) > 0;
  if (!runs) out_.open("if ({} < {})", lower, a.end);
  ++loop_depth_;
  const std::string at = i + "_i";
  const AddingRound first{wrapped(lower), 0}, even{at, 0}, odd{fmt::format("{} + {}", at, a.by), 1};
  print_adding_steps(a, first, a.before);
  out_.open("for (i64 {0} = {1}; {0} < {2}; {0} += 2 * {3})", at, first.index, a.end, a.by);
  print_adding_round(a, even);
  out_.open("if ({} < {})", odd.index, a.end);
  print_adding_round(a, odd);
  out_.close();
  out_.close();
  --loop_depth_;
  if (!runs) out_.close();
  use_adding_names(a, 0);
}

}  // namespace tilewright::cuda
