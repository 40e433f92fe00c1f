// The rounds of a chain of dots. Each product is handed to the tensor cores as soon as its operands are
// there, and waited for where a step touches it. Where rounds overlap (Schedule::ahead), the first products
// of a round and the last one of the round before are handed over together, and the steps between the first
// and the last run beside the last one.
#include "backends/cuda/chain_plan.h"
#include "backends/cuda/kernel_printer.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::Step;
using tile::Op;

// A loop that only multiplies: while the tensor cores work on one round's blocks, those before are given
// back.
void KernelPrinter::print_chain_pipeline(const Step& loop, const std::vector<const ChainDot*>& dots) {
  const Op& op = *loop.op;
  std::set<int> blocks;
  for (const ChainDot* d : dots)
    for (int block : {d->a, d->b})
      if (!chain_->blocks[static_cast<std::size_t>(block)].resident() &&
          !chain_text_[static_cast<std::size_t>(block)].joins)
        blocks.insert(block);
  const auto release = [&] {
    for (int block : blocks) {
      const ChainText& text = chain_text_[static_cast<std::size_t>(block)];
      out_.line("release_previous<1>({}, {});", text.ring, text.turn);
    }
  };
  const std::string lower = scalar(op.operands[0]).text, upper = scalar(op.operands[1]).text,
                    i = value_name(op.blocks[0].args[0]);
  if (schedule_.threads > kWarpgroup) out_.line("keep_step<{}>();", schedule_.threads);
  open_dot_loop(op);
  ++loop_depth_;
  for (const Step& s : loop.body[0])
    if (s.kind == Step::Kind::scalar) print_step(s);
  for (const ChainDot* d : dots) print_chain_wait(*d);
  for (const ChainDot* d : dots)
    print_chain_issue(*d, d->loop_from_zero ? fmt::format("{} > {}", i, lower) : "true");
  out_.line("wgmma_wait<{}>();", dots.size());
  out_.open("if ({} > {})", i, lower);
  release();
  out_.close();
  for (int block : blocks) out_.line("{}.next();", chain_text_[static_cast<std::size_t>(block)].turn);
  --loop_depth_;
  out_.close();
  out_.write("wgmma_wait<0>();");
  for (const ChainDot* d : dots) out_.line("wgmma_pin({});", buffer(d->op->results[0]).name);
  const bool runs = OperandReader(kernel_, schedule_.dot).trips(op) > 0;
  if (!runs) out_.open("if ({} < {})", lower, upper);
  release();
  if (!runs) out_.close();
}

void KernelPrinter::print_chain_steps(const Step& loop) {
  std::vector<const ChainDot*> under_way;
  const auto begin = [&](const ChainDot& d) {
    if (d.a < 0 && chain_parts_.count(plan_.storage(d.op->operands[0])) > 0) print_parts(d);
    print_chain_wait(d);
    print_chain_issue(d);
    under_way.push_back(&d);
  };
  // Products are done in the order in which they were handed over.
  const auto end = [&](std::size_t count) {
    if (count == 0) return;
    out_.line("wgmma_wait<{}>();", under_way.size() - count);
    for (std::size_t i = 0; i < count; ++i) print_chain_done(*under_way[i]);
    under_way.erase(under_way.begin(), under_way.begin() + static_cast<std::ptrdiff_t>(count));
  };
  for (const ChainDot& d : chain_->dots)
    if (d.loop == loop.op && d.waits_for_blocks()) begin(d);
  for (const Step& step : loop.body[0]) {
    if (step.kind == Step::Kind::dot) {
      const ChainDot& d = *chain_->find(*step.op);
      if (!d.waits_for_blocks()) begin(d);
      continue;
    }
    std::size_t touched = 0;
    for (std::size_t i = 0; i < under_way.size(); ++i)
      if (touches(plan_, step, *under_way[i])) touched = i + 1;
    end(touched);
    print_step(step);
  }
  end(under_way.size());
}

// The steps of a round by what they wait for.
KernelPrinter::ChainRound KernelPrinter::chain_round(const Step& loop, const ChainDot& late) {
  ChainRound round{.late = &late};
  const tile::ValueId sum = plan_.storage(late.op->results[0]);
  bool passed = false;
  for (const Step& s : loop.body[0]) {
    if (s.kind == Step::Kind::dot && s.op == late.op)
      passed = true;
    else if (s.kind == Step::Kind::dot)
      round.first.push_back(&s);
    else if (s.kind == Step::Kind::scalar)
      round.scalars.push_back(&s);
    else if (passed)
      round.after.push_back(&s);
    else
      (keeps(plan_, s, sum) ? round.sums : round.between).push_back(&s);
  }
  if (late.from_zero) find_adding(round);
  return round;
}

