// The rounds of a chain of dots. Each product is handed to the tensor cores as soon as its operands are
// there, and waited for where a step touches it. Where rounds overlap (Schedule::ahead), the first products
// of a round and the last one of the round before are handed over together, and the steps between the first
// and the last run beside the last one.
#include "backends/cuda/analysis/chain_plan.h"
#include "backends/cuda/print/kernel_printer.h"

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
    if (d.a < 0 && chain_parts_.count(loops_.storage(d.op->operands[0])) > 0) print_parts(d);
    print_chain_wait(d);
    print_used_parts(d);
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
      if (touches(loops_, step, *under_way[i])) touched = i + 1;
    end(touched);
    print_step(step);
  }
  end(under_way.size());
}

// Registers for what a round keeps aside.
KernelPrinter::NamedRound KernelPrinter::named_round(const Step& loop) {
  NamedRound round{.steps = &plan_.rounds.of_loop.at(loop.op)};
  for (tile::ValueId v : round.steps->aside) {
    round.aside[v] = buffer(v);
    round.aside[v].name = unique(buffer(v).name + "_aside");
  }
  return round;
}

// The operand that the product under way reads, and its sum where that is by itself.
void KernelPrinter::share_late_registers(const ChainDot& from, const ChainDot& to) {
  for (const auto& [known, other] : {std::pair{from.op->operands[0], to.op->operands[0]},
                                     std::pair{from.op->results[0], to.op->results[0]}}) {
    const tile::ValueId one = loops_.storage(known), same = loops_.storage(other);
    if (one == same) continue;
    buffers_[same] = buffer(one);
    declared_.insert(same);
    if (const auto parts = chain_parts_.find(one); parts != chain_parts_.end())
      chain_parts_[same] = parts->second;
  }
}

KernelPrinter::RoundBounds KernelPrinter::print_round_bounds(const Op& loop) {
  const tile::ValueId i = loop.blocks[0].args[0];
  const std::string name = value_name(i);
  RoundBounds bounds{name, type_of(i), scalar(loop.operands[0]).text, unique(name + "_end"),
                     unique(name + "_step")};
  out_.line("const i64 {} = {}, {} = {};", bounds.end, scalar(loop.operands[1]).text, bounds.by,
            scalar(loop.operands[2]).text);
  scalars_[i] = {bounds.index, bounds.type};
  return bounds;
}

// Rounds that begin while the last product of the one before waits to be handed over.
void KernelPrinter::print_overlapping_rounds(const NamedRound& named, const RoundBounds& bounds,
                                             const std::string& from) {
  const ChainRound& round = *named.steps;
  out_.open("for (i64 {0}_i = {1}; {0}_i < {2}; {0}_i += {3})", bounds.index, from, bounds.end, bounds.by);
  out_.line("const {0} {1} = {0}({1}_i);", bounds.type, bounds.index);
  print_chain_open(round);
  if (schedule_.take_turns) out_.write("take_turn(group);");
  print_chain_first(round);
  print_chain_wait(*round.late);
  print_chain_issue(*round.late);
  if (schedule_.take_turns) out_.line("give_turn<{}>(group);", schedule_.threads / kWarpgroup);
  out_.write("wgmma_wait<1>();");
  print_chain_rest(round);
  out_.write("wgmma_wait<0>();");
  print_chain_done(*round.late);
  print_chain_adding(named);
  print_chain_sums(named);
  print_late_used_parts(*round.late);
  out_.close();
}

// The last product of a round is handed over in the next one, which knows nothing of this round's masks.
void KernelPrinter::print_late_used_parts(const ChainDot& late) {
  if (!late.has_used_parts) return;
  print_chain_wait(late);
  print_used_parts(late);
}

void KernelPrinter::print_chain_rounds(const Step& loop) {
  const NamedRound named = named_round(loop);
  const ChainRound& round = *named.steps;
  const ChainDot& late = *round.late;
  std::optional<NamedRound> more;
  const Step* next = plan_.rounds.next_of(loop);
  if (next) {
    more = named_round(*next);
    auto kept = named.aside.begin();
    for (auto& [v, r] : more->aside) r.name = (kept++)->second.name;
  }
  for (const auto& [v, r] : named.aside) out_.write(declaration(r));
  const RoundBounds bounds = print_round_bounds(*loop.op);
  const std::string& name = bounds.index;
  const bool runs = OperandReader(kernel_, schedule_.dot).trips(*loop.op) > 0;
  if (!runs) out_.open("if ({} < {})", bounds.from, bounds.end);
  ++loop_depth_;
  out_.write("{");
  out_.indent_by(1);
  out_.line("const {0} {1} = {0}({2});", bounds.type, name, bounds.from);
  print_chain_open(round);
  print_chain_first(round);
  out_.write("wgmma_wait<0>();");
  print_chain_rest(round);
  print_chain_sums(named);
  print_late_used_parts(late);
  out_.close();
  print_overlapping_rounds(named, bounds, fmt::format("{} + {}", wrapped(bounds.from), bounds.by));
  if (more) {
    const RoundBounds others = print_round_bounds(*next->op);
    print_overlapping_rounds(*more, others, others.from);
  }
  --loop_depth_;
  print_chain_wait(late);
  print_chain_issue(late);
  out_.write("wgmma_wait<0>();");
  print_chain_done(late);
  print_chain_adding(named);
  if (!runs) out_.close();
}

// The blocks of the first products, which wait for nothing else.
void KernelPrinter::print_chain_open(const ChainRound& round) {
  for (const Step* s : round.scalars) print_step(*s);
  for (const Step* s : round.first) print_chain_wait(*chain_->find(*s->op));
}

void KernelPrinter::print_chain_first(const ChainRound& round) {
  for (const Step* s : round.first) {
    const ChainDot& d = *chain_->find(*s->op);
    print_used_parts(d);
    print_chain_issue(d);
  }
}

// What is computed on them once they are there.
void KernelPrinter::print_chain_rest(const ChainRound& round) {
  for (const Step* s : round.first) print_chain_done(*chain_->find(*s->op));
  for (const Step* s : round.between) print_step(*s);
}

// Adds the last product of the round before.
void KernelPrinter::print_chain_adding(const NamedRound& round) {
  std::map<tile::ValueId, Registers> own;
  for (const auto& [v, r] : round.aside) own[v] = std::exchange(buffers_[v], r);
  for (const Step* s : round.steps->adding) print_step(*s);
  for (const auto& [v, r] : own) buffers_[v] = r;
}

// What waits for the last product of the round before: its sum is rescaled, its operand replaced.
void KernelPrinter::print_chain_sums(const NamedRound& round) {
  for (const Step* s : round.steps->sums) print_step(*s);
  for (const auto& [v, r] : round.aside)
    for_registers(r, [&, from = buffer(v), to = r] { out_.line("{} = {};", at(to), at(from)); });
  print_parts(*round.steps->late);
  for (const Step* s : round.steps->after) print_step(*s);
}

}  // namespace tilewright::cuda