// Steps that wait for the last product when that begins with zeros: it is added a round later, when what they
// read beside it is already the next round's.
void KernelPrinter::find_adding(ChainRound& round) {
  const auto meet = [](const std::set<tile::ValueId>& a, const std::set<tile::ValueId>& b) {
    return std::any_of(a.begin(), a.end(), [&](tile::ValueId v) { return b.count(v) > 0; });
  };
  std::set<tile::ValueId> waited{plan_.storage(round.late->op->results[0])}, read, scalars;
  std::vector<const Step*> others;
  for (const Step* s : round.after) {
    const BufferUses uses = buffer_uses(plan_, *s);
    if (!meet(uses.all, waited)) {
      others.push_back(s);
      continue;
    }
    round.adding.push_back(s);
    add_scalars_read(*s, scalars);
    waited.insert(uses.written.begin(), uses.written.end());
    read.insert(uses.all.begin(), uses.all.end());
  }
  round.after = std::move(others);
  for (const auto* steps : {&round.between, &round.after})
    for (const Step* s : *steps) {
      const BufferUses uses = buffer_uses(plan_, *s);
      if (meet(uses.all, waited)) refuse("ahead: steps before a round's last product want the sum of them");
      for (tile::ValueId v : uses.written)
        if (read.count(v) > 0 && round.aside.count(v) == 0) {
          round.aside[v] = buffer(v);
          round.aside[v].name = unique(buffer(v).name + "_aside");
        }
    }
  for (const Step* s : round.scalars)
    if (!s->op->results.empty() && scalars.count(s->op->results[0]) > 0)
      refuse("ahead: what adds a round's last product reads a number of its round");
}

void KernelPrinter::print_chain_rounds(const Step& loop, const ChainDot& late) {
  const ChainRound round = chain_round(loop, late);
  const Op& op = *loop.op;
  const tile::ValueId i = op.blocks[0].args[0];
  const std::string type = type_of(i), name = value_name(i);
  const std::string lower = scalar(op.operands[0]).text, upper = unique(name + "_end"),
                    by = unique(name + "_step");
  for (const auto& [v, r] : round.aside) out_.write(declaration(r));
  out_.line("const i64 {} = {}, {} = {};", upper, scalar(op.operands[1]).text, by,
            scalar(op.operands[2]).text);
  const bool runs = OperandReader(kernel_, schedule_.dot).trips(op) > 0;
  if (!runs) out_.open("if ({} < {})", lower, upper);
  scalars_[i] = {name, type};
  ++loop_depth_;
  out_.write("{");
  out_.indent_by(1);
  out_.line("const {0} {1} = {0}({2});", type, name, lower);
  print_chain_open(round);
  print_chain_first(round);
  out_.write("wgmma_wait<0>();");
  print_chain_rest(round);
  print_chain_sums(round);
  out_.close();
  out_.open("for (i64 {0}_i = {1} + {3}; {0}_i < {2}; {0}_i += {3})", name, wrapped(lower), upper, by);
  out_.line("const {0} {1} = {0}({1}_i);", type, name);
  print_chain_open(round);
  if (schedule_.take_turns) out_.write("take_turn(group);");
  print_chain_first(round);
  print_chain_wait(late);
  print_chain_issue(late);
  if (schedule_.take_turns) out_.line("give_turn<{}>(group);", schedule_.threads / kWarpgroup);
  out_.write("wgmma_wait<1>();");
  print_chain_rest(round);
  out_.write("wgmma_wait<0>();");
  print_chain_done(late);
  print_chain_adding(round);
  print_chain_sums(round);
  out_.close();
  --loop_depth_;
  print_chain_wait(late);
  print_chain_issue(late);
  out_.write("wgmma_wait<0>();");
  print_chain_done(late);
  print_chain_adding(round);
  if (!runs) out_.close();
}

// The blocks of the first products, which wait for nothing else.
void KernelPrinter::print_chain_open(const ChainRound& round) {
  for (const Step* s : round.scalars) print_step(*s);
  for (const Step* s : round.first) print_chain_wait(*chain_->find(*s->op));
}

void KernelPrinter::print_chain_first(const ChainRound& round) {
  for (const Step* s : round.first) print_chain_issue(*chain_->find(*s->op));
}

// What is computed on them once they are there.
void KernelPrinter::print_chain_rest(const ChainRound& round) {
  for (const Step* s : round.first) print_chain_done(*chain_->find(*s->op));
  for (const Step* s : round.between) print_step(*s);
}

// Adds the last product of the round before.
void KernelPrinter::print_chain_adding(const ChainRound& round) {
  std::map<tile::ValueId, Registers> own;
  for (const auto& [v, r] : round.aside) own[v] = std::exchange(buffers_[v], r);
  for (const Step* s : round.adding) print_step(*s);
  for (const auto& [v, r] : own) buffers_[v] = r;
}

// What waits for the last product of the round before: its sum is rescaled, its operand replaced.
void KernelPrinter::print_chain_sums(const ChainRound& round) {
  for (const Step* s : round.sums) print_step(*s);
  for (const auto& [v, r] : round.aside)
    for_registers(r, [&, from = buffer(v), to = r] { out_.line("{} = {};", at(to), at(from)); });
  print_parts(*round.late);
  for (const Step* s : round.after) print_step(*s);
}

}  // namespace tilewright::cuda
